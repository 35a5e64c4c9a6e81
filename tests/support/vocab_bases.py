"""Base vocabularies and word lists for the tests of vocab_tools."""

from __future__ import annotations

from pathlib import Path

import vocab_oracle
from hypothesis import strategies as st

DATA = Path(__file__).parents[2] / "data"
QWEN = DATA / "qwen.tiktoken"

BYTES = {bytes([byte]): byte for byte in range(256)}

#: The example in Qwen's documentation, and the result of add_merges.py.
EXAMPLE_WORDS = (
    "我是一只猫\t20\n你是一只猫\t10\n他是一只猫\t5\n一只\t200\n一只猫\t100\n夸张的 比喻手法\t20\n"
)
EXAMPLE_EXTRA = b"""\
5LiA5Y+q54yr 151851
5Y+q54yr 151852
5piv5LiA5Y+q54yr 151853
5oiR5piv5LiA5Y+q54yr 151854
5L2g5piv5LiA5Y+q54yr 151855
5LuW5piv5LiA5Y+q54yr 151856
"""

#: A few letters, so that pairs repeat; é has two bytes, 猫 three, 🦄 four.
letters = st.sampled_from(["ab", "abc", "一只猫", "aé猫🦄", "我你他是一只猫的"]).flatmap(
    lambda alphabet: st.text(alphabet, min_size=1, max_size=8)
)
word_lists = st.dictionaries(letters, st.integers(1, 5), min_size=1, max_size=10)


@st.composite
def trained_bases(draw: st.DrawFn) -> dict[bytes, int]:
    """Generates a trained base: single bytes and the first merges of another word list."""
    ranks = dict(BYTES)
    merges = vocab_oracle.learn(draw(word_lists), BYTES)
    for left, right in merges[: draw(st.integers(0, 10))]:
        ranks.setdefault(left + right, len(ranks))
    return ranks


@st.composite
def random_bases(draw: st.DrawFn) -> dict[bytes, int]:
    """Generates a base of single bytes and arbitrary tokens, most of which are unreachable."""
    ranks = dict(BYTES)
    for text in draw(st.lists(letters, max_size=6)):
        token = text.encode()[draw(st.integers(0, 2)) :][: draw(st.integers(2, 6))]
        if token:
            ranks.setdefault(token, len(ranks))
    return ranks


bases = trained_bases() | random_bases()
