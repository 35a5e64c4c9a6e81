"""Compares `Tokenizer` and `as_transformers` with transformers' fast tokenizers."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hf_oracle import TEXTS, tokenizer_path
from seeds import few

import bpe_engine

transformers = pytest.importorskip("transformers")
np = pytest.importorskip("numpy")

# Each file, with the settings in its configuration.
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|pad|>"},
    "roberta-base": {
        "bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>",
        "unk_token": "<unk>", "pad_token": "<pad>", "model_max_length": 9,
        "mask_token": {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False,
                       "single_word": False, "__type": "AddedToken"},
    },
    "deepseek": {
        "bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>",
        "pad_token": "<｜end▁of▁sentence｜>", "padding_side": "left", "truncation_side": "left",
        "extra_special_tokens": {"image_token": "<image>", "video_token": "<video>"},
    },
    "whisper-tiny": {
        "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "model_max_length": 12,
        "model_input_names": ["input_ids", "token_type_ids"],
        "additional_special_tokens": ["<|endoftext|>", "<|startoftranscript|>", "<|new|>"],
    },
}  # fmt: skip


def folder(tmp_path: Path, name: str) -> Path:
    """Returns a folder with a real tokenizer file and a configuration."""
    path = tmp_path / name
    path.mkdir(exist_ok=True)
    shutil.copy(tokenizer_path(name), path / "tokenizer.json")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **CONFIGS[name]}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


FACES: dict[str, Any] = {
    "Tokenizer": bpe_engine.Tokenizer.from_pretrained,
    "as_transformers": bpe_engine.hf.as_transformers,
}
PAIRS = list(itertools.product(CONFIGS, FACES))
CALLED = [*PAIRS, ("gpt2", "Tokenizer of an Encoding")]


def of_encoding(path: Path) -> Any:
    """Returns a `Tokenizer` around an `Encoding`, with the settings of a folder."""
    return bpe_engine.Tokenizer(bpe_engine.get_encoding(path.name), **CONFIGS[path.name])


def load(path: Path, face: str) -> tuple[Any, Any]:
    make = FACES.get(face, of_encoding)
    return make(path), transformers.PreTrainedTokenizerFast.from_pretrained(path)


@pytest.fixture(params=PAIRS, ids=", ".join, scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns our tokenizer and theirs, which tests must not change."""
    name, face = request.param
    return load(folder(tmp_path_factory.mktemp("both"), name), face)


@pytest.fixture(params=itertools.product(["gpt2", "roberta-base"], FACES), ids=", ".join)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """Returns our tokenizer and theirs, which tests may change."""
    name, face = request.param
    return load(folder(tmp_path, name), face)


