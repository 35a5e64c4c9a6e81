"""Notes for the user, grouped by kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .text import few

#: Kinds of notes, severe and rare kinds first, with the heading for several notes.
KINDS = {
    "not one token": "words do not become one token",
    "own piece only": "words are one token only as whole pieces",
    "other pattern": "remarks about the pattern",
    "start id": "remarks about ids",
    "encoding of the list": "remarks about the encoding of the list",
    "repeated merge": "merges gave a token that was there before",
    "marks": "words have combining marks that the pattern cuts off",
    "split": "words would be several pieces, and cannot become tokens",
    "spaced form": "hints about words with a space before them",
    "stripped space": "lines begin with a space, which is stripped",
    "repeated word": "words are repeated; their frequencies add up",
    "already a token": "words are tokens already, and are skipped",
}

#: Maximum number of notes to show of each kind; further notes are only counted.
MOST_EXAMPLES = 3

#: Kinds that are always shown in full.
NEVER_CUT = frozenset(["not one token"])


class Note(str):
    """The text of a note for the user, with a kind.

    >>> note = Note("split", "'a b' is two pieces")
    >>> note.kind, note
    ('split', "'a b' is two pieces")
    """

    kind: str
    #: All words that the note lists; the text shows only the first words.
    words: tuple[str, ...]
    #: The text without the words.
    head: str

    def __new__(cls, kind: str, text: str, words: Sequence[str] = ()) -> Note:
        if kind not in KINDS:
            raise ValueError(f"unknown kind of note: {kind!r}")
        note = super().__new__(cls, f"{text}: {few(words)}" if words else text)
        note.kind, note.words, note.head = kind, tuple(words), text
        return note

    @property
    def in_full(self) -> str:
        """The text with every word."""
        return f"{self.head}: {', '.join(self.words)}" if self.words else self.head

    def __getnewargs__(self) -> tuple[str, str, tuple[str, ...]]:  # type: ignore[override]
        return self.kind, self.head, self.words


@dataclass(frozen=True)
class NoteGroup:
    """All notes of one kind, and the notes to show."""

    kind: str
    #: Heading: the number and the kind of the notes.
    title: str
    total: int
    shown: list[Note]

    @property
    def hidden(self) -> int:
        """Number of notes that are not shown."""
        return self.total - len(self.shown)


def grouped(notes: Iterable[Note], most_examples: int | None = MOST_EXAMPLES) -> list[NoteGroup]:
    """Groups notes by kind, severe kinds first; with None, every note is shown.

    >>> for group in grouped(Note("already a token", f"{word}: skipped") for word in "abcde"):
    ...     print(group.title, group.shown[:1], group.hidden)
    5 words are tokens already, and are skipped ['a: skipped'] 2
    """
    by_kind: dict[str, list[Note]] = {kind: [] for kind in KINDS}
    for note in notes:
        by_kind[note.kind].append(note)
    groups = []
    for kind, members in by_kind.items():
        if members:
            limit = None if kind in NEVER_CUT else most_examples
            title = f"{len(members):,} {KINDS[kind]}"
            groups.append(NoteGroup(kind, title, len(members), members[:limit]))
    return groups
