"""How a corpus is cut into pieces for training, and what is written beside its counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_engine import vocabulary

from ..corpus.reading import BEHIND_WORDS
from ..patterns import Pattern, find_pattern, is_published
from ..text import shorten

#: The pattern for a vocabulary that has no base: it keeps combining marks with their letters.
DEFAULT_PATTERN = "o200k_base"


@dataclass(frozen=True)
class Cutting:
    """What makes pieces of text."""

    #: The regular expression whose matches are the pieces.
    pattern: str
    #: Names that are cut out of the text: they are in no piece, and no piece crosses them.
    special_tokens: tuple[str, ...] = ()
    #: Whether text is brought into Unicode normalization form C first.
    nfc: bool = False
    #: Whether text may be cut inside a line, behind a word, and has the same pieces.
    inside_lines: bool = False

    def counter(self) -> vocabulary.PieceCounts:
        """Counts of nothing yet."""
        return vocabulary.PieceCounts(
            self.pattern, special_tokens=list(self.special_tokens), nfc=self.nfc
        )

    def dump(self) -> str:
        """As JSON: metadata of a file of counts."""
        return json.dumps(
            {"pattern": self.pattern, "special_tokens": self.special_tokens, "nfc": self.nfc}
        )

    def check_same(self, other: Mapping[str, Any], where: str) -> None:
        """Raises ValueError unless the pieces of ``where`` were cut in this way."""
        own = json.loads(self.dump())
        for name, value in own.items():
            if other.get(name) != value:
                theirs = shorten(repr(other.get(name)))
                raise ValueError(
                    f"{where} was counted with {name} {theirs}, and {shorten(repr(value))} is asked "
                    f"for; count again, or train with the same"
                )


def cutting(
    pattern: str | Pattern | None, special_tokens: Sequence[str] = (), nfc: bool | None = None
) -> Cutting:
    """How to cut.

    Args:
        pattern: the name of an encoding, or a regular expression; by default that of o200k_base.
        special_tokens: names that are cut out.
        nfc: bring text into normalization form C; by default as the named encoding does.

    Raises:
        ValueError: there is no such encoding, the expression does not compile, or a special token
            is given twice, is empty or has a line end.
    """
    found = pattern if isinstance(pattern, Pattern) else find_pattern(pattern or DEFAULT_PATTERN)
    for number, name in enumerate(special_tokens):
        if not name:
            raise ValueError("a special token is empty; give it a name")
        if name in special_tokens[:number]:
            raise ValueError(f"the special token {name!r} is given twice")
        # Files are read in blocks that end at line ends.
        if "\n" in name or "\r" in name:
            raise ValueError(f"the special token {name!r} has a line end; give it another name")
    return Cutting(
        found.pat_str,
        tuple(special_tokens),
        found.nfc if nfc is None else nfc,
        is_published(found.pat_str) and set(BEHIND_WORDS).isdisjoint("".join(special_tokens)),
    )
