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

# Replaces `typing.TYPE_CHECKING`: importing `typing` is slow, and Ctrl-C is not handled yet.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from .bases import Base, open_base
    from .check import check_vocabulary
    from .check.check_result import CheckResult
    from .check.findings import Finding
    from .check.folder import check_folder
    from .check.folder.folder_result import FolderResult
    from .compare import Comparison, compare_tokenizers, load_subject
    from .convert.conversion import Conversion, NotAlikeError, convert_tokenizer
    from .corpus.effect import CorpusEffect, corpus_effect
    from .corpus.piece_counts import CorpusCounts, count_corpus
    from .embedding.plan import EmbeddingPlan, embedding_plan, read_plan
    from .embedding.tables import extend_embeddings
    from .extend.extension import Extension, extend_vocabulary
    from .extend.learn import learn_merges
    from .extend.learn_result import LearnResult
    from .extend.propose import ExtendOptions, Proposal, propose_words
    from .mapping import VocabularyMap, map_vocabularies
    from .ranks import dump_ranks, load_ranks, read_special_tokens
    from .report import write_report
    from .train.arrow import count_pieces
    from .train.models import TrainedModel, train_model
    from .train.train_result import TrainResult
    from .train.training import TrainOptions, train_vocabulary
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

#: Public names of each module. A module is imported on the first use of one of its names, so the
#: command starts quickly, and handles Ctrl-C from the start.
_NAMES = {
    "bases": ("Base", "open_base"),
    "check": ("check_vocabulary",),
    "check.check_result": ("CheckResult",),
    "check.findings": ("Finding",),
    "check.folder": ("check_folder",),
    "check.folder.folder_result": ("FolderResult",),
    "compare": ("Comparison", "compare_tokenizers", "load_subject"),
    "convert.conversion": ("Conversion", "NotAlikeError", "convert_tokenizer"),
    "corpus.effect": ("CorpusEffect", "corpus_effect"),
    "corpus.piece_counts": ("CorpusCounts", "count_corpus"),
    "embedding.plan": ("EmbeddingPlan", "embedding_plan", "read_plan"),
    "embedding.tables": ("extend_embeddings",),
    "extend.extension": ("Extension", "extend_vocabulary"),
    "extend.learn": ("learn_merges",),
    "extend.learn_result": ("LearnResult",),
    "extend.propose": ("ExtendOptions", "Proposal", "propose_words"),
    "mapping": ("VocabularyMap", "map_vocabularies"),
    "ranks": ("dump_ranks", "load_ranks", "read_special_tokens"),
    "report": ("framed", "write_report"),
    "train.arrow": ("count_pieces",),
    "train.models": ("TrainedModel", "train_model"),
    "train.train_result": ("TrainResult",),
    "train.training": ("TrainOptions", "train_vocabulary"),
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


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
