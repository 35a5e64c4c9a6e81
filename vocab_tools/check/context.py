"""The input of a check's rules: the vocabulary, and facts about its tokens."""

from __future__ import annotations

import dataclasses
import functools
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from bpe_engine import vocabulary

from ..corpus.effect import CorpusEffect, corpus_effect
from ..patterns import Pattern
from ..ranks import RankFile, free_ranges
from ..text import show, text_of

#: Inputs that a rule may need.
Need = Literal["tokens", "extra", "words", "corpus"]

#: Reasons why merging does not reach a token.
MERGING_REASONS = {
    "no parts": "no two tokens make it",
    "parts unreached": "merging reaches no two tokens that make it",
    "blocked": "merges with lower ranks take its bytes apart in another way",
    "missing byte": "one of its bytes is not a token",
}


@dataclass
class Loaded:
    """The tokens that a loader reads if the first of two definitions wins."""

    ranks: dict[bytes, int] = dataclasses.field(default_factory=dict)
    by_id: dict[int, bytes] = dataclasses.field(default_factory=dict)
    base: dict[bytes, int] = dataclasses.field(default_factory=dict)
    extra: dict[bytes, int] = dataclasses.field(default_factory=dict)
    #: Descriptions of lines that repeat a token or an id, with the earlier definition.
    repeated_tokens: list[str] = dataclasses.field(default_factory=list)
    repeated_ids: list[str] = dataclasses.field(default_factory=list)
    shadows: list[str] = dataclasses.field(default_factory=list)

    def add(self, file: RankFile, is_extra: bool) -> None:
        """Adds the tokens of a file."""
        ids = {token: number for token, number, _ in file.tokens}
        tokens = {number: token for token, number, _ in file.tokens}
        is_sound = len(ids) == len(tokens) == len(file.tokens)
        if is_sound and ids.keys().isdisjoint(self.ranks) and tokens.keys().isdisjoint(self.by_id):
            self.ranks.update(ids)
            self.by_id.update(tokens)
            (self.extra if is_extra else self.base).update(ids)
            return
        for token, number, line in file.tokens:
            where = f"{file.name}, line {line}"
            if token in self.ranks:
                is_shadow = is_extra and token not in self.extra
                listed = self.shadows if is_shadow else self.repeated_tokens
                listed.append(f"{where}: {show(token)} has the id {self.ranks[token]} already")
            elif number in self.by_id:
                other = show(self.by_id[number])
                text = f"{where}: the id {number} of {show(token)} is that of {other}"
                self.repeated_ids.append(text)
            else:
                self.ranks[token] = number
                self.by_id[number] = token
                (self.extra if is_extra else self.base)[token] = number


@dataclass(frozen=True)
class ListedWord:
    """A word that should become a token."""

    #: The word as listed; the word in normalization form C.
    listed: str
    word: str
    #: Pieces into which the pattern cuts the word.
    pieces: list[str]
    #: Ids at which merging stops; None if a byte has no token.
    ids: list[int] | None


@dataclass(frozen=True)
class TokenAudit:
    """Facts about every token, by id."""

    #: Ids in ascending order, without special tokens.
    ids: list[int]
    #: "valid", "prefix", "suffix", "middle" or "nonsense"; in the order of `ids`.
    utf8: list[str]
    #: True for a token that spans several characters and cuts one of them; in the order of `ids`.
    crosses: list[bool]
    #: For each id that merging does not reach, the reason, and the ids at which merging stops.
    unreached: dict[int, tuple[str, list[int]]]
    #: For each id that is never a whole piece: "never", or "only inside" longer pieces.
    never_whole: dict[int, str]
    #: Round-trip class of every id, special tokens included.
    round_trip: dict[int, str]
    #: For each token whose text encodes to different ids: these ids.
    encoded: Mapping[int, list[int]]


