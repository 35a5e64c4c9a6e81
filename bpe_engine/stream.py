"""`StreamDecoder`, which decodes ids that arrive one by one."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Sequence
from typing import Protocol

from ._core import Engine

__all__ = ["StreamDecoder"]


class _Tokenizer(Protocol):
    """An `Encoding`, a `bpe_engine.hf.Tokenizer` or a `bpe_engine.Tokenizer`."""

    @property
    def _native_engine(self) -> Engine: ...


class StreamDecoder:
    """Turns ids into text as they arrive, holding back bytes until their character is complete.

    The joined pieces of text are what decoding all ids at once gives, for every `errors` and however
    the ids are split into calls. One kind of text differs: a file with byte fallback decodes a run of
    byte tokens that are not UTF-8 as U+FFFD for each byte, also for those that were valid and that a
    stream has given out.

    The ids before the stream can be given as `prompt`. Their text is not part of the stream. But a
    character that the prompt begins and the stream completes belongs to the stream; if the stream
    does not complete it, nothing of it is returned.

    Args:
        tokenizer: An `Encoding`, a `bpe_engine.hf.Tokenizer` or a `bpe_engine.Tokenizer`, as it is now.
        errors: The handler for bytes that are not UTF-8, as in ``bytes.decode``. Your own handler,
            registered with `codecs.register_error`, sees only a part of the stream: it must use
            ``error.object[error.start:error.end]`` and resume at ``error.end``.
        prompt: The id or ids before the first of the stream.
        skipped: Ids that are left out.

    >>> import bpe_engine
    >>> decoder = bpe_engine.get_encoding("qwen").stream_decoder()
    >>> decoder.push(51461), decoder.push([117]), decoder.finish()
    (' ', '根', '')
    """

    def __init__(
        self,
        tokenizer: _Tokenizer,
        errors: str = "replace",
        prompt: int | Sequence[int] = (),
        skipped: Collection[int] = (),
    ):
        self._engine = tokenizer._native_engine
        self._errors = errors
        self._skipped = skipped
        # The first ids, until they give text: decoding may leave out the space that they begin with.
        self._first: list[int] | None = []
        # Bytes of an incomplete character, and whether the prompt began it.
        self._pending = b""
        if ids := self._listed(prompt):
            self._first = None
            self._pending = _unfinished(b"".join(self._engine.decode_tokens_bytes(ids)), errors)
        self._from_prompt = bool(self._pending)

    def push(self, tokens: int | Sequence[int]) -> str:
        """Decodes the next id, or a sequence of ids.

        Returns:
            The text that is complete; "" if a character is still incomplete.

        Raises:
            KeyError, OverflowError, TypeError: As in `Encoding.decode`; the ids are not taken.
            UnicodeDecodeError: With ``errors="strict"``, if the bytes are not UTF-8.
        """
        return self._decode(self._bytes_of(tokens), final=False)

    def finish(self) -> str:
        """Ends the stream.

        Returns:
            "", or the result of `errors` for an incomplete last character. The decoder can be used
            again for another stream, which has no prompt.
        """
        text = self._decode(b"", final=True)
        self._first = []
        return text

    def _listed(self, tokens: int | Sequence[int]) -> list[int]:
        # Arrays of numpy have an index and a length, its integers an index only.
        is_one = hasattr(tokens, "__index__") and not hasattr(tokens, "__len__")
        ids: list[int] = [tokens] if is_one else list(tokens)  # type: ignore[arg-type,list-item]
        return [id for id in ids if id not in self._skipped] if self._skipped else ids

    def _bytes_of(self, tokens: int | Sequence[int]) -> bytes:
        ids = self._listed(tokens)
        if self._first is None:
            return b"".join(self._engine.decode_tokens_bytes(ids))
        first = [*self._first, *ids]
        data = self._engine.decode_bytes(first)
        self._first = None if data else first
        return data

    def _decode(self, data: bytes, final: bool) -> str:
        data = self._pending + data
        if self._from_prompt:
            length = _first_character(data, self._errors)
            if length == 0 and not final:
                self._pending = data
                return ""
            if length <= 0:
                # It was already broken in the prompt.
                data = data[-length:] if length else b""
        text, consumed = codecs.utf_8_decode(data, self._errors, final)
        self._pending, self._from_prompt = data[consumed:], False
        return text


def _unfinished(data: bytes, errors: str) -> bytes:
    """Returns the bytes at the end of `data` that more bytes may complete to a character."""
    for length in (3, 2, 1):
        tail = data[-length:]
        if len(tail) == length and _first_character(tail, errors) == 0:
            return tail
    return b""


def _first_character(data: bytes, errors: str) -> int:
    """Returns the length of the character at the start of `data`: 0 if it is incomplete, and minus
    the length of its valid beginning (at least 1) if it is broken."""
    if not data:
        return 0
    lead = data[0]
    if lead < 0x80:
        return 1
    if not 0xC2 <= lead <= 0xF4:
        return -1
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    low, high = _SECOND_BYTE.get(lead, (0x80, 0xBF))
    if lead == 0xED and errors == "surrogatepass":
        high = 0xBF
    for place in range(1, length):
        if place == len(data):
            return 0
        if not low <= data[place] <= high:
            return -place
        low, high = 0x80, 0xBF
    return length


# The second byte's range where it is narrower than that of the others: without overlong forms,
# surrogates, and code points above U+10FFFF.
_SECOND_BYTE = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
