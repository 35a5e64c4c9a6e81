"""Encodes rows that are not plain text: segments, and messages with a chat template."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..prompt import Segment, render_template, special, untrusted
from ..texts.block import Block
from ..texts.errors import CorpusError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .coder import Coder
    from .plan import Options

__all__ = ["Row", "empty_row", "encode_objects", "joined"]


class Row(NamedTuple):
    """A row that is encoded."""

    ids: npt.NDArray[np.uint32]
    #: 1 for ids of the assistant; None for segments.
    loss: npt.NDArray[np.uint8] | None
    #: Bytes of text.
    size: int


def encode_objects(options: Options, coder: Coder, block: Block) -> Block:
    """Encodes segments or messages, row by row.

    Segments are lists of ``{"text": ..., "special": true}`` or ``[text, is special]``: text of a
    special one is the name of a token, and all other text holds none. Messages are rendered by the
    template, whose own text is trusted.

    Returns:
        The block with `Row` in place of the objects. Rows that are malformed, or that the template
        refuses, are bad.
    """
    known = {row for row, _ in block.bad}
    rows: list[Row | None] = []
    bad = list(block.bad)
    for number, value in enumerate(block.texts):
        row = None
        if number not in known:
            try:
                row = _encoded(options, coder, value)
            except (ImportError, MemoryError):
                raise
            except Exception as error:  # Templates raise errors of their own kinds.
                kind = "" if isinstance(error, CorpusError) else f"{type(error).__name__}: "
                bad.append((number, f"{kind}{error}"))
        rows.append(row)
    return block._replace(texts=rows, bad=sorted(bad))


def empty_row(options: Options) -> Row:
    """Returns a row without ids."""
    import numpy as np

    is_chat = options.content == "messages"
    return Row(np.zeros(0, np.uint32), np.zeros(0, np.uint8) if is_chat else None, 0)


def joined(
    rows: list[Row], options: Options
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.uint8] | None, int]:
    """Returns the ids of rows, the places between them, their masks, and the bytes of text."""
    import numpy as np

    parts = [empty_row(options), *rows]
    splits = np.cumsum([len(row.ids) for row in parts], dtype=np.int64)
    masks = [row.loss for row in parts if row.loss is not None]
    ids = np.concatenate([row.ids for row in parts])
    return ids, splits, np.concatenate(masks) if masks else None, sum(row.size for row in parts)


def _encoded(options: Options, coder: Coder, value: Any) -> Row:
    import numpy as np

    if options.content == "messages":
        segments = _rendered(options, value)
        size = _size(segments)
        audit = coder.engine.audit_segments(segments)
        ids = np.array(audit.ids, np.uint32)
        loss = np.array(audit.mask("assistant"), np.uint8)
        return Row(ids, loss, size)
    if not isinstance(value, list):
        raise CorpusError(f"segments are a list, not {type(value).__name__}")
    segments = [_segment(item) for item in value]
    size = _size(segments)
    return Row(coder.engine.encode_segments_to_numpy(segments), None, size)


def _size(segments: list[Segment]) -> int:
    """Returns the bytes of the text of segments, which has no lone surrogates."""
    try:
        return sum(len(segment.text.encode()) for segment in segments)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise CorpusError(f"the text has a lone surrogate, {character!a}") from error


def _rendered(options: Options, messages: Any) -> list[Segment]:
    names = {"bos_token": options.bos, "eos_token": options.eod}
    tokens: dict[str, Any] = {key: special(name) for key, name in names.items() if name is not None}
    return render_template(options.template or "", messages, **tokens)


def _segment(item: Any) -> Segment:
    if isinstance(item, Mapping):
        text, is_special = item.get("text"), item.get("special", False)
    elif isinstance(item, (list, tuple)) and len(item) == 2:
        text, is_special = item
    else:
        text, is_special = item, False
    if not isinstance(text, str) or not isinstance(is_special, (bool, type(None))):
        raise CorpusError(
            f'{reprlib.repr(item)} is not a segment; give {{"text": ..., "special": true}} or '
            "[text, is special]"
        )
    return special(text) if is_special else untrusted(text)
