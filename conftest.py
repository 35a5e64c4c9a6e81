"""Makes `python -m pytest` test the installed package.

Python puts the directory it is started in first on the path, and the sources there have no
native module unless one was built in place (`maturin develop`, `pip install -e .`).
"""

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).parent
_BUILT_IN_PLACE = any(_ROOT.glob("bpe_engine/_core*.so")) or any(
    _ROOT.glob("bpe_engine/_core*.pyd")
)

if not _BUILT_IN_PLACE:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT.resolve()]
    # Last, for `benchmarks`, which is not installed.
    sys.path.append(str(_ROOT))


def pytest_sessionstart() -> None:
    """Starts the Pythons that tests start away from the sources as well."""
    if not _BUILT_IN_PLACE:
        os.chdir(_ROOT / "tests")
