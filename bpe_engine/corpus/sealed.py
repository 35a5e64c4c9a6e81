"""JSON files with a checksum, so that readers detect any change."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..texts.errors import CorpusError

__all__ = ["read_sealed", "sealed", "sum_of"]


def sum_of(plain: dict[str, Any]) -> str:
    """Returns the SHA-256 of a value as canonical JSON.

    >>> sum_of({"a": 1, "b": (2,)}) == sum_of({"b": [2], "a": 1})
    True
    """
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(plain: dict[str, Any]) -> bytes:
    """Returns a value as JSON with its checksum."""
    whole = {**plain, "sha256": sum_of(plain)}
    return f"{json.dumps(whole, ensure_ascii=False, indent=1)}\n".encode()


def read_sealed(path: str, way_out: str) -> dict[str, Any]:
    """Reads a file that `sealed` wrote.

    Args:
        path: The file.
        way_out: The remedy named in the error for a damaged file.

    Raises:
        FileNotFoundError: The file does not exist.
        CorpusError: The file was changed, or cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            plain = json.load(file)
        found = plain.pop("sha256")
    except FileNotFoundError:
        raise
    except (ValueError, OSError, AttributeError, KeyError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; {way_out}") from error
    if sum_of(plain) != found:
        raise CorpusError(f"{path} was changed after it was made; {way_out}")
    return plain  # type: ignore[no-any-return]
