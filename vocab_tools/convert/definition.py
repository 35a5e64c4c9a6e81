"""`Definition`: a tokenizer independent of file formats, between a reader and a writer."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bpe_engine import vocabulary

from ..brief import Brief
from ..text import plural, show

#: A token as bytes, or in the spelling of a file.
AnyToken = TypeVar("AnyToken", bytes, str)

#: A pair of tokens to merge.
Merge = tuple[bytes, bytes]


@dataclass(frozen=True, repr=False)
class Definition(Brief):
    """A byte-level BPE tokenizer.

    Rank files order merges by the ids of the tokens; Hugging Face's formats list the merges. If
    both orders agree, either format can be converted to the other.
    """

    #: Bytes and ids of tokens, in ascending order of ids.
    tokens: dict[bytes, int]
    #: Names and ids of special tokens.
    special_tokens: dict[str, int]
    #: Regular expression that cuts text into pieces; None if one expression is not enough.
    pattern: str | None
    #: Normalization form of text: "NFC" or None.
    normalization: str | None = None
    #: Merges in order; None if the ids determine the order.
    merges: list[Merge] | None = None
    #: True if a piece that is a token always becomes that token, even if merging would not.
    whole_pieces: bool = True
    #: A ``tokenizer.json`` without the model's tokens and merges.
    settings: dict[str, Any] | None = None
    #: Vocabulary entries that are not byte-level; encoding never returns their ids.
    others: dict[str, int] = field(default_factory=dict)
    #: Properties that ranks and one pattern cannot express.
    inexpressible: list[str] = field(default_factory=list)
    #: Notes for the user.
    notes: list[str] = field(default_factory=list)

    @functools.cached_property
    def order(self) -> dict[bytes, int]:
        """The rank of every token in the order of merging: single bytes first, tokens without a
        merge last."""
        if self.merges is None:
            return {token: place for place, token in enumerate(self.tokens)}
        single = [token for token in self.tokens if len(token) == 1]
        made = [left + right for left, right in self.merges]
        places = dict.fromkeys((*single, *made, *self.tokens))
        return {token: place for place, token in enumerate(places)}

    @functools.cached_property
    def splits(self) -> dict[bytes, Merge]:
        """The last two tokens that merging by :attr:`order` joins, for each token."""
        return vocabulary.token_splits(self.order)

    @functools.cached_property
    def merge_list(self) -> list[Merge]:
        """Merges in order; derived from the ids if the format does not list merges."""
        return list(self.splits.values()) if self.merges is None else self.merges

    @functools.cached_property
    def unreached(self) -> list[bytes]:
        """Tokens that merging never produces, in ascending order of ids, except the empty token."""
        made = self.splits if self.merges is None else {a + b for a, b in self.merges}
        return [token for token in self.tokens if len(token) > 1 and token not in made]

    def list_differs_from(self, order: Mapping[bytes, int]) -> str | None:
        """Returns why merging by these ranks differs from merging by the list; None if they agree.

        They agree if the list has the pair of every token that ranks produce, in the same order;
        other pairs of the list are then never adjacent.
        """
        if self.merges is None:
            return None
        places = {pair: place for place, pair in enumerate(self.merges)}
        before, last = -1, b""
        for token, (left, right) in vocabulary.token_splits(order).items():
            place = places.get((left, right))
            if place is None:
                pair = f"{show(left)} + {show(right)}"
                return f"ranks merge {pair} into {show(token)}, but the list of merges does not"
            if place < before:
                return (
                    f"the list merges {show(token)} (id {self.tokens[token]}) before {show(last)} "
                    f"(id {self.tokens[last]}), but ranks follow the ids"
                )
            before, last = place, token
        return None


def without_second_names(definition: Definition) -> Definition:
    """Drops names that contain the id, such as ``<|reserved_200018|>``, if some id also has another
    name: at such ids, and at the ids after the last name without its id.

    ``o200k_harmony`` has such names; the published tokenizer.json of gpt-oss has one name for each
    token.
    """
    special = definition.special_tokens
    reserved = {name: id for name, id in special.items() if name == f"<|reserved_{id}|>"}
    named = {id for name, id in special.items() if name not in reserved}
    if named.isdisjoint(reserved.values()):
        return definition
    left_out = [name for name, id in reserved.items() if id in named or id > max(named)]
    kept = {name: id for name, id in special.items() if name not in left_out}
    names = plural(len(left_out), "reserved name")
    note = f"{names} left out, such as {left_out[0]}, as in the published file of gpt-oss"
    return dataclasses.replace(definition, special_tokens=kept, notes=[*definition.notes, note])


def missing_bytes(tokens: Mapping[bytes, int]) -> list[int]:
    """Returns the bytes that occur in UTF-8 and have no token.

    >>> missing_bytes({bytes([byte]): byte for byte in range(256) if byte != 65})
    [65]
    """
    never = {0xC0, 0xC1, *range(0xF5, 0x100)}
    return [byte for byte in range(256) if byte not in never and bytes([byte]) not in tokens]


def by_id(tokens: Mapping[AnyToken, int]) -> dict[AnyToken, int]:
    """Returns the tokens sorted by id."""
    return dict(sorted(tokens.items(), key=lambda row: row[1]))
