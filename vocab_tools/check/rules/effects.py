"""Rules about new tokens that change the ids of text without new words."""

from __future__ import annotations

from bpe_engine.vocabulary import merge_bytes

from ...text import quoted, shorten, show, text_of
from ..context import Context
from ..findings import MOST_LIST, RULES, Found, Outcome


@RULES.rule(
    "warning",
    "new tokens that change text which holds no new word",
    needs=["extra"],
)
def other_text_changes(context: Context) -> Outcome:
    """Steps on the way to a word are also tokens. Text that contains these tokens gets ids that the
    model has never seen, even without any new word.

    Do: Continue training on ordinary text as well.
    """
    # Collects intermediate new tokens, which also change text.
    loaded = context.loaded
    others = []
    for token, number in loaded.extra.items():
        text = text_of(token)
        # A part of a character is never a piece; only merging produces such a token.
        is_reached = number not in context.audit.unreached
        if text not in context.new_words if text is not None else is_reached:
            others.append(token)
    before = merge_bytes(loaded.base, others) if others and loaded.base else []
    return [
        f"text with {show(token)} has {[loaded.extra[token]]} in place of {ids}"
        for token, ids in zip(others, before)
    ]


@RULES.rule(
    "warning",
    "pieces of the corpus that change and hold no new word",
    needs=["corpus"],
)
def corpus_changes(context: Context) -> Outcome:
    """Pieces of your text change although they contain no new word. The examples show some pieces.

    Do: If the pieces are frequent, drop the words that cause them, or train on such text.
    """
    assert context.corpus is not None
    return [
        f"{quoted(shorten(change.text))}: {shorten(str(change.before), MOST_LIST)} becomes "
        f"{shorten(str(change.after), MOST_LIST)}, {change.count:,} times"
        for change in context.corpus.unexpected
    ]


@RULES.rule("info", "pieces of the corpus that change", needs=["corpus"])
def corpus(context: Context) -> Outcome:
    """The number of tokens in your text before and after, and the number of pieces that change.

    Do: Nothing; compare the numbers with the expected gain.
    """
    effect = context.corpus
    assert effect is not None
    return Found(
        [f"{effect.tokens_before:,} tokens before, {effect.tokens_after:,} after"],
        effect.changed,
        f"pieces of the corpus that change, of {effect.pieces:,}",
    )
