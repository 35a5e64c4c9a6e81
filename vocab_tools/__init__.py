"""Extend a byte-level BPE vocabulary, check one, and know what the change will do.

>>> import vocab_tools
>>> base = {bytes([byte]): byte for byte in range(256)}
>>> words = vocab_tools.read_words(["low\\t5", "lower\\t2"])
>>> result = vocab_tools.learn_merges(base, words, start_id=256)
>>> vocab_tools.check_vocabulary(base, [result.tokens]).ok
True
>>> dict(vocab_tools.embedding_plan(base, result.tokens))
{256: [108, 111], 257: [108, 111, 119], 258: [101, 114], 259: [108, 111, 119, 101, 114]}
"""

from .check import CheckResult, Finding, check_vocabulary
from .corpus import CorpusEffect, corpus_effect
from .embedding import EmbeddingPlan, embedding_plan, extend_embeddings
from .learn import LearnResult, learn_merges
from .ranks import dump_ranks, load_ranks, read_special_tokens
from .report import write_report
from .words import WordListError, read_words

__all__ = [
    "CheckResult",
    "CorpusEffect",
    "EmbeddingPlan",
    "Finding",
    "LearnResult",
    "WordListError",
    "check_vocabulary",
    "corpus_effect",
    "dump_ranks",
    "embedding_plan",
    "extend_embeddings",
    "learn_merges",
    "load_ranks",
    "read_special_tokens",
    "read_words",
    "write_report",
]
