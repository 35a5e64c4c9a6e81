"""Compares normalizers and pre-tokenizers with `tokenizers` on code points: alone, doubled, between
letters, and before a combining mark."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from hf_components import CHARSMAP
from hf_oracle import outcome, tokenizer_path, tokenizers
from seeds import few, rounds, seeded
from tokenizers import Regex, models, normalizers, pre_tokenizers

from bpe_engine import hf, patterns

#: Number of code points in each text.
BATCH = 500


def charsmap_of(name: str) -> bytes:
    """Returns the charsmap of a real file."""
    with open(tokenizer_path(f"models/{name}"), encoding="utf-8") as file:
        text = file.read()
    field = '"precompiled_charsmap":'
    start = text.index('"', text.index(field) + len(field)) + 1
    return base64.b64decode(text[start : text.index('"', start)])


NORMALIZERS: dict[str, Callable[[], Any]] = {
    **{name: getattr(normalizers, name) for name in ("NFC", "NFD", "NFKC", "NFKD", "Nmt")},
    **{name: getattr(normalizers, name) for name in ("Lowercase", "StripAccents", "ByteLevel")},
    "Precompiled": lambda: normalizers.Precompiled(CHARSMAP),
    "nmt_nfkc": lambda: normalizers.Precompiled(charsmap_of("t5-small")),
    "Strip": normalizers.Strip,
    **{
        f"BertNormalizer{flags}": lambda flags=flags: normalizers.BertNormalizer(*flags)
        for flags in product((False, True), (False, True), (None, False, True), (False, True))
    },
}
PRE_TOKENIZERS: dict[str, Any] = {
    part.__class__.__name__: part
    for part in (
        pre_tokenizers.BertPreTokenizer(),
        pre_tokenizers.ByteLevel(),
        pre_tokenizers.CharDelimiterSplit("é"),
        pre_tokenizers.Digits(),
        pre_tokenizers.FixedLength(3),
        pre_tokenizers.Metaspace(),
        pre_tokenizers.Punctuation(),
        pre_tokenizers.UnicodeScripts(),
        pre_tokenizers.Whitespace(),
        pre_tokenizers.WhitespaceSplit(),
    )
} | {
    f"Split, {name}": pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    for name, pattern in {
        "CLIP": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
        "R50K": patterns.R50K,
        "CL100K": patterns.CL100K,
        "QWEN": patterns.QWEN,
    }.items()
}


def texts(code_points: list[int]) -> Iterator[str]:
    """Yields texts with each code point in several contexts."""
    letters = [chr(code_point) for code_point in code_points if not 0xD800 <= code_point < 0xE000]
    for start in range(0, len(letters), BATCH):
        yield "\n".join(
            f"{letter}\n{letter}{letter}\nA{letter}e\u0301\ne{letter}{letter}\u0301"
            for letter in letters[start : start + BATCH]
        )


def some() -> list[int]:
    """Returns the first code points, and a sample of the later ranges."""
    rng = seeded("code points", 1)
    return [*range(0x600), *rng.sample(range(0x600, 0x3400), 1000), *rng.sample(range(0x3400, 0x20000), 1000), *rng.sample(range(0x20000, 0x110000), 500)]  # fmt: skip


def characters(normalizer: Any) -> tuple[Any, Any]:
    """Returns our tokenizer and theirs with a normalizer; each character is an unknown token."""
    theirs = tokenizers.Tokenizer(models.BPE(vocab={"<u>": 0}, merges=[], unk_token="<u>"))
    theirs.normalizer, theirs.pre_tokenizer = normalizer, pre_tokenizers.FixedLength(1)
    return hf.Tokenizer.from_str(theirs.to_str()), theirs


def check_normalizer(name: str, code_points: list[int]) -> None:
    part = NORMALIZERS[name]()
    ours, theirs = characters(part)
    normalizer = ours.normalizer
    for text in texts(code_points):
        if normalizer.normalize_str(text) == part.normalize_str(text):
            if ours.encode(text).offsets == theirs.encode(text).offsets:
                continue
        for line in text.split("\n"):
            assert normalizer.normalize_str(line) == part.normalize_str(line), ascii(line)
            assert ours.encode(line).offsets == theirs.encode(line).offsets, ascii(line)
        raise AssertionError(f"only the whole text differs: {text[:1]!a}")


def check_pre_tokenizer(name: str, code_points: list[int]) -> None:
    theirs = PRE_TOKENIZERS[name]
    ours = hf.Component("pre_tokenizer", theirs.__getstate__().decode())
    for text in texts(code_points):
        if ours.pre_tokenize_str(text) != theirs.pre_tokenize_str(text):
            for line in text.split("\n"):
                assert ours.pre_tokenize_str(line) == theirs.pre_tokenize_str(line), ascii(line)
            raise AssertionError(f"only the whole text differs: {text[:1]!a}")


def many() -> list[int]:
    """Returns one in eight code points up to the last plane of Han characters, and one in 64 of the
    rest, where few are assigned; a different sample with each seed."""
    first, border = seeded("many code points").randrange(8), 0x34000
    return [*range(first, border, 8), *range(border + first, 0x110000, 64)]


@pytest.mark.parametrize("code_points", few([some, many]))
@pytest.mark.parametrize("name", NORMALIZERS)
def test_code_points_are_normalized(name, code_points):
    check_normalizer(name, code_points())


@pytest.mark.parametrize("code_points", few([some, many]))
@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_code_points_are_cut(name, code_points):
    check_pre_tokenizer(name, code_points())


@pytest.mark.parametrize("name", ["R50K", "CL100K", "QWEN", "O200K"])
def test_published_patterns_mean_what_oniguruma_reads(name):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("1", "1"), ("11", "11"), ("a", "a"), ("Ġ", "a"), ("Ċ", "Ċ"), ("Ġ", "Ġ"), ("!", "!")]
    tokens = [*alphabet, *("".join(pair) for pair in merges)]
    theirs = tokenizers.Tokenizer(
        models.BPE({token: place for place, token in enumerate(tokens)}, merges)
    )
    split = pre_tokenizers.Split(Regex(getattr(patterns, name)), "isolated")
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    theirs.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    ours = hf.Tokenizer.from_str(theirs.to_str())
    rng = seeded("published patterns", 1)
    for _ in range(rounds(2000)):
        text = "".join(rng.choices("111a A!'s\n\r\t é的٣", k=rng.randrange(1, 20)))
        assert ours.encode(text).ids == theirs.encode(text).ids, ascii(text)
        assert ours.encode(text).offsets == theirs.encode(text).offsets, ascii(text)


def test_scripts_of_neighbors():
    """Tests every pair of adjacent code points, to find any that moved to another script."""
    ours, theirs = hf.pre_tokenizers.UnicodeScripts(), pre_tokenizers.UnicodeScripts()
    letters = [chr(place) for place in range(0x110000) if not 0xD800 <= place < 0xE000]
    for start in range(0, len(letters), 1 << 16):
        text = "".join(letters[start : start + (1 << 16)])
        assert ours.pre_tokenize_str(text) == theirs.pre_tokenize_str(text)


def charsmap_file(rules: bytes) -> str:
    """Returns a tokenizer file with a charsmap."""
    normalizer = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(rules).decode()}
    return json.dumps({"normalizer": normalizer, "model": {"vocab": {"a": 0}, "merges": []}})


def test_malformed_charsmaps_are_errors():
    rng = seeded("charsmap", 1)
    cases = [CHARSMAP[:length] for length in (0, 3, 4, 5, 100)]
    for _ in range(rounds(300)):
        changed = bytearray(CHARSMAP)
        for _ in range(rng.randrange(1, 6)):
            changed[rng.randrange(min(len(changed), rng.choice([8, 2000])))] = rng.randrange(256)
        cases.append(bytes(changed))
    texts = ["", "abc", "é日", "".join(map(chr, range(0x500)))]
    for rules in cases:
        contents = charsmap_file(rules)
        try:
            ours = hf.Tokenizer.from_str(contents)
        except ValueError as error:
            assert "charsmap" in str(error)
            continue
        theirs = tokenizers.Tokenizer.from_str(contents)
        for text in texts:
            expected = outcome(lambda: theirs.normalizer.normalize_str(text))
            found = outcome(lambda: ours.normalizer.normalize_str(text))
            assert found[0] == expected[0] == "raised" or found == expected
