"""Declares the benchmark cases: the measure, the text and the operation of each case."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

PROMPTS = {"11 B": 11, "100 B": 100, "1 KB": 1024, "8 KB": 8192, "100 KB": 102_400}
EVERY, ONE, NONE = "every corpus", "one corpus", "no corpus"


@dataclass(frozen=True)
class Case:
    """One case. ``measure`` names a function of measures.py, ``inputs`` a builder of inputs.py.

    ``corpora`` says whether the case runs on every corpus, on the first existing one of ``prefer``,
    or on none. ``rounds`` limits the rounds of a long case. ``quick`` cases run with ``--quick``,
    on one corpus if ``quick_corpora`` says so.
    """

    name: str
    group: str
    title: str
    measure: str
    operation: str = "encode_list"
    inputs: str = "halves"
    input_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    corpora: str = EVERY
    prefer: tuple[str, ...] = ("en",)
    threads: int = 1
    rounds: int | None = None
    quick: bool = True
    quick_corpora: str = EVERY


def _unseen() -> list[Case]:
    kinds = {
        "numpy": ("encode_numpy", "numpy"),
        "list": ("encode_list", "list"),
        "count": ("count", "count only"),
    }
    warm = [
        Case(
            f"text-{name}", "text", f"text -> {title}", "throughput", operation,
            quick_corpora=ONE if name == "count" else EVERY,
        )
        for name, (operation, title) in kinds.items()
    ]  # fmt: skip
    checked = Case(
        "text-checked", "text", "text -> list, default special check", "throughput", "encode",
        quick=False,
    )  # fmt: skip
    fresh = [
        Case(
            f"fresh-{name}", "fresh", f"fresh process, text -> {title}", "throughput", operation,
            options={"warm": False, "again": False}, quick=False,
        )
        for name, (operation, title) in kinds.items()
        if name != "count"
    ]  # fmt: skip
    return [*warm, checked, *fresh]


def _prompts() -> list[Case]:
    return [
        Case(
            f"prompts-{name}", "prompts", f"prompt, {title}", "calls", operation, "prompts",
            {"sizes": PROMPTS}, corpora=ONE if name == "checked" else EVERY, quick=name == "checked",
        )
        for name, operation, title in (
            ("checked", "encode_short", "encode with the default special check"),
            ("ordinary", "encode_list_short", "encode_ordinary"),
        )
    ]  # fmt: skip


def _short() -> list[Case]:
    return [
        Case(
            f"short-{kind}", "short", f"texts of 36 bytes -> {kind}", "calls", operation, "prompts",
            {"sizes": {"36 B": 36}}, corpora=ONE, quick=False,
        )
        for kind, operation in (("list", "encode_list_short"), ("numpy", "encode_numpy"))
    ]  # fmt: skip


def _counts() -> list[Case]:
    return [
        Case(
            f"counts-{threads}", "counts", f"batch -> counts, {threads} thread{'s' * (threads > 1)}",
            "counting", "batch_count", "prompts", {"sizes": {"11 B": 11, "100 B": 100}},
            corpora=ONE, threads=threads, quick=False,
        )
        for threads in (1, 2)
    ]  # fmt: skip


#: Document sizes in bytes, with their names in titles; arrays are made only for the first size.
DOCUMENTS = {4096: "4 KB", 20_000: "20 KB", 100_000: "100 KB"}


def _batches() -> list[Case]:
    kinds = [(size, "list") for size in DOCUMENTS] + [(4096, "numpy")]
    return [
        Case(
            f"batch-{kind}-{threads}" + (f"-{size // 1000}k" if size > 4096 else ""), "batch",
            f"{DOCUMENTS[size]} documents -> {'lists' if kind == 'list' else 'numpy'}, {threads} thread{'s' * (threads > 1)}",
            "throughput", f"batch_{kind}", "documents", {"size": size}, corpora=ONE,
            threads=threads,
        )
        for size, kind in kinds
        for threads in (1, 2)
    ] + [
        Case(
            f"document-{threads}", "document",
            f"one document -> numpy, {threads} thread{'s' * (threads > 1)}",
            "throughput", "numpy_threads", threads=threads, quick=False,
        )
        for threads in (1, 2)
    ]  # fmt: skip


def _decoding() -> list[Case]:
    return [
        Case(f"decode-{kind}", "decode", f"decode from {kind}", "decoding", f"decode_{kind}",
             quick=kind == "list", quick_corpora=ONE)
        for kind in ("list", "numpy")
    ]  # fmt: skip


_PIECES = {
    "a": ("'a' * 1e6", 10**6), "spaces": ("' ' * 1e6", 10**6),
    "spaces, then x": ("' ' * 1e6 + 'x'", 10**6), "newlines": ("'\\n' * 1e6", 10**6),
    "marks": ("U+2581 * 1e6", 10**6), "random digits": ("1e6 random digits", 10**6),
    "的": ("'的' * 1e6", 10**6), "ab": ("'ab' * 5e5", 10**6), "dashes": ("'-' * 1e6", 10**6),
    "a bracket and dashes": ("'(' + '-' * 1e6", 10**6),
    "stars among dashes": ("('-' * 499 + '*') * 2e3", 10**6),
    "random letters": ("1e6 random letters", 10**6),
    "random letters, 1e5": ("1e5 random letters", 10**5),
    "random Han, 1e5": ("1e5 random Han characters", 10**5),
    "random Han": ("1e6 random Han characters", 10**6),
}  # fmt: skip
_QUICK_PIECES = ("a", "spaces", "random letters, 1e5", "random Han, 1e5")


def _hostile() -> list[Case]:
    return [
        Case(
            f"piece-{kind}-{name.replace(' ', '-').replace(',', '')}", "pieces",
            f"{title} -> {kind}", "milliseconds", f"encode_{kind}", "piece",
            {"name": name.partition(", 1e")[0], "length": length}, corpora=NONE,
            quick=kind == "list" and name in _QUICK_PIECES,
        )
        for kind in ("list", "numpy")
        for name, (title, length) in _PIECES.items()
    ]  # fmt: skip


def _growth() -> list[Case]:
    pieces = ("a", "spaces", "newlines", "的", "ab", "random letters", "random Han")
    return [
        Case(
            f"growth-{(name or 'text').replace(' ', '-')}", "growth",
            f"1 MB and 8 MB of {name or 'text'}", "growth", "encode_list", "growth",
            {"name": name, "unit": 10**6}, corpora=ONE if name is None else NONE,
            rounds=3, quick=False,
        )
        for name in (None, *pieces)
    ]  # fmt: skip


def _columns() -> list[Case]:
    return [
        Case(
            "padded", "padded", "10,000 texts of 60 B -> padded matrix and mask", "throughput", "padded",
            "column", {"size": 60, "count": 10_000}, corpora=ONE, threads=2, quick=False,
        ),
        *(
            Case(
                f"column-{threads}", "column",
                f"100,000 texts of 200 B, an Arrow column -> flat array, {threads} thread{'s' * (threads > 1)}",
                "throughput", "column", "column", {"size": 200, "count": 100_000}, corpora=ONE,
                threads=threads, quick=False,
            )
            for threads in (1, 2)
        ),
    ]  # fmt: skip


_HELD = (
    "encode_list", "encode_numpy", "count", "truncate to half", "truncate left to half",
    "truncate to 10", "truncate left to 10", "chunk by 1000", "encode_with_offsets", "split",
    "encode_with_unstable",
)  # fmt: skip


def _peaks() -> list[Case]:
    return [
        Case(
            f"peak-{operation.replace(' ', '-')}", "peaks", f"memory of {operation}, 95 MB", "held",
            operation, "repeated", {"megabytes": 95}, corpora=ONE, quick=False,
        )
        for operation in _HELD
    ]  # fmt: skip


def _vocabularies() -> list[Case]:
    build = ("cl100k_base", "o200k_base", "qwen", "hex", "decimal", "hex, 256 bytes before")
    train = {"english": ("en", 10), "chinese": ("zh", 10), "mixed": ("mixed", 50)}
    grow = {f"growth-{size}": ("mixed", size) for size in (10, 25, 50, 100, 200)}
    grow |= {f"english-{size}": ("en", size) for size in (100, 1000)}
    models = itertools.product(
        ("unigram", "wordpiece", "bpe"), ("en", "mixed"), (1, 4, 10, 100), (8, 32), (1, 2)
    )
    return [
        *(
            Case(
                f"build-{name.replace(', ', '-').replace(' ', '-')}", "build", f"ranks of {name}", "building",
                "build", "nothing", options={"vocabulary": name}, corpora=NONE, quick=False,
            )
            for name in build
        ),
        *(
            Case(
                f"train-{name}", "training", f"32,000 tokens, {size} MB of {text} text", "training",
                inputs="nothing", options={"text": text, "megabytes": size, "size": 32_000},
                corpora=NONE, threads=2, rounds=2, quick=False,
            )
            for name, (text, size) in (train | grow).items()
        ),
        *(
            Case(
                f"model-{model}-{text}-{size}-{tokens}k-{threads}", "models",
                f"{model}, {tokens},000 tokens, {size} MB of {text} text, {threads} thread{'s' * (threads > 1)}",
                "models", inputs="nothing", corpora=NONE, threads=threads, rounds=1, quick=False,
                options={"model": model, "text": text, "megabytes": size, "size": tokens * 1000},
            )
            for model, text, size, tokens, threads in models
        ),
    ]  # fmt: skip


#: Functions of sides.py, and the number of rounds that one process runs per row.
_SIDES = {
    "prompts": 21, "masks": 5, "rollouts": 7, "templates": 5, "calls": 15, "streams": 5, "truncation": 3,
    "conversations": 3, "corpus": 5,
}  # fmt: skip


def _sides() -> list[Case]:
    return [
        Case(
            f"sides-{name}", "sides", name, "sides", inputs="nothing", corpora=NONE, rounds=1,
            options={"rows": name, "rounds": rounds}, quick=False,
        )
        for name, rounds in _SIDES.items()
    ]  # fmt: skip


CASES = {
    case.name: case
    for case in (
        *_unseen(),
        *_prompts(),
        *_short(),
        *_counts(),
        *_batches(),
        *_decoding(),
        Case("load", "load", "load in a fresh process", "loading", "encode_short", "hello", corpora=NONE),
        Case("memory", "memory", "resident memory", "memory", "encode_list_short", "nothing", corpora=NONE,
             rounds=3),
        *_hostile(),
        Case(
            "stream", "stream", "5 million distinct words", "stream", "encode_list", "stream",
            {"total": 5_000_000, "chunk": 50_000}, corpora=NONE, rounds=1, quick=False,
        ),
        *_growth(),
        *_columns(),
        *_peaks(),
        *_vocabularies(),
        *_sides(),
    )
}  # fmt: skip


#: Groups that run only if a pattern names them.
BY_NAME = (
    "padded", "column", "peaks", "build", "training", "models", "sides"
)  # fmt: skip


def chosen_cases(patterns: list[str] | None, quick: bool) -> list[Case]:
    """Returns the cases whose name or group matches a pattern, in table order.

    Without patterns, returns the quick cases, or all except :data:`BY_NAME`. Raises ValueError for
    a pattern that matches no case.
    """
    if not patterns:
        return [
            case
            for case in CASES.values()
            if case.quick or (not quick and case.group not in BY_NAME)
        ]
    chosen = set()
    for pattern in patterns:
        found = [
            case.name
            for case in CASES.values()
            if fnmatch(case.name, pattern) or fnmatch(case.group, pattern)
        ]
        if not found:
            groups = dict.fromkeys(case.group for case in CASES.values())
            raise ValueError(
                f"No case fits {pattern!r}; groups: {', '.join(groups)}; --list shows every case."
            )
        chosen.update(found)
    return [case for case in CASES.values() if case.name in chosen]
