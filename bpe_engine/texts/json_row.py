"""Reads the row in a JSON line: its text and name, or the reason for a refusal."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from .fields import Fields, field_path, joined_path

__all__ = ["Null", "Refused", "row_of"]


class Refused(Exception):
    """Raised for a line that has no valid row, with the reason."""


class Null(Refused):
    """Raised for a null field or container."""


class _Missing(Refused):
    """Raised for a missing field."""


class _Whole(str):
    """A whole number as written in the file, of any length."""


class _Fraction(str):
    """A number that is not whole, as written in the file."""


class _Doubled(dict[str, Any]):
    twice: set[str]


_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    _Whole: "a number",
    float: "a floating-point number",
    _Fraction: "a floating-point number",
    list: "an array",
    dict: "an object",
    _Doubled: "an object",
}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        found = _Doubled(found)
        keys = [key for key, _ in pairs]
        found.twice = {key for key in found if keys.count(key) > 1}
    return found


#: Decoder for text; numbers, which are ignored, may have any size.
_TEXT = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_Whole, parse_float=_Fraction, parse_constant=_Fraction
)
_OBJECTS = json.JSONDecoder(object_pairs_hook=_object)


def row_of(line: bytes, fields: Fields, errors: str = "strict") -> tuple[Any, str | None]:
    """Returns the value of the text field, together with the other fields if rows are objects, and
    the name or None.

    Ignored fields may have any JSON, even duplicate keys and lone surrogates.

    Args:
        line: A line, with or without its end.
        fields: The fields to read.
        errors: "strict"; "replace" for U+FFFD instead of invalid UTF-8, and "?" instead of lone
            surrogates; or "ignore".

    Raises:
        Refused: The line is not JSON, or lacks the field, or the field is null or not text.
        RecursionError: The line is nested too deeply.

    >>> row_of(b'{"text": "a", "id": 7}', Fields("text", "id", False))
    ('a', '7')
    """
    if errors != "strict":
        line = line.decode(errors=errors).encode()
    row = _loaded(line, fields.as_objects)
    value = _dug(row, field_path(fields.text))
    if value is None:
        raise Null(f"the field {fields.text!r} is null")
    if errors != "strict" and type(value) is str:
        value = value.encode(errors=errors).decode()
    if fields.as_objects:
        value = (value, {**_siblings(row, fields), **dict(_others(row, fields.others))})
    else:
        _check_text(value, fields.text, "text", line)
    return value, None if fields.name is None else _name(row, fields.name, line)


def _loaded(line: bytes, as_objects: bool) -> Any:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        if as_objects:
            raise Refused(f"invalid UTF-8: byte 0x{line[error.start]:02x}") from None
        text = line.decode(errors="surrogateescape")
    text = text.strip(" \t\r\n")
    if not text.startswith("{"):
        raise Refused("broken JSON: it is not a JSON object")
    try:
        row, end = (_OBJECTS if as_objects else _TEXT).raw_decode(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        raise Refused(f"broken JSON: {reason}") from None
    except ValueError as error:  # A number with thousands of digits.
        raise Refused(f"broken JSON: {error}") from None
    if end < len(text):
        raise Refused("broken JSON: it has more than one JSON value")
    return row


def _others(row: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name in names:
        with contextlib.suppress(Null, _Missing):
            if (value := _dug(row, field_path(name))) is not None:
                yield name, value


def _siblings(row: Any, fields: Fields) -> dict[str, Any]:
    """Returns the fields next to the messages, without duplicate keys."""
    *above, name = field_path(fields.text)
    holder = _dug(row, above) if fields.siblings else {}
    twice = holder.twice if isinstance(holder, _Doubled) else ()
    return {
        joined_path([*above, key]): value
        for key, value in holder.items()
        if value is not None and key != name and key not in twice
    }


def _dug(row: Any, path: list[str]) -> Any:
    for place, name in enumerate(path):
        if type(row) is not dict or name not in row:
            _check_holder(row, path[:place], name)
        row = row[name]
    return row


def _check_holder(row: Any, above: list[str], name: str) -> None:
    """Raises Refused unless a value is an object that has the field exactly once."""
    here = ".".join([*above, name])
    if row is None and above:
        raise Null(f"the field {'.'.join(above)!r} is null")
    if not isinstance(row, dict):
        what = f"the field {'.'.join(above)!r} is {_KINDS[type(row)]}, not an object"
        raise Refused(what)
    if name not in row:
        has = ", ".join(map(repr, list(row)[:8])) or "nothing"
        raise _Missing(f"the field {here!r} is missing; there is {has}; name it with --field")
    if isinstance(row, _Doubled) and name in row.twice:
        raise Refused(f"the field {here!r} is given twice")


def _name(row: Any, field: str, line: bytes) -> str | None:
    """Returns a row's name: text, a whole number, or None if the row has no name."""
    try:
        name = _dug(row, field_path(field))
    except (Null, _Missing):
        return None
    if name is None:
        return None
    if isinstance(name, (_Whole, int)) and not isinstance(name, bool):
        return "0" if name == "-0" else str(name)
    _check_text(name, field, "a name", line)
    return str(name)


def _check_text(value: Any, field: str, wanted: str, line: bytes) -> None:
    if type(value) is not str:
        raise Refused(f"the field {field!r} is {_KINDS[type(value)]}, not {wanted}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refused(_not_text(value, value[error.start], line)) from None


def _not_text(value: str, wrong: str, line: bytes) -> str:
    """Explains why text cannot be encoded: invalid UTF-8 or a lone surrogate."""
    try:
        line.decode()
    except UnicodeDecodeError:
        try:
            value.encode(errors="surrogateescape").decode()
        except UnicodeDecodeError as error:
            return f"invalid UTF-8: byte 0x{error.object[error.start]:02x} at {error.start}"
        except UnicodeEncodeError:
            pass
    return f"broken JSON: a lone surrogate, {wrong!a}"
