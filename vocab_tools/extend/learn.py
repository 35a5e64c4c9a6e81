"""Learns the merges that make each word one token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bpe_engine import list_encoding_names, vocabulary
from bpe_engine.common.values import describe

from ..arguments import check_progress, checked_special_tokens, number_of
from ..bases import Base, open_base, pattern_note
from ..corpus.piece_counts import ProgressFunction
from ..notes import Note
from ..ranks import RankSource, check_special_tokens
from ..text import few, plural, quoted, shorten
from ..words import WordSource, is_spaced, read_words
from .candidates import sort_words
from .learn_result import MOST_WORDS, LearnResult, Step, WordPath
from .numbering import Taken, number_merges

if TYPE_CHECKING:
    from .propose import Proposal


def learn_merges(
    base: RankSource | Base,
    words: Mapping[str, int] | Proposal | WordSource,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    start_id: int | None = None,
    max_merges: int | None = None,
    min_frequency: int | None = None,
    whole_characters: bool = False,
    progress: ProgressFunction | None = None,
) -> LearnResult:
    """Learns the merges that make each word one token, ranked after the base.

    Each word is first cut by the merges of the base. Then the most frequent pair of adjacent
    pieces is merged in all words, until every word is one piece. Ties go to fewer characters, then
    fewer bytes, then the lower text, then the lower bytes, then the pair found first.

    Args:
        base: a rank file, ranks, or an encoding.
        words: the frequency of each word; a result of :func:`vocab_tools.propose_words`; or a word
            list for :func:`vocab_tools.read_words`.
        pattern: the name of an encoding, or a regular expression that cuts text into pieces. By
            default the pattern of ``base``, if ``base`` is an encoding or has the ranks of a
            published vocabulary; otherwise ``qwen``.
        special_tokens: names and ids to use; by default the special tokens of ``base``, if ``base``
            is an encoding, or else of the named encoding.
        start_id: the id of the first new token. By default the first id after all ranks with enough
            consecutive ids free of special tokens; with the pattern and the special tokens of
            ``qwen``, 151851 or higher, as in add_merges.py.
        max_merges: the maximum number of tokens to learn; earlier merges are kept.
        min_frequency: the minimum frequency of a pair to merge.
        whole_characters: learn only tokens of whole characters; pairs that complete a character
            come first. Words with a character that the base cuts into three or more pieces are
            dropped.
        progress: called repeatedly with the number of words done and the total number of words.

    Raises:
        ValueError: the base gives a token two ids or an id two tokens; the start id collides (the
            message names the first free id); a frequency is not a positive integer; the pattern is
            neither the name of an encoding nor a valid expression; without ``max_merges``, there
            are more than 500,000 words, or more tokens than a vocabulary can have.
        TypeError: an argument has a wrong type; the message names the argument.

    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> result = learn_merges(base, {"low": 5, "lower": 2}, start_id=300)
    >>> result.tokens
    {b'lo': 300, b'low': 301, b'er': 302, b'lower': 303}
    >>> [(by_product.token, by_product.words) for by_product in result.by_products()]
    [(b'lo', ['low', 'lower']), (b'er', ['lower'])]
    """
    check_progress(progress)
    if max_merges is not None:
        max_merges = number_of("max_merges", max_merges, 0)
    if min_frequency is not None:
        min_frequency = number_of("min_frequency", min_frequency, 0)
    if start_id is not None and not isinstance(start_id, int):
        raise TypeError(f"start_id is {describe(start_id)}; it must be an int")
    if _first(base, str) is not None and _first(words, bytes) is not None:
        raise TypeError(
            f"{_first(base, str)!r} of the base is text; the base comes first, then words"
        )
    listed: Any = getattr(words, "frequencies", words)
    if isinstance(listed, str) and listed in list_encoding_names():
        raise ValueError(f"{listed!r} is the name of an encoding; the base comes first, then words")
    if not isinstance(listed, Mapping):
        listed = read_words(listed)
    found = open_base(base, pattern)
    ranks = found.ranks
    noted = pattern_note(found)
    notes = [Note(*noted)] if noted else []
    specials = checked_special_tokens(
        found.special_tokens if special_tokens is None else special_tokens
    )
    check_special_tokens(specials)
    candidates = sort_words(listed, ranks, found.pattern, notes)
    kept = candidates.words
    room = _room(len(ranks), len(kept), max_merges)
    rows, paths = vocabulary.learn_merges(
        ranks,
        [(word.encode(), frequency) for word, frequency in kept.items()],
        max_tokens=room,
        min_frequency=min_frequency,
        whole_characters=whole_characters,
        progress=progress,
    )
    steps = [Step(row[0], row[1], None, *row[2:]) for row in rows]
    if max_merges is None and len(steps) >= room:
        raise ValueError(_too_many(len(ranks), len(kept), room))
    # Qwen's default start id follows Qwen's special tokens; other special tokens might leave a gap.
    is_qwen = found.is_qwen and specials == found.special_tokens
    taken = Taken(ranks, specials, start_id, is_qwen)
    steps = number_merges(steps, taken, notes)
    # If a token has two ids, the later id is kept.
    ids = {step.token: step.id for step in steps if step.id is not None}
    result = LearnResult(
        tokens=dict(sorted(ids.items(), key=lambda row: row[1])),
        steps=steps,
        words=[],
        refused=candidates.refused,
        skipped=candidates.skipped,
        notes=notes,
        pattern=found.pattern,
        special_tokens=specials,
        base=ranks,
        recognized=found.recognized,
    )
    result.words = _follow(result, kept, paths, (max_merges, min_frequency))
    _note_results(result)
    return result


def _first(given: object, kind: type) -> object:
    """Returns the first key of this type in a mapping, or None."""
    keys: Any = given if isinstance(given, Mapping) else ()
    return next((key for key in keys if isinstance(key, kind)), None)


def _room(base: int, words: int, max_merges: int | None) -> int:
    """Returns the maximum number of merges to learn. Immediately rejects input that would reach a
    limit only after minutes."""
    room = max(vocabulary.MAX_TOKENS - base, 0)
    if max_merges is not None:
        return min(max_merges, room)
    if words > min(MOST_WORDS, room):
        raise ValueError(_too_many(base, words, min(MOST_WORDS, room)))
    return room


def _too_many(base: int, words: int, most: int) -> str:
    return (
        f"{plural(words, 'word')} cannot all become tokens: every word needs a token and its "
        f"intermediate tokens, at most {MOST_WORDS:,} words are learned without a limit, and a vocabulary has "
        f"at most {vocabulary.MAX_TOKENS:,} tokens, of which the base has {base:,}; list fewer "
        f"words, or learn the most frequent merges only, up to {most:,} of them, with --max-merges"
    )


def _follow(
    result: LearnResult,
    kept: Mapping[str, int],
    paths: list[tuple[list[int], list[int], list[int], bool]],
    limits: tuple[int | None, int | None],
) -> list[WordPath]:
    """Returns how the extended vocabulary encodes each word."""
    extended = result.extended
    encoded = [word.encode() for word in kept]
    merged = vocabulary.merge_bytes(extended, encoded) if encoded else []
    words = []
    for (word, frequency), token, ids, path in zip(kept.items(), encoded, merged, paths):
        first, last, steps, blocked = path
        number = extended.get(token)
        words.append(
            WordPath(
                word=word,
                frequency=frequency,
                base_pieces=_cut(token, first),
                steps=steps,
                pieces=_cut(token, last),
                id=number,
                reached=number is not None and len(ids or ()) == 1,
                reason=_reason(blocked, limits) if number is None else None,
            )
        )
    return words


def _cut(token: bytes, ends: Sequence[int]) -> list[bytes]:
    return [token[start:end] for start, end in zip([0, *ends], ends)]


def _reason(blocked: bool, limits: tuple[int | None, int | None]) -> str:
    max_merges, min_frequency = limits
    if blocked:
        return (
            "one of its characters is three pieces or more in the base, and cannot be completed "
            "without a token that cuts it (--whole-characters)"
        )
    reasons = []
    if max_merges is not None:
        limit = plural(max_merges, "merge")
        reasons.append(f"the limit of {limit} was reached (--max-merges)")
    if min_frequency is not None:
        reasons.append(f"a pair in it is less frequent than {min_frequency} (--min-frequency)")
    return " or ".join(reasons) or "its pieces were not merged"


def _note_results(result: LearnResult) -> None:
    """Adds warnings and hints about the words to the notes of the result."""
    spaced = _words_without_spaced_form(result)
    if spaced:
        text = (
            f"running text has {few(spaced)} with a space before it, and that form is another "
            f"piece, which stays several tokens; list {quoted(shorten(' ' + spaced[0]))} too "
            f"({plural(len(spaced), 'such word')})"
        )
        result.notes.append(Note("spaced form", text))
    unreached = [path.word for path in result.words if path.id is not None and not path.reached]
    if unreached:
        text = (
            f"{plural(len(unreached), 'word is', 'words are')} one token only as a piece of their "
            f"own, since merging their bytes takes another way: {few(unreached)}"
        )
        result.notes.append(Note("own piece only", text))
    failed: dict[str, list[str]] = {}
    for path in result.not_one_token:
        failed.setdefault(path.reason or "", []).append(path.word)
    for reason, words in failed.items():
        what = plural(len(words), "word does", "words do")
        result.notes.append(
            Note("not one token", f"{what} not become one token, since {reason}", words)
        )


def _words_without_spaced_form(result: LearnResult) -> list[str]:
    """Returns words whose space-prefixed form, the one in running text, is not listed."""
    listed = {*result.skipped, *(path.word for path in result.words)}
    splitter = result.pattern.splitter()

    def lacks(word: str) -> bool:
        spaced = " " + word
        return (
            is_spaced(word)
            and spaced not in listed
            and spaced.encode() not in result.base
            and splitter.split(spaced) == [spaced]
        )

    return [path.word for path in result.words if path.id is not None and lacks(path.word)]
