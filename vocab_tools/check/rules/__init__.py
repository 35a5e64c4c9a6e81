"""The rules of a check, one function for each finding.

Findings are listed by severity, and then in the order in which the modules are imported here.
"""

from . import files, special, ids, tokens, words, effects  # isort: skip

MODULES = (files, special, ids, tokens, words, effects)
