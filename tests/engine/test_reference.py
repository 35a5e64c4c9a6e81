"""Compares the reference engine, an oracle for other tests, with tiktoken."""

from __future__ import annotations

import functools

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from oracles import ENCODINGS, normalized, ranks
from pairs import FAMILIES, pair
from seeds import seeded
from strategies import SPECIAL_NAMES, texts

import bpe_engine
from bpe_engine import reference
from bpe_engine.read import builtin

BYTES = {bytes([byte]): byte for byte in range(256)}


@functools.cache
def readable(name: str) -> reference.Encoding:
    parts = builtin.BUILTIN[name]
    return reference.Encoding(
        name,
        pat_str=parts.pattern,
        mergeable_ranks=ranks(parts.vocabulary),
        special_tokens=parts.special_tokens,
        explicit_n_vocab=parts.explicit_n_vocab,
        normalization=parts.normalization,
    )


def test_replaced_characters_are_unassigned() -> None:
    unassigned = bpe_engine.Encoding(
        "unassigned",
        pat_str=r"\p{Cn}+",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={},
    )
    later = "".join(chr(point) for point in reference._STAND_INS if point != 0x295)
    assert unassigned.split(later) == [later]


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts)
def test_ids_are_tiktokens(name: str, text: str) -> None:
    both, ours = pair(name), readable(name)
    expected = both.expected(text)
    assert ours.encode_ordinary(text) == expected
    assert ours.encode(text, disallowed_special=()) == expected
    assert ours.encode(text, allowed_special="all") == both.expected(text, "all")
    assert ours.split(text) == both.ours.split(text)
    assert ours.decode_bytes(expected) == normalized(name, text).encode()
    for errors in ("replace", "ignore", "backslashreplace"):
        assert ours.decode(expected[1:], errors) == both.theirs.decode(expected[1:], errors)


@pytest.mark.parametrize("name", FAMILIES)
@given(
    text=texts,
    allowed=st.one_of(st.just("all"), st.sets(st.sampled_from(SPECIAL_NAMES))),
    disallowed=st.one_of(st.just("all"), st.sets(st.sampled_from([*SPECIAL_NAMES, "ab", "<|"]))),
)
def test_special_tokens_are_tiktokens(
    name: str, text: str, allowed: object, disallowed: object
) -> None:
    rules = {"allowed_special": allowed, "disallowed_special": disallowed}
    try:
        expected = pair(name).theirs.encode(normalized(name, text), **rules)
    except ValueError:
        with pytest.raises(ValueError, match="disallowed special token"):
            readable(name).encode(text, **rules)
    else:
        assert readable(name).encode(text, **rules) == expected


# Beyond the ideographs, nearly all code points are private-use or unassigned.
CODE_POINTS = [c for c in [*range(0x33480), *range(0xE0000, 0xE0200)] if not 0xD800 <= c < 0xE000]
CONTEXTS = ["a{}b", " {}", "!{}1", "'{}A\n"]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.thorough
def test_every_code_point_has_tiktokens_class(name: str, context: str) -> None:
    # Each context tests one third of the code points.
    codes = CODE_POINTS[CONTEXTS.index(context) % 3 :: 3]
    characters = [context.format(chr(c)) for c in codes]
    text = normalized(name, " x1".join(characters))
    assert readable(name).encode_ordinary(text) == pair(name).theirs.encode_ordinary(text)


@pytest.mark.parametrize("name", FAMILIES)
def test_code_points_have_tiktokens_class(name: str) -> None:
    """Tests the first blocks and a random sample of other code points in each context."""
    codes = [*range(0x3000), *seeded("code points", name).sample(CODE_POINTS, 4000)]
    text = normalized(name, " x1".join(form.format(chr(c)) for c in codes for form in CONTEXTS))
    assert readable(name).encode_ordinary(text) == pair(name).theirs.encode_ordinary(text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"a$|.",
        r"(?s:a\z|.)",
        r"[$a]+|[^$a]",
        r"\$+|[^$]",
        r"[\p{L}&&[^a的]]+|\S|\s+",
        r"[\p{L}--[b]]+|\S|\s+",
        r"[^\r\n\p{L}&&[^!]]+|(?s:.)",
        r"(?i:'s|'re)|\p{Lu}+|[^\p{Lu}]",
        r"\s+(?!\S)|\s+|\d{1,2}|[^\s\d]+",
    ],
)
@given(text=st.text(st.sampled_from("ab$\n !Aſ's的1٣\u001c\u0085"), max_size=12))
def test_patterns_mean_the_same_as_in_tiktoken(pattern: str, text: str) -> None:
    parts = {"pat_str": pattern, "mergeable_ranks": BYTES, "special_tokens": {}}
    expected = tiktoken.Encoding("bytes", **parts).encode_ordinary(text)
    assert reference.Encoding("bytes", **parts).encode_ordinary(text) == expected
    assert bpe_engine.Encoding("bytes", **parts).encode_ordinary(text) == expected


@given(
    tokens=st.lists(st.binary(min_size=2, max_size=4).map(lambda b: bytes(97 + x % 3 for x in b))),
    text=st.text("abc ", max_size=30),
)
def test_any_vocabulary(tokens: list[bytes], text: str) -> None:
    """Tokens have random ranks, so that merges compete and some tokens are unreachable."""
    parts = {
        "pat_str": r"\S+|\s+",
        "mergeable_ranks": BYTES
        | {token: 256 + i for i, token in enumerate(dict.fromkeys(tokens))},
        "special_tokens": {},
    }
    expected = tiktoken.Encoding("any", **parts).encode_ordinary(text)
    assert reference.Encoding("any", **parts).encode_ordinary(text) == expected
    assert bpe_engine.Encoding("any", **parts).encode_ordinary(text) == expected


def test_leftmost_longest_special() -> None:
    parts = {
        "pat_str": r"(?s:.)",
        "mergeable_ranks": BYTES,
        "special_tokens": {"<a>": 300, "<a><b>": 301, "<b>": 302, "><": 303},
    }
    for encoding in (reference.Encoding("names", **parts), bpe_engine.Encoding("names", **parts)):
        assert encoding.encode("<a><b><b><a>", allowed_special="all") == [301, 302, 300]
        assert encoding.encode("x><a>", allowed_special="all") == [*b"x", 303, *b"a>"]
        # A name that is not allowed is text, and the search continues inside it.
        assert encoding.encode("<a><b>", allowed_special={"<b>"}, disallowed_special=()) == [
            *b"<a>",
            302,
        ]


def test_errors_name_the_value() -> None:
    parts = {
        "pat_str": r"\S+",
        "mergeable_ranks": {b"a": 0, b"ab": 1},
        "special_tokens": {"<s>": 5},
    }
    encoding = reference.Encoding("two", **parts)
    with pytest.raises(ValueError, match=r"b'b' is not a token of two"):
        encoding.encode("abb")
    with pytest.raises(KeyError, match="Invalid token for decoding: 4"):
        encoding.decode([0, 4])
    with pytest.raises(ValueError, match="explicit_n_vocab is 3, not"):
        reference.Encoding("two", **parts, explicit_n_vocab=3)
    with pytest.raises(ValueError, match="the id 1 of '<s>' is the rank of a token"):
        reference.Encoding("two", **parts | {"special_tokens": {"<s>": 1}})
    with pytest.raises(ValueError, match="share a rank"):
        reference.Encoding("two", **parts | {"mergeable_ranks": {b"a": 0, b"b": 0}})
