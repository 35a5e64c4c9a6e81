"""Tokenizers for corpora, which never encode text as special tokens, and messages about unknown
names."""

from __future__ import annotations

import copy

from ..common.suggest import did_you_mean
from ..core import Encoding
from ..hf.tokenizers import Tokenizer

__all__ = ["AnyTokenizer", "for_text", "special_ids", "unknown_special"]

AnyTokenizer = Encoding | Tokenizer


def for_text(tokenizer: Tokenizer) -> Tokenizer:
    """Returns a copy of a tokenizer that never encodes ordinary text as a special token. Unigram
    models can, as with ``</s>``; the copy drops such tokens, as in segments."""
    kept = copy.copy(tokenizer)
    kept._keeps_out_control = True
    return kept


def special_ids(tokenizer: AnyTokenizer) -> dict[str, int]:
    """Returns the ids of the special tokens, or of all added tokens for a tokenizer file."""
    if isinstance(tokenizer, Encoding):
        return dict(tokenizer.special_tokens)
    return {token.content: id for id, token in tokenizer.get_added_tokens_decoder().items()}


def unknown_special(tokenizer: AnyTokenizer, name: str) -> str:
    """Returns the error message for a name that is not a special token, with similar names.

    >>> from bpe_engine import get_encoding
    >>> unknown_special(get_encoding("gpt2"), "<endoftext>")
    "'<endoftext>' is not a special token of gpt2. Did you mean '<|endoftext|>'? It has <|endoftext|>"
    """
    ids = special_ids(tokenizer)
    known = sorted(ids, key=ids.__getitem__)
    others = f" and {len(known) - 6:,} more" if len(known) > 6 else ""
    listed = ", ".join(known[:6]) + others
    return (
        f"{name!r} is not a special token of {tokenizer._label}.{did_you_mean(name, known)} "
        f"It has {listed or 'none'}"
    )