@dataclass
class Context:
    """All inputs of the rules. Expensive parts are computed on first use."""

    files: list[RankFile]
    loaded: Loaded
    pattern: Pattern
    special_tokens: dict[str, int]
    #: Words that should become tokens, as listed; None without a list.
    listed: list[str] | None = None
    corpus_paths: list[str | os.PathLike[str]] = dataclasses.field(default_factory=list)
    #: Text field of JSON lines and Parquet in the corpus.
    field: str = "text"
    errors: str = "strict"
    progress: Callable[[int, int], None] | None = None

    @property
    def has(self) -> frozenset[Need]:
        """Names of the given inputs."""
        given: list[Need] = []
        if self.loaded.ranks:
            given.append("tokens")
            given += ["extra"] if len(self.files) > 1 else []
            given += ["words"] if self.listed is not None else []
            given += ["corpus"] if self.corpus_paths else []
        return frozenset(given)

    def named(self, number: int) -> str:
        """Returns an id and its token, for messages."""
        return f"{number} {show(self.loaded.by_id[number])}"

    def new_first(self, numbers: Iterable[int]) -> tuple[list[int], int | None]:
        """Returns the ids, new tokens first, and the number of new tokens, which is None without an
        extension."""
        listed = list(numbers)
        if "extra" not in self.has:
            return listed, None
        new = [number for number in listed if number in self.new_ids]
        return [*new, *(number for number in listed if number not in self.new_ids)], len(new)

    @functools.cached_property
    def new_ids(self) -> frozenset[int]:
        """Ids of the extension's tokens."""
        return frozenset(self.loaded.extra.values())

    @functools.cached_property
    def splitter(self) -> Callable[[str], list[str]]:
        """A function that cuts text into pieces."""
        return self.pattern.splitter().split

    @functools.cached_property
    def used_ids(self) -> set[int]:
        """Ids of tokens and special tokens."""
        return {*self.loaded.by_id, *self.special_tokens.values()}

    @functools.cached_property
    def unused(self) -> list[tuple[int, int]]:
        """Unused ids below the largest id, as ranges of first and last id."""
        return free_ranges(self.used_ids, 0, max(self.used_ids, default=-1) + 1)

    @functools.cached_property
    def audit(self) -> TokenAudit:
        """Facts about every token."""
        usable = self._usable_specials()
        columns = vocabulary.audit_tokens(
            self.loaded.ranks,
            self.pattern.pat_str,
            list(usable.items()),
            nfc=self.pattern.nfc,
            progress=self.progress,
        )
        ids, merged = columns["ids"], columns["merged"]
        round_trip = dict(zip(ids, columns["round_trip"]))
        for name, number in self.special_tokens.items():
            own = usable.get(name) == number
            round_trip.setdefault(number, "OK_SPECIAL" if own else "UNREACHABLE_SPECIAL")
        unreached = {
            number: (MERGING_REASONS[reason], merged.get(number, []))
            for number, reason in zip(ids, columns["merging"])
            if reason != "reached"
        }
        never_whole = {
            number: how
            for number, how in zip(ids, columns["whole"])
            if how in ("never", "only inside")
        }
        return TokenAudit(
            ids,
            columns["utf8"],
            columns["crosses"],
            unreached,
            never_whole,
            round_trip,
            columns["encoded"],
        )

    @functools.cached_property
    def ids_by_utf8(self) -> dict[str, list[int]]:
        """Ids of tokens that are not valid UTF-8, by the kind of their bytes."""
        kinds: dict[str, list[int]] = {}
        for number, kind in zip(self.audit.ids, self.audit.utf8):
            if kind != "valid":
                kinds.setdefault(kind, []).append(number)
        return kinds

    def _usable_specials(self) -> dict[str, int]:
        """Returns the special tokens whose ids no other token uses."""
        usable: dict[int, str] = {}
        for name, number in self.special_tokens.items():
            if name and number not in self.loaded.by_id:
                usable.setdefault(number, name)
        return {name: number for number, name in usable.items()}

    @functools.cached_property
    def words(self) -> list[ListedWord]:
        """Words that should become tokens."""
        listed = list(dict.fromkeys(self.listed or []))
        normal = [unicodedata.normalize("NFC", word) for word in listed]
        encoded = [word.encode() for word in normal]
        merged = vocabulary.merge_bytes(self.loaded.ranks, encoded)
        return [
            ListedWord(word, form, self.splitter(form), ids)
            for word, form, ids in zip(listed, normal, merged)
        ]

    @functools.cached_property
    def new_words(self) -> set[str]:
        """Words that should become tokens and are not tokens of the base."""
        if self.listed is not None:
            base = self.loaded.base
            return {word.word for word in self.words if word.word.encode() not in base}
        return self._guessed_words() if self.loaded.extra else set()

    def _guessed_words(self) -> set[str]:
        """Returns the new tokens that are not part of another new token's merge."""
        parts: set[bytes] = set()
        ranks = self.loaded.ranks
        for token in self.loaded.extra:
            for cut in range(1, len(token)):
                left, right = token[:cut], token[cut:]
                if left in ranks and right in ranks:
                    parts.update((left, right))
        texts = (text_of(token) for token in self.loaded.extra if token not in parts)
        return {text for text in texts if text is not None}

    @functools.cached_property
    def corpus(self) -> CorpusEffect | None:
        """The effect of the extension on the corpus; None without a corpus."""
        if "corpus" not in self.has:
            return None
        base = self.pattern.encoding(self.loaded.base, {})
        extended = self.pattern.encoding(self.loaded.ranks, {})
        return corpus_effect(
            self.corpus_paths,
            base,
            extended,
            self.new_words,
            nfc=self.pattern.nfc,
            field=self.field,
            errors=self.errors,
        )
