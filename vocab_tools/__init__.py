"""Extends, checks, converts, trains and compares byte-level BPE vocabularies.

>>> import vocab_tools
>>> base = {bytes([byte]): byte for byte in range(256)}
>>> words = vocab_tools.read_words(["low\\t5", "lower\\t2"])
>>> result = vocab_tools.learn_merges(base, words, start_id=256)
>>> vocab_tools.check_vocabulary(base, [result.tokens]).ok
True
>>> dict(vocab_tools.embedding_plan(base, result.tokens))
{256: [108, 111], 257: [108, 111, 119], 258: [101, 114], 259: [108, 111, 119, 101, 114]}
"""

from __future__ import annotations

from .brief import set_reports

# As in `typing`, which would take a while to import: until the command sees to Ctrl-C there should
# be as little to interrupt as possible.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from .bases import Base, open_base
    from .check import CheckResult, Finding, check_vocabulary
    from .check.folder import FolderResult, check_folder
    from .compare import Comparison, compare_tokenizers, load_subject
    from .convert import Conversion, NotAlikeError, convert_tokenizer
    from .corpus import CorpusEffect, corpus_effect
    from .embedding import EmbeddingPlan, embedding_plan, extend_embeddings, read_plan
    from .extend import LearnResult, learn_merges
    from .extend.extension import Extension, extend_vocabulary
    from .extend.propose import ExtendOptions, Proposal, propose_words
    from .mapping import VocabularyMap, map_vocabularies
    from .ranks import dump_ranks, load_ranks, read_special_tokens
    from .report import write_report
    from .train import (
        CorpusCounts,
        TrainedModel,
        TrainOptions,
        TrainResult,
        count_corpus,
        count_pieces,
        train_model,
        train_vocabulary,
    )
    from .words import WordListError, read_words

__all__ = [
    "Base",
    "CheckResult",
    "Comparison",
    "Conversion",
    "CorpusCounts",
    "CorpusEffect",
    "EmbeddingPlan",
    "ExtendOptions",
    "Extension",
    "Finding",
    "FolderResult",
    "LearnResult",
    "NotAlikeError",
    "Proposal",
    "TrainOptions",
    "TrainResult",
    "TrainedModel",
    "VocabularyMap",
    "WordListError",
    "check_folder",
    "check_vocabulary",
    "compare_tokenizers",
    "convert_tokenizer",
    "corpus_effect",
    "count_corpus",
    "count_pieces",
    "dump_ranks",
    "embedding_plan",
    "extend_embeddings",
    "extend_vocabulary",
    "learn_merges",
    "load_ranks",
    "load_subject",
    "map_vocabularies",
    "open_base",
    "propose_words",
    "read_plan",
    "read_special_tokens",
    "read_words",
    "train_model",
    "train_vocabulary",
    "write_report",
]

#: The public names of each module. A module is imported when a name of it is first used, so that
#: the command starts at once and answers to Ctrl-C from its first moment on.
_NAMES = {
    "bases": ("Base", "open_base"),
    "check": ("CheckResult", "Finding", "check_vocabulary"),
    "check.folder": ("FolderResult", "check_folder"),
    "compare": ("Comparison", "compare_tokenizers", "load_subject"),
    "convert": ("Conversion", "NotAlikeError", "convert_tokenizer"),
    "corpus": ("CorpusEffect", "corpus_effect"),
    "embedding": ("EmbeddingPlan", "embedding_plan", "extend_embeddings", "read_plan"),
    "extend": ("LearnResult", "learn_merges"),
    "extend.extension": ("Extension", "extend_vocabulary"),
    "extend.propose": ("ExtendOptions", "Proposal", "propose_words"),
    "mapping": ("VocabularyMap", "map_vocabularies"),
    "ranks": ("dump_ranks", "load_ranks", "read_special_tokens"),
    "report": ("write_report",),
    "train": (
        "CorpusCounts",
        "TrainOptions",
        "TrainResult",
        "TrainedModel",
        "count_corpus",
        "count_pieces",
        "train_model",
        "train_vocabulary",
    ),
    "words": ("WordListError", "read_words"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def _framed(result: object) -> str | None:
    import importlib

    framed: str | None = importlib.import_module(".report", __name__).framed(result)
    return framed


def _write_report(path: Any, result: Any) -> None:
    __getattr__("write_report")(path, result)


set_reports(_framed, _write_report)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
