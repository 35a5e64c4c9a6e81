"""The rules for a model folder, one function for each finding.

Findings are listed by severity, and then in the order in which the modules are imported here.
"""

from . import files, special, sizes, template  # isort: skip

__all__ = ["files", "sizes", "special", "template"]
