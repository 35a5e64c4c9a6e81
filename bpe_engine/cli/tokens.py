"""Yields the tokens of a text and their positions while the text is still being read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from .. import Encoding
from .._core import TokenTable
from ..abilities.ordinary_text import AnyTokenizer
from ..read.builtin import BUILTIN

# Places where every built-in pattern ends a piece, whatever is before and after them, so that the
# two sides can be encoded separately: before a space between two words, and after a single newline
# between two characters that are not white space. (After several, the pieces depend on the text
# that follows.)
_CUT = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])|(?<=\S\n)(?=\S)")

# How tokens of files write a space that they begin with.
_SPACES = (" ", "\u0120", "\u2581")

# Characters encoded at once: few calls, and early first tokens.
_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class DecodedToken:
    """A token of a text, and the span of its characters."""

    id: int
    token: bytes
    special: bool
    start: int
    end: int

    def as_dict(self) -> dict[str, object]:
        """Returns the token for JSON."""
        place = {"special": self.special, "start": self.start, "end": self.end}
        return {"id": self.id, **described(self.token), **place}


def described(token: bytes) -> dict[str, str | None]:
    """Returns bytes for JSON: `text` is None if they are not UTF-8, `bytes` hexadecimal.

    >>> described(bytes([0xE6, 0xA0]))
    {'text': None, 'bytes': 'e6a0'}
    """
    try:
        text: str | None = token.decode()
    except UnicodeDecodeError:
        text = None
    return {"text": text, "bytes": token.hex()}


def tokens_of(
    tokenizer: AnyTokenizer, chunks: Iterable[str], allowed_special: AbstractSet[str]
) -> Iterator[DecodedToken]:
    """Yields the tokens of the joined `chunks`, as soon as they are certain.

    Names of special tokens that are not allowed are ordinary text.
    """
    position, table = 0, TokenTable(tokenizer)
    for text in _parts(tokenizer, chunks, allowed_special):
        found = tokenizer.encode_with_offsets(
            text, allowed_special=allowed_special, disallowed_special=()
        )
        for id, (start, end) in zip(*found):
            special, token = table.kind(id) == "special", table[id]
            if token[:1] == b" " and _is_made(tokenizer, id, text, start):
                token = token[1:]
            yield DecodedToken(id, token, special, position + start, position + end)
        position += len(text)


def _is_made(tokenizer: AnyTokenizer, id: int, text: str, start: int) -> bool:
    """True if the decoder puts a space before a token where the text has none, as BERT's does
    before brackets."""
    if isinstance(tokenizer, Encoding) or text[max(start - 1, 0) : start].isspace():
        return False
    return not (tokenizer.id_to_token(id) or "").startswith(_SPACES)


def _parts(
    tokenizer: AnyTokenizer, chunks: Iterable[str], allowed_special: AbstractSet[str]
) -> Iterator[str]:
    """Yields the text in parts that can be encoded separately."""
    if not _can_be_cut(tokenizer, allowed_special):
        yield "".join(chunks)
        return
    text, needed = "", _AT_ONCE
    for chunk in chunks:
        text += chunk
        while len(text) >= needed:
            cut = _last_cut(text, needed)
            if cut is None:
                # Doubling searches no text more than twice.
                needed *= 2
                continue
            yield text[:cut]
            text, needed = text[cut:], _AT_ONCE
    if text:
        yield text


def _can_be_cut(tokenizer: AnyTokenizer, allowed_special: AbstractSet[str]) -> bool:
    pattern = tokenizer.pattern if isinstance(tokenizer, Encoding) else None
    known = any(pattern == builtin.pattern for builtin in BUILTIN.values())
    return known and not any(re.search(r"\s", name) for name in allowed_special)


def _last_cut(text: str, end: int) -> int | None:
    """Returns the last place before `end` to cut at, or None."""
    # The character after the cut must have been read.
    places = [match.start() for match in _CUT.finditer(text, 1, end)]
    return places[-1] if places else None
