"""The kinds of text files, by file name suffix."""

from __future__ import annotations

import os
import re

from ..common.system import is_uri

__all__ = ["KINDS", "PACKED", "kind_of"]

KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".txt": "text",
    ".md": "text",
}

#: Suffix of a compressed file.
PACKED = re.compile(r"\.(gz|zst|zstd)$", re.IGNORECASE)


def kind_of(path: str) -> tuple[str, str]:
    """Returns the suffix of a name before the compression suffix, and the kind of file.

    >>> kind_of("a.JSONL.gz"), kind_of("b.py"), kind_of("s3://c/d.csv?version=1")
    (('.jsonl', 'jsonl'), ('.py', 'text'), ('.csv', 'csv'))
    """
    whole = path.split("?")[0] if is_uri(path) else path
    ending = os.path.splitext(PACKED.sub("", whole))[1].lower()
    return ending, KINDS.get(ending, "text")
