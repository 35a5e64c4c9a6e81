"""Tests `TokenBatch`, and `encode_batch_to_numpy` for all kinds of columns."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded
from strategies import texts

import bpe_engine
from bpe_engine.abilities.ragged import TokenBatch

np = pytest.importorskip("numpy")

TEXTS = ["hello world", "", "ä😀 根本", " don't", "a" * 300, "\n\n  x"]
GPT2 = bpe_engine.get_encoding("gpt2")

rows = st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=9), max_size=9)


def pyarrow_columns() -> dict[str, Any]:
    pa = pytest.importorskip("pyarrow")
    read_only = [
        None if buffer is None else pa.py_buffer(buffer.to_pybytes())
        for buffer in pa.array(TEXTS).buffers()
    ]
    return {
        "string": pa.array(TEXTS),
        "large_string": pa.array(TEXTS, pa.large_string()),
        "string_view": pa.array(TEXTS, pa.string_view()),
        "dictionary": pa.array(TEXTS).dictionary_encode(),
        "chunked": pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
        "read-only": pa.Array.from_buffers(pa.string(), len(TEXTS), read_only),
        "slice": pa.array(["before", *TEXTS, "after"])[1:-1],
        "valid": pa.array([None, *TEXTS])[1:],
    }


def other_columns() -> dict[str, Any]:
    pd = pytest.importorskip("pandas")
    columns = {
        "list": TEXTS,
        "tuple": tuple(TEXTS),
        "iterator": iter(TEXTS),
        "numpy": np.array(TEXTS),
        "numpy big-endian": np.array(TEXTS).astype(np.array(TEXTS).dtype.newbyteorder(">")),
        "numpy object": np.array(TEXTS, dtype=object),
        "numpy every second": np.array([part for text in TEXTS for part in (text, "no")])[::2],
        "pandas": pd.Series(TEXTS),
        "pandas object": pd.Series(TEXTS, dtype=object),
        "pandas python": pd.Series(TEXTS, dtype="string[python]"),
        "pandas index": pd.Index(TEXTS),
    }
    if hasattr(np.dtypes, "StringDType"):
        columns["numpy StringDType"] = np.array(TEXTS, dtype=np.dtypes.StringDType())
    return columns


@pytest.mark.parametrize("columns", [pyarrow_columns, other_columns])
def test_columns_of_every_kind(columns: Any) -> None:
    expected = [GPT2.encode(text) for text in TEXTS]
    for name, column in columns().items():
        batch = GPT2.encode_batch_to_numpy(column)
        assert batch.to_lists() == expected, name
        assert batch.values.dtype == np.uint32 and batch.row_splits.dtype == np.int64, name


def test_other_column_layouts() -> None:
    pa = pytest.importorskip("pyarrow")
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), pa.array(["a", "b c"]))
    for column in (ends, pa.chunked_array([ends])):
        assert GPT2.encode_batch_to_numpy(column).to_lists() == [[64], [64], [65, 269]]
    assert GPT2.encode_batch_to_numpy(pa.array(["[1]"], pa.json_())).to_lists() == [
        GPT2.encode("[1]")
    ]
    assert len(GPT2.encode_batch_to_numpy(np.array([]))) == 0


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    assert GPT2.encode_batch_to_numpy(polars.Series(TEXTS)).to_lists() == [
        GPT2.encode(text) for text in TEXTS
    ]


def test_rows_are_decoded_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = GPT2.encode_batch_to_numpy(["a", "b c"])
    monkeypatch.setattr(GPT2, "_decode_batch", None)
    assert GPT2.decode_batch(batch) == ["a", "b c"]


@given(st.lists(texts, max_size=6), st.sampled_from([None, 1, 2, 3]))
def test_rows_are_those_of_encode(batch: list[str], num_threads: int | None) -> None:
    for name in ("gpt2", "qwen"):
        encoding = bpe_engine.get_encoding(name)
        ragged = encoding.encode_batch_to_numpy(
            batch, num_threads=num_threads, disallowed_special=()
        )
        assert ragged.to_lists() == [encoding.encode_ordinary(text) for text in batch]
        assert encoding.decode_batch(ragged) == encoding.decode_batch(ragged.to_lists())
        assert encoding.decode_bytes_batch(ragged) == encoding.decode_bytes_batch(ragged.to_lists())


def test_large_batches_on_threads() -> None:
    pa = pytest.importorskip("pyarrow")
    random = seeded("ragged threads")
    batch = ["".join(random.choices("ab é根\n", k=random.randrange(60))) for _ in range(20_000)]
    expected = GPT2.encode_batch_to_numpy(batch, num_threads=1)
    for column in (batch, pa.array(batch), pa.chunked_array([batch[:7], batch[7:]])):
        for num_threads in (1, 2, None):
            assert GPT2.encode_batch_to_numpy(column, num_threads=num_threads) == expected


def test_special_tokens_as_in_encode() -> None:
    name = "<|endoftext|>"
    with pytest.raises(ValueError, match="disallowed special token"):
        GPT2.encode_batch_to_numpy(["a", name])
    assert GPT2.encode_batch_to_numpy([name], allowed_special="all").to_lists() == [[50256]]
    assert GPT2.encode_batch_to_numpy([name], disallowed_special=()).to_lists() == [
        GPT2.encode_ordinary(name)
    ]


def test_wrong_columns() -> None:
    pa = pytest.importorskip("pyarrow")
    for wrong, message in [
        ("text", r"for one text pass \[text\]"),
        (b"bytes", "not bytes"),
        (3, "not int"),
        ([1], "row 0: text must be a str, not int"),
        (["a", None], "row 1: text must be a str, not NoneType"),
        (np.array(["a", None], dtype=object), "row 1: text must be a str, not NoneType"),
        ({"text": ["a"]}, r'batch\["text"\]'),
        (np.array([b"a"]), "numpy.char.decode"),
        (np.array([["a"]]), "one dimension"),
        (np.array([1]), "must hold str"),
        (pa.array([b"a"]), r"cast it first"),
        (pa.array([1]), "not int64"),
        (pa.array([1]).dictionary_encode(), "not int64"),
        (pa.table({"text": ["a"]}), r'table\["text"\]'),
        (pa.array([{"text": "a"}]), r'table\["text"\]'),
        (pytest.importorskip("pandas").DataFrame({"text": ["a"]}), r'table\["text"\]'),
    ]:
        with pytest.raises(TypeError, match=message):
            GPT2.encode_batch_to_numpy(wrong)


def test_nulls_are_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    for column in (
        pa.array(["a", None]),
        pa.chunked_array([["a"], [None]]),
        pa.array([None, "a", None], pa.large_string())[1:],
        pa.nulls(2),
        pd.Series(["a", None], dtype="string[pyarrow]"),
    ):
        with pytest.raises(ValueError, match=r"row [01] is null.*fill_null"):
            GPT2.encode_batch_to_numpy(column)


@given(st.lists(st.integers(-3, 12), max_size=6), st.binary(max_size=10), st.integers(0, 6))
def test_any_buffers_give_rows_or_an_error(offsets: list[int], text: bytes, count: int) -> None:
    view = memoryview(np.array(offsets, np.int32)).cast("B")
    column = [(None, view, memoryview(text), 0, count, False)]
    sound = len(offsets) > count and all(
        0 <= start <= end <= len(text) for start, end in zip(offsets, offsets[1 : count + 1])
    )
    try:
        ids, splits = GPT2._encode_ragged(column, 1)
    except ValueError as error:
        assert not sound or "not UTF-8" in str(error)
    else:
        spans = zip(offsets, offsets[1 : count + 1])
        expected = [text[start:end].decode() for start, end in spans] if count else []
        rows = TokenBatch(np.frombuffer(ids, np.uint32), np.frombuffer(splits, np.int64))
        assert GPT2.decode_batch(rows) == expected


# ---- TokenBatch ----


@given(rows)
def test_as_a_sequence(lists: list[list[int]]) -> None:
    batch = TokenBatch.from_lists(lists)
    assert batch.to_lists() == lists == [row.tolist() for row in batch]
    assert len(batch) == len(lists)
    assert batch.lengths.tolist() == [len(row) for row in lists]
    assert TokenBatch(batch.values, batch.row_splits) == batch
    assert pickle.loads(pickle.dumps(batch)) == batch == copy.deepcopy(batch)
    for number in range(-len(lists), len(lists)):
        assert batch[number].tolist() == lists[number]
    for wrong in (len(lists), -len(lists) - 1):
        with pytest.raises(IndexError):
            batch[wrong]


@given(rows, st.slices(9), st.data())
def test_rows_can_be_taken(lists: list[list[int]], part: slice, data: st.DataObject) -> None:
    batch = TokenBatch.from_lists(lists)
    taken = batch[part]
    assert taken.to_lists() == lists[part]
    assert TokenBatch(taken.values, taken.row_splits) == taken
    mask = data.draw(st.lists(st.booleans(), min_size=len(lists), max_size=len(lists)))
    assert batch[np.array(mask, bool)].to_lists() == [
        row for row, is_in in zip(lists, mask) if is_in
    ]
    if lists:
        numbers = data.draw(st.lists(st.integers(-len(lists), len(lists) - 1), max_size=5))
        assert batch[numbers].to_lists() == [lists[number] for number in numbers]


@given(rows, st.integers(0, 5), st.sampled_from(["left", "right"]), st.integers(-100, 2**32 - 1))
def test_truncate_and_pad(lists: list[list[int]], extra: int, side: Any, id: int) -> None:
    batch = TokenBatch.from_lists(lists)
    longest = max(map(len, lists), default=0)
    matrix, mask = batch.pad(longest + extra, id, side)
    assert matrix.shape == mask.shape == (len(lists), longest + extra)
    assert mask.sum(axis=1).tolist() == [len(row) for row in lists]
    for row, cells, flags in zip(lists, matrix.tolist(), mask.tolist()):
        filled = [id] * (longest + extra - len(row))
        assert cells == (filled + row if side == "left" else row + filled)
        assert [cell for cell, flag in zip(cells, flags) if flag] == row
    cut = batch.truncate(extra, side)
    if side == "right":
        assert cut.to_lists() == [row[:extra] for row in lists]
    else:
        assert cut.to_lists() == [
            row[len(row) - extra :] if len(row) > extra else row for row in lists
        ]
    assert cut.pad(extra)[0].shape == (len(lists), extra)
    assert TokenBatch.concat([batch, cut, batch[:0]]).to_lists() == lists + cut.to_lists()


@given(rows)
def test_arrow_and_back(lists: list[list[int]]) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = TokenBatch.from_lists(lists)
    for part in (batch, batch[1:]):
        for large, kind in ((None, pa.ListArray), (False, pa.ListArray), (True, pa.LargeListArray)):
            array = part.to_arrow(large=large)
            assert isinstance(array, kind)
            array.validate(full=True)
            assert array.to_pylist() == part.to_lists()
            assert TokenBatch.from_arrow(array) == part
            assert TokenBatch.from_arrow(array[1:]) == part[1:]
    chunks = pa.chunked_array([batch.to_arrow(), batch[2:].to_arrow()])
    assert TokenBatch.from_arrow(chunks).to_lists() == lists + lists[2:]


def test_arrow_shares_memory() -> None:
    pytest.importorskip("pyarrow")
    batch = GPT2.encode_batch_to_numpy(TEXTS)
    address = batch.values.__array_interface__["data"][0]
    assert batch.to_arrow().values.buffers()[1].address == address
    large = batch.to_arrow(large=True)
    assert large.buffers()[1].address == batch.row_splits.__array_interface__["data"][0]
    assert TokenBatch.from_arrow(large).values.__array_interface__["data"][0] == address


def test_row_splits_are_read_only() -> None:
    """pyarrow trusts the offsets: invalid offsets once crashed it or exposed other memory."""
    own = np.array([0, 2, 3])
    batch = TokenBatch([1, 2, 3], own)
    own[1] = 2**40
    for made in (
        batch,
        batch[1:],
        batch[[1, 0]],
        batch.truncate(1),
        GPT2.encode_batch_to_numpy(["a"]),
    ):
        with pytest.raises(ValueError, match="read-only"):
            made.row_splits[0] = 2**40
    assert batch.to_lists() == [[1, 2], [3]]
    pytest.importorskip("pyarrow")
    batch.row_splits.flags.writeable = True
    batch.row_splits[1] = 2**40
    for large in (False, True):
        with pytest.raises(ValueError, match="row_splits must begin with 0, ascend"):
            batch.to_arrow(large=large)


def test_wrong_arrow_arrays() -> None:
    pa = pytest.importorskip("pyarrow")
    for wrong, message in [
        (pa.array([[1], None]), "a row is null"),
        (pa.array([[1, None]]), "an id is null"),
        (pa.array([[-1]]), "-1 is out of range"),
        (pa.array([[2**32]]), "4294967296 is out of range"),
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), "a row is null"),
    ]:
        with pytest.raises(ValueError, match=message):
            TokenBatch.from_arrow(wrong)
    views = pa.array([[1]], pa.list_view(pa.int32()))
    for wrong in (pa.array([1]), pa.array([[1.5]]), pa.array([["a"]]), views, [[1]]):
        with pytest.raises(TypeError):
            TokenBatch.from_arrow(wrong)


def test_other_arrow_data() -> None:
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    lists = [[1, 2], [3, 4]]
    fixed = pa.array(lists, pa.list_(pa.int32(), 2))
    column = pd.Series(lists, dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    for array in (fixed, pa.chunked_array([fixed]), column):
        assert TokenBatch.from_arrow(array).to_lists() == lists
    assert TokenBatch.from_arrow(fixed[1:]).to_lists() == lists[1:]
    # pyarrow infers values of type null if all lists are empty.
    assert TokenBatch.from_arrow(pa.array([[], []])).to_lists() == [[], []]
    batch = TokenBatch.from_lists(lists)
    shared = TokenBatch.from_arrow(pa.chunked_array([batch.to_arrow()]))
    assert np.shares_memory(shared.values, batch.values)


def test_invalid_batches() -> None:
    for splits in ([], [0], [0, 1], [1, 2], [0, 3], [0, 2, 1, 2], [0, -1, 2]):
        with pytest.raises(ValueError, match="row_splits must begin with 0, ascend"):
            TokenBatch([5, 6], splits)
    for values, error in (
        ([-1], ValueError),
        ([2**32], ValueError),
        ([1.5], TypeError),
        (["a"], TypeError),
        ([[1]], TypeError),
    ):
        with pytest.raises(error):
            TokenBatch(values, [0, 1])
    batch = TokenBatch.from_lists([[1, 2, 3], [4]])
    with pytest.raises(ValueError, match="row 0 has 3 ids.*truncate"):
        batch.pad(2)
    with pytest.raises(ValueError, match="side is .*; choose one of left, right"):
        batch.pad(side="middle")
    with pytest.raises(ValueError, match="max_length must be at least 0"):
        batch.truncate(-1)
    assert batch.truncate(10**30) == batch
    with pytest.raises(MemoryError):
        batch.pad(10**30)
    with pytest.raises(ValueError, match="does not fit into int64"):
        batch.pad(3, 2**63)
    with pytest.raises(TypeError, match="batch 1 must be a TokenBatch, not list"):
        TokenBatch.concat([batch, [[1]]])  # type: ignore[list-item]
    with pytest.raises(IndexError):
        batch[[2]]
    with pytest.raises(IndexError):
        batch[np.array([True])]


def test_decoding_damaged_batches() -> None:
    for splits in ([0, 3], [-1, 1], [1, 0]):
        with pytest.raises(ValueError, match="are not a span of the 2 values"):
            GPT2._decode_ragged(np.array([1, 2], np.uint32), np.array(splits), "replace", 1)
    with pytest.raises(KeyError):
        GPT2.decode_batch(TokenBatch([4_000_000], [0, 1]))


def test_missing_packages_are_named() -> None:
    """Without pyarrow, errors say what to install, and Arrow columns are read as iterables."""
    program = """
import sys
sys.modules["pyarrow"] = None
import bpe_engine
from bpe_engine.abilities.ragged import TokenBatch
batch = TokenBatch.from_lists([[1]])
for call in (batch.to_arrow, lambda: TokenBatch.from_arrow([])):
    try:
        call()
    except ImportError as error:
        print(error)
class Column:
    def __arrow_c_stream__(self, schema=None): raise AssertionError
    def __iter__(self): return iter(["a", "b"])
print(bpe_engine.get_encoding("gpt2").encode_batch_to_numpy(Column()).to_lists())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all("pip install 'bpe-engine[arrays]'" in line for line in lines[:2])
    assert lines[2] == "[[64], [65]]"
