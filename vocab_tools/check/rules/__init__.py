"""The rules of a check, one function for each finding.

| module         | findings                                                                   |
| -------------- | -------------------------------------------------------------------------- |
| `files`        | BAD_LINE, MISSING_BYTE, DUPLICATE_TOKEN, DUPLICATE_ID                       |
| `special`      | SPECIAL_ID, SPECIAL_TEXT                                                    |
| `ids`          | SHADOW, BELOW_BASE, ID_GAP, EXTRA_GAP                                       |
| `tokens`       | UNREACHABLE_BY_MERGING, NEVER_WHOLE, NONSENSE_BYTES, NOT_NFC, NOT_UTF8,     |
|                | INCOMPLETE_CHARACTER, CROSSES_CHARACTER, ROUND_TRIP                         |
| `words`        | WORD_SPLIT, WORD_NOT_ONE_TOKEN                                              |
| `effects`      | OTHER_TEXT_CHANGES, CORPUS_CHANGES, CORPUS                                  |

Findings are listed by severity, and then in the order in which the modules are imported here.
"""

from . import files, special, ids, tokens, words, effects  # isort: skip

__all__ = ["effects", "files", "ids", "special", "tokens", "words"]
