"""Learning the merges that a vocabulary lacks, and explaining them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import bpe_engine
from bpe_engine import _core

from .ranks import (
    MAX_ID,
    Pattern,
    RankSource,
    check_special_tokens,
    dump_ranks,
    encoding_pattern,
    find_pattern,
    load_ranks,
    read_ranks_like_add_merges,
    recognise,
    show,
)
from .words import is_spaced, shorten

#: The first id after Qwen's special tokens: the default start for its pattern.
QWEN_START_ID = 151851

#: How many characters a warning shows of the pieces of a word.
MOST_PIECES = 200

#: Called with how much is done and how much there is.
ProgressFunction = Callable[[int, int], None]


@dataclass(frozen=True)
class Step:
    """One merge, in the order of learning."""

    left: bytes
    right: bytes
    #: The id of the new token; None when the merge gave no new token.
    id: int | None
    #: "new", "in base", or "repeated" when two other parts gave the same bytes before.
    novelty: str
    #: The frequency of the pair when it was merged.
    frequency: int
    #: In how many words it was merged.
    words: int

    @property
    def token(self) -> bytes:
        return self.left + self.right


@dataclass(frozen=True)
class WordPath:
    """How a word came to be one token, or why it did not."""

    word: str
    frequency: int
    #: The pieces that the base's own merges leave.
    base_pieces: list[bytes]
    #: The merges that were applied, as places in :attr:`LearnResult.steps`.
    steps: list[int]
    #: The pieces at the end of learning.
    pieces: list[bytes]
    #: The id of the word in the extended vocabulary.
    id: int | None
    #: Whether merging alone, without looking the whole word up, gives the word. When it does not,
    #: the word is one token as a piece of its own, and several inside a longer piece.
    reached: bool
    #: Why the word is no token; None when it is one.
    reason: str | None = None


@dataclass(frozen=True)
class ByProduct:
    """A learned token that is none of the words."""

    token: bytes
    id: int
    left: bytes
    right: bytes
    frequency: int
    #: The words whose path leads over it.
    words: list[str]
    #: The tokens that were made of it directly.
    makes: list[bytes]

    @property
    def why(self) -> str:
        """One sentence for people."""
        words = _few(self.words)
        return (
            f"{show(self.left)} + {show(self.right)} was the most frequent pair left, with "
            f"{self.frequency}; it is a step on the way to {words}"
        )


@dataclass
class LearnResult:
    """What was learned, and what became of each word."""

    #: The new tokens and their ids: what the output file holds.
    tokens: dict[bytes, int]
    steps: list[Step]
    words: list[WordPath]
    #: Words that the pre-tokeniser would split, and into what.
    refused: dict[str, list[str]]
    #: Words that are tokens of the base, and their ids.
    skipped: dict[str, int]
    #: Remarks for people: warnings and hints.
    notes: list[str]
    pattern: Pattern
    special_tokens: dict[str, int]
    #: The ranks that the new tokens extend.
    base: dict[bytes, int] = field(repr=False)

    def dump(self) -> bytes:
        """The new tokens as a rank file."""
        return dump_ranks(self.tokens)

    @property
    def extended(self) -> dict[bytes, int]:
        """Base and new tokens together; where both have a token, the base has its id."""
        return {**self.tokens, **self.base}

    @property
    def not_one_token(self) -> list[WordPath]:
        """Words that are not one token in the extended vocabulary."""
        return [path for path in self.words if path.id is None]

    def by_products(self) -> list[ByProduct]:
        """The learned tokens that are none of the words, in the order of learning."""
        wanted = {path.word.encode() for path in self.words}
        makes: dict[bytes, list[bytes]] = {}
        for step in self.steps:
            for part in {step.left, step.right}:
                makes.setdefault(part, []).append(step.token)
        users: dict[int, list[str]] = {}
        for path in self.words:
            for number in path.steps:
                users.setdefault(number, []).append(path.word)
        return [
            ByProduct(
                token=step.token,
                id=step.id,
                left=step.left,
                right=step.right,
                frequency=step.frequency,
                words=users.get(number, []),
                makes=makes.get(step.token, []),
            )
            for number, step in enumerate(self.steps)
            if step.id is not None and step.token not in wanted
        ]

    def path_text(self, path: WordPath) -> str:
        """The way of a word in one line.

        From the pieces of the base, merge by merge, to the pieces at the end.
        """
        pieces = path.base_pieces
        stages = [pieces]
        for number in path.steps:
            step = self.steps[number]
            pieces = _join(pieces, step.left, step.right)
            stages.append(pieces)
        return " → ".join(" ".join(_bare(piece) for piece in stage) for stage in stages)


def _few(words: list[str]) -> str:
    """The first words of a list, for a sentence."""
    return ", ".join(map(shorten, words[:5])) + (", …" if len(words) > 5 else "")


def _bare(token: bytes) -> str:
    """As :func:`show`, without the quotes when nothing in it needs them."""
    quoted = show(token)
    inner = quoted[1:-1]
    return inner if quoted == f"'{inner}'" and inner.isprintable() and " " not in inner else quoted


def _join(pieces: list[bytes], left: bytes, right: bytes) -> list[bytes]:
    """Joins each place of the pair, from left to right."""
    joined: list[bytes] = []
    i = 0
    while i < len(pieces):
        if pieces[i] == left and pieces[i + 1 : i + 2] == [right]:
            joined.append(left + right)
            i += 2
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def learn_merges(
    base: RankSource,
    words: Mapping[str, int],
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    start_id: int | None = None,
    max_merges: int | None = None,
    min_frequency: int | None = None,
    whole_characters: bool = False,
    like_add_merges: bool = False,
    progress: ProgressFunction | None = None,
) -> LearnResult:
    """Learns the merges that make each word one token, ranked after the base.

    Each word is first cut by the merges of the base. Then the most frequent pair of adjacent
    pieces is merged in all words, until no word has two pieces. Ties go to fewer characters, then
    fewer bytes, then the lower text, then the lower bytes, then the pair met first.

    Args:
        base: a rank file, ranks, or an encoding.
        words: frequency of each word, as from :func:`vocab_tools.read_words`.
        pattern: the name of an encoding, or a regular expression: how text is cut into pieces. By
            default that of ``base``, when it is an encoding or has the ranks of a published one,
            and else ``qwen``.
        special_tokens: names and ids that are taken; by default those of the encoding that
            ``base`` is, or else those of the named encoding.
        start_id: the id of the first new token. By default 151851 for the pattern ``qwen``, and
            otherwise, or when that is taken, the first id behind all ranks from which on enough
            ids are free of special tokens.
        max_merges: the most tokens to learn.
        min_frequency: pairs with a lower frequency are not merged.
        whole_characters: learn no token that cuts a character or crosses into one; pairs that
            complete a character come first. Words with a character that the base cuts into three
            pieces or more are left out.
        like_add_merges: number the merges as Qwen's add_merges.py does, even where that gives a
            token that the base has, or leaves out ids; a start id that is too small is raised,
            and the default pattern is ``qwen`` for any base.
        progress: called now and then with words done and words in all.

    Raises:
        ValueError: the base gives a token two ids or an id two tokens; the start id collides (the
            message has the first free one); a frequency is no positive integer; the pattern does
            not compile.

    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> result = learn_merges(base, {"low": 5, "lower": 2}, start_id=300)
    >>> result.tokens
    {b'lo': 300, b'low': 301, b'er': 302, b'lower': 303}
    >>> [(by_product.token, by_product.words) for by_product in result.by_products()]
    [(b'lo', ['low', 'lower']), (b'er', ['lower'])]
    """
    for name, limit in [("max_merges", max_merges), ("min_frequency", min_frequency)]:
        if limit is not None and limit < 0:
            raise ValueError(f"{name} is {limit}; it cannot be negative")
    ranks = read_ranks_like_add_merges(base) if like_add_merges else load_ranks(base)
    notes: list[str] = []
    found, own = _choose_pattern(base, ranks, pattern, like_add_merges, notes)
    specials = dict(own if special_tokens is None else special_tokens)
    check_special_tokens(specials)
    kept, refused, skipped = _sort_words(words, ranks, found, like_add_merges, notes)
    merges, paths = _core.learn_merges(
        _distinct(ranks),
        [(word.encode(), frequency) for word, frequency in kept.items()],
        max_tokens=max_merges,
        min_frequency=min_frequency,
        whole_characters=whole_characters,
        count_repeats=like_add_merges,
        progress=progress,
    )
    is_qwen = found.name == "qwen" and own == found.special_tokens
    steps = _number(merges, ranks, specials, start_id, is_qwen, like_add_merges, notes)
    result = LearnResult(
        tokens=_tokens(steps),
        steps=steps,
        words=[],
        refused=refused,
        skipped=skipped,
        notes=notes,
        pattern=found,
        special_tokens=specials,
        base=ranks,
    )
    limits = (max_merges, min_frequency)
    result.words = _follow(result, kept, paths, limits)
    _note_results(result)
    return result


def _choose_pattern(
    base: RankSource,
    ranks: Mapping[bytes, int],
    pattern: str | None,
    like_add_merges: bool,
    notes: list[str],
) -> tuple[Pattern, Mapping[str, int]]:
    """The pattern to cut words by, and the special tokens that belong to the base."""
    own: Pattern | None = None
    if isinstance(base, bpe_engine.Encoding):
        own = replace(find_pattern(encoding_pattern(base), {}), special_tokens=base._special_tokens)
        name = base.name
    elif known := recognise(ranks):
        own = find_pattern(known, {})
        name = known
    if own is None:
        found = find_pattern(pattern or "qwen", ranks)
        return found, found.special_tokens
    if pattern is None and not like_add_merges:
        if own.name != "qwen":
            notes.append(
                f"the base is {name}, so its pattern and its special tokens are used; give "
                f"--pattern for another pattern"
            )
        return own, own.special_tokens
    found = find_pattern(pattern or "qwen", ranks)
    if (found.pat_str, found.nfc) == (own.pat_str, own.nfc):
        return own, own.special_tokens
    notes.append(
        f"the base is {name}, and the pattern {shorten(pattern or 'qwen')} is not the one of "
        f"{name}: words that are one piece here may be several there; its special tokens are kept"
    )
    return found, own.special_tokens


def _distinct(ranks: dict[bytes, int]) -> dict[bytes, int]:
    """The same order of tokens, without ids that are given twice: only add_merges.py has those."""
    if len(set(ranks.values())) == len(ranks):
        return ranks
    ordered = sorted(ranks, key=lambda token: ranks[token])
    return {token: number for number, token in enumerate(ordered)}


def _sort_words(
    words: Mapping[str, int],
    ranks: Mapping[bytes, int],
    pattern: Pattern,
    like_add_merges: bool,
    notes: list[str],
) -> tuple[dict[str, int], dict[str, list[str]], dict[str, int]]:
    """Words to learn, words that the pre-tokeniser splits, and words that are tokens already."""
    splitter = pattern.splitter()
    kept: dict[str, int] = {}
    refused: dict[str, list[str]] = {}
    skipped: dict[str, int] = {}
    for word, frequency in words.items():
        if not isinstance(word, str) or not word:
            raise ValueError(f"{word!r} is no word; words are text, and not empty")
        if isinstance(frequency, bool) or not isinstance(frequency, int):
            raise ValueError(f"the frequency of {word!r} is {frequency!r}; it must be an integer")
        if (frequency < 1 and not like_add_merges) or frequency.bit_length() > 63:
            raise ValueError(
                f"the frequency of {word!r} is {frequency}; it must be from 1 to 2**63 - 1"
            )
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{word!r} has a lone surrogate, and is no text") from error
        word = unicodedata.normalize("NFC", word)
        pieces = splitter.split(word)
        if pieces != [word]:
            if word not in refused:
                cut = shorten(str(pieces), MOST_PIECES)
                notes.append(
                    f"{shorten(word)} would be pre-tokenized to {cut}; it cannot become a token"
                )
            refused[word] = pieces
        elif word.encode() in ranks:
            if word not in skipped:
                number = ranks[word.encode()]
                notes.append(f"{shorten(word)} is already a token, with id {number}; skipped")
            skipped[word] = ranks[word.encode()]
        else:
            kept[word] = kept.get(word, 0) + frequency
    return kept, refused, skipped


def first_free_id(
    ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], start: int, count: int
) -> int:
    """The smallest id from ``start`` on, above all ranks, with ``count`` ids free of specials.

    >>> first_free_id({b"a": 0, b"b": 5}, {"<end>": 7}, 0, 2)
    8
    """
    first = max(start, max(ranks.values()) + 1)
    for taken in sorted(special_tokens.values()):
        if first <= taken < first + max(count, 1):
            first = taken + 1
    return first


def _number(
    merges: list[tuple[bytes, bytes, str, int, int]],
    ranks: Mapping[bytes, int],
    special_tokens: Mapping[str, int],
    start_id: int | None,
    is_qwen: bool,
    like_add_merges: bool,
    notes: list[str],
) -> list[Step]:
    """Gives the merges their ids."""
    count = len(merges) if like_add_merges else sum(merge[2] == "new" for merge in merges)
    asked = start_id
    if asked is None:
        asked = QWEN_START_ID if is_qwen else 0
    if like_add_merges:
        first = asked
        if asked < len(ranks):
            first = len(ranks)
            if start_id not in (0, -1, None):
                notes.append(f"the start id {asked} is below {first}, the number of ranks: raised")
    else:
        first = first_free_id(ranks, special_tokens, asked, count)
        if start_id is not None and first != start_id:
            raise ValueError(_collision(ranks, special_tokens, start_id, count, first))
        if start_id is None and is_qwen and first != QWEN_START_ID:
            notes.append(f"the ids from {QWEN_START_ID} are taken; the new tokens start at {first}")
    if first + count - 1 > MAX_ID:
        raise ValueError(f"the last id would be {first + count - 1}, above {MAX_ID}")
    steps = []
    for left, right, novelty, frequency, words in merges:
        number = None
        if novelty == "new" or like_add_merges:
            number = first
            first += 1
        steps.append(Step(left, right, number, novelty, frequency, words))
    _note_deviations(steps, like_add_merges, notes)
    return steps


def _collision(
    ranks: Mapping[bytes, int],
    special_tokens: Mapping[str, int],
    start_id: int,
    count: int,
    free: int,
) -> str:
    taken = {number: f"the token {show(token)}" for token, number in ranks.items()}
    taken.update({number: f"the special token {name}" for name, number in special_tokens.items()})
    used = range(start_id, start_id + max(count, 1))
    clash = next((number for number in used if number in taken), None)
    if clash is None:
        reason = (
            f"is below the largest rank, {max(ranks.values())}: new tokens must come after the base"
        )
    elif clash == start_id:
        reason = f"is taken by {taken[clash]}"
    else:
        reason = f"leads into id {clash}, taken by {taken[clash]} ({count} new tokens)"
    return f"the start id {start_id} {reason}; the first free id is {free}"


def _note_deviations(steps: list[Step], like_add_merges: bool, notes: list[str]) -> None:
    for step in steps:
        if step.novelty == "new":
            continue
        why = {
            "in base": "the base has this token, but its merges do not reach it here",
            "repeated": "two other parts gave the same bytes before",
        }[step.novelty]
        done = "written again, as add_merges.py does" if like_add_merges else "not written again"
        notes.append(f"{show(step.left)} + {show(step.right)}: {why}; {done}")


def _tokens(steps: list[Step]) -> dict[bytes, int]:
    """The numbered tokens in the order of ids; of two ids for one token, the later one stays."""
    ids = {step.token: step.id for step in steps if step.id is not None}
    return dict(sorted(ids.items(), key=lambda row: row[1]))


def _follow(
    result: LearnResult,
    kept: Mapping[str, int],
    paths: list[tuple[list[int], list[int], list[int], bool]],
    limits: tuple[int | None, int | None],
) -> list[WordPath]:
    """What became of each word in the extended vocabulary."""
    extended = result.extended
    encoded = [word.encode() for word in kept]
    merged = _core.merge_bytes(_distinct(extended), encoded) if encoded else []
    words = []
    for (word, frequency), token, ids, path in zip(kept.items(), encoded, merged, paths):
        first, last, steps, blocked = path
        number = extended.get(token)
        reason = None
        if number is None:
            reason = _reason(blocked, limits)
        words.append(
            WordPath(
                word=word,
                frequency=frequency,
                base_pieces=_cut(token, first),
                steps=steps,
                pieces=_cut(token, last),
                id=number,
                reached=number is not None and len(ids or ()) == 1,
                reason=reason,
            )
        )
    return words


def _cut(token: bytes, ends: list[int]) -> list[bytes]:
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
        reasons.append(f"the limit of {max_merges} merges was reached (--max-merges)")
    if min_frequency is not None:
        reasons.append(f"a pair in it is less frequent than {min_frequency} (--min-frequency)")
    return " or ".join(reasons) or "its pieces were not merged"


def _note_results(result: LearnResult) -> None:
    """Hints about the words."""
    listed = {*result.skipped, *(path.word for path in result.words)}
    spaced = [
        path.word
        for path in result.words
        if is_spaced(path.word)
        and " " + path.word not in listed
        and (" " + path.word).encode() not in result.base
        and path.id is not None
    ]
    spaced = _one_piece_with_space(result.pattern, spaced)
    if spaced:
        named = _few(spaced)
        result.notes.append(
            f"running text has {named} with a space before it, and that form is another piece, "
            f"which stays several tokens; list {shorten(' ' + spaced[0])!r} too, with --keep-space "
            f"({len(spaced)} such words)"
        )
    unreached = [path.word for path in result.words if path.id is not None and not path.reached]
    if unreached:
        result.notes.append(
            f"{len(unreached)} words are one token only as a piece of their own, since merging "
            f"their bytes takes another way: {_few(unreached)}"
        )
    if result.not_one_token:
        result.notes.append(
            f"{len(result.not_one_token)} words do not become one token: "
            + _few([path.word for path in result.not_one_token])
        )


def _one_piece_with_space(pattern: Pattern, words: list[str]) -> list[str]:
    splitter: bpe_engine.Encoding = pattern.splitter()
    return [word for word in words if splitter.split(" " + word) == [" " + word]]


def to_plain(result: LearnResult) -> dict[str, Any]:
    """The result as plain types, for JSON; tokens are text, or ``\\\\xNN`` where they are none."""
    return {
        "tokens": [
            {"token": show(token, 10**6), "id": number} for token, number in result.tokens.items()
        ],
        "words": [
            {
                "word": path.word,
                "frequency": path.frequency,
                "id": path.id,
                "path": result.path_text(path),
                "reached_by_merging": path.reached,
                "reason": path.reason,
            }
            for path in result.words
        ],
        "by_products": [
            {
                "token": show(by_product.token, 10**6),
                "id": by_product.id,
                "why": by_product.why,
                "words": by_product.words,
                "makes": [show(token, 10**6) for token in by_product.makes],
            }
            for by_product in result.by_products()
        ],
        "refused": result.refused,
        "skipped": result.skipped,
        "not_one_token": [path.word for path in result.not_one_token],
        "notes": result.notes,
    }
