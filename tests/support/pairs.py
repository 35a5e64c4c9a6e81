"""Pairs each of our encodings with tiktoken's encoding of the same name."""

from __future__ import annotations

import dataclasses
import functools

import tiktoken
from hypothesis import strategies as st
from oracles import normalized, oracle
from strategies import texts

import bpe_engine

# One encoding for each pattern, for slow tests.
FAMILIES = ["r50k_base", "cl100k_base", "o200k_base", "qwen"]


@dataclasses.dataclass(frozen=True)
class Pair:
    """Our encoding and tiktoken's encoding of the same name."""

    name: str
    ours: bpe_engine.Encoding
    theirs: tiktoken.Encoding

    def expected(self, text: str, allowed: str | set[str] = frozenset()) -> list[int]:
        """Returns tiktoken's ids of a text; disallows no special token."""
        text = normalized(self.name, text)
        return self.theirs.encode(text, allowed_special=allowed, disallowed_special=())


def pair(name: str) -> Pair:
    return Pair(name, bpe_engine.get_encoding(name), oracle(name))


@functools.cache
def some_ids(name: str) -> st.SearchStrategy[list[int]]:
    """Generates ids of texts, interspersed with single bytes that break characters."""
    ours = pair(name).ours
    single = [ours.encode_single_token(bytes([byte])) for byte in range(128, 256)]
    whole = texts.map(lambda text: ours.encode(text, allowed_special="all"))
    # The UTF-8 form of a surrogate, and prefixes of characters.
    surrogates = st.sampled_from([b"\xed\xa0\x80", b"\xed\xb0", b"\xed", b"\xf0\x9f\x98", b"\xe2"])
    parts = st.one_of(
        whole,
        st.lists(st.sampled_from(single), max_size=4),
        surrogates.map(lambda raw: [ours.encode_single_token(bytes([byte])) for byte in raw]),
    )
    return st.lists(parts, max_size=5).map(lambda lists: sum(lists, []))
