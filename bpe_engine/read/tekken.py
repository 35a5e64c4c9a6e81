"""Reads the ``tekken.json`` of Mistral."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from ..core import Encoding

__all__ = ["encoding_of_tekken"]


def encoding_of_tekken(
    contents: str, name: str, special_tokens: Mapping[str, int] | None = None
) -> Encoding:
    """The encoding that a ``tekken.json`` of Mistral describes.

    The first ids are those of special tokens; those of the tokens follow.

    Args:
        contents: The file.
        name: The name of the encoding.
        special_tokens: Names and ids, for files that do not list them.

    Raises:
        ValueError: The file is malformed.
    """
    try:
        file: dict[str, Any] = json.loads(contents)
        config = file["config"]
        first = config["default_num_special_tokens"]
        count = config["default_vocab_size"] - first
        tokens = sorted(file["vocab"], key=lambda token: token["rank"])[:count]
        ranks = {
            base64.b64decode(token["token_bytes"], validate=True): token["rank"] + first
            for token in tokens
        }
        special = {token["token_str"]: token["rank"] for token in file.get("special_tokens") or []}
        pattern = config["pattern"]
        special.update(special_tokens or {})
        return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a tekken.json: {error!r}") from error
    except ValueError as error:
        raise ValueError(f"not a tekken.json: {error}") from error
