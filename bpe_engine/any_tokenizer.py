"""Covers what differs between an `Encoding` and a `bpe_engine.hf.Tokenizer`, for commands that take both.

Names of special tokens that are not allowed are text, and nothing is added around a text.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from .core import Encoding
from .hf.tokenizers import Tokenizer
from .suggest import did_you_mean

__all__ = ["AnyTokenizer", "encode", "special_ids", "split", "unknown_special"]

AnyTokenizer = Encoding | Tokenizer


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
        f"{name!r} is not a special token of {tokenizer._label}.{did_you_mean(name, known)} "
        f"It has {listed or 'none'}"
    )


def encode(tokenizer: AnyTokenizer, text: str, allowed: AbstractSet[str]) -> list[int]:
    """Returns the ids of a text."""
    if isinstance(tokenizer, Encoding):
        return tokenizer.encode(text, allowed_special=allowed, disallowed_special=())
    return tokenizer.conversation(allowed_special=allowed, disallowed_special=()).update(text).ids


def split(tokenizer: AnyTokenizer, text: str, allowed: AbstractSet[str]) -> list[str]:
    """Returns the pieces into which a text is cut before tokens are merged.

    Raises ValueError for a tokenizer file that does not cut text, or if the text has an allowed
    special token of one.
    """
    if isinstance(tokenizer, Encoding):
        return tokenizer.split(text, allowed_special=allowed)
    if found := next((name for name in allowed if name in text), None):
        raise ValueError(f"the text has the special token {found!r}; split what is between them")
    return tokenizer.split(text)
