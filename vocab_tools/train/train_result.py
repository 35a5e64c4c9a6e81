"""The result of training, and the files to write."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import bpe_engine
from bpe_engine import vocabulary
from bpe_engine.common.atomic_write import write_at_once
from bpe_engine.read import byte_level
from bpe_engine.read.sidecar import beside

from ..arguments import checked_path
from ..bases import Recognized
from ..brief import Brief
from ..convert.definition import Definition
from ..convert.sidecar import dump_sidecar
from ..convert.tokenizer_json import fresh_settings
from ..corpus.cutting import Cutting
from ..ranks import dump_ranks
from ..text import plural


class TrainedMerge(NamedTuple):
    """A merge that was learned in training."""

    left: bytes
    right: bytes
    #: How often the pair occurs in the corpus that the merge serves.
    frequency: int
    #: Index of the corpus that the merge serves.
    corpus: int = 0

    @property
    def token(self) -> bytes:
        """The token that the pair becomes."""
        return self.left + self.right


@dataclass(repr=False)
class TrainResult(Brief):
    """A trained vocabulary, and facts about its training."""

    #: All tokens and their ids: the base's tokens, then the new tokens.
    ranks: dict[bytes, int]
    #: Names and ids of special tokens.
    special_tokens: dict[str, int]
    #: How the vocabulary cuts text into pieces.
    cutting: Cutting
    #: Number of tokens of the base; 256 without a base.
    base_size: int
    #: Merges in the order of learning.
    merges: list[TrainedMerge]
    #: Requested number of tokens, special tokens included.
    wanted: int
    #: Number of tokens and number of bytes in each corpus, encoded with the result.
    corpus_tokens: list[int] = field(default_factory=list)
    corpus_bytes: list[int] = field(default_factory=list)
    #: Notes for the user.
    notes: list[str] = field(default_factory=list)
    #: Merges of the base, in ascending order of ids.
    base_merges: list[tuple[bytes, bytes]] = field(default_factory=list)
    #: Names of the corpus files, as given.
    files: list[str] = field(default_factory=list)
    #: The published vocabulary that the base equals, if any.
    recognized: Recognized | None = None

    @property
    def size(self) -> int:
        """Number of tokens, special tokens included."""
        return len(self.ranks) + len(self.special_tokens)

    @property
    def new_tokens(self) -> dict[bytes, int]:
        """Learned tokens and their ids."""
        return dict(list(self.ranks.items())[self.base_size :])

    @property
    def bytes_per_token(self) -> float:
        """Compression of the training text: its bytes divided by its tokens."""
        tokens = sum(self.corpus_tokens)
        return sum(self.corpus_bytes) / tokens if tokens else 0.0

    @property
    def merge_list(self) -> list[tuple[bytes, bytes]]:
        """Merges for a ``tokenizer.json``, the base's merges first.

        A pair can be merged twice, if one of its tokens is also made in another way. Such a pair is
        listed at its second merge, as in Hugging Face's trainer.
        """
        pairs = [(merge.left, merge.right) for merge in self.merges]
        last = {pair: place for place, pair in enumerate(pairs)}
        own = [pair for place, pair in enumerate(pairs) if last[pair] == place]
        learned = set(own)
        return [pair for pair in self.base_merges if pair not in learned] + own

    def encoding(self, name: str = "trained") -> bpe_engine.Encoding:
        """Returns the result as an encoding."""
        cut = self.cutting
        return vocabulary.make_encoding(
            name, self.ranks, cut.pattern, self.special_tokens, cut.normalization
        )

    def dump(self) -> bytes:
        """Returns all ordinary tokens as a ``.tiktoken`` file."""
        return dump_ranks(self.ranks)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a ``.tiktoken`` file and its sidecar, for :func:`bpe_engine.load_encoding`; or a
        ``tokenizer.json`` if the name ends in ``.json``, or into an existing folder. Replaces
        existing files."""
        path = checked_path(path)
        if os.path.isdir(path):
            path = Path(path) / "tokenizer.json"
        if os.fspath(path).lower().endswith(".json"):
            write_at_once(path, self.tokenizer_json())
        else:
            write_at_once(path, self.dump())
            write_at_once(beside(path), self.dump_sidecar())

    def dump_sidecar(self) -> bytes:
        """Returns the sidecar of a ``.tiktoken`` file: pattern, special tokens and normalization."""
        pattern, form = self.cutting.pattern, self.cutting.normalization
        return dump_sidecar(Definition(self.ranks, self.special_tokens, pattern, form))

    def tokenizer_json(self, unknown: str | None = None) -> bytes:
        """Returns the vocabulary as a Hugging Face ``tokenizer.json``.

        Args:
            unknown: the special token for bytes that have no token; required if the base lacks
                single bytes.
        """
        settings = fresh_settings(
            self.cutting.pattern, self.special_tokens, self.cutting.normalization
        )
        rows = {byte_level.text_of(token): number for token, number in self.ranks.items()}
        rows.update(self.special_tokens)
        model: dict[str, Any] = {
            **settings["model"],
            "unk_token": unknown,
            "vocab": dict(sorted(rows.items(), key=lambda row: row[1])),
            "merges": [
                [byte_level.text_of(left), byte_level.text_of(right)]
                for left, right in self.merge_list
            ],
        }
        contents = json.dumps({**settings, "model": model}, ensure_ascii=False, indent=2)
        return (contents + "\n").encode()

    def to_plain(self) -> dict[str, Any]:
        """Returns figures about the result as plain types, for JSON."""
        corpora = zip(self.corpus_bytes, self.corpus_tokens, self.served())
        return {
            "tokens": self.size,
            "wanted": self.wanted,
            "learned": len(self.new_tokens),
            "merges": len(self.merges),
            "special_tokens": self.special_tokens,
            "pattern": self.cutting.pattern,
            "normalization": self.cutting.normalization,
            "corpora": [
                {"bytes": size, "tokens": tokens, "merges": served}
                for size, tokens, served in corpora
            ],
            "notes": self.notes,
        }

    def served(self) -> list[int]:
        """Returns the number of merges that served each corpus."""
        counted = Counter(merge.corpus for merge in self.merges)
        return [counted[number] for number in range(len(self.corpus_tokens))]


def shortage_note(size: int, wanted: int, min_frequency: int, limited: bool) -> str:
    """Returns a note that says why there are fewer tokens than requested."""
    reason = f"no other pair of tokens occurs {plural(min_frequency, 'time')} or more"
    if limited:
        reason += " and keeps within the limits"
    return (
        f"{plural(size, 'token')} in place of {wanted:,}: {reason} in this corpus; give more text, "
        f"or a lower --min-frequency"
    )
