"""Compares packing with a plain Python version of its rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe_engine
from bpe_engine.abilities.packing import pack_causal, pack_inputs
from bpe_engine.abilities.ragged import TokenBatch

np = pytest.importorskip("numpy")

START, END, PAD = 101, 102, 7
IDS = {"start_id": START, "end_id": END, "pad_id": PAD}

batches = st.integers(1, 4).flatmap(
    lambda count: st.lists(
        st.lists(
            st.lists(st.integers(1000, 2**31 - 1), max_size=8), min_size=count, max_size=count
        ),
        max_size=6,
    ).map(lambda rows: (count, rows))
)


def round_robin(sizes: list[int], budget: int) -> list[int]:
    """Returns how many ids of each segment are kept, taking one from each segment in turn."""
    kept = [0] * len(sizes)
    while sum(kept) < budget and kept != sizes:
        for place, size in enumerate(sizes):
            if kept[place] < size and sum(kept) < budget:
                kept[place] += 1
    return kept


def waterfall(sizes: list[int], budget: int) -> list[int]:
    kept = []
    for size in sizes:
        kept.append(min(size, budget - sum(kept)))
    return kept


def packed_row(segments: list[list[int]], length: int, kept: list[int]) -> tuple[list[int], ...]:
    words, types = [START], [0]
    for number, (segment, count) in enumerate(zip(segments, kept)):
        words += [*segment[:count], END]
        types += [number] * (count + 1)
    missing = length - len(words)
    mask = [1] * len(words) + [0] * missing
    return words + [PAD] * missing, mask, types + [0] * missing


@given(batches, st.integers(0, 14), st.sampled_from(["round_robin", "waterfall"]))
def test_rows_follow_the_rules(batch: Any, budget: int, truncator: Any) -> None:
    count, rows = batch
    length = budget + count + 1
    segments = [TokenBatch.from_lists([row[place] for row in rows]) for place in range(count)]
    packed = pack_inputs(segments, length, truncator=truncator, **IDS)
    share = round_robin if truncator == "round_robin" else waterfall
    for number, row in enumerate(rows):
        kept = share([len(segment) for segment in row], budget)
        assert sum(kept) <= budget
        found = tuple(values[number].tolist() for values in packed.values())
        assert found == packed_row(row, length, kept)
    for values in packed.values():
        assert values.shape == (len(rows), length) and values.dtype == np.int32


def test_other_forms_of_segments() -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [[1000, 1001], [1002]]
    expected = pack_inputs([TokenBatch.from_lists(rows)], 6, **IDS)

    class Ragged:
        def to_list(self) -> list[list[int]]:
            return rows

    nested = [[[1000], [1001]], [[], [[1002]]]]
    for segment in (rows, Ragged(), nested, pa.array(rows), TokenBatch.from_lists(rows).to_arrow()):
        packed = pack_inputs([segment], 6, **IDS)
        assert all((packed[name] == expected[name]).all() for name in expected)
    matrix = np.array([[1000, 1001], [1002, 1003]])
    assert pack_inputs([matrix], 4, **IDS)["input_word_ids"].tolist() == [
        [START, 1000, 1001, END],
        [START, 1002, 1003, END],
    ]
    assert pack_inputs([[]], 4, **IDS)["input_mask"].shape == (0, 4)


def test_errors() -> None:
    one = [[1]]
    for segments, length, ids, message in [
        ([], 8, {}, "segments is empty"),
        ([one, [[1], [2]]], 8, {}, r"segments\[1\] has 2 rows, but segments\[0\] has 1"),
        ([one], 1, {}, "seq_length is 1"),
        ([one, one], 2, {}, "2 segments need 3 special tokens"),
        ([[[2**31]]], 8, {}, "2147483648, which does not fit"),
        ([[[-1]]], 8, {}, "-1 is out of range"),
        ([one], 8, {"pad_id": -1}, "pad_id is -1"),
        ([one], 8, {"end_id": 2**31}, "end_id is 2147483648"),
        ([one], 10**30, {}, "more than 2147483647"),
    ]:
        with pytest.raises(ValueError, match=message):
            pack_inputs(segments, length, **{**IDS, **ids})
    for truncator in ("random", ["waterfall"]):
        with pytest.raises(
            ValueError, match="truncator is .*; choose one of round_robin, waterfall"
        ):
            pack_inputs([one], 8, truncator=truncator, **IDS)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="start_id must be an int, as encoding.encode_single_token"):
        pack_inputs([one], 8, **{**IDS, "start_id": None})
    with pytest.raises(TypeError, match=r"for one segment pass \[batch\]"):
        pack_inputs(TokenBatch.from_lists(one), 8, **IDS)
    for segments in ([[1, 2]], ["text"], [["text"]], [3], [[[1.5]]]):
        with pytest.raises(TypeError):
            pack_inputs(segments, 8, **IDS)


def test_packing_encoded_texts() -> None:
    """Looks up ids of special tokens by name, as in the manual."""
    encoding = bpe_engine.get_encoding("qwen")
    ids = encoding.encode_single_token
    segments = [
        encoding.encode_batch_to_numpy(texts)
        for texts in (["What is it?", "Who?"], ["A tokenizer.", "Nobody that one knows of."])
    ]
    packed = pack_inputs(
        segments,
        8,
        start_id=ids("<|im_start|>"),
        end_id=ids("<|im_end|>"),
        pad_id=ids("<|endoftext|>"),
    )
    assert encoding.decode_batch(packed["input_word_ids"]) == [
        "<|im_start|>What is it<|im_end|>A tokenizer<|im_end|>",
        "<|im_start|>Who?<|im_end|>Nobody that one<|im_end|>",
    ]


documents = st.lists(
    st.lists(st.tuples(st.integers(1, 2**31 - 1), st.integers(0, 1)), max_size=9), max_size=8
)


@given(documents, st.integers(1, 7))
def test_causal_rows_hold_every_id_once(pairs: list[list[tuple[int, int]]], width: int) -> None:
    rows = [[id for id, _ in row] for row in pairs]
    masks = [[bit for _, bit in row] for row in pairs]
    packed = pack_causal(rows, width, pad_id=0, masks=masks)
    found = []
    for ids, labels, positions, attended in zip(*(packed[name].tolist() for name in packed_names)):
        assert len(ids) == width and attended == sorted(attended, reverse=True)
        used = sum(attended)
        assert ids[used:] == [0] * (width - used) and labels[used:] == [-100] * (width - used)
        begins = [at for at in range(used) if positions[at] == 0]
        for begin, end in zip(begins, [*begins[1:], used]):
            assert positions[begin:end] == list(range(end - begin))
            found.append((ids[begin:end], labels[begin:end]))
    expected = []
    for row, mask in zip(rows, masks):
        for at in range(0, len(row), width):
            ids = row[at : at + width]
            learned = [id if bit else -100 for id, bit in zip(ids, mask[at:])]
            expected.append((ids, [-100, *learned[1:]]))
    assert sorted(found) == sorted(expected)


packed_names = ("input_ids", "labels", "position_ids", "attention_mask")


def test_causal_masks_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="1 masks for 2 rows"):
        pack_causal([[1], [2]], 4, pad_id=0, masks=[[1]])
    with pytest.raises(ValueError, match=r"masks\[1\] has 2 numbers, but rows\[1\] has 1 ids"):
        pack_causal([[1], [2]], 4, pad_id=0, masks=[[1], [1, 1]])
    with pytest.raises(ValueError, match="seq_length"):
        pack_causal([[1]], 0, pad_id=0)
