"""Settings for cutting text into pieces, for counts and trained vocabularies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_engine import vocabulary
from bpe_engine.texts.plain_text import BEHIND_WORDS

from ..patterns import Pattern, find_pattern, is_published
from ..text import shorten

#: Default pattern without a base: combining marks stay with their letters.
DEFAULT_PATTERN = "o200k_base"


@dataclass(frozen=True)
class Cutting:
    """How text is cut into pieces."""

    #: Regular expression whose matches are the pieces.
    pattern: str
    #: Names to cut out of the text: no piece contains or crosses them.
    special_tokens: tuple[str, ...] = ()
    #: True if text is first normalized to NFC.
    nfc: bool = False
    #: True if cutting after a word inside a line does not change pieces.
    inside_lines: bool = False

    @property
    def normalization(self) -> str | None:
        """Unicode normalization form, as an encoding spells it."""
        return "NFC" if self.nfc else None

    def counter(self) -> vocabulary.PieceCounts:
        """Returns an empty counter."""
        return vocabulary.PieceCounts(
            self.pattern, special_tokens=list(self.special_tokens), nfc=self.nfc
        )

    def dump(self) -> str:
        """Returns the JSON for the metadata of a file of counts."""
        return json.dumps(
            {"pattern": self.pattern, "special_tokens": self.special_tokens, "nfc": self.nfc}
        )

    def check_same(self, other: Mapping[str, Any], where: str) -> None:
        """Raises ValueError unless the pieces of ``where`` were cut with the same settings."""
        own = json.loads(self.dump())
        for name, value in own.items():
            if other.get(name) != value:
                theirs = shorten(repr(other.get(name)))
                raise ValueError(
                    f"{where} was counted with {name} {theirs}, not {shorten(repr(value))}; count again, "
                    f"or train with the same"
                )


def cutting(
    pattern: str | Pattern | None, special_tokens: Sequence[str] = (), nfc: bool | None = None
) -> Cutting:
    """Returns the settings for cutting text by a pattern.

    Args:
        pattern: the name of an encoding, or a regular expression; by default o200k_base's.
        special_tokens: names to cut out.
        nfc: normalize text to NFC; by default as the named encoding does.

    Raises:
        ValueError: the encoding is unknown, the expression does not compile, or a special token is
            repeated, is empty or has a line end.
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
