"""The second stage of SuperBPE: within a line, merges may cross word boundaries.

Liu et al., "SuperBPE: Space Travel for Language Models" (arXiv 2503.13423): subwords are learned as
usual up to a transition point; after that point, merges cross whitespace, and a token can have
several words, by default up to four.
"""

from __future__ import annotations

import os
from typing import Any

from bpe_engine.common.values import listed
from bpe_engine.texts.access import STANDARD
from bpe_engine.texts.listed import corpus_files
from bpe_engine.texts.reading import read_texts

#: Default maximum number of words (runs without whitespace) in a token.
MAX_WORDS = 4

#: Pattern for the second stage and for the result: lines, and the line ends between them.
LINES = r"[^\r\n]+|[\r\n]+"


def can_be_read_twice(corpus: Any) -> bool:
    """Returns True for a corpus of regular files, without counts, pipes or standard input."""
    if isinstance(corpus, (str, os.PathLike)):
        path = os.fspath(corpus)
        is_regular = os.path.isfile(path) or os.path.isdir(path)
        return path != STANDARD and (is_regular or not os.path.exists(path))
    return isinstance(corpus, (list, tuple)) and all(map(can_be_read_twice, corpus))


def count_lines(corpus: Any, field: str, errors: str) -> int:
    """Counts the nonempty lines of a corpus."""
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else listed(corpus)
    total = 0
    for path in corpus_files(paths):
        for texts in read_texts(path, field, errors):
            total += sum(1 for text in texts for line in text.splitlines() if line.strip())
    return total
