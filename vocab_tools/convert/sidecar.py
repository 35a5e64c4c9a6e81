"""Writes the sidecar of a token file; :mod:`bpe_engine.read.sidecar` reads sidecars."""

from __future__ import annotations

import json

from .definition import Definition


def dump_sidecar(definition: Definition) -> bytes:
    """Returns the contents of the sidecar."""
    contents = {
        "pattern": definition.pattern,
        "special_tokens": definition.special_tokens,
        "normalization": definition.normalization,
    }
    if definition.settings is not None:
        contents["tokenizer_json"] = definition.settings
    return (json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode()
