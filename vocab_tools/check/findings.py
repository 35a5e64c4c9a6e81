"""Findings of a check, and their rules.

A rule is a function for one finding's code: it inspects the :class:`~.context.Context` of a
vocabulary, or the :class:`~.folder.model_folder.ModelFolder`, and returns examples. To change a
finding, search for its code in small letters in ``check/rules/`` and ``check/folder/rules/``; to
add a finding, write a function there and decorate it with ``RULES.rule``. The docstring says why
the finding matters, and after ``Do:`` what to do: `vocab-tools explain` prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from ..brief import Brief, Reported
from .context import Context

Severity = Literal["error", "warning", "info"]

#: Severities, most severe first: the order of the findings.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

#: Maximum number of examples of a finding.
MOST_EXAMPLES = 20

#: Maximum number of characters of a list of pieces or ids in an example.
MOST_LIST = 200


@dataclass(frozen=True, repr=False)
class Finding(Brief):
    """One kind of problem, with its count and examples."""

    code: str
    severity: Severity
    count: int
    message: str
    examples: list[str]
    #: Number of new tokens among the counted; None if unknown.
    new: int | None = None

    @property
    def counted(self) -> str:
        """The count with its noun, for messages.

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
    """The result of a rule that has more to state than a list of examples."""

    examples: Sequence[str]
    #: Count; None for the number of examples.
    count: int | None = None
    #: Replaces the rule's own message.
    message: str = ""
    #: Number of new tokens among the counted.
    new: int | None = None


#: Result of a rule: an example for each problem, or :class:`Found`.
Outcome = Found | Sequence[str]


class Checked(Protocol):
    """Input of rules."""

    @property
    def has(self) -> Collection[str]:
        """Names of the inputs that are given."""


CheckedT = TypeVar("CheckedT", bound=Checked)

_Look = Callable[[CheckedT], Outcome]


@dataclass(frozen=True)
class Rule(Generic[CheckedT]):
    """A rule: code, severity and message of a finding, and the function that finds it."""

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
        """Returns the finding, or None."""
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
        """Makes a function the rule for the finding of the same name in capitals.

        Args:
            severity: "error" for defects that break encoding or decoding, "warning" for tokens or
                words that miss their purpose, "info" for facts worth knowing.
            message: describes the finding, in the plural.
            needs: required inputs; a rule without them is skipped.
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
