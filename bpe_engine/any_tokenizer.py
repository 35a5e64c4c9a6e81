"""Asks an `Encoding` and a `bpe_engine.hf.Tokenizer` alike, for commands and the playground.

Names of special tokens that are not allowed are text, and nothing is added around a text.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from ._core import UnsupportedTokenizer
from .core import Encoding
from .hf.tokenizers import Tokenizer
from .suggest import did_you_mean

__all__ = [
    "AnyTokenizer",
    "count",
    "decode_bytes",
    "encode",
    "encode_with_offsets",
    "name_of",
    "special_ids",
    "split",
    "unknown_special",
]

AnyTokenizer = Encoding | Tokenizer


def name_of(tokenizer: AnyTokenizer) -> str:
    """Returns the name of an encoding, and for other tokenizers what they were read from."""
    return tokenizer.name if isinstance(tokenizer, Encoding) else "tokenizer.json"


def special_ids(tokenizer: AnyTokenizer) -> dict[str, int]:
    """Returns the ids of the special tokens; of a tokenizer file, of all added tokens."""
    if isinstance(tokenizer, Encoding):
        return dict(tokenizer.special_tokens)
    return {token.content: id for id, token in tokenizer.get_added_tokens_decoder().items()}


def unknown_special(tokenizer: AnyTokenizer, name: str) -> str:
    """Returns the message about a name that is not a special token, with similar ones.

    >>> from bpe_engine import get_encoding
    >>> unknown_special(get_encoding("gpt2"), "<endoftext>")
    "'<endoftext>' is not a special token of gpt2. Did you mean '<|endoftext|>'? It has <|endoftext|>"
    """
    ids = special_ids(tokenizer)
    known = sorted(ids, key=ids.__getitem__)
    listed = ", ".join(known[:6]) + (", ..." if len(known) > 6 else "")
    return (
        f"{name!r} is not a special token of {name_of(tokenizer)}.{did_you_mean(name, known)} "
        f"It has {listed or 'none'}"
    )


def encode(tokenizer: AnyTokenizer, text: str, allowed: AbstractSet[str]) -> list[int]:
    """Returns the ids of a text."""
    if isinstance(tokenizer, Encoding):
        return tokenizer.encode(text, allowed_special=allowed, disallowed_special=())
    return tokenizer.conversation(allowed_special=allowed).update(text).ids


def count(tokenizer: AnyTokenizer, text: str, allowed: AbstractSet[str]) -> int:
    """Returns the number of ids of a text."""
    if isinstance(tokenizer, Encoding):
        return tokenizer.count(text, allowed_special=allowed, disallowed_special=())
    return len(tokenizer.conversation(allowed_special=allowed).update(text).ids)


def encode_with_offsets(
    tokenizer: AnyTokenizer, text: str, allowed: AbstractSet[str]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Returns the ids of a text, and the characters that each covers.

    Raises ValueError for some but not all special tokens of a tokenizer file.
    """
    if isinstance(tokenizer, Encoding):
        return tokenizer.encode_with_offsets(text, allowed_special=allowed, disallowed_special=())
    if allowed and not tokenizer.special_tokens_set <= allowed:
        raise ValueError("of a tokenizer file, all special tokens are allowed, or none")
    plain = copy.copy(tokenizer)
    plain.no_truncation()
    plain.no_padding()
    plain.post_processor = None
    plain.encode_special_tokens = not allowed
    found = plain.encode(text, add_special_tokens=False)
    return found.ids, found.offsets


def decode_bytes(tokenizer: AnyTokenizer, ids: Sequence[int]) -> bytes:
    """Returns the bytes of ids. Raises KeyError for an unknown id."""
    if isinstance(tokenizer, Encoding):
        return tokenizer.decode_bytes(ids)
    for id in ids:
        if tokenizer.id_to_token(id) is None:
            raise KeyError(f"Invalid token for decoding: {id}")
    try:
        return tokenizer._decode_bytes(ids, False)
    except UnsupportedTokenizer:
        return tokenizer.decode(ids, skip_special_tokens=False).encode()


def split(tokenizer: AnyTokenizer, text: str, allowed: AbstractSet[str]) -> list[str]:
    """Returns the pieces into which a text is cut before tokens are merged; those of a tokenizer
    file after its normalizer.

    Raises:
        ValueError: A tokenizer file does not cut text, or an allowed special token is in the text.
    """
    if isinstance(tokenizer, Encoding):
        return tokenizer.split(text, allowed_special=allowed)
    if found := next((name for name in allowed if name in text), None):
        raise ValueError(f"the text has the special token {found!r}; split what is between them")
    step = tokenizer.pre_tokenizer
    if step is None:
        raise ValueError("this tokenizer has no pre-tokenizer: it merges the whole text as it is")
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    return [text[start:end] for _, (start, end) in step.pre_tokenize_str(text)]
