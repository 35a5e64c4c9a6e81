"""What a check finds, and how a rule is written.

A rule is a function with one finding's code: it looks at the :class:`~.context.Context` and returns
what it found. To change a finding, look for its code in ``check/rules/``; to add one, write a
function there and decorate it with :func:`rule`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from .context import Context

Severity = Literal["error", "warning", "info"]

#: The severities, the gravest first: the order of the findings.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

#: How many examples a finding keeps.
MOST_EXAMPLES = 20

#: How many characters of a list of pieces or ids an example shows.
MOST_LIST = 200


@dataclass(frozen=True)
class Finding:
    """One kind of thing that was found."""

    code: str
    severity: str
    count: int
    message: str
    examples: list[str]
    #: How many of them are of what extends the base; None where that is not asked.
    new: int | None = None

    @property
    def counted(self) -> str:
        """How many there are, for people.

        >>> Finding("NOT_UTF8", "info", 1448, "", [], 2).counted
        '1,448, 2 of them new'
        """
        return f"{self.count:,}" + (f", {self.new:,} of them new" if self.new else "")


@dataclass(frozen=True)
class Found:
    """What a rule returns when its examples alone do not say it."""

    examples: Sequence[str]
    #: How many there are; None for as many as examples.
    count: int | None = None
    #: In place of the rule's own message.
    message: str = ""
    #: How many of them are of what extends the base.
    new: int | None = None


#: What a rule may return: examples, one for each thing found, or :class:`Found`.
Outcome = Found | Sequence[str]

#: What a rule can need to have anything to look at.
Need = Literal["tokens", "extra", "words", "corpus"]


@dataclass(frozen=True)
class Rule:
    """A rule: its finding's code, severity and message, and the function that looks."""

    code: str
    severity: Severity
    #: What the things found are.
    message: str
    look: Callable[[Context], Outcome]
    needs: frozenset[Need] = field(default_factory=frozenset)

    def apply(self, context: Context) -> Finding | None:
        """The finding, or None when there is nothing to find."""
        if not self.needs <= context.has:
            return None
        outcome = self.look(context)
        found = outcome if isinstance(outcome, Found) else Found(outcome)
        if not found.examples:
            return None
        return Finding(
            self.code,
            self.severity,
            len(found.examples) if found.count is None else found.count,
            found.message or self.message,
            list(found.examples[:MOST_EXAMPLES]),
            found.new,
        )


#: The rules in the order in which they were written down.
RULES: list[Rule] = []

_Look = Callable[["Context"], Outcome]


def rule(
    code: str, severity: Severity, message: str, *, needs: Sequence[Need] = ()
) -> Callable[[_Look], _Look]:
    """Makes a function the rule for a finding.

    Args:
        code: the finding's code, in capitals.
        severity: "error" for what breaks encoding or decoding, "warning" for tokens or words that
            do not do what they are there for, "info" for what is worth knowing.
        message: what the things found are, for people.
        needs: what must have been given: without it the rule is not asked.
    """

    def add(look: _Look) -> _Look:
        RULES.append(Rule(code, severity, message, look, frozenset(needs)))
        return look

    return add