def plain(value: Any) -> Any:
    """Converts a result to values that can be compared."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return [plain(row) for row in value]
        # For a row without ids, transformers' array does not hold integers.
        return str(value.dtype) if value.size else "", value.shape, value.tolist()
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def outcome(call: Any) -> Any:
    """Returns the fields of a result in order, or the kind of error."""
    try:
        result = call()
    except Exception as error:
        # `tokenizers` has no kind of error for inconsistent arguments.
        return type(error).__name__ if type(error) is not Exception else "ValueError"
    except BaseException as error:
        assert type(error).__name__ == "PanicException"  # The stride is too long.
        return "ValueError"
    return [(name, plain(value)) for name, value in result.items()]


def compare(ours: Any, theirs: Any, *args: Any, **kwargs: Any) -> None:
    mine = outcome(lambda: ours(*args, **kwargs))
    right = outcome(lambda: theirs(*args, **kwargs))
    assert mine == right, (args, kwargs)


# Short, long and empty texts, and a text with names of special tokens.
SOME = [TEXTS[2], TEXTS[4], "", TEXTS[10], "a b c d e f g h i j k l m n o p"]

PADDINGS: list[dict[str, Any]] = [
    {},
    {"padding": True},
    {"padding": "max_length", "max_length": 10},
    {"padding": "max_length"},
    {"padding": True, "pad_to_multiple_of": 4},
    {"padding": True, "padding_side": "left"},
]
TRUNCATIONS: list[dict[str, Any]] = [
    {},
    {"max_length": 6},
    {"truncation": True, "max_length": 8},
    {"truncation": True},
    {"truncation": "only_first", "max_length": 7, "stride": 2},
    {"truncation": "longest_first", "max_length": 8, "stride": 3},
    {"truncation": "only_second", "max_length": 12, "stride": 1},
]
FIELDS: list[dict[str, Any]] = [
    {},
    {
        "return_special_tokens_mask": True,
        "return_token_type_ids": True,
        "return_length": True,
    },
    {
        "return_offsets_mapping": True,
        "return_special_tokens_mask": True,
        "return_token_type_ids": True,
        "return_length": True,
        "return_overflowing_tokens": True,
    },
    {
        "return_attention_mask": False,
        "add_special_tokens": False,
        "return_overflowing_tokens": True,
    },
]


def check_matrix(ours: Any, theirs: Any, step: int) -> None:
    """Checks every combination of arguments (or one in `step`), for a text, a batch and pairs."""
    pairs = SOME[::-1]
    matrix = itertools.product(PADDINGS, TRUNCATIONS, FIELDS, (None, "np"))
    for padding, truncation, fields, tensors in itertools.islice(matrix, 0, None, step):
        options = {**padding, **truncation, **fields, "return_tensors": tensors}
        if "max_length" in padding and "max_length" in truncation:
            options["max_length"] = 8
        batches: list[Any] = [(SOME,), (SOME, pairs)]
        for args in batches if tensors else [*batches, (SOME[1],), (SOME[0], SOME[1])]:
            compare(ours, theirs, *args, **options, verbose=False)


@pytest.mark.parametrize("both", CALLED, ids=", ".join, indirect=True)
def test_matrix_of_options(both: tuple[Any, Any]) -> None:
    # A step coprime to each number of choices covers every pair of choices.
    check_matrix(*both, step=few([5, 1])[-1])


@pytest.mark.parametrize("both", CALLED, ids=", ".join, indirect=True)
def test_words(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    words = [text.split() for text in SOME]
    for args in ((words,), (words[0],), (words, words[::-1]), ([(words[0], words[1])],)):
        for options in ({}, {"padding": True}, {"truncation": True, "max_length": 5}):
            options = {**options, "is_split_into_words": True, "return_offsets_mapping": True}
            compare(ours, theirs, *args, **options)


def test_where_tokens_come_from(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    arguments = {"truncation": True, "max_length": 8, "return_overflowing_tokens": True}
    for args in ((SOME[1],), (SOME, SOME[::-1])):
        mine, right = ours(*args, **arguments), theirs(*args, **arguments)
        assert mine.n_sequences == right.n_sequences and mine.is_fast
        for row in range(len(right.encodings)):
            for method in ("tokens", "word_ids", "sequence_ids"):
                assert getattr(mine, method)(row) == getattr(right, method)(row)
            for method in ("token_to_sequence", "token_to_chars", "token_to_word"):
                for token in range(len(right[row].ids)):
                    found = getattr(right, method)(row, token)
                    assert getattr(mine, method)(row, token) == found, (method, row, token)
            for method in ("char_to_token", "word_to_tokens", "word_to_chars", "char_to_word"):
                for place in range(8):
                    # For words outside the row, transformers raises TypeError.
                    found = [outcome_of(getattr(it, method), row, place) for it in (mine, right)]
                    found = [None if one is TypeError else one for one in found]
                    assert found[0] == found[1]
        assert mine[0].ids == right[0].ids


def outcome_of(call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:
        return type(error)


def test_special_tokens(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    assert ours.all_special_tokens == theirs.all_special_tokens
    assert ours.all_special_ids == theirs.all_special_ids
    assert ours.special_tokens_map == theirs.special_tokens_map
    assert ours.extra_special_tokens == theirs.extra_special_tokens
    assert len(ours) == len(theirs) and ours.vocab_size == theirs.vocab_size
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.get_added_vocab() == theirs.get_added_vocab()
    flags = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
    mine, right = ours.added_tokens_decoder, theirs.added_tokens_decoder
    assert list(mine) == list(right)
    for id in right:
        for flag in flags:
            assert getattr(mine[id], flag) == getattr(right[id], flag), (id, flag)
    for name in (*theirs.SPECIAL_TOKENS_ATTRIBUTES, "extra_special_tokens"):
        assert getattr(ours, name) == getattr(theirs, name)
        if getattr(theirs, name) is not None:
            suffix = "_ids" if name.endswith("s") else "_id"
            assert getattr(ours, name + suffix) == getattr(theirs, name + suffix)
    for name in (
        "padding_side", "truncation_side", "model_max_length", "model_input_names",
        "max_len_single_sentence", "max_len_sentences_pair",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name)
    ids = [5, *theirs.all_special_ids, 6]
    assert ours.get_special_tokens_mask(
        ids, already_has_special_tokens=True
    ) == theirs.get_special_tokens_mask(ids, already_has_special_tokens=True)
    for pair in (False, True):
        assert ours.num_special_tokens_to_add(pair) == theirs.num_special_tokens_to_add(pair)


def test_tokens_and_text(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    for text in TEXTS:
        ids = theirs.encode(text)
        assert ours.encode(text) == ids
        assert ours.tokenize(text) == theirs.tokenize(text)
        tokens = theirs.convert_ids_to_tokens(ids)
        assert ours.convert_ids_to_tokens(ids) == tokens
        assert ours.convert_tokens_to_ids(tokens) == theirs.convert_tokens_to_ids(tokens)
        assert ours.convert_tokens_to_string(tokens) == theirs.convert_tokens_to_string(tokens)
        for skip in (False, True):
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(
                ids, skip_special_tokens=skip
            )
            assert ours.convert_ids_to_tokens(ids, skip) == theirs.convert_ids_to_tokens(ids, skip)
    batch = theirs(TEXTS, padding=True, return_tensors="np")["input_ids"]
    assert ours.batch_decode(batch) == theirs.batch_decode(batch) == ours.decode(batch)
    assert ours.decode(int(batch[3][0])) == theirs.decode(int(batch[3][0]))
    assert ours.convert_tokens_to_ids("no such token") == theirs.convert_tokens_to_ids(
        "no such token"
    )


def test_encode_gives_tensors(both: tuple[Any, Any]) -> None:
    text = TEXTS[4]
    ours, theirs = (tokenizer.encode(text, return_tensors="np") for tokenizer in both)
    assert ours.shape == theirs.shape and np.array_equal(ours, theirs)
    assert both[0].encode(text) == both[1].encode(text)


@pytest.mark.parametrize("both", CALLED, ids=", ".join, indirect=True)
def test_pad(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    one = theirs(SOME[1], return_special_tokens_mask=True, return_token_type_ids=True)
    batch = theirs(SOME, return_special_tokens_mask=True)
    rows = [{name: values[row] for name, values in batch.items()} for row in range(len(SOME))]
    for given in (
        dict(one),
        dict(batch),
        rows,
        {"input_ids": batch["input_ids"], "labels": [1] * 5},
    ):
        for options in (
            {},
            {"padding": "max_length", "max_length": 70},
            {"padding": True, "pad_to_multiple_of": 7, "padding_side": "left"},
            {"padding": False},
            {"return_attention_mask": False},
        ):
            for tensors in (None, "np"):
                copies = [json.loads(json.dumps(given)) for _ in range(2)]
                mine = outcome(lambda: ours.pad(copies[0], return_tensors=tensors, **options))
                right = outcome(lambda: theirs.pad(copies[1], return_tensors=tensors, **options))
                if isinstance(right, list):
                    assert dict(mine) == dict(right), (given, options)
                else:
                    assert mine == right, (given, options)


def test_adding_tokens(fresh: tuple[Any, Any]) -> None:
    ours, theirs = fresh
    for add in (
        lambda t: t.add_special_tokens({"pad_token": "<|new pad|>", "cls_token": "<cls>"}),
        lambda t: t.add_special_tokens({"extra_special_tokens": ["<x>", "<y>"]}),
        lambda t: t.add_special_tokens(
            {"extra_special_tokens": ["<z>"]}, replace_extra_special_tokens=False
        ),
        lambda t: t.add_tokens(["hello world", "<x>"]),
        lambda t: t.add_tokens("<s1>", special_tokens=True),
        lambda t: t.add_special_tokens({}),
    ):
        assert add(ours) == add(theirs)
        assert ours.all_special_tokens == theirs.all_special_tokens
        assert ours.get_added_vocab() == theirs.get_added_vocab()
    text = "a<|new pad|>hello world<x><y><s1>b"
    assert ours(text).data == dict(theirs(text))
    ids = ours.encode(text)
    assert ours.decode(ids, skip_special_tokens=True) == theirs.decode(
        ids, skip_special_tokens=True
    )
    ours.pad_token = theirs.pad_token = "<x>"
    ours.sep_token_id = theirs.sep_token_id = ids[-2]
    assert ours.special_tokens_map == theirs.special_tokens_map
    assert ours(["a", text], padding=True).data == dict(theirs(["a", text], padding=True))


def test_errors_are_theirs(fresh: tuple[Any, Any]) -> None:
    ours, theirs = fresh
    calls: list[Any] = [
        lambda t: t(),
        lambda t: t(3),
        lambda t: t([3]),
        lambda t: t(["a"], "b"),
        lambda t: t(["a"], ["b", "c"]),
        lambda t: t("a", padding="longer"),
        lambda t: t("a", truncation="longer"),
        lambda t: t(["a"], padding=True, truncation=True, max_length=9, pad_to_multiple_of=4),
        lambda t: t(["a b c d"], truncation="only_second", max_length=3),
        lambda t: t.pad({"ids": [1]}),
        lambda t: t.add_special_tokens({"other": "<a>"}),
        lambda t: t.apply_chat_template([{"role": "user", "content": "a"}]),
        lambda t: t.pad_token.nothing,
    ]
    for call in calls:
        mine, right = outcome_of(call, ours), outcome_of(call, theirs)
        if right in (Exception, TypeError):
            assert mine in (ValueError, TypeError), call
        else:
            assert mine == right, call
    ours.pad_token = None
    with pytest.raises(ValueError, match="tokenizer.pad_token = tokenizer.eos_token"):
        ours(["a"], padding=True)
