"""Encodes a text with several encodings, and finds the piece at an offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .vocabularies import Vocabulary

__all__ = ["MAX_ENCODINGS", "MAX_TEXT", "piece_at", "tokens_of"]

#: Maximum number of encodings side by side.
MAX_ENCODINGS = 4
#: Maximum length of a text in characters.
MAX_TEXT = 1 << 20


def tokens_of(
    text: str, vocabularies: Mapping[str, Vocabulary], special: bool
) -> dict[str, dict[str, Any]]:
    """Encodes a text.

    Args:
        text: The text; lone surrogates become U+FFFD.
        vocabularies: The encodings by name.
        special: Turn names of special tokens into special tokens.

    Returns:
        For each encoding the ``ids``; ``pieces``, the bytes of each id in hexadecimal with true for
        special ids; and ``exact``, False if the tokenizer normalizes or drops text, which shifts
        offsets.
    """
    if not 1 <= len(vocabularies) <= MAX_ENCODINGS:
        raise ValueError(f"choose 1 to {MAX_ENCODINGS} encodings, not {len(vocabularies)}")
    if len(text) > MAX_TEXT:
        raise ValueError(
            f"the text has {len(text):,} characters, and the playground shows at most "
            f"{MAX_TEXT:,}; use `bpe-engine count` or `show` for longer ones"
        )
    columns = {}
    for name, vocabulary in vocabularies.items():
        [ids] = vocabulary.tokenizer._encode_each(
            [text], 1, allowed_special="all" if special else (), disallowed_special=()
        )
        columns[name] = {
            "ids": ids,
            "pieces": {
                id: [vocabulary.bytes_of(id).hex(), vocabulary.is_special(id)] for id in {*ids}
            },
            "exact": vocabulary.joined(ids) == text.encode("utf-8", "replace"),
        }
    return columns


def piece_at(vocabulary: Vocabulary, text: str, place: int, special: bool) -> str:
    """Returns the piece at the byte offset `place` of the concatenated tokens, or "" after the
    last piece."""
    allowed = set(vocabulary.tokenizer.special_tokens_set) if special else set()
    position = 0
    for piece in vocabulary.tokenizer.split(text, allowed_special=allowed):
        position += len(piece.encode())
        if position > place:
            return piece
    return ""
