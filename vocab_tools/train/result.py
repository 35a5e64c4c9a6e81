"""What training gives, and the files it is written to."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import bpe_engine
from bpe_engine import vocabulary

from ..convert.alphabet import written
from ..convert.tokenizer_json import fresh_settings
from ..ranks import dump_ranks
from ..text import plural
from .cutting import Cutting


@dataclass(frozen=True)
class TrainedMerge:
    """One merge, in the order of learning."""

    left: bytes
    right: bytes
    #: How often the pair occurred in the corpus that was served.
    frequency: int
    #: The number of the corpus that was served, of several.
    corpus: int = 0

    @property
    def token(self) -> bytes:
        """What they become."""
        return self.left + self.right


@dataclass
class TrainResult:
    """A vocabulary, and how it came about."""

    #: All tokens and their ids: those of the base, and the new ones.
    ranks: dict[bytes, int]
    #: Names and ids, behind the tokens.
    special_tokens: dict[str, int]
    #: How text is cut for it.
    cutting: Cutting
    #: How many tokens the base has; 256 without one.
    base_size: int
    #: In the order of learning.
    merges: list[TrainedMerge]
    #: How many tokens were wanted, special tokens included.
    wanted: int
    #: Tokens and bytes of each corpus, encoded with the result.
    corpus_tokens: list[int] = field(default_factory=list)
    corpus_bytes: list[int] = field(default_factory=list)
    #: Remarks for people.
    notes: list[str] = field(default_factory=list)
    #: The merges of the base, in the order of its ids.
    base_merges: list[tuple[bytes, bytes]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many tokens there are, special tokens included."""
        return len(self.ranks) + len(self.special_tokens)

    @property
    def new_tokens(self) -> dict[bytes, int]:
        """The tokens that were learned, and their ids."""
        return dict(list(self.ranks.items())[self.base_size :])

    @property
    def bytes_per_token(self) -> float:
        """Of the text that was trained on."""
        tokens = sum(self.corpus_tokens)
        return sum(self.corpus_bytes) / tokens if tokens else 0.0

    @property
    def merge_list(self) -> list[tuple[bytes, bytes]]:
        """The merges of a ``tokenizer.json``: first those of the base.

        A pair that was merged a second time, since one of its tokens was made in another way,
        stands at its second place, as the trainer of Hugging Face has it.
        """
        pairs = [(merge.left, merge.right) for merge in self.merges]
        last = {pair: place for place, pair in enumerate(pairs)}
        own = [pair for place, pair in enumerate(pairs) if last[pair] == place]
        learned = set(own)
        return [pair for pair in self.base_merges if pair not in learned] + own

    def encoding(self, name: str = "trained") -> bpe_engine.Encoding:
        """The result as an encoding."""
        form = "NFC" if self.cutting.nfc else None
        return vocabulary.make_encoding(
            name, self.ranks, self.cutting.pattern, self.special_tokens, form
        )

    def dump(self) -> bytes:
        """A ``.tiktoken`` file of all tokens but the special ones."""
        return dump_ranks(self.ranks)

    def dump_sidecar(self) -> bytes:
        """What a ``.tiktoken`` file has no place for: pattern, special tokens and normalization."""
        contents = {
            "pattern": self.cutting.pattern,
            "special_tokens": self.special_tokens,
            "normalization": "NFC" if self.cutting.nfc else None,
        }
        return (json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode()

    def tokenizer_json(self, unknown: str | None = None) -> bytes:
        """A ``tokenizer.json`` of Hugging Face.

        Args:
            unknown: the special token for bytes that are no tokens; needed when the base has not
                all single bytes.
        """
        settings = fresh_settings(
            self.cutting.pattern, self.special_tokens, "NFC" if self.cutting.nfc else None
        )
        rows = {written(token): number for token, number in self.ranks.items()}
        rows.update(self.special_tokens)
        model: dict[str, Any] = {
            **settings["model"],
            "unk_token": unknown,
            "vocab": dict(sorted(rows.items(), key=lambda row: row[1])),
            "merges": [[written(left), written(right)] for left, right in self.merge_list],
        }
        contents = json.dumps({**settings, "model": model}, ensure_ascii=False, indent=2)
        return (contents + "\n").encode()

    def served(self) -> list[int]:
        """How many merges served each corpus."""
        counted = Counter(merge.corpus for merge in self.merges)
        return [counted[number] for number in range(len(self.corpus_tokens))]


def shortage_note(size: int, wanted: int, min_frequency: int, limited: bool) -> str:
    """Why there are fewer tokens than were asked for."""
    reason = f"no other pair of tokens occurs {plural(min_frequency, 'time')} or more"
    if limited:
        reason += " and keeps within the limits"
    return (
        f"{plural(size, 'token')} in place of {wanted:,}: {reason} in this corpus; give more text, "
        f"or a lower --min-frequency"
    )
