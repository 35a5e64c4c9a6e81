"""1 MB and 8 MB side by side: is the time linear in the length of the text?

    python -m benchmarks.growth [arguments of benchmarks.run]

A short name for the growth cases of benchmarks.run. In a linear engine the ratio is near 8.
"""

from __future__ import annotations

import sys

from .harness import run

if __name__ == "__main__":
    sys.exit(run.main(["--cases", "growth", *sys.argv[1:]]))
