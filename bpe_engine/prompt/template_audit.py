"""`TemplateAudit`: the caller's fields that can forge control tokens, and the tricks that work."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from textwrap import fill
from typing import Literal

from ..abilities.visible import SIGNS, visible

__all__ = ["PATHS", "Forgery", "Path", "TemplateAudit", "TriedField"]

#: The requirement of a security standard for which an audit is evidence.
REQUIREMENT = "OWASP AISVS 1.0, 2.1.7"

#: A prompt rendered to one text, in which special tokens are found; or as segments.
Path = Literal["naive", "segments"]
PATHS: tuple[Path, ...] = ("naive", "segments")
_IN_WORDS = {"naive": "rendered to one text", "segments": "as segments"}


@dataclass(frozen=True)
class Forgery:
    """A prompt in which a caller's text became a control token."""

    field: str
    trick: str
    #: The control token.
    token: str
    #: "naive" or "segments".
    path: Path
    #: Caller's texts by field.
    given: Mapping[str, str]
    #: The tokens around the forged token: id, text, and whether it is the forged token.
    prompt: Sequence[tuple[int, str, bool]]

    def __str__(self) -> str:
        """Returns the tokens of the prompt, with the forged token in angle brackets."""
        shown = ((visible(text, SIGNS), is_forged) for _, text, is_forged in self.prompt)
        cut = "|".join(f"»{text}«" if is_forged else text for text, is_forged in shown)
        return f"{self.field}, {self.trick}: {cut}"


@dataclass
class TriedField:
    """A caller-supplied field, with the results of the tricks."""

    name: str
    #: Whether the text of the field appears in any prompt.
    is_shown: bool = False
    #: Number of tried prompts, and of prompts that the template rejected.
    prompts: int = 0
    refused: int = 0
    #: The control tokens that were forged, by trick: rendered to one text, and as segments.
    naive: dict[str, list[str]] = field(default_factory=dict)
    segments: dict[str, list[str]] = field(default_factory=dict)

    def forged(self, path: Path) -> dict[str, list[str]]:
        """Returns the control tokens that were forged, by trick."""
        return self.naive if path == "naive" else self.segments

    def _by_trick(self, path: Path) -> str:
        """Returns the tricks, each with its number of tokens: "literal, nested (2 tokens)"."""
        tricks: dict[int, list[str]] = {}
        for trick, names in self.forged(path).items():
            tricks.setdefault(len(names), []).append(trick)
        return "; ".join(
            f"{', '.join(names)} ({_counted(count, 'token')})"
            for count, names in sorted(tricks.items(), reverse=True)
        )


@dataclass(frozen=True)
class TemplateAudit:
    """The result of `audit_template`."""

    tokenizer: str
    #: The tokenizer's fingerprint.
    fingerprint: str
    #: The SHA-256 of the template's text.
    template: str
    #: The control tokens of the tokenizer, which were tried.
    controls: Sequence[str]
    #: Control tokens that the template writes and that are text to the tokenizer.
    unknown: Sequence[str]
    fields: Sequence[TriedField]
    #: The tricks, each with an explanation.
    tricks: Mapping[str, str]
    #: One prompt for each field and trick that forged a token.
    forgeries: Sequence[Forgery]

    @property
    def prompts(self) -> int:
        """Number of tried prompts."""
        return sum(tried.prompts for tried in self.fields)

    def lets_through(self, path: Path) -> list[TriedField]:
        """Returns the fields from which a control token was forged.

        Args:
            path: "naive", a prompt rendered to one text and encoded with special tokens allowed; or
                "segments".
        """
        return [tried for tried in self.fields if tried.forged(path)]

    @property
    def is_safe(self) -> bool:
        """Whether no control token was forged, on either path."""
        return not (self.lets_through("naive") or self.lets_through("segments"))

    def to_json(self) -> str:
        """Returns the result as JSON."""
        made = {"requirement": REQUIREMENT, "prompts": self.prompts, **asdict(self)}
        for path in PATHS:
            made[f"lets_through_{path}"] = [tried.name for tried in self.lets_through(path)]
        return json.dumps(made, ensure_ascii=False)

    def _verdict(self, path: Path) -> str:
        count = f"{len(self.lets_through(path))} of {len(self.fields)} fields forge control tokens"
        return f"{count if self.lets_through(path) else 'no field forges a control token'}"

    def __str__(self) -> str:
        """Returns the result as human-readable lines."""
        lines: list[str] = []
        for path in PATHS:
            lines.append(f"{_IN_WORDS[path]}: {self._verdict(path)}")
            groups: dict[str, list[str]] = {}
            for tried in self.lets_through(path):
                groups.setdefault(tried._by_trick(path), []).append(tried.name)
            for tricks, names in groups.items():
                lines += [f"  by {tricks}:", _listed(names)]
        lines += [f"for example, {forgery}" for forgery in self.forgeries[:1]]
        hidden = [tried.name for tried in self.fields if not tried.is_shown]
        lines += ["not in the prompt, or refused:", _listed(hidden)]
        lines += ["control tokens unknown to the tokenizer:", _listed(self.unknown)]
        lines.append(
            f"tried: {_counted(self.prompts, 'prompt')}, {_counted(len(self.controls), 'control token')}, "
            f"{_counted(len(self.tricks), 'trick')} ({REQUIREMENT})"
        )
        return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    """Returns names in lines that fit the width of a terminal."""
    return fill(
        ", ".join(names) or "none", 100, initial_indent="    ", subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
