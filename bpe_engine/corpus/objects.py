"""Encodes structured rows: segments, and messages that a chat template renders."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..prompt import Segment, encode_segments_to_numpy, special, untrusted
from ..texts.block import Block
from ..texts.errors import CorpusError
from .unused import unused_fields

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .coder import Coder
    from .plan import Options

__all__ = ["Row", "empty_row", "encode_objects", "joined"]


_ESCAPED_TWICE = "a call has its arguments as JSON in a string, which the template escapes once more; give an object"


class Row(NamedTuple):
    """An encoded row."""

    ids: npt.NDArray[np.uint32]
    #: 1 for ids of the assistant; None for segments.
    loss: npt.NDArray[np.uint8] | None
    #: Bytes of text.
    size: int
    #: Remarks for `Manifest.notes`.
    notes: tuple[str, ...] = ()


def encode_objects(options: Options, coder: Coder, block: Block) -> Block:
    """Encodes segments or messages, row by row.

    Segments are lists of ``{"text": ..., "special": true}`` or ``[text, is special]``: a special
    segment is the name of a token; token names in other segments are ordinary text. Messages are
    rendered by the template, whose own text is trusted.

    Returns:
        The block with a `Row` in place of each object. Malformed rows, and rows that the template
        rejects, are listed in ``bad``.
    """
    known = {row for row, _ in block.bad}
    rows: list[Row | None] = []
    bad = list(block.bad)
    for number, item in enumerate(block.texts):
        row = None
        if number not in known:
            try:
                row = _encoded(options, coder, *item)
            except (ImportError, MemoryError):
                raise
            except Exception as error:  # Templates raise errors of any class.
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
    """Returns the ids of rows, the row splits, the masks, and the bytes of text."""
    import numpy as np

    parts = [empty_row(options), *rows]
    splits = np.cumsum([len(row.ids) for row in parts], dtype=np.int64)
    masks = [row.loss for row in parts if row.loss is not None]
    ids = np.concatenate([row.ids for row in parts])
    return ids, splits, np.concatenate(masks) if masks else None, sum(row.size for row in parts)


def _encoded(options: Options, coder: Coder, value: Any, others: dict[str, Any]) -> Row:
    import numpy as np

    if options.content == "messages":
        segments = _rendered(options, value, others)
        size = _size(segments)
        audit = coder.engine.audit_segments(segments)
        ids = np.array(audit.ids, np.uint32)
        kept = _weighted(options, value)
        loss = audit.mask("assistant", last=options.train_on == "last", messages=kept)
        notes = _notes(options, value, others, segments)
        return Row(ids, np.array(loss, np.uint8), size, notes)
    if not isinstance(value, list):
        raise CorpusError(f"segments are a list, not {type(value).__name__}")
    segments = [_segment(item) for item in value]
    size = _size(segments)
    return Row(encode_segments_to_numpy(coder.engine, segments), None, size)


def _weighted(options: Options, messages: Any) -> list[int] | None:
    """Returns the indices of messages with a nonzero weight, which may be in the mask."""
    if options.weight_key is None:
        return None
    kept = []
    for number, message in enumerate(messages):
        weight = message.get(options.weight_key)
        if not isinstance(weight, (bool, int, float, type(None))):
            raise CorpusError(
                f"message {number}: {options.weight_key!r} is {weight!r}, not a number, true or false"
            )
        if weight is None or weight:
            kept.append(number)
    return kept


def _notes(
    options: Options, messages: Any, others: dict[str, Any], segments: list[Segment]
) -> tuple[str, ...]:
    """Returns remarks on a row whose ids are probably unintended."""
    notes = [*unused_fields(options, messages, others)]
    notes += [
        f"the field {field!r}, which is to be {name!r} in the template, is not there"
        for name, field in options.template_fields.items()
        if field not in others
    ]
    if escaped := [*_escaped_arguments(messages)]:
        whole = "".join(segment.text for segment in segments)
        notes += [_ESCAPED_TWICE] * any(text in whole for text in escaped)
    return tuple(notes)


def _escaped_arguments(messages: Any) -> Iterator[str]:
    """Yields the arguments of calls that are JSON strings, escaped as by `tojson`."""
    for message in filter(_is_mapping, messages):
        calls = message.get("tool_calls")
        calls = [*calls] if isinstance(calls, (list, tuple)) else []
        for call in filter(_is_mapping, [*calls, {"function": message.get("function_call")}]):
            function = call.get("function", call)
            arguments = function.get("arguments") if _is_mapping(function) else None
            if isinstance(arguments, str) and arguments.lstrip()[:1] in ("{", "["):
                for is_ascii in (False, True):
                    text = json.dumps(arguments, ensure_ascii=is_ascii)
                    yield text[1:-1] if '"' in arguments else text


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _size(segments: list[Segment]) -> int:
    try:
        return sum(len(segment.text.encode()) for segment in segments)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise CorpusError(f"the text has a lone surrogate, {character!a}") from error


def _rendered(options: Options, messages: Any, others: dict[str, Any]) -> list[Segment]:
    from ..prompt import render_template

    names = {"bos_token": options.bos, "eos_token": options.eod}
    tokens: dict[str, Any] = {key: special(name) for key, name in names.items() if name is not None}
    fields = {
        name: others[field] for name, field in options.template_fields.items() if field in others
    }
    tools = None if options.tools is None else _tools(options.tools, others.get(options.tools))
    variables = {**options.template_variables, **fields}
    return render_template(options.template or "", messages, tools=tools, **tokens, **variables)


def _tools(field: str, value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except ValueError as error:
            raise CorpusError(f"the field {field!r} is text, but not JSON: {error}") from None
    if value is not None and not isinstance(value, list):
        raise CorpusError(
            f"the field {field!r} is {type(value).__name__}, not a list of tools; name another with --tools"
        )
    return value


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
