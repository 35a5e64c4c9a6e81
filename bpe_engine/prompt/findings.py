"""`Findings`: the fields of a caller that can forge a control token, and the tricks that do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from textwrap import fill
from typing import Literal

from ..abilities.visible import SIGNS, visible

__all__ = ["PATHS", "REQUIREMENT", "Findings", "Forgery", "Path", "TriedField", "by_trick"]

#: The requirement of the standard that an audit is evidence for.
REQUIREMENT = "OWASP AISVS 1.0, 2.1.7"

#: A prompt rendered to one text, in which special tokens are found; or as segments.
Path = Literal["naive", "segments"]
PATHS: tuple[Path, ...] = ("naive", "segments")


@dataclass(frozen=True)
class Forgery:
    """A prompt in which text of a caller became a control token."""

    field: str
    trick: str
    #: The control token.
    token: str
    #: "naive" or "segments".
    path: Path
    #: The texts that the caller gave, by field.
    given: Mapping[str, str]
    #: The ids and the texts of the tokens around it, and whether each is the forged one.
    prompt: Sequence[tuple[int, str, bool]]


@dataclass
class TriedField:
    """A field that a caller fills, and what came of the tricks."""

    name: str
    #: Whether any prompt has the text of the field.
    is_shown: bool = False
    #: The prompts that were tried, and those that the template refused.
    prompts: int = 0
    refused: int = 0
    #: The control tokens that were forged, by trick: rendered to one text, and as segments.
    naive: dict[str, list[str]] = field(default_factory=dict)
    segments: dict[str, list[str]] = field(default_factory=dict)

    def forged(self, path: Path) -> dict[str, list[str]]:
        """Returns the control tokens that were forged, by trick."""
        return self.naive if path == "naive" else self.segments


@dataclass(frozen=True)
class Findings:
    """The result of `audit_template`, without its page."""

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
    #: The tricks, with an explanation each.
    tricks: Mapping[str, str]
    #: One prompt for each field and trick that forged a token.
    forgeries: Sequence[Forgery]

    @property
    def prompts(self) -> int:
        """The number of prompts that were tried."""
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
        """Whether no field forged a control token, on either path."""
        return not (self.lets_through("naive") or self.lets_through("segments"))

    def to_json(self) -> str:
        """Returns the result as JSON."""
        made = {"requirement": REQUIREMENT, "prompts": self.prompts, **asdict(self)}
        for path in PATHS:
            made[f"lets_through_{path}"] = [tried.name for tried in self.lets_through(path)]
        return json.dumps(made, ensure_ascii=False)

    def __str__(self) -> str:
        """Returns the result in lines for people."""
        lines: list[str] = []
        for path, what in zip(PATHS, ("rendered to one text", "as segments")):
            found = self.lets_through(path)
            of = f"{len(found)} of {len(self.fields)} fields forge control tokens"
            lines.append(f"{what}: {of if found else 'no field forges a control token'}")
            for tricks, names in _grouped(found, path).items():
                lines += [f"  by {tricks}:", _listed(names)]
        lines += [_in_tokens(forgery) for forgery in self.forgeries[:1]]
        hidden = [tried.name for tried in self.fields if not tried.is_shown]
        lines += ["not in the prompt, or refused:", _listed(hidden)]
        lines += ["control tokens unknown to the tokenizer:", _listed(self.unknown)]
        lines.append(
            f"tried: {_counted(self.prompts, 'prompt')}, {_counted(len(self.controls), 'control token')}, "
            f"{_counted(len(self.tricks), 'trick')} ({REQUIREMENT})"
        )
        return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    """Returns names in lines that fit into a terminal."""
    return fill(
        ", ".join(names) or "none", 100, initial_indent="    ", subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _grouped(found: Sequence[TriedField], path: Path) -> dict[str, list[str]]:
    """Returns the names of fields by the tricks that forge tokens from them."""
    groups: dict[str, list[str]] = {}
    for tried in found:
        groups.setdefault(by_trick(tried.forged(path)), []).append(tried.name)
    return groups


def by_trick(forged: Mapping[str, Sequence[str]]) -> str:
    """Returns tricks and their numbers of tokens, for people.

    >>> by_trick({"literal": ["<s>", "</s>"], "nested": ["<s>", "</s>"], "split": ["<s>"]})
    'literal, nested (2 tokens); split (1 token)'
    """
    tricks: dict[int, list[str]] = {}
    for trick, names in forged.items():
        tricks.setdefault(len(names), []).append(trick)
    return "; ".join(
        f"{', '.join(names)} ({_counted(count, 'token')})"
        for count, names in sorted(tricks.items(), reverse=True)
    )


def _in_tokens(forgery: Forgery) -> str:
    """Returns the tokens of a prompt, the forged one between angles."""
    cut = "|".join(
        f"»{visible(text, SIGNS)}«" if is_forged else visible(text, SIGNS)
        for _, text, is_forged in forgery.prompt
    )
    return f"for example, {forgery.field}, {forgery.trick}: {cut}"
