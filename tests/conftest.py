"""Fixtures that all tests share, and how hypothesis runs."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from oracles import ENCODINGS
from pairs import FAMILIES, Pair, pair
from seeds import SEED, VARIABLE

import bpe_engine

settings.register_profile(
    "default",
    max_examples=120,
    deadline=None,
    print_blob=True,
    # In CI the same examples in every run.
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


def pytest_report_header() -> str:
    return f"{VARIABLE}={SEED}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the seed to run it with again."""
    report = yield
    if report.failed:
        report.sections.append(("Seed of random texts", f"{VARIABLE}={SEED}"))
    return report


@pytest.fixture(params=ENCODINGS)
def both(request: pytest.FixtureRequest) -> Pair:
    """Each encoding, ours and tiktoken's."""
    return pair(request.param)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Pair:
    """One encoding of each pattern, ours and tiktoken's."""
    return pair(request.param)


@pytest.fixture
def gpt2() -> bpe_engine.Encoding:
    return bpe_engine.get_encoding("gpt2")
