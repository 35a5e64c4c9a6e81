"""The rules for vocabularies, one function for each finding.

Findings are listed by severity, then in the order of these imports.
"""

from . import files, special, ids, tokens, words, effects  # isort: skip

MODULES = (files, special, ids, tokens, words, effects)
