"""Makes `python -m pytest` test the installed package.

Python puts its start directory first on the path, and the sources there have a native module only
if it was built in place (`maturin develop`, `pip install -e .`).
"""

import os
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent

_BUILT_IN_PLACE = [*_ROOT.glob("bpe_engine/_core*.so"), *_ROOT.glob("bpe_engine/_core*.pyd")]

if not _BUILT_IN_PLACE:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT.resolve()]
    # The root comes last on the path, for `benchmarks`, which is not installed.
    sys.path.append(str(_ROOT))


def pytest_collection_finish() -> None:
    """Changes the directory, so that child processes of tests also import the installed package.

    Runs after the collection of test files, whose names may be relative to the start directory of
    pytest, and only in a process that collects tests, unlike the controller of `-n`.
    """
    if not _BUILT_IN_PLACE:
        os.chdir(_ROOT / "tests")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Runs the whole suite in two processes if pytest-xdist is installed.

    Named files, a debugger or an explicit `-n` disable this. Each process takes half of the tests
    in order, because tests of one file share slow setup, and then takes tests from the other half.
    """
    if hasattr(config, "workerinput"):  # This process is one of the two workers.
        return
    whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    alone = config.option.usepdb or config.option.collectonly
    if whole and not alone and config.pluginmanager.hasplugin("xdist"):
        if config.option.numprocesses is None and config.option.dist == "no":
            config.option.numprocesses = 2
            config.option.dist = "worksteal"
