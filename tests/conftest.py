"""What the tests share: the encodings, and texts that hurt."""

from __future__ import annotations

import dataclasses

import pytest
import tiktoken
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from oracles import ENCODINGS, normalized, oracle

import bpe_engine

# One encoding of each pattern, for tests that take long.
FAMILIES = ["r50k_base", "cl100k_base", "o200k_base", "qwen"]

settings.register_profile(
    "default",
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


@dataclasses.dataclass(frozen=True)
class Pair:
    """An encoding of ours and tiktoken's of the same name."""

    name: str
    ours: bpe_engine.Encoding
    theirs: tiktoken.Encoding

    def expected(self, text: str, allowed: str | set[str] = frozenset()) -> list[int]:
        """tiktoken's ids of a text, without a check."""
        text = normalized(self.name, text)
        return self.theirs.encode(text, allowed_special=allowed, disallowed_special=())


def pair(name: str) -> Pair:
    return Pair(name, bpe_engine.get_encoding(name), oracle(name))


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


SPECIAL_NAMES = [
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|fim_prefix|>",
    "<|im_start|>",
    "<|extra_0|>",
    "<|extra_20|>",
    "<|reserved_200018|>",
    "<|start|>",
]

_fragments = st.sampled_from(
    [
        *SPECIAL_NAMES,
        *(name[:-1] for name in SPECIAL_NAMES),
        *(name[2:] for name in SPECIAL_NAMES),
        "<|<|endoftext|>|>",
        "<|endoftext|",
        "'s",
        "'LL",
        "'\u017f",
        "don't",
        " I'VE",
        "e\u0301",
        "\u212a",
        "<\u0338",
        "\u0301\u0323",
        "\u1100\u1161\u11a8",
        "क्षि",
        "你好，世界",
        "根本的",
        "こんにちは",
        "한국어",
        "🤖👨‍👩‍👧‍👦🇺🇳",
        "\ud83d\ude00",
        "\ud83d",
        "\ude00",
        "  ",
        "   \n\n  ",
        "\r\n",
        "\t",
        "\u00a0",
        "\u3000",
        "\u0085",
        "\u001c\u001f",
        "\x00",
        "\u200b\u200d",
        "123456789",
        "٣١٤",
        "½²",
        "CamelCaseHTML",
        "ǅ",
        "https://example.com/a/b?c=d",
        "////\n/",
        "!!!...",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        " " * 40,
    ]
)

texts = st.lists(
    st.one_of(
        _fragments,
        st.text(max_size=8),
        st.text(st.characters(categories=["Cs", "Cc", "Mn", "Zs", "So", "Lo"]), max_size=4),
        st.text(alphabet="ab '\n1<|>", max_size=8),
    ),
    max_size=10,
).map("".join)
