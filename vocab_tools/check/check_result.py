"""The result of a check: its findings, and the class of every token."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from ..bases import Recognized
from ..corpus.effect import CorpusEffect
from .findings import Finding, WithFindings

#: Round-trip classes, named as in the literature on glitch tokens (Land and Bartolo, "Fishing for
#: Magikarp", 2024). A token has the first class that fits: its text encodes to the token (OK,
#: OK_SPECIAL); its text looks like a special token, ``<...>`` or ``[...]`` (UNREACHABLE_SPECIAL);
#: its bytes are not valid UTF-8 (UNDECODEABLE); its text encodes to one other token
#: (UNREACHABLE_SINGLE_TOKEN), or to several tokens (UNREACHABLE_MULTI_TOKEN).
ROUND_TRIP_CLASSES = (
    "OK",
    "OK_SPECIAL",
    "UNREACHABLE_SINGLE_TOKEN",
    "UNREACHABLE_MULTI_TOKEN",
    "UNREACHABLE_SPECIAL",
    "UNDECODEABLE",
)


@dataclass(repr=False)
class CheckResult(WithFindings):
    """All findings, and the class of every token."""

    findings: list[Finding]
    #: Sizes by name: ranks, extra_ranks, special_tokens, max_id_plus_one, unused_ids.
    sizes: dict[str, int]
    #: Name of the pattern; the regular expression if the pattern has no name.
    pattern: str
    #: Round-trip class of every id.
    round_trip: dict[int, str]
    #: For each id that merging does not reach, the reason, and the ids at which merging stops.
    unreached: dict[int, tuple[str, list[int]]]
    #: For each id that is never a whole piece: "never", or "only inside" longer pieces.
    never_whole: dict[int, str]
    corpus: CorpusEffect | None = None
    #: Unused ids below the largest id, as ranges of first and last id.
    unused: list[tuple[int, int]] = field(default_factory=list)
    #: Published vocabulary that the base equals or extends.
    recognized: Recognized | None = None
    #: Token of every id.
    tokens: dict[int, bytes] = field(default_factory=dict)

    @property
    def round_trip_counts(self) -> dict[str, int]:
        """Number of ids in each class."""
        counts = Counter(self.round_trip.values())
        return {name: counts[name] for name in ROUND_TRIP_CLASSES}

    def to_plain(self) -> dict[str, Any]:
        """Returns the whole result as plain types, for JSON. Ids that no list contains are OK."""
        listed = [name for name in ROUND_TRIP_CLASSES if name != "OK"]
        ids: dict[str, list[int]] = {name: [] for name in listed}
        for number, name in self.round_trip.items():
            if name != "OK":
                ids[name].append(number)
        return {
            "ok": self.ok,
            "pattern": self.pattern,
            "recognized": None if self.recognized is None else str(self.recognized),
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
            "corpus": None if self.corpus is None else self.corpus.to_plain(),
        }
