"""A linter for vocabularies.

Each finding has a code, a severity, a count and examples. Errors are defects that break encoding
or decoding; warnings are tokens or words that do not do what they are there for; the rest is
worth knowing.
"""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Union

import bpe_engine
from bpe_engine import _core

from .corpus import CorpusEffect, corpus_effect
from .ranks import (
    Pattern,
    RankFile,
    RankSource,
    as_sources,
    check_special_tokens,
    check_token,
    count_ids,
    encoding_pattern,
    find_pattern,
    free_ranges,
    read_rank_file,
    read_special_tokens,
    show,
)
from .words import shorten, word_lines

#: Code, severity, and what it means.
CODES = {
    "BAD_LINE": ("error", "lines of a rank file that cannot be read"),
    "MISSING_BYTE": ("error", "single bytes that are no token: text with them cannot be encoded"),
    "DUPLICATE_TOKEN": ("error", "tokens with two ids: loaders differ in which one they take"),
    "DUPLICATE_ID": ("error", "ids with two tokens: one of them cannot be decoded"),
    "SPECIAL_ID": ("error", "tokens whose id is that of a special token"),
    "SPECIAL_TEXT": ("error", "tokens whose bytes are the text of a special token"),
    "SHADOW": ("error", "new tokens that the vocabulary had before"),
    "BELOW_BASE": ("error", "new tokens that rank before tokens of the base, and so take its text"),
    "ID_GAP": ("warning", "ids below the largest that stand for nothing"),
    "EXTRA_GAP": ("warning", "ids left out between the vocabulary and its new tokens"),
    "UNREACHABLE_BY_MERGING": ("warning", "tokens that merging their bytes does not give"),
    "NEVER_WHOLE": ("warning", "tokens that the pre-tokeniser never hands over as one piece"),
    "NONSENSE_BYTES": ("warning", "tokens of several bytes that are part of no text"),
    "NOT_NFC": ("warning", "tokens or words that are not in Unicode normalization form C"),
    "WORD_SPLIT": ("warning", "words that the pre-tokeniser cuts"),
    "WORD_NOT_ONE_TOKEN": ("warning", "words that are several tokens"),
    "OTHER_TEXT_CHANGES": ("warning", "new tokens that change text which holds no new word"),
    "CORPUS_CHANGES": ("warning", "pieces of the corpus that change and hold no new word"),
    "NOT_UTF8": ("info", "tokens that are no text of their own"),
    "INCOMPLETE_CHARACTER": ("info", "tokens that begin or end inside a character"),
    "CROSSES_CHARACTER": ("info", "tokens that join a part of a character to another character"),
    "ROUND_TRIP": ("info", "tokens whose text is not encoded as the token"),
    "CORPUS": ("info", "tokens of the corpus"),
}

#: The round-trip classes, as the literature on glitch tokens names them.
ROUND_TRIP_CLASSES = (
    "OK",
    "OK_SPECIAL",
    "UNREACHABLE_SINGLE_TOKEN",
    "UNREACHABLE_MULTI_TOKEN",
    "UNREACHABLE_SPECIAL",
    "UNDECODEABLE",
)

#: Why merging does not reach a token.
MERGING_REASONS = {
    "no parts": "no two tokens make it",
    "parts unreached": "merging reaches no two tokens that make it",
    "blocked": "merges with lower ranks take its bytes apart in another way",
    "missing byte": "one of its bytes is no token",
}

#: How many examples a finding keeps.
MOST_EXAMPLES = 20

#: How many characters of a list of pieces or ids an example shows.
MOST_LIST = 200

Words = Union[str, "os.PathLike[str]", Iterable[str]]


@dataclass(frozen=True)
class Finding:
    """One kind of thing that was found."""

    code: str
    severity: str
    count: int
    message: str
    examples: list[str]


