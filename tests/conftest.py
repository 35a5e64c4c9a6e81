"""Defines fixtures for all tests, and configures hypothesis."""

from __future__ import annotations

import inspect
import os
import re
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from oracles import ENCODINGS
from pairs import FAMILIES, Pair, pair
from seeds import EXAMPLES, SEED, VARIABLE

import bpe_engine

settings.register_profile(
    "default",
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    # CI uses the same examples in every run.
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
settings.load_profile("default")


def pytest_report_header() -> str:
    return f"{VARIABLE}={SEED}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests that call functions or open files that Windows lacks."""
    lacking = re.compile(r"os\.(fork|mkfifo)\b|SIGKILL|preexec_fn|[ \"]/dev/")
    for item in items if os.name == "nt" else ():
        function = getattr(item, "function", None)
        if function and lacking.search(inspect.getsource(function)):
            item.add_marker(pytest.mark.skip("Windows lacks what it uses"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the seed of a failed run, to repeat it."""
    report = yield
    if report.failed:
        report.sections.append(("Seed of random texts", f"{VARIABLE}={SEED}"))
    return report


@pytest.fixture
def ctrl_c() -> Generator[None]:
    """Makes Ctrl-C interrupt this process and its children, even if a shell runs the tests in the
    background, where the signal is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def undo_install() -> Generator[None]:
    """Calls `bpe_engine.uninstall()` after the doctest of `install()`."""
    yield
    bpe_engine.uninstall()


@pytest.fixture(params=ENCODINGS)
def both(request: pytest.FixtureRequest) -> Pair:
    """Each encoding as a pair: this package's and tiktoken's."""
    return pair(request.param)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Pair:
    """For each pattern, one encoding as a pair: this package's and tiktoken's."""
    return pair(request.param)


@pytest.fixture
def gpt2() -> bpe_engine.Encoding:
    return bpe_engine.get_encoding("gpt2")
