"""Makes `python -m pytest` test the installed package.

Python puts the directory it is started in first on the path, and the sources there have no
native module unless one was built in place (`maturin develop`, `pip install -e .`).
"""

import os
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent

_BUILT_IN_PLACE = [*_ROOT.glob("bpe_engine/_core*.so"), *_ROOT.glob("bpe_engine/_core*.pyd")]

if not _BUILT_IN_PLACE:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT.resolve()]
    # Last, for `benchmarks`, which is not installed.
    sys.path.append(str(_ROOT))


def pytest_collection_finish() -> None:
    """So that the Pythons that tests start do not find the sources either.

    Not before the files are collected, whose names may be relative to the folder pytest was
    started in, and never in the process that starts others for `-n`.
    """
    if not _BUILT_IN_PLACE:
        os.chdir(_ROOT / "tests")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Runs the whole suite on two processes, where pytest-xdist is installed.

    Chosen files, a debugger and a given `-n` turn this off. Each process takes half of the tests in
    their order, since tests of one file share slow set-up, and then takes over tests of the other.
    """
    if hasattr(config, "workerinput"):  # one of those processes, which starts no others
        return
    whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    alone = config.option.usepdb or config.option.collectonly
    if whole and not alone and config.pluginmanager.hasplugin("xdist"):
        if config.option.numprocesses is None and config.option.dist == "no":
            config.option.numprocesses = 2
            config.option.dist = "worksteal"
