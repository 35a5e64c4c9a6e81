"""What a tokenizer file says, whatever its format."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bpe_engine import vocabulary

from ..text import show

#: Two tokens that merge.
Merge = tuple[bytes, bytes]


@dataclass(frozen=True)
class Definition:
    """A byte-level BPE tokenizer.

    Rank files say which tokens merge first by their ids; the formats of Hugging Face list the
    merges. Where both say the same, one becomes the other.
    """

    #: Bytes and ids, in the order of ids.
    tokens: dict[bytes, int]
    #: Names and ids.
    special_tokens: dict[str, int]
    #: The regular expression that cuts text into pieces; None where no single one does.
    pattern: str | None
    #: "NFC" or None.
    normalization: str | None = None
    #: The merges in their order; None where the ids are that order.
    merges: list[Merge] | None = None
    #: Whether a piece that is a token becomes this token, whatever merging would make of it.
    whole_pieces: bool = True
    #: A ``tokenizer.json`` without the tokens and merges of its model.
    settings: dict[str, Any] | None = None
    #: Entries of the vocabulary that stand for no bytes: encoding never gives them.
    others: dict[str, int] = field(default_factory=dict)
    #: What an encoding of ranks and one pattern cannot express.
    inexpressible: list[str] = field(default_factory=list)
    #: What to tell people.
    notes: list[str] = field(default_factory=list)

    @functools.cached_property
    def order(self) -> dict[bytes, int]:
        """Every token and its place in the order of merging: single bytes first, and what no merge
        makes last."""
        if self.merges is None:
            return {token: place for place, token in enumerate(self.tokens)}
        single = [token for token in self.tokens if len(token) == 1]
        made = [left + right for left, right in self.merges]
        places = dict.fromkeys((*single, *made, *self.tokens))
        return {token: place for place, token in enumerate(places)}

    @functools.cached_property
    def splits(self) -> dict[bytes, Merge]:
        """The two tokens that merging by :attr:`order` joins last to make each token."""
        return vocabulary.token_splits(self.order)

    @functools.cached_property
    def merge_list(self) -> list[Merge]:
        """The merges in their order, found where the format does not list them."""
        return list(self.splits.values()) if self.merges is None else self.merges

    @functools.cached_property
    def unreached(self) -> list[bytes]:
        """Tokens that merging does not make, in the order of ids. An empty one is no piece, and
        does not matter."""
        made = self.splits if self.merges is None else {a + b for a, b in self.merges}
        return [token for token in self.tokens if len(token) > 1 and token not in made]

    def list_differs_from(self, order: Mapping[bytes, int]) -> str | None:
        """Why merging by these ranks is another thing than merging by the list; None where both
        are the same.

        They are when every token that ranks make has its pair in the list, in the same order: the
        list's other pairs then never stand side by side.
        """
        if self.merges is None:
            return None
        places = {pair: place for place, pair in enumerate(self.merges)}
        before, last = -1, b""
        for token, (left, right) in vocabulary.token_splits(order).items():
            place = places.get((left, right))
            if place is None:
                pair = f"{show(left)} + {show(right)}"
                return f"ranks merge {pair} into {show(token)}, and the list of merges does not"
            if place < before:
                return (
                    f"the list merges {show(token)} (id {self.tokens[token]}) before {show(last)} "
                    f"(id {self.tokens[last]}), and ids are ranks"
                )
            before, last = place, token
        return None


def missing_byte(tokens: Mapping[bytes, int]) -> int | None:
    """The first byte of UTF-8 that is no token.

    >>> missing_byte({bytes([byte]): byte for byte in range(256) if byte != 65})
    65
    """
    never = {0xC0, 0xC1, *range(0xF5, 0x100)}
    return next(
        (byte for byte in range(256) if byte not in never and bytes([byte]) not in tokens), None
    )


def by_id(tokens: Mapping[bytes, int]) -> dict[bytes, int]:
    """The tokens in the order of ids."""
    return dict(sorted(tokens.items(), key=lambda row: row[1]))
