"""The tokens of a text, one after the other, while the text is still being read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from .. import Encoding
from ..builtin import BUILTIN

# Places at which every pattern of the package ends a piece, whatever is before and behind, so that
# the two sides can be encoded apart: before a space between two words, and after a newline alone
# between two characters that are no space. (After several, the pieces depend on what follows.)
_CUT = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])|(?<=\S\n)(?=\S)")

# Characters encoded at once: few calls, and the first tokens come soon.
_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class Token:
    """A token of a text, and the characters that it stands for."""

    id: int
    token: bytes
    special: bool
    start: int
    end: int

    def as_dict(self) -> dict[str, object]:
        """For JSON. `text` is None when the token is no UTF-8; `bytes` is hexadecimal."""
        try:
            text: str | None = self.token.decode()
        except UnicodeDecodeError:
            text = None
        return {
            "id": self.id,
            "text": text,
            "bytes": self.token.hex(),
            "special": self.special,
            "start": self.start,
            "end": self.end,
        }


def tokens_of(
    encoding: Encoding, chunks: Iterable[str], allowed_special: AbstractSet[str]
) -> Iterator[Token]:
    """The tokens of the text that `chunks` are together, as they become certain.

    Names of special tokens that are not allowed are ordinary text.
    """
    position = 0
    for text in _parts(encoding, chunks, allowed_special):
        ids, spans = encoding.encode_with_offsets(
            text, allowed_special=allowed_special, disallowed_special=()
        )
        for id, token, (start, end) in zip(ids, encoding.decode_tokens_bytes(ids), spans):
            special = encoding.is_special_token(id)
            yield Token(id, token, special, position + start, position + end)
        position += len(text)


def _parts(
    encoding: Encoding, chunks: Iterable[str], allowed_special: AbstractSet[str]
) -> Iterator[str]:
    """The text in parts that can be encoded one by one."""
    if not _can_be_cut(encoding, allowed_special):
        yield "".join(chunks)
        return
    text, needed = "", _AT_ONCE
    for chunk in chunks:
        text += chunk
        while len(text) >= needed:
            cut = _last_cut(text, needed)
            if cut is None:
                # Twice as much next time: no text is searched more than twice.
                needed *= 2
                continue
            yield text[:cut]
            text, needed = text[cut:], _AT_ONCE
    if text:
        yield text


def _can_be_cut(encoding: Encoding, allowed_special: AbstractSet[str]) -> bool:
    known = any(encoding._pat_str == builtin.pattern for builtin in BUILTIN.values())
    return known and not any(re.search(r"\s", name) for name in allowed_special)


def _last_cut(text: str, end: int) -> int | None:
    """The last place before `end` to cut at; None if there is none."""
    # The character after the cut must be there: what is behind it is not known yet.
    places = [match.start() for match in _CUT.finditer(text, 1, end)]
    return places[-1] if places else None
