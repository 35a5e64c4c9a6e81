"""Rules about single tokens: valid text, reachable by merging, the same after a round trip."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable

from ...text import quoted, quoted_list, shorten, show, text_of
from ..check_result import ROUND_TRIP_CLASSES
from ..context import Context
from ..findings import MOST_EXAMPLES, RULES, Found, Outcome


@RULES.rule(
    "warning",
    "tokens that merging does not make of their bytes",
    needs=["tokens"],
)
def unreachable_by_merging(context: Context) -> Outcome:
    """No sequence of merges makes the token, so longer pieces never contain it and its row in the
    embedding table stays untrained.

    Do: Learn words with `learn`, which adds the merges on the way; do not add ranks by hand.
    Nothing for a published vocabulary.
    """
    by_id = context.loaded.by_id
    numbers, new = context.new_first(context.audit.unreached)
    examples = []
    for number in numbers[:MOST_EXAMPLES]:
        why, stops = context.audit.unreached[number]
        pieces = " ".join(show(by_id[part]) for part in stops)
        stop = f"; merging stops at {pieces}" if pieces else ""
        examples.append(f"{context.named(number)}: {why}{stop}")
    return Found(examples, len(numbers), new=new)


@RULES.rule(
    "warning",
    "tokens that are never one piece of the pre-tokenizer",
    needs=["tokens"],
)
def never_whole(context: Context) -> Outcome:
    """The pattern always cuts the text of the token, so encoding never produces it.

    Do: Check that the pattern is the model's (`--pattern`); list the pieces instead of the whole.
    """
    found = context.audit.never_whole
    by_id = context.loaded.by_id
    numbers, new = context.new_first(found)
    examples = [
        f"{context.named(number)}: cut into {quoted_list(context.splitter(by_id[number].decode()))}"
        for number in numbers[:MOST_EXAMPLES]
    ]
    message = "tokens that are never one piece of the pre-tokenizer"
    inside = sum(how == "only inside" for how in found.values())
    if inside:
        message += f"; at least {inside:,} of them still occur inside a longer piece"
    return Found(examples, len(found), message, new)


@RULES.rule(
    "warning",
    "tokens of several bytes that cannot be part of any text",
    needs=["tokens"],
)
def nonsense_bytes(context: Context) -> Outcome:
    """These bytes occur in no UTF-8 text; a model that samples such a token writes garbage.

    Do: Validate the UTF-8 of training text. Nothing for a published vocabulary.
    """
    by_id = context.loaded.by_id
    nonsense = context.ids_by_utf8.get("nonsense", [])
    return _named(context, (number for number in nonsense if len(by_id[number]) > 1))


@RULES.rule(
    "warning",
    "tokens or words that are not in Unicode normalization form C",
    needs=["tokens"],
)
def not_nfc(context: Context) -> Outcome:
    """Normalized text never contains these characters, so the token is unused.

    Do: Normalize the word list or the training text to form C.
    """
    # Finds words and tokens that normalized text never contains; tokens of the base count only if
    # the encoding normalizes text.
    examples = [
        f"{quoted(shorten(word.listed))}: NFC is {quoted(shorten(word.word))}"
        for word in (context.words if "words" in context.has else [])
        if word.listed != word.word
    ]
    looked_at = context.loaded.ranks if context.pattern.nfc else context.loaded.extra
    texts = {
        number: text
        for token, number in looked_at.items()
        if not token.isascii()
        and (text := text_of(token)) is not None
        and not unicodedata.is_normalized("NFC", text)
    }
    numbers, new = context.new_first(texts)
    for number in numbers:
        normal = unicodedata.normalize("NFC", texts[number])
        examples.append(f"{context.named(number)}: NFC is {show(normal.encode())}")
    return Found(examples, new=None if new is None else new + len(examples) - len(numbers))


@RULES.rule("info", "tokens that are not text on their own", needs=["tokens"])
def not_utf8(context: Context) -> Outcome:
    """Byte-level vocabularies have single bytes and parts of characters, which alone are not text.

    Do: Nothing. Decode streams with `stream_decoder`, which waits for whole characters.
    """
    kinds = context.ids_by_utf8
    every = [number for numbers in kinds.values() for number in numbers]
    single = sum(len(context.loaded.by_id[number]) == 1 for number in every)
    message = (
        f"tokens that are not valid UTF-8: {len(every) / len(context.audit.ids):.2%} of all, "
        f"{single:,} of them single bytes"
    )
    return _named(context, every, message)


@RULES.rule(
    "info",
    "tokens that begin or end inside a character",
    needs=["tokens"],
)
def incomplete_character(context: Context) -> Outcome:
    """A character of several tokens is complete only with the last token.

    Do: Nothing for a published vocabulary. `learn --whole-characters` makes no new ones.
    """
    kinds = {kind: ids for kind, ids in context.ids_by_utf8.items() if kind != "nonsense"}
    counts = {kind: len(kinds.get(kind, [])) for kind in ("prefix", "suffix", "middle")}
    message = (
        f"tokens that the next or the last token completes: {counts['prefix']:,} end inside "
        f"a character, {counts['suffix']:,} begin inside one, {counts['middle']:,} do both"
    )
    parts = [number for numbers in kinds.values() for number in numbers]
    return _named(context, parts, message)


@RULES.rule(
    "info",
    "tokens that join a part of a character to another character",
    needs=["tokens"],
)
def crosses_character(context: Context) -> Outcome:
    """A token that joins the end of a character to another character hides where characters begin.

    Do: Nothing for a published vocabulary. `learn --whole-characters` makes no new ones.
    """
    audit = context.audit
    return _named(context, (number for number, flag in zip(audit.ids, audit.crosses) if flag))


@RULES.rule("info", "tokens whose text is not encoded as the token", needs=["tokens"])
def round_trip(context: Context) -> Outcome:
    """A token whose text encodes to other ids was rarely seen in training, and may be a glitch
    token.

    Do: Build no prompts from such ids; mask them if a model samples them.
    """
    classes, encoded = context.audit.round_trip, context.audit.encoded
    lost = [number for number, name in classes.items() if name not in ("OK", "OK_SPECIAL")]
    examples = []
    # Tokens that are text come first, because tokens that are not text never round-trip.
    numbers, new = context.new_first(sorted(lost, key=lambda number: number not in encoded))
    for number in numbers[:MOST_EXAMPLES]:
        name = classes[number]
        if number in encoded:
            examples.append(f"{context.named(number)}: {name}, encoded as {encoded[number]}")
        elif number in context.loaded.by_id:
            examples.append(f"{context.named(number)}: {name}")
        else:
            examples.append(f"{number}: {name}")
    counts = Counter(classes.values())
    message = ", ".join(f"{counts[name]:,} {name}" for name in ROUND_TRIP_CLASSES)
    return Found(examples, len(lost), message, new)


def _named(context: Context, numbers: Iterable[int], message: str = "") -> Found:
    """Lists tokens with their ids, new tokens first."""
    listed, new = context.new_first(numbers)
    return Found([context.named(number) for number in listed], message=message, new=new)
