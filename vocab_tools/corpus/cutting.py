"""Settings for cutting text into pieces, which counts and trained vocabularies record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_engine import vocabulary
from bpe_engine.texts.plain_text import BEHIND_WORDS

from ..patterns import Pattern, find_pattern, is_published
from ..text import shorten

#: Default pattern without a base; it never cuts between a letter and its combining marks.
DEFAULT_PATTERN = "o200k_base"


@dataclass(frozen=True)
class Cutting:
    """How text is cut into pieces."""

    #: Regular expression whose matches are the pieces.
    pattern: str
    #: Names to cut out of the text: no piece contains or crosses a name.
    special_tokens: tuple[str, ...] = ()
    #: True if text is normalized to NFC before cutting.
    nfc: bool = False
    #: True if text can be cut after a word inside a line without changing the pieces.
    inside_lines: bool = False

    @property
    def normalization(self) -> str | None:
        """The Unicode normalization form in the spelling of encodings."""
        return "NFC" if self.nfc else None

    def counter(self) -> vocabulary.PieceCounts:
        """Returns an empty counter."""
        return vocabulary.PieceCounts(
            self.pattern, special_tokens=list(self.special_tokens), nfc=self.nfc
        )

    def dump(self) -> str:
        """Returns the settings as JSON, for the metadata of a counts file."""
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
        pattern: the name of an encoding, or a regular expression; o200k_base's pattern by default.
        special_tokens: names to cut out of the text.
        nfc: whether to normalize text to NFC; by default as the named encoding does.

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
        # A name with a line end could be cut, because files are read in blocks of lines.
        if "\n" in name or "\r" in name:
            raise ValueError(f"the special token {name!r} has a line end; give it another name")
    return Cutting(
        found.pat_str,
        tuple(special_tokens),
        found.nfc if nfc is None else nfc,
        is_published(found.pat_str) and set(BEHIND_WORDS).isdisjoint("".join(special_tokens)),
    )
