"""The result of learning: the new tokens, and how each word is encoded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bpe_engine.common.atomic_write import write_at_once

from ..arguments import checked_path
from ..bases import Recognized
from ..brief import Brief
from ..notes import Note
from ..patterns import Pattern
from ..ranks import dump_ranks
from ..text import few, in_order, literal, show

#: Maximum number of words to learn without a limit on merges: each word needs a token and any
#: missing intermediate tokens.
MOST_WORDS = 500_000


@dataclass(frozen=True)
class Step:
    """A merge that was learned."""

    left: bytes
    right: bytes
    #: Id of the new token. None if the merge produced no new token.
    id: int | None
    #: "new", or "in base" if the base already has the token.
    novelty: str
    #: Frequency of the pair at the time of the merge.
    frequency: int
    #: Number of words in which the pair was merged.
    words: int

    @property
    def token(self) -> bytes:
        return self.left + self.right


@dataclass(frozen=True)
class WordPath:
    """How a word became one token, or why it did not."""

    word: str
    frequency: int
    #: Pieces of the word after the base's own merges.
    base_pieces: list[bytes]
    #: Merges applied to the word, as indices in ``LearnResult.steps``.
    steps: list[int]
    #: Pieces of the word at the end of learning.
    pieces: list[bytes]
    #: Id of the word in the extended vocabulary; None if the word is not a token.
    id: int | None
    #: True if merging alone produces the word. Otherwise the word is one token as a whole piece,
    #: which is looked up, but several tokens inside a longer piece.
    reached: bool
    #: Why the word is not a token; None for a token.
    reason: str | None = None


@dataclass(frozen=True)
class ByProduct:
    """A learned token that is not one of the words."""

    token: bytes
    id: int
    left: bytes
    right: bytes
    frequency: int
    #: Words whose paths include the token.
    words: list[str]
    #: Tokens that a merge creates directly from this token.
    makes: list[bytes]
    #: Total frequency of these words.
    use: int = 0

    @property
    def why(self) -> str:
        """Explains in one sentence why the token was learned."""
        return (
            f"{show(self.left)} + {show(self.right)} was the most frequent pair left, with "
            f"{self.frequency:,}; it is a step on the way to {few(self.words)}"
        )


@dataclass(repr=False)
class LearnResult(Brief):
    """The result of learning: the new tokens, and how each word is encoded."""

    #: New tokens and their ids: the contents of the output file.
    tokens: dict[bytes, int]
    steps: list[Step]
    words: list[WordPath]
    #: Words that the pre-tokenizer would split, with their pieces.
    refused: dict[str, list[str]]
    #: Words that are tokens of the base, and their ids.
    skipped: dict[str, int]
    #: Notes for the user: warnings and hints, each with a kind.
    notes: list[Note]
    pattern: Pattern
    special_tokens: dict[str, int]
    #: Ranks that the new tokens extend.
    base: dict[bytes, int]
    #: Published vocabulary that the base equals or extends.
    recognized: Recognized | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result of :meth:`dump` to a file, replacing an existing file."""
        write_at_once(checked_path(path), self.dump())

    def dump(self) -> bytes:
        """Returns the new tokens as a rank file."""
        return dump_ranks(self.tokens)

    @property
    def extended(self) -> dict[bytes, int]:
        """Tokens of the base, and new tokens. The base determines the id of a token in both."""
        return {**self.tokens, **self.base}

    @property
    def listed(self) -> int:
        """Number of listed words that are not tokens of the base, including rejected words."""
        return len(self.words) + len(self.refused)

    @property
    def not_one_token(self) -> list[WordPath]:
        """Words that are not one token in the extended vocabulary."""
        return [path for path in self.words if path.id is None]

    def by_products(self) -> list[ByProduct]:
        """Returns the learned tokens other than words, in the order of learning."""
        wanted = {path.word.encode() for path in self.words}
        makes: dict[bytes, list[bytes]] = {}
        for step in self.steps:
            for part in {step.left, step.right}:
                makes.setdefault(part, []).append(step.token)
        users: dict[int, list[WordPath]] = {}
        for path in self.words:
            for number in path.steps:
                users.setdefault(number, []).append(path)
        return [
            ByProduct(
                token=step.token,
                id=step.id,
                left=step.left,
                right=step.right,
                frequency=step.frequency,
                words=[path.word for path in users.get(number, [])],
                makes=makes.get(step.token, []),
                use=sum(path.frequency for path in users.get(number, [])),
            )
            for number, step in enumerate(self.steps)
            if step.id is not None and step.token not in wanted
        ]

    def stages(self, path: WordPath) -> list[list[bytes]]:
        """Returns the pieces of a word: in the base, after each merge, and at the end."""
        pieces = path.base_pieces
        stages = [pieces]
        for number in path.steps:
            step = self.steps[number]
            pieces = _join(pieces, step.left, step.right)
            stages.append(pieces)
        return stages

    def path_text(self, path: WordPath) -> str:
        """Returns the stages of a word as one line, beginning with the pieces in the base."""
        return " → ".join(" ".join(bare_pieces(stage)) for stage in self.stages(path))


def bare(token: bytes) -> str:
    """Returns a token as :func:`show` does, but omits unnecessary quotes."""
    quoted = show(token)
    inner = quoted[1:-1]
    is_plain = quoted == f"'{inner}'" and not {" ", "\\", "'"} & set(inner)
    return inner if is_plain else quoted


def bare_pieces(tokens: Iterable[bytes]) -> list[str]:
    """Returns consecutive tokens; the first of several tokens that share a character shows it.

    >>> bare_pieces([b"a", b"\\xe4\\xb8", b"\\x80"])
    ['a', '一', '‥']
    """
    return in_order(tokens, bare)


def _join(pieces: list[bytes], left: bytes, right: bytes) -> list[bytes]:
    """Joins each occurrence of a pair, from left to right."""
    joined: list[bytes] = []
    i = 0
    while i < len(pieces):
        if pieces[i] == left and pieces[i + 1 : i + 2] == [right]:
            joined.append(left + right)
            i += 2
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def to_plain(result: LearnResult) -> dict[str, Any]:
    """Returns the result as plain types, for JSON; tokens are Python literals of text or bytes."""
    return {
        "tokens": [
            {"token": literal(token), "id": number} for token, number in result.tokens.items()
        ],
        "words": [
            {
                "word": path.word,
                "frequency": path.frequency,
                "id": path.id,
                "path": result.path_text(path),
                "reached_by_merging": path.reached,
                "reason": path.reason,
            }
            for path in result.words
        ],
        "by_products": [
            {
                "token": literal(by_product.token),
                "id": by_product.id,
                "why": by_product.why,
                "words": by_product.words,
                "makes": [literal(token) for token in by_product.makes],
                "use": by_product.use,
            }
            for by_product in result.by_products()
        ],
        "refused": result.refused,
        "skipped": result.skipped,
        "not_one_token": [path.word for path in result.not_one_token],
        "notes": list(map(str, result.notes)),
    }
