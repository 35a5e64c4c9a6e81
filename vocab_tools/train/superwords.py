"""The second stage of SuperBPE: merges cross the borders of words, inside a line.

Liu et al., "SuperBPE: Space Travel for Language Models" (arXiv 2503.13423): subwords are learned as
usual up to a transition point; from there on white space cuts no more, and a token may have several
words, four at most.
"""

from __future__ import annotations

import os
from typing import Any

from ..corpus.reading import STANDARD, corpus_files, read_texts

#: The most words of a superword: runs of characters that are no white space.
MAX_WORDS = 4

#: What cuts text in the second stage, and whenever the result encodes: lines, and the line ends
#: between them.
LINES = r"[^\r\n]+|[\r\n]+"


def can_be_read_twice(corpus: Any) -> bool:
    """Whether a corpus is of regular files: no counts, no pipe, not standard input."""
    if isinstance(corpus, (str, os.PathLike)):
        path = os.fspath(corpus)
        return path != STANDARD and (not os.path.exists(path) or _is_regular(path))
    return isinstance(corpus, (list, tuple)) and all(map(can_be_read_twice, corpus))


def _is_regular(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path)


def count_lines(corpus: Any, field: str, errors: str) -> int:
    """The lines of a corpus that are not empty."""
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    total = 0
    for path in corpus_files(paths):
        for texts in read_texts(path, field, errors):
            total += sum(1 for text in texts for line in text.splitlines() if line.strip())
    return total
