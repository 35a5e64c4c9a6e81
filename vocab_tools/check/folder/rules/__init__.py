"""The rules for a model folder, one function for each finding.

Findings are listed by severity, and then in the order in which the modules are imported here.
"""

from . import files, special, sizes, template, against  # isort: skip

MODULES = (files, special, sizes, template, against)
