"""Fixtures that all tests share, and how hypothesis runs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from oracles import ENCODINGS
from pairs import FAMILIES, Pair, pair

import bpe_engine

settings.register_profile(
    "default",
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


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
