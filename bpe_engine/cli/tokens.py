"""Finds the tokens of a text with their positions."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from .. import Encoding
from .._core import TokenTable

# Spellings of a token's leading space in tokenizer files.
_SPACES = (" ", "\u0120", "\u2581")


@dataclass(frozen=True)
class DecodedToken:
    """A token of a text and its character span."""

    id: int
    token: bytes
    special: bool
    start: int
    end: int

    def as_dict(self) -> dict[str, object]:
        """Returns the token as a dict for JSON."""
        place = {"special": self.special, "start": self.start, "end": self.end}
        return {"id": self.id, **described(self.token), **place}


def described(token: bytes) -> dict[str, str | None]:
    """Returns a token's bytes for JSON: `bytes` in hexadecimal, `text` None if not UTF-8.

    >>> described(bytes([0xE6, 0xA0]))
    {'text': None, 'bytes': 'e6a0'}
    """
    try:
        text: str | None = token.decode()
    except UnicodeDecodeError:
        text = None
    return {"text": text, "bytes": token.hex()}


def tokens_of(
    tokenizer: Encoding, text: str, allowed_special: AbstractSet[str]
) -> Iterator[DecodedToken]:
    """Yields the tokens of a text. Names of special tokens are ordinary text unless allowed."""
    table = TokenTable(tokenizer)
    found = tokenizer.encode_with_offsets(
        text, allowed_special=allowed_special, disallowed_special=()
    )
    for id, (start, end) in zip(*found):
        special, token = table.kind(id) == "special", table[id]
        if token[:1] == b" " and _is_made(tokenizer, id, text, start):
            token = token[1:]
        yield DecodedToken(id, token, special, start, end)


def _is_made(tokenizer: Encoding, id: int, text: str, start: int) -> bool:
    """Returns whether the decoder inserted the token's leading space, as BERT's decoder does."""
    file = tokenizer._unranked
    if file is None or text[max(start - 1, 0) : start].isspace():
        return False
    return not (file.id_to_token(id) or "").startswith(_SPACES)
