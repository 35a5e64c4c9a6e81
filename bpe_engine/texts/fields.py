"""`Fields`: the fields read from a row."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Fields", "field_path", "joined_path"]


class Fields(NamedTuple):
    """The fields read from a row."""

    text: str
    name: str | None = None
    #: True if rows are read as Python objects: segments and messages.
    as_objects: bool = False
    #: Optional fields read with messages.
    others: tuple[str, ...] = ()
    #: True to read all fields of the object that contains the messages.
    siblings: bool = False


@functools.cache
def field_path(field: str) -> list[str]:
    r"""Splits the name of a nested field at its dots; ``\.`` is a dot in a name.

    >>> field_path("meta.text"), field_path(r"a\.b")
    (['meta', 'text'], ['a.b'])
    """
    return [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", field)]


def joined_path(path: Iterable[str]) -> str:
    r"""Returns the name of a nested field.

    >>> joined_path(["meta", "text"]), joined_path(["a.b"])
    ('meta.text', 'a\\.b')
    """
    return ".".join(name.replace(".", "\\.") for name in path)
