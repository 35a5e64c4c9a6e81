"""The HTML page of an audit of a chat template."""

from __future__ import annotations

from typing import Any

from ..abilities.visible import SIGNS, visible
from ..html_report.page import Column, Page, Part, TableView, Tile, rendered
from .findings import PATHS, REQUIREMENT, Findings, Forgery, Path, TriedField, by_trick

__all__ = ["page_of"]


def page_of(audit: Findings) -> str:
    """Returns an audit as a page."""
    parts = [_summary(audit), _requirement(audit), _fields(audit)]
    parts += [_forgeries(audit)] if audit.forgeries else []
    parts += [_tricks(audit), _tokens(audit)]
    provenance = [
        ("tokenizer", f"{audit.tokenizer}, fingerprint {audit.fingerprint}"),
        ("template", f"SHA-256 {audit.template}"),
    ]
    subtitle = (
        "Whether text of a caller becomes a control token: in prompts rendered to one text, and in "
        "prompts of segments."
    )
    title = f"Audit of a chat template, with {audit.tokenizer}"
    return rendered(Page(title, subtitle, parts, _conclusions(audit), provenance, audit.is_safe))


def _conclusions(audit: Findings) -> list[str]:
    found = []
    for path, what in zip(PATHS, ("Rendered to one text", "As segments")):
        fields = audit.lets_through(path)
        count = f"{len(fields)} of {len(audit.fields)} fields forge control tokens"
        found.append(f"{what}, {count if fields else 'no field forges a control token'}.")
    if audit.unknown:
        names = ", ".join(audit.unknown)
        found.append(f"The template writes control tokens that are text to the tokenizer: {names}.")
    return found


def _summary(audit: Findings) -> Part:
    shown = sum(tried.is_shown for tried in audit.fields)
    tiles = [Tile(f"{len(audit.fields)}", f"fields, of which {shown} are in the prompt")]
    for path, what in zip(PATHS, ("rendered to one text", "as segments")):
        count = len(audit.lets_through(path))
        tiles.append(Tile(f"{count}", f"fields forge tokens, {what}", "bad" if count else "good"))
    tiles += [
        Tile(f"{audit.prompts:,}", "prompts tried"),
        Tile(f"{len(audit.controls):,}", "control tokens"),
        Tile(f"{len(audit.tricks)}", "tricks"),
    ]
    return Part("summary", "Summary", tiles=tiles)


def _requirement(audit: Findings) -> Part:
    naive, segments = (len(audit.lets_through(path)) for path in PATHS)
    verdicts = (
        f"with {audit.prompts:,} prompts, rendering to one text "
        f"{'does not meet it' if naive else 'was not seen to break it'}, and segments "
        f"{'do not meet it' if segments else 'were not seen to break it'}"
    )
    text = (
        f"{REQUIREMENT} (level 2) is about reserved special tokens: in input they are to stay "
        f"characters, and not to become tokens of the context. Of this template and tokenizer, {verdicts}. "
        "An audit tries what it lists; it does not prove that nothing else is possible, and says nothing about "
        "persuasion in ordinary text."
    )
    return Part("requirement", "The requirement", text)


def _result(tried: TriedField, path: Path) -> str:
    if forged := tried.forged(path):
        return f"forged: {by_trick(forged)}"
    if not tried.prompts:
        return "the template refuses the conversation"
    if tried.refused == tried.prompts:
        return "refused"
    return "stays text" if tried.is_shown else "not in the prompt"


def _fields(audit: Findings) -> Part:
    columns = [
        *(Column("field"), Column("rendered to one text"), Column("as segments")),
        *(Column("prompts", "number"), Column("refused", "number")),
    ]
    # Fields that forge tokens first, then fields in the prompt.
    ranked = sorted(
        audit.fields, key=lambda tried: (not tried.segments, not tried.naive, not tried.is_shown)
    )
    rows: list[list[Any]] = [
        [tried.name, *(_result(tried, path) for path in PATHS), tried.prompts, tried.refused]
        for tried in ranked
    ]
    text = (
        "Each string that a caller gives, with the tricks that forge control tokens from it. Refused are "
        "prompts for which the template raises an error."
    )
    return Part("fields", "Fields", text, tables=[TableView("fields-table", columns, rows, 25)])


def _forgeries(audit: Findings) -> Part:
    columns = [
        *(Column("field"), Column("trick"), Column("control token", "token")),
        *(Column("text of the caller"), Column("the prompt in tokens", "cut")),
    ]
    rows = [_row(forgery) for forgery in audit.forgeries]
    text = "One prompt for each field and trick. The forged token has a frame."
    return Part("prompts", "Prompts", text, tables=[TableView("prompts-table", columns, rows, 25)])


def _row(forgery: Forgery) -> list[Any]:
    given = {name: visible(text, SIGNS) for name, text in forgery.given.items()}
    if len(given) > 1:
        given = {name: f"{text} in {name}" for name, text in given.items()}
    path = ", as segments" if forgery.path == "segments" else ""
    cut = [
        [visible(text, SIGNS), id, *(["forged"] if is_forged else [])]
        for id, text, is_forged in forgery.prompt
    ]
    what = [forgery.field, f"{forgery.trick}{path}", visible(forgery.token, SIGNS)]
    return [*what, "; ".join(given.values()), cut]


def _tricks(audit: Findings) -> Part:
    columns = [
        *(Column("trick"), Column("how")),
        Column("fields, one text", "number"),
        Column("fields, segments", "number"),
    ]
    rows: list[list[Any]] = [
        [
            *(name, what),
            sum(name in tried.naive for tried in audit.fields),
            sum(name in tried.segments for tried in audit.fields),
        ]
        for name, what in audit.tricks.items()
    ]
    text = "Each was tried for each control token. The numbers are fields from which it forged one."
    return Part("tried", "What was tried", text, tables=[TableView("tricks-table", columns, rows)])


def _tokens(audit: Findings) -> Part:
    columns = [
        Column("control token", "token"),
        Column("fields, one text", "number"),
        Column("fields, segments", "number"),
    ]
    counts = {name: [0, 0] for name in audit.controls}
    for tried in audit.fields:
        for place, forged in enumerate((tried.naive, tried.segments)):
            for name in {name for names in forged.values() for name in names}:
                counts[name][place] += 1
    rows: list[list[Any]] = [[visible(name, SIGNS), *both] for name, both in counts.items()]
    text = "The control tokens that were tried, with the number of fields that forged each."
    return Part(
        "tokens", "Control tokens", text, tables=[TableView("tokens-table", columns, rows, 25)]
    )
