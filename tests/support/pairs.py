"""An encoding of ours beside tiktoken's of the same name."""

from __future__ import annotations

import dataclasses

import tiktoken
from oracles import normalized, oracle

import bpe_engine

# One encoding of each pattern, for tests that take long.
FAMILIES = ["r50k_base", "cl100k_base", "o200k_base", "qwen"]


@dataclasses.dataclass(frozen=True)
class Pair:
    """An encoding of ours and tiktoken's of the same name."""

    name: str
    ours: bpe_engine.Encoding
    theirs: tiktoken.Encoding

    def expected(self, text: str, allowed: str | set[str] = frozenset()) -> list[int]:
        """tiktoken's ids of a text, without a check."""
        text = normalized(self.name, text)
        return self.theirs.encode(text, allowed_special=allowed, disallowed_special=())


def pair(name: str) -> Pair:
    return Pair(name, bpe_engine.get_encoding(name), oracle(name))
