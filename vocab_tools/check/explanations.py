"""Explains findings and gives advice, for `vocab-tools explain` and the manual."""

from __future__ import annotations

from typing import Any

from .findings import RULES, SEVERITIES, Rule
from .folder.folder_rules import FOLDER_RULES

__all__ = ["explain", "explanations", "sections"]

#: Rules by the title of their section.
_RULES: dict[str, list[Rule[Any]]] = {
    "Of a vocabulary": [*RULES],
    "Of a model's folder": [*FOLDER_RULES],
}


def explanations() -> list[Rule[Any]]:
    """Returns the rules for vocabularies, followed by the rules for folders."""
    return [rule for rules in _RULES.values() for rule in rules]


def explain(code: str) -> Rule[Any]:
    """Returns the rule of a finding, with its explanation.

    Args:
        code: the finding's code, such as ``"SHADOW"``, in any case.

    Raises:
        KeyError: No finding has the code.

    >>> explain("id_gap").severity
    'warning'
    """
    return {found.code: found for found in explanations()}[code.upper()]


def sections() -> str:
    """Returns the findings in Markdown, which the build of the manual adds to docs/findings.md."""
    lines: list[str] = []
    for title, rules in _RULES.items():
        lines += ["", f"## {title}"]
        for found in sorted(rules, key=lambda one: SEVERITIES.index(one.severity)):
            lines += ["", f"### {found.code}", "", f"*{found.severity}*: {found.message}.", ""]
            lines += [found.why, "", f"**Do:** {found.remedy}"]
    return "\n".join(lines) + "\n"
