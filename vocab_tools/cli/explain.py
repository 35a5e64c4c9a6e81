"""The command ``vocab-tools explain``: why a finding matters, and what to do about it."""

from __future__ import annotations

import difflib

import click
from click.shell_completion import CompletionItem

from bpe_engine.cli.group import Command

from ..check.explanations import explain as explained
from ..check.explanations import explanations
from .console import console, say, say_wrapped


def _complete(
    _context: click.Context, _option: click.Parameter, start: str
) -> list[CompletionItem]:
    codes = (found.code for found in explanations())
    return [CompletionItem(code) for code in codes if code.startswith(start.upper())]


@click.command(cls=Command)
@click.argument("code", required=False, shell_complete=_complete)
def explain(code: str | None) -> None:
    """Explain a finding of `check`: why it matters, and what to do.

    Without CODE, lists the codes of all findings.

    \b
      vocab-tools explain NEVER_WHOLE
    """
    to = console()
    if code is None:
        width = max(len(found.code) for found in explanations())
        for found in explanations():
            say(to, f"{found.severity:7} {found.code:{width}} {found.message}")
        return
    try:
        found = explained(code)
    except KeyError:
        names = [one.code for one in explanations()]
        close = difflib.get_close_matches(code.upper(), names, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "`vocab-tools explain` lists the codes."
        raise click.UsageError(f"{code!r} is not the code of a finding. {hint}") from None
    say(to, f"{found.code} ({found.severity}): {found.message}")
    for text in (found.why, found.remedy):
        say(to, "")
        say_wrapped(to, text)
