"""Rules about new tokens that change text without new words."""

from __future__ import annotations

from bpe_engine.vocabulary import merge_bytes

from ...text import quoted, shorten, show, text_of
from ..context import Context
from ..findings import MOST_LIST, RULES, Found, Outcome


@RULES.rule(
    "OTHER_TEXT_CHANGES",
    "warning",
    "new tokens that change text which holds no new word",
    needs=["extra"],
)
def other_text_changes(context: Context) -> Outcome:
    """New tokens that are on the way to others: text with them changes, too."""
    loaded = context.loaded
    others = []
    for token, number in loaded.extra.items():
        text = text_of(token)
        # A part of a character is never a piece: only merging can make it.
        is_reached = number not in context.audit.unreached
        if text not in context.new_words if text is not None else is_reached:
            others.append(token)
    before = merge_bytes(loaded.base, others) if others and loaded.base else []
    return [
        f"text with {show(token)} has {[loaded.extra[token]]} in place of {ids}"
        for token, ids in zip(others, before)
    ]


@RULES.rule(
    "CORPUS_CHANGES",
    "warning",
    "pieces of the corpus that change and hold no new word",
    needs=["corpus"],
)
def corpus_changes(context: Context) -> Outcome:
    assert context.corpus is not None
    return [
        f"{quoted(shorten(change.text))}: {shorten(str(change.before), MOST_LIST)} becomes "
        f"{shorten(str(change.after), MOST_LIST)}, {change.count:,} times"
        for change in context.corpus.unexpected
    ]


@RULES.rule("CORPUS", "info", "pieces of the corpus that change", needs=["corpus"])
def corpus(context: Context) -> Outcome:
    effect = context.corpus
    assert effect is not None
    return Found(
        [f"{effect.tokens_before:,} tokens before, {effect.tokens_after:,} after"],
        effect.changed,
        f"pieces of the corpus that change, of {effect.pieces:,}",
    )
