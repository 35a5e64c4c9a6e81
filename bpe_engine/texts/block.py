"""`Block`: rows of an input as an Arrow column, and the bad rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._core import NameCounter
from ..abilities.columns import check_structure, is_string_view, parts_of
from .errors import CorpusError
from .fields import Fields

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["AT_ONCE", "LONGEST", "Block", "block_of", "check_field", "checked_names"]

#: Number of bytes read, and roughly of bytes of text encoded, per block. With an eighth, reading is
#: a quarter slower; with double, no faster.
AT_ONCE = 1 << 21

#: Maximum size of a document in bytes. Memory stays below a gigabyte even with an id per byte.
LONGEST = 24 << 20


_NO_NAMES = NameCounter([])


class Block(NamedTuple):
    """Consecutive rows of an input."""

    #: The texts as a ``large_string`` array, null for bad rows. For segments and messages, a list
    #: of pairs: the value of the field, and the values of `Fields.others` by field; None for bad
    #: rows.
    texts: Any
    #: Names as a ``string`` array, or None.
    names: Any
    #: Lines, records or rows in the file, from 1; counted from the start of the part for a byte
    #: range.
    lines: npt.NDArray[np.int64]
    #: Rows that are not text: index in the block, and reason.
    bad: list[tuple[int, str]]


def block_of(texts: Any, names: Any, lines: Any, uri: str, fields: Fields) -> Block:
    """Makes a block from an Arrow array of any text type; bytes are read as UTF-8.

    Raises:
        CorpusError: An array has another type, or is damaged.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    field = fields.text
    bad: list[tuple[int, str]] = []
    check_field(texts, uri, field)
    kind = texts.type
    if pa.types.is_dictionary(kind):
        texts, kind = texts.cast(kind.value_type), kind.value_type
    if pa.types.is_null(kind):
        texts, kind = texts.cast(pa.large_string()), pa.large_string()
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_text = is_text or is_string_view(pa, kind)
    if not is_text and not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise CorpusError(f"{uri}: the field {field!r} is {kind}, not text; name another")
    try:
        texts = texts.cast(pa.large_string())
        if texts.null_count:
            texts.validate(full=True)
        else:
            _NO_NAMES.count(parts_of(texts))  # Validates UTF-8 several times faster.
    except ValueError:  # A row is not UTF-8.
        texts, bad = _checked(texts)
    if texts.null_count > len(bad):
        known = {place for place, _ in bad}
        nulls = texts.is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist()
        bad += [(row, f"the field {field!r} is null") for row in nulls if row not in known]
        bad.sort()
    names, nameless = checked_names(names, uri, fields)
    if nameless:
        bad = sorted({**dict(nameless), **dict(bad)}.items())
        is_good = np.ones(len(texts), bool)
        is_good[[row for row, _ in nameless]] = False
        texts = compute.if_else(pa.array(is_good), texts, pa.scalar(None, texts.type))
    return Block(texts, names, lines, bad)


def check_field(array: Any, uri: str, field: str) -> None:
    """Raises CorpusError, with the file and the field, if an Arrow array is damaged."""
    try:
        check_structure(array)
    except ValueError as error:
        raise CorpusError(f"{uri}, field {field!r}: {error}; make the file again") from error


def checked_names(names: Any, uri: str, fields: Fields) -> tuple[Any, list[tuple[int, str]]]:
    """Returns a column of names or numbers as strings, and the rows with invalid UTF-8. Null stays
    null; None stays None.

    Raises:
        CorpusError: The column is damaged, or has a type that cannot be a name.
    """
    import pyarrow as pa
    import pyarrow.compute as compute

    if names is None:
        return None, []
    check_field(names, uri, fields.name or "")
    if not pa.types.is_string(names.type):
        try:
            options = compute.CastOptions(pa.string(), allow_invalid_utf8=True)
            names = names.cast(options=options)
        except pa.ArrowNotImplementedError as error:
            raise CorpusError(
                f"{uri}: the field {fields.name!r} is {names.type}, not a name; name another"
            ) from error
    try:
        names.validate(full=True)
        return names, []
    except pa.ArrowInvalid:
        names, bad = _checked(names)
        return names.cast(pa.string()), [
            (at, f"the field {fields.name!r}: {why}") for at, why in bad
        ]


def _checked(texts: Any) -> tuple[Any, list[tuple[int, str]]]:
    """Replaces rows that are not UTF-8 with null, and lists them."""
    import pyarrow as pa

    rows: list[bytes | None] = texts.cast(pa.large_binary()).to_pylist()
    bad: list[tuple[int, str]] = []
    for at, row in enumerate(rows):
        try:
            (row or b"").decode()
        except UnicodeDecodeError as error:
            bad.append(
                (at, f"invalid UTF-8: byte 0x{error.object[error.start]:02x} at {error.start}")
            )
            rows[at] = None
    return pa.array(rows, pa.large_binary()).cast(pa.large_string()), bad
