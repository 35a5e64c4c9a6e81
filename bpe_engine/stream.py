"""Decoding ids that arrive one by one."""

from __future__ import annotations

import codecs
from typing import Sequence

from ._core import Encoding

__all__ = ["StreamDecoder"]


class StreamDecoder:
    """Turns ids into text as they arrive, holding back bytes until their character is complete.

    The pieces of text together are what `Encoding.decode` makes of all the ids at once, for every
    `errors` and however the ids are handed in.

    Text before the stream can be given as `prompt`. It is not part of the stream; but if it ends
    inside a character that the stream completes, that character is the stream's. If the stream
    does not complete it, the broken character is the prompt's and no trace of it shows.

    Args:
        encoding: The encoding of the ids.
        errors: What to do with bytes that are not UTF-8, as for ``bytes.decode``. A handler of
            your own, registered with `codecs.register_error`, sees a part of the stream: it must
            go by ``error.object[error.start:error.end]`` and resume at ``error.end``.
        prompt: The id or ids before the first of the stream.

    >>> import bpe_engine
    >>> decoder = bpe_engine.get_encoding("qwen").stream_decoder()
    >>> decoder.push(51461), decoder.push([117]), decoder.finish()
    (' ', '根', '')
    """

    def __init__(
        self, encoding: Encoding, errors: str = "replace", prompt: int | Sequence[int] = ()
    ):
        self._core_bpe = encoding._core_bpe
        self._errors = errors
        # Bytes of a character that is not complete yet, and whether its first came from the prompt.
        self._pending = _unfinished(self._bytes_of(prompt), errors)
        self._from_prompt = bool(self._pending)

    def push(self, tokens: int | Sequence[int]) -> str:
        """Takes the next id, or the next ids in a sequence.

        Returns:
            The text that is certain now; "" if a character is still incomplete.

        Raises:
            KeyError, OverflowError, TypeError: As in `Encoding.decode`; the ids are not taken.
            UnicodeDecodeError: With ``errors="strict"``, if the bytes are not UTF-8.
        """
        return self._decode(self._bytes_of(tokens), final=False)

    def finish(self) -> str:
        """Ends the stream.

        Returns:
            What is left: "" unless the last character is incomplete, and then what `errors` makes
            of it. The decoder can be used again for another stream, which has no prompt.
        """
        return self._decode(b"", final=True)

    def _bytes_of(self, tokens: int | Sequence[int]) -> bytes:
        # Arrays of numpy have an index and a length, its integers an index only.
        if hasattr(tokens, "__index__") and not hasattr(tokens, "__len__"):
            return self._core_bpe.decode_single_token_bytes(tokens)
        return self._core_bpe.decode_bytes(tokens)  # type: ignore[arg-type]

    def _decode(self, data: bytes, final: bool) -> str:
        data = self._pending + data
        if self._from_prompt:
            length = _first_character(data, self._errors)
            if length == 0 and not final:
                self._pending = data
                return ""
            if length <= 0:
                # Broken for good: what there is of it was broken in the prompt already.
                data = data[-length:] if length else b""
        text, consumed = codecs.utf_8_decode(data, self._errors, final)
        self._pending, self._from_prompt = data[consumed:], False
        return text


def _unfinished(data: bytes, errors: str) -> bytes:
    """The bytes at the end of `data` that may become a character when more follow."""
    for length in (3, 2, 1):
        tail = data[-length:]
        if len(tail) == length and _first_character(tail, errors) == 0:
            return tail
    return b""


def _first_character(data: bytes, errors: str) -> int:
    """The length of the character that `data` begins with; 0 if it is not complete yet; if it is
    broken, the length of its good beginning (at least 1), negated."""
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


# The range of the second byte, where it is narrower than that of the others: it rules out long
# spellings of short characters, surrogates, and numbers above U+10FFFF.
_SECOND_BYTE = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
