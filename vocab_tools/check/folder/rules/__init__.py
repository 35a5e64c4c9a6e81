"""The rules for a model folder, one function for each finding.

Findings are listed by severity, then in the order of these imports.
"""

from . import files, special, sizes, template, against  # isort: skip

MODULES = (files, special, sizes, template, against)
