"""Findings of a check, and their rules.

A rule is a function named like a finding's code: the function inspects the
:class:`~.context.Context` of a vocabulary, or the :class:`~.folder.model_folder.ModelFolder`, and
returns examples. To change a finding, search ``check/rules/`` and ``check/folder/rules/`` for its
code in lower case; to add a finding, write a function there and decorate it with ``RULES.rule``.
`vocab-tools explain` prints the docstring: why the finding matters, and after ``Do:`` a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from ..brief import Brief, Reported
from .context import Context

Severity = Literal["error", "warning", "info"]

#: Severities in the order in which findings are listed, most severe first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

#: Maximum number of examples per finding.
MOST_EXAMPLES = 20

#: Maximum length in characters of a list of pieces or ids in an example.
MOST_LIST = 200


@dataclass(frozen=True, repr=False)
class Finding(Brief):
    """One kind of problem, with its count and examples."""

    code: str
    severity: Severity
    count: int
    message: str
    examples: list[str]
    #: Number of counted tokens that are new; None if unknown.
    new: int | None = None

    @property
    def counted(self) -> str:
        """The count and the number of new tokens, for messages.

        >>> Finding("NOT_UTF8", "info", 1448, "", [], 2).counted
        '1,448, 2 of them new'
        """
        return f"{self.count:,}" + (f", {self.new:,} of them new" if self.new else "")


class WithFindings(Reported):
    """The result of a check."""

    findings: list[Finding]

    @property
    def ok(self) -> bool:
        """True if there are no errors."""
        return not any(finding.severity == "error" for finding in self.findings)

    def finding(self, code: str) -> Finding | None:
        """Returns the finding with this code."""
        return next((finding for finding in self.findings if finding.code == code), None)


@dataclass(frozen=True)
class Found:
    """The result of a rule that returns more than a list of examples."""

    examples: Sequence[str]
    #: Number of problems; None if it is the number of examples.
    count: int | None = None
    #: Replaces the rule's own message.
    message: str = ""
    #: Number of counted tokens that are new.
    new: int | None = None


#: The result of a rule: an example for each problem, or a :class:`Found`.
Outcome = Found | Sequence[str]


class Checked(Protocol):
    """The input of rules."""

    @property
    def has(self) -> Collection[str]:
        """Names of the available inputs."""


CheckedT = TypeVar("CheckedT", bound=Checked)

_Look = Callable[[CheckedT], Outcome]


@dataclass(frozen=True)
class Rule(Generic[CheckedT]):
    """A rule: a finding's code, severity and message, and the function that finds examples."""

    code: str
    severity: Severity
    #: Description of the finding, in the plural.
    message: str
    look: _Look[CheckedT]
    #: Why the finding matters, and what to do.
    why: str
    remedy: str
    needs: frozenset[str]

    def apply(self, checked: CheckedT) -> Finding | None:
        """Returns the finding; None if the rule finds no problem."""
        if not self.needs <= set(checked.has):
            return None
        outcome = self.look(checked)
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


class Rules(list[Rule[CheckedT]]):
    """Rules in the order of their definitions."""

    def rule(
        self, severity: Severity, message: str, *, needs: Sequence[str] = ()
    ) -> Callable[[_Look[CheckedT]], _Look[CheckedT]]:
        """Makes a function the rule for the finding whose code is its name in capitals.

        Args:
            severity: "error" for defects that break encoding or decoding, "warning" for tokens or
                words that miss their purpose, "info" for facts worth knowing.
            message: describes the finding, in the plural.
            needs: required inputs; the rule is skipped if an input is missing.
        """

        def add(look: _Look[CheckedT]) -> _Look[CheckedT]:
            code, text = look.__name__.upper(), " ".join(str(look.__doc__).split())
            why, _, remedy = text.partition(" Do: ")
            self.append(Rule(code, severity, message, look, why, remedy, frozenset(needs)))
            return look

        return add

    def findings(self, checked: CheckedT) -> list[Finding]:
        """Applies every rule. Severe findings come first; among findings of one severity, findings
        about the base of a vocabulary come last."""
        found = [finding for rule in self if (finding := rule.apply(checked)) is not None]
        found.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.new == 0))
        return found


#: Rules for vocabularies.
RULES: Rules[Context] = Rules()