@dataclass
class CheckResult:
    """All findings, and the class of every token."""

    findings: list[Finding]
    #: ranks, extra_ranks, special_tokens, max_id_plus_one, unused_ids.
    sizes: dict[str, int]
    #: The name of the pattern, or the pattern.
    pattern: str
    #: The round-trip class of every id.
    round_trip: dict[int, str] = field(repr=False)
    #: For ids that merging does not reach: why, and the ids at which it stops.
    unreached: dict[int, tuple[str, list[int]]] = field(repr=False)
    #: Ids that are never a piece of their own: "never", or "only inside" a longer piece.
    never_whole: dict[int, str] = field(repr=False)
    corpus: CorpusEffect | None = None
    #: Ids below the largest that stand for nothing: ranges of first and last id.
    unused: list[tuple[int, int]] = field(default_factory=list, repr=False)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def round_trip_counts(self) -> dict[str, int]:
        """How many ids each class has."""
        counts = Counter(self.round_trip.values())
        return {name: counts[name] for name in ROUND_TRIP_CLASSES}

    def finding(self, code: str) -> Finding | None:
        """The finding with this code."""
        return next((finding for finding in self.findings if finding.code == code), None)

    def to_plain(self) -> dict[str, Any]:
        """Everything as plain types, for JSON. Ids that no list names are OK."""
        listed = [name for name in ROUND_TRIP_CLASSES if name != "OK"]
        ids: dict[str, list[int]] = {name: [] for name in listed}
        for number, name in self.round_trip.items():
            if name != "OK":
                ids[name].append(number)
        return {
            "ok": self.ok,
            "pattern": self.pattern,
            "sizes": self.sizes,
            "findings": [asdict(finding) for finding in self.findings],
            "round_trip": {"counts": self.round_trip_counts, "ids": ids},
            "unused_ids": [
                {"first": first, "last": last, "count": last - first + 1}
                for first, last in self.unused
            ],
            "unreached": [
                {"id": number, "why": why, "stops_at": stops}
                for number, (why, stops) in self.unreached.items()
            ],
            "never_whole": [
                {"id": number, "inside_a_longer_piece": how == "only inside"}
                for number, how in self.never_whole.items()
            ],
            "corpus": None if self.corpus is None else asdict(self.corpus),
        }


