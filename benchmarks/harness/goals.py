"""What is asked of this project, as ratios within one run; and whether a run shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..peers.engines import OURS

Row = dict[str, Any]
Index = dict[tuple[str, str, str | None, str, str], Row]
HIGHER_IS_BETTER = {"MB/s"}
STREAM_BOUND_MB = 48.0  # as the README has it, under "Memory and caches"


@dataclass(frozen=True)
class Goal:
    """One number that a run must reach.

    ``kind`` is "ratio" (ours against the best correct peer of ``peers``, or of all), "limit" (our
    own value at most ``factor``) or "scale" (our value against our own in the case ``base``).
    """

    title: str
    case: str
    key: str
    factor: float
    corpus: str | None = None
    kind: str = "ratio"
    peers: tuple[str, ...] = ()
    base: str | None = None


def _per_corpus(
    title: str, case: str, key: str, factors: dict[str, float], peers: tuple[str, ...] = ()
) -> list[Goal]:
    return [
        Goal(f"{title}, {corpus}", case, key, factor, corpus, peers=peers)
        for corpus, factor in factors.items()
    ]


_TEXTS = ("en", "code", "messy", "multi", "zh")


def _all(*factors: float) -> dict[str, float]:
    return dict(zip(_TEXTS, factors * len(_TEXTS) if len(factors) == 1 else factors))


GOALS = [
    *_per_corpus("unseen -> numpy", "text-numpy", "first", _all(1.75, 1.75, 1.75, 2.25, 5), ("gigatoken",)),
    *_per_corpus("unseen -> list", "text-list", "first", _all(3, 3, 3, 3.5, 6)),
    *_per_corpus("again -> numpy", "text-numpy", "again", _all(1.1, 1.1, 1.1, 1.25, 1.6), ("gigatoken",)),
    *_per_corpus("unseen -> list, against tiktoken", "text-list", "first", _all(4), ("tiktoken",)),
    *_per_corpus("unseen -> numpy, against tiktoken", "text-numpy", "first", _all(8), ("tiktoken",)),
    *(
        Goal(f"encode, default check, {size}, {when}", "prompts-checked", f"{size}, {when}", factor, "en")
        for size, factor in (("11 B", 1), ("100 B", 1.5), ("1 KB", 3), ("8 KB", 3))
        for when in ("first", "again")
    ),
    Goal("4 KB documents -> lists, 1 thread", "batch-list-1", "first", 3.5, "en"),
    Goal("count only, en, again", "text-count", "again", 1.2, "en"),
    Goal("decode from a list, en", "decode-list", "text", 4, "en"),
    Goal("get_encoding + first encode", "load", "get_encoding + first encode", 10),
    Goal("get_encoding + first encode, ms", "load", "get_encoding + first encode", 20, kind="limit"),
    Goal("resident memory, loaded", "memory", "loaded", 1.2),
    Goal("resident memory, loaded, against gigatoken", "memory", "loaded", 1.2, peers=("gigatoken",)),
    Goal("resident memory, at the end", "memory", "at the end", 2),
    Goal("resident memory, at the end, against gigatoken", "memory", "at the end", 2, peers=("gigatoken",)),
    *(
        Goal(f"{title} -> {kind}", f"piece-{kind}-{name}", "first", factor, peers=("gigatoken", "splintr"))
        for kind in ("list", "numpy")
        for title, name, factor in (
            ("'a' * 1e6", "a", 20), ("' ' * 1e6", "spaces", 20),
            ("1e5 random letters", "random-letters-1e5", 1.3), ("1e5 random Han", "random-Han-1e5", 3),
        )
    ),
    *(
        Goal(f"chosen words / {other}, {when}, attack {number}", f"collision-{number}",
             f"chosen / {other}, {when}", 1.5, "en", kind="limit")
        for number in (1, 2, 3, 4)
        for other in ("ordinary", "random words")
        for when in ("first", "again")
    ),
    Goal("5 million distinct words: MB grown", "stream", "memory grown", STREAM_BOUND_MB, kind="limit"),
    *(
        Goal(f"2 threads / 1 thread, documents -> {result}, {when}", f"batch-{kind}-2", when, factor,
             "en", kind="scale", base=f"batch-{kind}-1")
        for kind, result, factor in (("list", "lists", 1.7), ("numpy", "numpy", 1.85))
        for when in ("first", "again")
    ),
    *(
        Goal(f"8 MB / 1 MB of {name}", f"growth-{name}", "large / small", 10, corpus, kind="limit")
        for name, corpus in (
            ("text", "en"), ("a", None), ("spaces", None), ("newlines", None), ("的", None),
            ("ab", None), ("random-letters", None), ("random-Han", None),
        )
    ),
]  # fmt: skip


def evaluate(rows: Iterable[Row], clock: str = "wall") -> list[dict[str, Any]]:
    """Each goal for each encoding of the rows that measured it: what was reached, and if it is met.

    A goal is not met by wrong ids, however fast. Threads can be compared by the wall clock only.
    """
    index: Index = {
        (row["case"], row["key"], row["corpus"], row["encoding"], row["engine"]): row
        for row in rows
    }
    encodings = list(dict.fromkeys(key[3] for key in index))
    found = []
    for encoding in encodings:
        for goal in GOALS:
            if goal.kind == "scale" and clock != "wall":
                continue
            reached = _reached(goal, encoding, index)
            if reached is not None:
                found.append({"encoding": encoding, "goal": goal.title, **reached})
    return found


def _reached(goal: Goal, encoding: str, index: Index) -> dict[str, Any] | None:
    ours = index.get((goal.case, goal.key, goal.corpus, encoding, OURS))
    if ours is None:
        return None
    exact = ours["correct"] is not False
    if goal.kind == "limit":
        return {
            "asked": f"<= {goal.factor:g}", "reached": ours["value"], "against": "itself",
            "met": exact and ours["value"] <= goal.factor,
        }  # fmt: skip
    if goal.kind == "scale":
        base = index.get((goal.base or "", goal.key, goal.corpus, encoding, OURS))
        rivals = [base] if base else []
    else:
        rivals = [
            row
            for (case, key, corpus, name, engine), row in index.items()
            if (case, key, corpus, name) == (goal.case, goal.key, goal.corpus, encoding)
            and engine != OURS
            and row["correct"] is not False
            and (not goal.peers or engine in goal.peers)
        ]
    if not rivals:
        return None
    higher = ours["unit"] in HIGHER_IS_BETTER
    best = (max if higher else min)(rivals, key=lambda row: row["value"])
    top, bottom = (ours["value"], best["value"]) if higher else (best["value"], ours["value"])
    ratio = top / bottom if bottom else float("inf")
    return {
        "asked": f">= {goal.factor:g}x",
        "reached": ratio,
        "against": best["engine"] if goal.kind == "ratio" else "one thread",
        "met": exact and ratio >= goal.factor,
    }


def report(found: list[dict[str, Any]]) -> str:
    """The goals as lines of text, and how many are met."""
    lines = [
        f"{'met ' if goal['met'] else 'OPEN'}  {goal['encoding']:12} {goal['goal']:52} "
        f"asked {goal['asked']:>8}  reached {goal['reached']:8.2f}  against {goal['against']}"
        for goal in found
    ]
    met = sum(goal["met"] for goal in found)
    return "\n".join([*lines, f"{met} of {len(found)} goals met"])
