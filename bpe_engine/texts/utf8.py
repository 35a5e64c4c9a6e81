"""Decodes UTF-8 incrementally. Errors state the byte offset and what to do."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from .errors import CorpusError

__all__ = ["NOT_UTF_16", "UTF_16", "decoded"]

#: Byte order marks of UTF-16, and the error for such a file.
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
NOT_UTF_16 = "{} is UTF-16, not UTF-8; convert it: iconv -f utf-16 -t utf-8"


def decoded(chunks: Iterable[bytes], source: str, errors: str) -> Iterator[str]:
    """Decodes chunks of bytes, and yields their text.

    Args:
        chunks: The bytes, in chunks of any size.
        source: The name of the input in errors.
        errors: "strict", "replace" or "ignore".

    Raises CorpusError for bytes that are not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    offset = 0
    for chunk in chunks:
        yield from _decoded(decoder, chunk, offset, source)
        offset += len(chunk)
    yield from _decoded(decoder, None, offset, source)


def _decoded(
    decoder: codecs.IncrementalDecoder, chunk: bytes | None, offset: int, source: str
) -> Iterator[str]:
    pending = len(decoder.getstate()[0])
    try:
        text = decoder.decode(chunk or b"", final=chunk is None)
    except UnicodeDecodeError as error:
        raise _not_utf8(error, offset - pending + error.start, source) from None
    if text:
        yield text


def _not_utf8(error: UnicodeDecodeError, at: int, source: str) -> CorpusError:
    if at == 0 and error.object[:2] in UTF_16:
        return CorpusError(NOT_UTF_16.format(source))
    return CorpusError(
        f"{source} is not UTF-8 at byte {at} (0x{error.object[error.start]:02x}); convert it, or "
        "pass --errors replace"
    )
