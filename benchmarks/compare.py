"""Compares two builds of this project, row by row; see harness/compare.py.

python -m benchmarks.compare --before VENV --after VENV
"""

from __future__ import annotations

import sys

from .harness.compare import main

if __name__ == "__main__":
    sys.exit(main())
