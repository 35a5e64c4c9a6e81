"""Rules about tokens that collide with special tokens."""

from __future__ import annotations

from ...text import show
from ..context import Context
from ..findings import RULES, Outcome


@RULES.rule("error", "tokens with the id of a special token")
def special_id(context: Context) -> Outcome:
    """The id is a control token for the model and a piece of text for the tokenizer.

    Do: Choose a start id after all special tokens; `learn --start-id auto` does.
    """
    by_id = context.loaded.by_id
    taken = [
        f"{number}: {name} and {show(by_id[number])}"
        for name, number in context.special_tokens.items()
        if number in by_id
    ]
    names: dict[int, str] = {}
    for name, number in context.special_tokens.items():
        if number in names:
            taken.append(f"{number}: {names[number]} and {name}")
        names.setdefault(number, name)
    return taken


@RULES.rule("error", "tokens whose bytes are the text of a special token")
def special_text(context: Context) -> Outcome:
    """Ordinary text with the name of a special token becomes one token with the same text.

    Do: Remove the token from the ranks; special tokens are stored separately.
    """
    ranks = context.loaded.ranks
    return [
        f"{ranks[name.encode()]} {show(name.encode())}; the special has the id {number}"
        for name, number in context.special_tokens.items()
        if name.encode() in ranks
    ]
