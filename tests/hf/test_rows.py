"""Compares rows of numbers with `tokenizers`, for all post-processors, truncations and paddings."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hf_oracle import both
from seeds import rounds, seeded

tokenizers = pytest.importorskip("tokenizers")

from tokenizers import processors  # noqa: E402

from bpe_engine._core import RowEncoder  # noqa: E402

FIELDS = {
    "input_ids": "ids",
    "token_type_ids": "type_ids",
    "attention_mask": "attention_mask",
    "special_tokens_mask": "special_tokens_mask",
}
VOCAB = {token: id for id, token in enumerate(["[CLS]", "[SEP]", "[PAD]", *"abcdefgh"])}
SEP, CLS = ("[SEP]", 1), ("[CLS]", 0)
LEVEL = processors.ByteLevel(trim_offsets=False)


def template(single: str, pair: str) -> Any:
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[CLS, SEP])


PROCESSORS = {
    "none": None,
    "bytes": LEVEL,
    "bert": processors.BertProcessing(SEP, CLS),
    "roberta": processors.RobertaProcessing(SEP, CLS),
    "template": template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "types": template("$A:2 [SEP]:3 [CLS]:2", "$B:1 [SEP]:1 $A:4 [CLS]"),
    "twice": template("[CLS] $A $A", "$A $B:1 $A"),
    "plain": template("$A", "$A $B"),
    "bytes and template": processors.Sequence([LEVEL, template("[CLS] $A", "$A $B:1 [SEP]")]),
    "two": processors.Sequence([processors.BertProcessing(SEP, CLS), template("$A", "$A $B")]),
}
TRUNCATIONS = [
    None,
    *(
        {"max_length": length, "stride": stride, "strategy": strategy, "direction": direction}
        for length, stride, strategy, direction in itertools.product(
            (0, 1, 3, 4, 7, 8),
            (0, 2),
            ("longest_first", "only_first", "only_second"),
            ("right", "left"),
        )
    ),
]
PADDINGS = [
    None,
    {"pad_id": 2, "pad_token": "[PAD]", "pad_type_id": 5},
    {"pad_id": 2, "pad_token": "[PAD]", "direction": "left", "length": 9},
    {"pad_id": 2, "pad_token": "[PAD]", "pad_to_multiple_of": 4},
]
BATCHES: list[list[Any]] = [
    [],
    ["abc"],
    ["", "a", "abcdefgh" * 3, "hgf"],
    [("abcd", "ef"), ("a", "abcdefgh"), ("abcdefghabcdefgh", "hgfedcba")],
    [("", ""), "abcdef", ("abcdefg", ""), ("", "abcdefg"), "b"],
]


@pytest.fixture(scope="module", params=PROCESSORS)
def pair(request):
    made = tokenizers.Tokenizer(tokenizers.models.BPE(VOCAB, []))
    made.add_special_tokens(["[CLS]", "[SEP]", "[PAD]"])
    if PROCESSORS[request.param] is not None:
        made.post_processor = PROCESSORS[request.param]
    return both(made.to_str())


def settings(tokenizer: Any, truncation: Any, padding: Any) -> None:
    tokenizer.no_truncation() if truncation is None else tokenizer.enable_truncation(**truncation)
    tokenizer.no_padding() if padding is None else tokenizer.enable_padding(**padding)


def rows_of(encoder: RowEncoder, batch: list[Any], detailed: bool) -> dict[str, Any]:
    made = encoder.encode(batch, detailed)
    names = (*FIELDS, "length")
    fields = made.fields(names, True)
    assert made.longest() == max(fields["length"], default=0)
    matrices = made.fields(names, True, True)
    if len(set(fields["length"])) <= 1:
        for name in FIELDS:
            data, length = matrices[name]
            numbers = memoryview(data).cast("q").tolist()
            assert length == (fields["length"] or [0])[0]
            assert numbers == [number for row in fields[name] for number in row]
    else:
        assert matrices == fields
    if len(batch) == 1:
        alone = made.fields(tuple(FIELDS), False)
        assert alone == {name: fields[name][0] for name in FIELDS}
    return {name: fields[name] for name in FIELDS}


def encoder_of(tokenizer: Any, truncation: Any, padding: Any, add: bool) -> RowEncoder:
    cut = None if truncation is None else SimpleNamespace(**truncation)
    fill = None
    if padding is not None:
        usual = {"direction": "right", "length": None, "pad_to_multiple_of": None, "pad_type_id": 0}
        fill = SimpleNamespace(**usual | padding)
    return RowEncoder(
        tokenizer,
        is_pretokenized=False,
        add_special_tokens=add,
        truncation=cut,
        padding=fill,
        overflow=False,
        num_threads=None,
        allowed_special="all",
        disallowed_special=(),
    )


@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("padding", PADDINGS, ids=json.dumps)
def test_rows_are_those_of_tokenizers(pair, padding, add):
    ours, theirs = pair
    some = seeded("rows", padding, add).sample(TRUNCATIONS, rounds(len(TRUNCATIONS)))
    for truncation, batch in itertools.product(some, BATCHES):
        try:
            settings(theirs, truncation, padding)
        except ValueError:
            with pytest.raises(ValueError):
                encoder_of(ours, truncation, padding, add)
            continue
        try:
            expected = theirs.encode_batch(batch, add_special_tokens=add)
        except BaseException as error:  # `tokenizers`' panics are not Exceptions.
            assert "stride" in str(error) or "Truncation" in str(error), error
            with pytest.raises(ValueError):
                encoder_of(ours, truncation, padding, add).encode(batch, False)
            continue
        note = truncation, batch
        expected = {
            name: [getattr(row, field) for row in expected] for name, field in FIELDS.items()
        }
        encoder = encoder_of(ours, truncation, padding, add)
        assert rows_of(encoder, batch, False) == expected, note
        assert rows_of(encoder, batch, True) == expected, note
        *_, objects, _, _ = encoder.answer(batch, False, ("input_ids",), True, False)
        objects = objects()
        assert [row.ids for row in objects] == expected["input_ids"], note
        settings(ours, truncation, padding)
        own = RowEncoder.of_settings(ours, add, ours.encode_special_tokens)
        assert rows_of(own, batch, False) == expected, note
        *_, objects, _, _ = own.answer(batch, False, ("input_ids",), True, False)
        objects = objects()
        assert [row.ids for row in objects] == expected["input_ids"], note


def test_an_encoder_is_of_one_state_of_a_tokenizer(pair):
    ours, _ = pair
    settings(ours, None, None)
    encoder = encoder_of(ours, None, None, True)
    assert encoder.is_current(ours)
    before = rows_of(encoder, ["abc<x>"], False)
    ours.add_tokens(["<x>"])
    assert not encoder.is_current(ours)
    assert rows_of(encoder, ["abc<x>"], False) == before
    assert rows_of(encoder_of(ours, None, None, True), ["abc<x>"], False) != before


def test_special_tokens_are_text_whatever_another_thread_sets(pair):
    ours, _ = pair
    settings(ours, None, None)
    texts = ["abc<x>", "<x>"]
    for is_text in (True, False):
        ours.encode_special_tokens = is_text
        expected = [ours.encode(text).ids for text in texts]
        ours.encode_special_tokens = not is_text
        encoder = RowEncoder.of_settings(ours, True, is_text)
        fields, objects, *_ = encoder.answer(texts, False, ("input_ids",), True, False)
        assert fields["input_ids"] == [row.ids for row in objects()] == expected
    ours.encode_special_tokens = False
