"""Converts a loaded tokenizer file to an `Encoding`, or names what prevents it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Literal, Mapping
from unicodedata import is_normalized

from .._core import UnsupportedTokenizer
from .tokenizers import Tokenizer

if TYPE_CHECKING:
    from ..core import Encoding

__all__ = ["encoding_of_tekken", "encoding_of_tokenizer", "same_encoding"]


def same_encoding(tokenizer: Tokenizer, name: str) -> Encoding | None:
    """The encoding that gives the ids of a tokenizer, also for text in which no special token is
    found; else None.

    Added tokens that are not special, or white space only, are found in such text, too: those of
    an encoding are not.
    """
    tokens = tokenizer.get_added_tokens_decoder().values()
    if not all(token.special and not token.content.isspace() for token in tokens):
        return None
    try:
        return encoding_of_tokenizer(tokenizer, name)
    except ValueError:
        return None


def encoding_of_tokenizer(tokenizer: Tokenizer, name: str, *, any_flags: bool = False) -> Encoding:
    """The encoding that a ``tokenizer.json`` describes.

    Its added tokens are the special tokens. What a post-processor adds is not part of an encoding.

    Args:
        tokenizer: The file.
        name: The name of the encoding.
        any_flags: Take added tokens for special tokens whatever their flags, but leave out those
            that merging makes under the same id: for programs that need the ranks, the pattern and
            the ids only.

    Raises:
        UnsupportedTokenizer: The file has what an encoding cannot express; the message says where.
    """
    from ..core import Encoding

    ranks, pattern = tokenizer._ranks()
    if pattern is None:
        raise _refused("pre_tokenizer", "a chain that is not one published pattern")
    normalization = _normalization(tokenizer)
    if not any_flags:
        _check_turns([token for _, token in tokenizer._added_tokens()])
    special: dict[str, int] = {}
    for place, (id, token) in enumerate(tokenizer._added_tokens()):
        is_made = token[0].encode() in ranks
        if any_flags and ranks.get(token[0].encode()) == id:
            continue
        flag = None if any_flags else _inexpressible(*token, normalization)
        if flag:
            raise _refused(f"added_tokens[{place}].{flag[0]}", f"{flag[1]}, as of {token[0]!r},")
        if is_made and not any_flags:
            what = f"the special token {token[0]!r}, which merging makes as well,"
            raise _refused(f"added_tokens[{place}]", what)
        special[token[0]] = id
    return Encoding(
        name,
        pat_str=pattern,
        mergeable_ranks=ranks,
        special_tokens=special,
        normalization=normalization,
    )


def _check_turns(tokens: list[tuple[str, bool, bool, bool, bool, bool]]) -> None:
    """Fails if a name is searched for before another one that would win in a search for both: those
    with ``normalized`` come second."""
    first, second = ([token[0] for token in tokens if token[4] is turn] for turn in (False, True))
    beginnings = {name[:size] for name in first for size in range(1, len(name) + 1)}
    ends = {name[at:] for name in second for at in range(len(name))}
    joined = "\0".join(second)
    found = sorted(beginnings & ends) + [name for name in first if name in joined]
    if found:
        what = f"names that overlap by {found[0]!r} and differ in normalized"
        raise _refused("added_tokens", what)


def _inexpressible(
    content: str,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
    normalization: Literal["NFC"] | None,
) -> tuple[str, str] | None:
    """Returns a flag of a special token that encodings do not have, and its value."""
    for flag, value in (("single_word", single_word), ("lstrip", lstrip), ("rstrip", rstrip)):
        if value:
            return flag, "true"
    # An encoding normalizes the whole text, and then looks for special tokens.
    if normalization and not (normalized and is_normalized(normalization, content)):
        return "normalized", "false under a normalizer"
    return None


def _normalization(tokenizer: Tokenizer) -> Literal["NFC"] | None:
    """Returns the form that the normalizer is; None if it does nothing."""
    step = tokenizer.normalizer
    parts = [] if step is None else [json.loads(step.__getstate__())]
    while len(parts) == 1 and parts[0]["type"] == "Sequence":
        parts = parts[0]["normalizers"]
    if parts == [{"type": "NFC"}]:
        return "NFC"
    if parts:
        kinds = ", ".join(part["type"] for part in parts)
        raise _refused("normalizer", kinds)
    return None


def _refused(path: str, what: str) -> UnsupportedTokenizer:
    return UnsupportedTokenizer(f"{path}: {what} cannot be part of an Encoding")


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

    try:
        file: dict[str, Any] = json.loads(contents)
        config = file["config"]
        first = config["default_num_special_tokens"]
        count = config["default_vocab_size"] - first
        tokens = sorted(file["vocab"], key=lambda token: token["rank"])[:count]
        ranks = {base64.b64decode(token["token_bytes"]): token["rank"] + first for token in tokens}
        special = {token["token_str"]: token["rank"] for token in file.get("special_tokens") or []}
        pattern = config["pattern"]
        special.update(special_tokens or {})
        return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a tekken.json: {error!r}") from error
    except ValueError as error:
        raise ValueError(f"not a tekken.json: {error}") from error
