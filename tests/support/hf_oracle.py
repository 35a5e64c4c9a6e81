"""Compares every field of our tokenizers with `tokenizers` for the same file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")

from bpe_engine import hf  # noqa: E402

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FILES = ["deepseek", "dolma2", "gpt-neox-pii", "gpt2", "phi-2", "roberta-base", "whisper-tiny"]
#: Files of character-level models with byte fallback.
CHARACTER_FILES = ["mistral-7b-v0.3", "phi-3-mini.sentencepiece-like"]

FIELDS = [
    "ids", "type_ids", "tokens", "offsets", "attention_mask", "special_tokens_mask", "word_ids",
    "sequence_ids", "n_sequences",
]  # fmt: skip

# Texts with whitespace of every kind, combining marks, emoji, scripts, line ends and digits.
TEXTS = [
    "",
    " ",
    "Hello world",
    "  Hello   world  \n\n\t x ",
    "don't STOP, we'LL see 12345 67 ⅷ ²³",
    "a\u0301e\u0301 \u1100\u1161\u11a8 \u0958 \ufb01 \u212b",
    "日本語のテキスト、中文 русский عربي हिन्दी ไทย",
    "👩‍👩‍👧‍👦 🇩🇪 ☕️ \U0001d518",
    "x\u00a0y\u2003z\u3000w\u200bv\u2028u\r\nt\x1cs",
    "def f(x):\n    return x ** 2  # comment\n\n\n",
    "!!!???...---___ <|end <|endoftext|> </s><s> <mask> <mask>x",
    "ſ'ſ K İ ß ǅ \x00\x7f\x80",
]


def tokenizer_path(name: str) -> str:
    """Returns the path of a real file; skips the test if the file is missing."""
    path = SHARED / "tokenizers" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return str(path)


def both(source: str) -> tuple[Any, Any]:
    """Returns our tokenizer and `tokenizers`' for the contents of a file."""
    return hf.Tokenizer.from_str(source), tokenizers.Tokenizer.from_str(source)


def fields(encoding: Any) -> dict[str, Any]:
    """Returns every field to compare, including the fields of overflowing parts."""
    values = {name: getattr(encoding, name) for name in FIELDS}
    values["overflowing"] = [fields(part) for part in encoding.overflowing]
    return values


def assert_same(ours: Any, theirs: Any, note: object = None) -> None:
    """Compares every field of two encodings, ids first."""
    assert ours.ids == theirs.ids, note
    a, b = fields(ours), fields(theirs)
    if a != b:
        differing = {key: (a[key], b[key]) for key in a if a[key] != b[key]}
        raise AssertionError(f"{note!r}: {differing}")


def outcome(call: Any) -> tuple[str, Any]:
    """Returns the result of a call, or the type of its error."""
    try:
        return "returned", call()
    except (Exception, BaseException) as error:
        if type(error).__name__ == "PanicException" or isinstance(error, Exception):
            return "raised", type(error).__name__
        raise


def texts_with_added(path: str) -> list[str]:
    """Returns texts made of added tokens and of parts of added tokens."""
    with open(path, encoding="utf-8") as file:
        contents = [token["content"] for token in json.load(file)["added_tokens"]]
    step = max(1, len(contents) // 40)
    chosen = contents[::step] + contents[-2:]
    joined = [
        "".join(chosen),
        " ".join(chosen),
        "  x ".join(chosen),
        "".join(content[:-1] for content in chosen),
        "".join(content[1:] + content for content in chosen),
        "y".join(content.upper() for content in chosen[:10]),
    ]
    return joined + [f"a {content}b" for content in chosen[:12]]


def fields_of(theirs: Any) -> list[str]:
    """Returns the fields to compare; omits offsets that `tokenizers` puts beyond a piece."""
    model = theirs.model
    affixes = ("continuing_subword_prefix", "end_of_word_suffix")
    is_beyond = getattr(model, "byte_fallback", False) and any(
        getattr(model, name, "") for name in affixes
    )
    return [name for name in FIELDS if name != "offsets" or not is_beyond]


def same_outcome(ours: Any, theirs: Any, *given_input: Any, **options: Any) -> Any:
    """Compares every field of an encoding, and returns the expected encoding; None on errors."""
    try:
        expected = theirs.encode(*given_input, **options)
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            # `tokenizers` panics at a token of spaces inside spaces that the previous token took.
            ours.encode(*given_input, **options)
            return None
        with pytest.raises(ValueError, match=r"model\.unk_"):
            ours.encode(*given_input, **options)
        return None
    if fields_of(theirs) == FIELDS:
        assert_same(ours.encode(*given_input, **options), expected, given_input)
    else:
        assert ours.encode(*given_input, **options).tokens == expected.tokens
    if len(given_input) == 1:
        assert ours.encode_batch([*given_input], **options)[0].ids == expected.ids
    return expected
