"""Converts a loaded tokenizer file to an `Encoding`, or names what prevents it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Mapping

from .._core import UnsupportedTokenizer
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from ..core import Encoding

__all__ = ["encoding_of_tekken", "encoding_of_tokenizer"]


def encoding_of_tokenizer(contents: str, name: str) -> Encoding:
    """The encoding that a ``tokenizer.json`` describes.

    Its added tokens are the special tokens. What a post-processor adds is not part of an encoding.

    Args:
        contents: The file.
        name: The name of the encoding.

    Raises:
        UnsupportedTokenizer: The file has what an encoding cannot express; the message says where.
    """
    from ..core import Encoding

    tokenizer = Tokenizer.from_str(contents)
    ranks, pattern = tokenizer._ranks()
    if pattern is None:
        raise _refused("pre_tokenizer", "a chain that is not one published pattern")
    normalizer = tokenizer.normalizer
    if normalizer is not None and json.loads(normalizer.__getstate__()) != _NO_NORMALIZER:
        raise _refused("normalizer", "a normalizer")
    special: dict[str, int] = {}
    for place, (id, flags) in enumerate(tokenizer._added_tokens()):
        content, single_word, lstrip, rstrip, _, _ = flags
        for flag, value in (("single_word", single_word), ("lstrip", lstrip), ("rstrip", rstrip)):
            if value:
                raise _refused(f"added_tokens[{place}]", f"{flag} of the token {content!r}")
        if content.encode() in ranks:
            raise _refused(f"added_tokens[{place}]", f"{content!r}, which merging makes as well,")
        special[content] = id
    return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)


def _refused(path: str, what: str) -> UnsupportedTokenizer:
    reason = "cannot be part of an Encoding; bpe_engine.hf.Tokenizer reads this file"
    return UnsupportedTokenizer(f"{path}: {what} {reason}")


_NO_NORMALIZER = {"type": "Sequence", "normalizers": []}


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
    from ..core import Encoding

    file: dict[str, Any] = json.loads(contents)
    try:
        config = file["config"]
        first = config["default_num_special_tokens"]
        count = config["default_vocab_size"] - first
        tokens = sorted(file["vocab"], key=lambda token: token["rank"])[:count]
        ranks = {base64.b64decode(token["token_bytes"]): token["rank"] + first for token in tokens}
        special = {token["token_str"]: token["rank"] for token in file.get("special_tokens") or []}
        pattern = config["pattern"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a tekken.json: {error!r}") from error
    special.update(special_tokens or {})
    return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
