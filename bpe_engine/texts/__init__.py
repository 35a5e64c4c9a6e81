"""Texts: the one room that lists, opens and reads files of text.

`listed` has the files of a corpus, `access` opens and unpacks them. `json_row` reads one line of JSON,
`json_lines` many of them, `tables` Parquet, Arrow and CSV, `documents` plain text between separators,
`stretches` plain text of any length. `inputs` puts them together for token files, `reading` for
counting, training and comparing.
"""

from .access import STANDARD, is_uri, naming, readable_again, size_or_zero
from .listed import Paths, corpus_files, given_paths, looks_like_text
from .reading import ERRORS, has_rows, read_rows, read_texts
from .stretches import BEHIND_WORDS

__all__ = [
    "BEHIND_WORDS",
    "ERRORS",
    "STANDARD",
    "Paths",
    "corpus_files",
    "given_paths",
    "has_rows",
    "is_uri",
    "looks_like_text",
    "naming",
    "read_rows",
    "read_texts",
    "readable_again",
    "size_or_zero",
]
