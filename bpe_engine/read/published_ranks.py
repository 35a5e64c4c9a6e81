"""Recognizes published ranks, because rank files state neither pattern nor special tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..registry import get_encoding

__all__ = ["may_be_published", "published_name"]

#: Encodings with recognizable published ranks.
PUBLISHED = ("r50k_base", "p50k_base", "cl100k_base", "o200k_base", "qwen")

#: An id that all encodings have, mostly for different tokens, which rules out most candidates.
_PROBE_ID = 50000


def published_name(ranks: Mapping[bytes, int]) -> str | None:
    """Returns the encoding whose ranks these ranks repeat or extend; None for unpublished ranks.

    >>> published_name(get_encoding("p50k_base").mergeable_ranks)
    'p50k_base'
    """
    found: tuple[int, str] | None = None
    for name in PUBLISHED:
        encoding = get_encoding(name)
        if ranks.get(encoding.decode_single_token_bytes(_PROBE_ID)) != _PROBE_ID:
            continue
        published = dict(encoding.mergeable_ranks)
        # The longest match wins: one published vocabulary is a prefix of another.
        longer = found is None or len(published) > found[0]
        if longer and published.items() <= ranks.items():
            found = (len(published), name)
    return None if found is None else found[1]


def may_be_published(contents: bytes) -> bool:
    """Returns False if a rank file cannot be a published file; cheaper than parsing."""
    return re.search(rb" %d\s" % _PROBE_ID, contents) is not None
