"""Compares this engine with the other tokenizers that are installed; see harness/run.py.

python -m benchmarks.run --quick
"""

from __future__ import annotations

import sys

from .harness.run import main

if __name__ == "__main__":
    sys.exit(main())
