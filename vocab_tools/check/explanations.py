"""Why each finding matters, and what to do about it: for `vocab-tools explain` and docs/findings.md.

python -m vocab_tools.check.explanations > docs/findings.md
"""

from __future__ import annotations

from typing import Any

from .findings import RULES, SEVERITIES, Rule
from .folder.drift import DRIFT_RULES
from .folder.folder_rules import FOLDER_RULES

__all__ = ["explain", "explanations"]

#: By title, the rules.
_RULES: dict[str, list[Rule[Any]]] = {
    "Of a vocabulary": [*RULES],
    "Of a model's folder": [*FOLDER_RULES],
    "Of `vocab-tools drift`": [*DRIFT_RULES],
}


def explanations() -> list[Rule[Any]]:
    """Returns all rules: those of vocabularies, of folders, then of drift."""
    return [rule for rules in _RULES.values() for rule in rules]


def explain(code: str) -> Rule[Any]:
    """Returns the rule of a finding, with its explanation.

    Args:
        code: such as ``"SHADOW"``, in any case.

    Raises:
        KeyError: No finding has the code.

    >>> explain("id_gap").severity
    'warning'
    """
    return {found.code: found for found in explanations()}[code.upper()]


def _page() -> str:
    """Returns docs/findings.md."""
    lines = [
        "# Findings",
        "",
        "Each finding of [`vocab-tools check`](vocab-tools.md#checking-a-vocabulary): why it matters,"
        " and what to do.",
        "`vocab-tools explain CODE` prints the same. (`python -m vocab_tools.check.explanations` writes"
        " this page.)",
    ]
    for title, rules in _RULES.items():
        lines += ["", f"## {title}"]
        for found in sorted(rules, key=lambda one: SEVERITIES.index(one.severity)):
            lines += ["", f"### {found.code}", "", f"*{found.severity}*: {found.message}.", ""]
            lines += [found.why, "", f"**Do:** {found.remedy}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(_page(), end="")