def check_vocabulary(
    base: RankSource,
    extra: RankSource | Sequence[RankSource] = (),
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | str | os.PathLike[str] | None = None,
    words: Words | None = None,
    corpus: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CheckResult:
    """Looks for what is wrong with a vocabulary, or with what extends it.

    Args:
        base: a rank file, ranks, or an encoding. Rank files may be defective: that is reported.
        extra: what extends it: one source, or several in the order of loading.
        pattern: the name of an encoding, or a regular expression. By default the encoding whose
            published file ``base`` is, or else ``qwen``.
        special_tokens: names and ids, or a file of them; by default those of the named encoding.
        words: the words that were to become tokens: a file, or lines; frequencies are not needed.
        corpus: a text file to compare base and extended vocabulary on.
        progress: called now and then with tokens done and tokens in all.

    Raises:
        ValueError: a pattern, a special token, the corpus or an id of a mapping is not usable;
            ids are 0 to 2**32 - 2.
        TypeError: ``base`` or ``extra`` is no source of ranks.
        OSError: a file cannot be read.

    >>> base = {bytes([byte]): byte for byte in range(256)} | {b"xyz": 256}
    >>> result = check_vocabulary(base, pattern="gpt2", special_tokens={})
    >>> result.ok, result.round_trip_counts["UNDECODEABLE"]
    (True, 128)
    >>> result.finding("UNREACHABLE_BY_MERGING").examples
    ["256 'xyz': no two tokens make it; merging stops at 'x' 'y' 'z'"]
    """
    extras = as_sources(extra)
    files = [_rank_file(source) for source in (*as_sources([base]), *extras)]
    name = pattern or files[0].encoding_name
    if name is None and isinstance(base, bpe_engine.Encoding):
        name = encoding_pattern(base)
        special_tokens = base._special_tokens if special_tokens is None else special_tokens
    name = name or "qwen"
    found = find_pattern(name, {token: number for token, number, _ in files[0].tokens})
    if isinstance(special_tokens, (str, os.PathLike)):
        special_tokens = read_special_tokens(special_tokens)
    specials = dict(found.special_tokens if special_tokens is None else special_tokens)
    check_special_tokens(specials)
    check = _Check(files, found, specials)
    check.files_and_ids()
    check.special_tokens()
    if check.ranks:
        check.tokens(progress)
        if words is not None:
            check.words(words)
        if extras:
            check.extension()
        if corpus is not None:
            check.corpus(corpus)
    return check.result(name)


def _rank_file(source: RankSource) -> RankFile:
    if isinstance(source, (str, os.PathLike)):
        return read_rank_file(source)
    if isinstance(source, bpe_engine.Encoding):
        source = source._mergeable_ranks
    for token, number in source.items():
        check_token(token, number)
    rows = enumerate(source.items(), 1)
    return RankFile("the ranks", [(token, number, line) for line, (token, number) in rows])


class _Check:
    """The state of one check: what is loaded, and what was found."""

    def __init__(self, files: list[RankFile], pattern: Pattern, specials: dict[str, int]) -> None:
        self.files = files
        self.pattern = pattern
        self.specials = specials
        self.found: dict[str, tuple[int, str, list[str]]] = {}
        #: What a loader is left with when the first of two definitions counts.
        self.ranks: dict[bytes, int] = {}
        self.base: dict[bytes, int] = {}
        self.by_id: dict[int, bytes] = {}
        self.extra: dict[bytes, int] = {}
        self.new_words: set[str] | None = None
        self.round_trip: dict[int, str] = {}
        self.unreached: dict[int, tuple[str, list[int]]] = {}
        self.never_whole: dict[int, str] = {}
        self.effect: CorpusEffect | None = None

    def add(self, code: str, examples: Sequence[str], message: str = "", count: int = 0) -> None:
        """A finding, when there are examples; ``count`` when there are more than these."""
        if examples:
            text = message or CODES[code][1]
            self.found[code] = (count or len(examples), text, list(examples[:MOST_EXAMPLES]))

    def result(self, pattern: str) -> CheckResult:
        order = list(CODES)
        findings = [
            Finding(code, CODES[code][0], *self.found[code])
            for code in sorted(self.found, key=order.index)
        ]
        ids = {*self.by_id, *self.specials.values()}
        size = max(ids, default=-1) + 1
        sizes = {
            "ranks": len(self.base),
            "extra_ranks": len(self.extra),
            "special_tokens": len(self.specials),
            "max_id_plus_one": size,
            "unused_ids": size - len(ids),
        }
        return CheckResult(
            findings,
            sizes,
            pattern,
            self.round_trip,
            self.unreached,
            self.never_whole,
            self.effect,
            free_ranges(ids, 0, size),
        )

    def files_and_ids(self) -> None:
        """Lines, duplicates, shadows and gaps."""
        bad: list[str] = []
        tokens: list[str] = []
        ids: list[str] = []
        shadows: list[str] = []
        for file in self.files:
            is_extra = file is not self.files[0]
            bad += [f"{file.name}, line {line}: {reason}" for line, reason in file.bad_lines]
            if self._take_sound(file, is_extra):
                continue
            for token, number, line in file.tokens:
                where = f"{file.name}, line {line}"
                if token in self.ranks:
                    which = shadows if is_extra and token not in self.extra else tokens
                    which.append(f"{where}: {show(token)} has the id {self.ranks[token]} already")
                elif number in self.by_id:
                    other = show(self.by_id[number])
                    ids.append(f"{where}: the id {number} of {show(token)} is that of {other}")
                else:
                    self.ranks[token] = number
                    self.by_id[number] = token
                    (self.extra if is_extra else self.base)[token] = number
        self.add("BAD_LINE", bad)
        self.add("DUPLICATE_TOKEN", tokens)
        self.add("DUPLICATE_ID", ids)
        self.add("SHADOW", shadows)
        missing = [f"0x{byte:02x}" for byte in range(256) if bytes([byte]) not in self.ranks]
        self.add("MISSING_BYTE", missing)
        self._gaps()

    def _take_sound(self, file: RankFile, is_extra: bool) -> bool:
        """Takes the tokens of a file in one go when none of them, and no id, was there before."""
        ids = {token: number for token, number, _ in file.tokens}
        tokens = {number: token for token, number, _ in file.tokens}
        if len(ids) < len(file.tokens) or len(tokens) < len(file.tokens):
            return False
        if not (ids.keys().isdisjoint(self.ranks) and tokens.keys().isdisjoint(self.by_id)):
            return False
        self.ranks.update(ids)
        self.by_id.update(tokens)
        (self.extra if is_extra else self.base).update(ids)
        return True

    def _gaps(self) -> None:
        used = {*self.by_id, *self.specials.values()}
        base_end = max(self.base.values(), default=-1) + 1
        gaps = free_ranges(used, 0, base_end)
        self.add("ID_GAP", _named_ranges(gaps), count=count_ids(gaps))
        extra_end = max(self.extra.values(), default=-1) + 1
        gaps = free_ranges(used, base_end, extra_end)
        self.add("EXTRA_GAP", _named_ranges(gaps), count=count_ids(gaps))
        below = [row for row in self.extra.items() if row[1] < base_end]
        self.add("BELOW_BASE", [f"{number} {show(token)}" for token, number in below])

    def special_tokens(self) -> None:
        """Special tokens that ordinary tokens get in the way of."""
        taken = [
            f"{number}: {name} and {show(self.by_id[number])}"
            for name, number in self.specials.items()
            if number in self.by_id
        ]
        names: dict[int, str] = {}
        for name, number in self.specials.items():
            if number in names:
                taken.append(f"{number}: {names[number]} and {name}")
            names.setdefault(number, name)
        self.add("SPECIAL_ID", taken)
        texts = [
            f"{self.ranks[name.encode()]} {show(name.encode())}; the special has the id {number}"
            for name, number in self.specials.items()
            if name.encode() in self.ranks
        ]
        self.add("SPECIAL_TEXT", texts)

    def usable_specials(self) -> dict[str, int]:
        """Special tokens with an id of their own."""
        usable: dict[int, str] = {}
        for name, number in self.specials.items():
            if name and number not in self.by_id:
                usable.setdefault(number, name)
        return {name: number for number, name in usable.items()}

    def tokens(self, progress: Callable[[int, int], None] | None) -> None:
        """Every token by itself."""
        usable = self.usable_specials()
        audit = _core.audit_tokens(
            self.ranks,
            self.pattern.pat_str,
            list(usable.items()),
            nfc=self.pattern.nfc,
            progress=progress,
        )
        ids = audit["ids"]
        self.round_trip = dict(zip(ids, audit["round_trip"]))
        for name, number in self.specials.items():
            own = usable.get(name) == number
            self.round_trip.setdefault(number, "OK_SPECIAL" if own else "UNREACHABLE_SPECIAL")
        merged = audit["merged"]
        for number, reason in zip(ids, audit["merging"]):
            if reason != "reached":
                self.unreached[number] = (MERGING_REASONS[reason], merged.get(number, []))
        for number, how in zip(ids, audit["whole"]):
            if how in ("never", "only inside"):
                self.never_whole[number] = how
        self._note_unreached()
        self._note_whole()
        self._note_utf8(ids, audit["utf8"], audit["crosses"])
        self._note_round_trip(audit["encoded"])
        self._note_nfc()

    def _named(self, number: int) -> str:
        return f"{number} {show(self.by_id[number])}"

    def _note_unreached(self) -> None:
        examples = []
        for number, (why, stops) in self.unreached.items():
            pieces = " ".join(show(self.by_id[part]) for part in stops)
            stop = f"; merging stops at {pieces}" if pieces else ""
            examples.append(f"{self._named(number)}: {why}{stop}")
        self.add("UNREACHABLE_BY_MERGING", examples)

    def _note_whole(self) -> None:
        splitter = self.pattern.splitter()
        inside = sum(how == "only inside" for how in self.never_whole.values())
        examples = [
            f"{self._named(number)}: cut into {splitter.split(self.by_id[number].decode())}"
            for number in list(self.never_whole)[:MOST_EXAMPLES]
        ]
        message = CODES["NEVER_WHOLE"][1]
        if inside:
            message += f"; at least {inside} of them still come up inside a longer piece"
        self.add("NEVER_WHOLE", examples, message, len(self.never_whole))

    def _note_utf8(self, ids: list[int], utf8: list[str], crosses: list[bool]) -> None:
        kinds: dict[str, list[int]] = {}
        for number, kind in zip(ids, utf8):
            if kind != "valid":
                kinds.setdefault(kind, []).append(number)
        every = [number for numbers in kinds.values() for number in numbers]
        single = sum(len(self.by_id[number]) == 1 for number in every)
        self.add(
            "NOT_UTF8",
            [self._named(number) for number in every],
            f"tokens that are no valid UTF-8: {len(every) / len(ids):.2%} of all, "
            f"{single} of them single bytes",
        )
        nonsense = kinds.pop("nonsense", [])
        longer = [number for number in nonsense if len(self.by_id[number]) > 1]
        self.add("NONSENSE_BYTES", [self._named(number) for number in longer])
        parts = [number for numbers in kinds.values() for number in numbers]
        counts = {kind: len(kinds.get(kind, [])) for kind in ("prefix", "suffix", "middle")}
        self.add(
            "INCOMPLETE_CHARACTER",
            [self._named(number) for number in parts],
            f"tokens that the next or the last token completes: {counts['prefix']} end inside a "
            f"character, {counts['suffix']} begin inside one, {counts['middle']} do both",
        )
        crossing = [number for number, flag in zip(ids, crosses) if flag]
        self.add("CROSSES_CHARACTER", [self._named(number) for number in crossing])

    def _note_round_trip(self, encoded: Mapping[int, list[int]]) -> None:
        lost = [
            number for number, name in self.round_trip.items() if name not in ("OK", "OK_SPECIAL")
        ]
        counts = Counter(self.round_trip.values())
        examples = []
        # Tokens that are text come first: that the others are not is no news.
        for number in sorted(lost, key=lambda number: number not in encoded)[:MOST_EXAMPLES]:
            name = self.round_trip[number]
            if number in encoded:
                examples.append(f"{self._named(number)}: {name}, encoded as {encoded[number]}")
            elif number in self.by_id:
                examples.append(f"{self._named(number)}: {name}")
            else:
                examples.append(f"{number}: {name}")
        message = ", ".join(f"{counts[name]} {name}" for name in ROUND_TRIP_CLASSES)
        self.add("ROUND_TRIP", examples, message, len(lost))

    def _note_nfc(self) -> None:
        """Tokens that normalised text never holds; only where text is normalised."""
        looked_at = self.ranks if self.pattern.nfc else self.extra
        odd = []
        for token, number in looked_at.items():
            if token.isascii():
                continue
            text = token.decode(errors="ignore")
            if text.encode() == token and not unicodedata.is_normalized("NFC", text):
                normal = unicodedata.normalize("NFC", text)
                odd.append(f"{number} {show(token)}: NFC is {show(normal.encode())}")
        self.add("NOT_NFC", odd)

    def words(self, words: Words) -> None:
        """The words that were to become tokens."""
        splitter = self.pattern.splitter()
        odd, split, several = [], [], []
        listed = list(dict.fromkeys(word_lines(words)))
        normal = [unicodedata.normalize("NFC", word) for word in listed]
        merged = _core.merge_bytes(self.ranks, [word.encode() for word in normal])
        self.new_words = set()
        for word, form, ids in zip(listed, normal, merged):
            if word != form:
                odd.append(f"{shorten(word)!r}: NFC is {shorten(form)!r}")
            pieces = splitter.split(form)
            if pieces != [form]:
                split.append(f"{shorten(form)!r} is cut into {shorten(str(pieces), MOST_LIST)}")
            elif form.encode() not in self.ranks:
                parts = "a byte is no token" if ids is None else shorten(str(ids), MOST_LIST)
                several.append(f"{shorten(form)!r}: {parts}")
            if form.encode() not in self.base:
                self.new_words.add(form)
        found = self.found.get("NOT_NFC", (0, "", []))
        self.add("NOT_NFC", odd + found[2], count=found[0] + len(odd))
        self.add("WORD_SPLIT", split)
        self.add("WORD_NOT_ONE_TOKEN", several)

    def extension(self) -> None:
        """New tokens that are on the way to others: text with them changes, too."""
        if self.new_words is None:
            self.new_words = self._guessed_words()
        others = []
        for token, number in self.extra.items():
            text = _text(token)
            # A part of characters is no piece by itself: only merging can give it.
            if text not in self.new_words if text is not None else number not in self.unreached:
                others.append(token)
        before = _core.merge_bytes(self.base, others) if others and self.base else []
        examples = [
            f"text with {show(token)} has {[self.extra[token]]} in place of {ids}"
            for token, ids in zip(others, before)
        ]
        self.add("OTHER_TEXT_CHANGES", examples)

    def _guessed_words(self) -> set[str]:
        """Without a list: the new tokens that are no part of another new token's merge."""
        parts: set[bytes] = set()
        for token in self.extra:
            for cut in range(1, len(token)):
                left, right = token[:cut], token[cut:]
                if left in self.ranks and right in self.ranks:
                    parts.update((left, right))
        texts = (_text(token) for token in self.extra if token not in parts)
        return {text for text in texts if text is not None}

    def corpus(self, path: str | os.PathLike[str]) -> None:
        """Text before and after."""
        base = self.pattern.encoding(self.base, {})
        extended = self.pattern.encoding(self.ranks, {})
        words = self.new_words or set()
        effect = corpus_effect(path, base, extended, words, nfc=self.pattern.nfc)
        self.effect = effect
        self.add(
            "CORPUS",
            [f"{effect.tokens_before} tokens before, {effect.tokens_after} after"],
            f"tokens of the corpus: {effect.changed} of its {effect.pieces} pieces change",
            effect.tokens_after,
        )
        examples = [
            f"{shorten(change.text)!r}: {shorten(str(change.before), MOST_LIST)} becomes "
            f"{shorten(str(change.after), MOST_LIST)}, {change.count} times"
            for change in effect.unexpected
        ]
        self.add("CORPUS_CHANGES", examples)


def _text(token: bytes) -> str | None:
    """The text of a token, or None when it is no valid UTF-8."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None


def _named_ranges(ranges: list[tuple[int, int]]) -> list[str]:
    """Ranges for people.

    >>> _named_ranges([(1, 3), (7, 7)])
    ['1 to 3 (3 ids)', '7']
    """
    return [
        str(first) if first == last else f"{first} to {last} ({last - first + 1} ids)"
        for first, last in ranges
    ]
