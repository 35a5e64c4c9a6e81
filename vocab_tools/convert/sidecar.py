"""What stands beside a file that holds tokens only: the pattern and the special tokens.

Beside ``NAME.tiktoken`` or ``NAME.json``, in ``NAME.encoding.json``: a JSON object with ``pattern``,
``special_tokens`` and ``normalization``; and, for what came out of a ``tokenizer.json``, with
``tokenizer_json``, all of that file but its vocabulary and merges.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .definition import Definition

ENDING = ".encoding.json"


def beside(path: str | Path) -> Path:
    """The file beside a file.

    >>> beside("a/qwen.tiktoken").name, beside("vocab.json").name, beside("qwen").name
    ('qwen.encoding.json', 'vocab.encoding.json', 'qwen.encoding.json')
    """
    path = Path(path)
    name = path.name.removesuffix(".gz")
    return path.with_name((name.rpartition(".")[0] or name) + ENDING)


def read_sidecar(path: str | Path) -> dict[str, Any] | None:
    """What stands beside ``path``; None where nothing does.

    Raises ValueError when it is malformed.
    """
    sidecar = beside(path)
    if not sidecar.exists():
        return None
    try:
        found = json.loads(sidecar.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{sidecar}: the JSON is broken: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{sidecar}: expected a JSON object")
    _expect(found, sidecar, "a text", str, "pattern", "normalization")
    _expect(found, sidecar, "an object", dict, "special_tokens", "tokenizer_json")
    if found.get("normalization") not in (None, "NFC"):
        raise ValueError(f"{sidecar}: the normalization is NFC or null")
    return found


def _expect(found: dict[str, Any], path: Path, what: str, kind: type, *keys: str) -> None:
    for key in keys:
        if not isinstance(found.get(key), (kind, type(None))):
            raise ValueError(f"{path}: {key!r} is not {what}")


def dump_sidecar(definition: Definition) -> bytes:
    """The contents of the file beside."""
    contents = {
        "pattern": definition.pattern,
        "special_tokens": definition.special_tokens,
        "normalization": definition.normalization,
    }
    if definition.settings is not None:
        contents["tokenizer_json"] = definition.settings
    return (json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode()
