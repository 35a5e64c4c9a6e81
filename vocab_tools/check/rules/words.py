"""Rules about words that should have become tokens."""

from __future__ import annotations

from ...text import quoted, quoted_list, shorten
from ..context import Context, ListedWord
from ..findings import MOST_LIST, RULES, Outcome


@RULES.rule("warning", "words that the pre-tokenizer cuts", needs=["words"])
def word_split(context: Context) -> Outcome:
    """The pattern cuts the word before any token is looked up, so the word cannot be one token.

    Do: List the pieces, or train the model with a pattern that keeps the word whole.
    """
    return [
        f"{quoted(shorten(word.word))} is cut into {shorten(quoted_list(word.pieces), MOST_LIST)}"
        for word in context.words
        if _is_split(word)
    ]


@RULES.rule("warning", "words that are several tokens", needs=["words"])
def word_not_one_token(context: Context) -> Outcome:
    """The word should be one token, but is several.

    Do: Learn it again, with the same base and pattern, and without a limit on merges.
    """
    examples = []
    for word in context.words:
        if not _is_split(word) and word.word.encode() not in context.loaded.ranks:
            ids = "a byte is not a token" if word.ids is None else shorten(str(word.ids), MOST_LIST)
            examples.append(f"{quoted(shorten(word.word))}: {ids}")
    return examples


def _is_split(word: ListedWord) -> bool:
    return word.pieces != [word.word]
