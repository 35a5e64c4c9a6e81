"""Searches for texts that are slow to encode: CPU time per byte, relative to ordinary text.

    python -m benchmarks.hostile_search
    python -m benchmarks.hostile_search --encoding o200k_base --texts 500 --seed 7
    python -m benchmarks.hostile_search --parts
    python -m benchmarks.hostile_search --files t5-small.json mistral-7b-v0.1.model

Draws random texts of each kind, and encodes them both without caches and with empty ones. The
slowest few are timed again many times, in turn with ordinary text; the least time of each counts.
The table has the slowest of each kind, in nanoseconds per byte and as multiples of ordinary text.

With ``--parts``, measures `truncate` and `chunk` on named texts, as multiples of the time to encode
the result. With ``--files``, measures texts of one or two characters, and long random words, with any
tokenizers.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import bpe_engine
from bpe_engine import hf

from .harness.sides import seconds

ORDINARY = (
    "The house stood on a slight rise just on the edge of the village. It stood on its own and "
    "looked out over a broad spread of West Country farmland. In 1987 it wasn't a remarkable "
    "house by any means;\n\n    def area(self, width: float) -> float:\n        return width ** 2\n"
)

#: The number of slowest texts to time again, and how often.
SLOWEST = 4
TIMES = 15

Draw = Callable[[random.Random, int], str]


def near_runs(draw: random.Random, length: int) -> str:
    """Repeats one string, interrupted by another now and then."""
    unit = "".join(
        draw.choices(draw.choice(["-=*#/_ ", "ab", "\n \t", "的一是"]), k=draw.randint(1, 3))
    )
    other = draw.choice(["=", "b", "x", " ", "*", "的", "\n"])
    stretch = unit * draw.randint(3, 300) + other
    return stretch * (length // len(stretch) + 1)


def periodic(draw: random.Random, length: int) -> str:
    """Repeats a few letters."""
    period = "".join(draw.choices(string.ascii_letters, k=draw.randint(2, 40)))
    return period * (length // len(period) + 1)


def random_letters(draw: random.Random, length: int) -> str:
    """Makes one long word of random letters from an alphabet."""
    alphabet = draw.choice(
        [string.ascii_lowercase, "etaoin", "aeiou", "абвгдежзик", "的一是不了人"]
    )
    return "".join(draw.choices(alphabet, k=length))


@dataclass
class Tokens:
    """Draws texts from the tokens of an encoding: words of letters, and punctuation."""

    encoding: bpe_engine.Encoding

    def __post_init__(self) -> None:
        tokens = [token.decode(errors="ignore") for token in self.encoding.token_byte_values()]
        self.words = [token for token in tokens if token.isalpha() and len(token) >= 3]
        marks = set(string.punctuation)
        self.marks = [token for token in tokens if len(token) >= 3 and set(token) <= marks]

    def whole(self, draw: random.Random, length: int) -> str:
        """Concatenates whole tokens, drawn from a few or from many."""
        least = draw.choice([3, 6, 10, 14])
        tokens = [token for token in self.words if len(token) >= least]
        few = draw.sample(tokens, min(len(tokens), draw.choice([2, 20, 1000])))
        return "".join(draw.choices(few, k=length // least + 1))

    def cut(self, draw: random.Random, length: int) -> str:
        """Concatenates tokens that lack their first or last letters."""
        words = draw.sample(self.words, draw.choice([3, 50, 2000]))
        parts = (word[draw.randint(0, 2) : len(word) - draw.randint(0, 2)] for word in words)
        few = [part for part in parts if part] or words
        return "".join(draw.choices(few, k=length // 3 + 1))

    def punctuation(self, draw: random.Random, length: int) -> str:
        """Concatenates tokens of punctuation."""
        few = draw.sample(self.marks, min(len(self.marks), draw.choice([2, 10, 100])))
        return "".join(draw.choices(few, k=length // 3 + 1))


def nanoseconds(encoding: bpe_engine.Encoding | hf.Tokenizer, text: str) -> float:
    """Measures the CPU time per byte of counting ``text``, with empty caches."""
    encoding.clear_cache()
    return seconds(lambda: encoding.count(text)) * 1e9 / len(text.encode())


def slowest_of(
    encoding: bpe_engine.Encoding, ordinary: str, texts: list[str]
) -> tuple[float, float, str]:
    """Finds the slowest text: its nanoseconds per byte, those of `ordinary`, and the text."""
    once = {text: min(nanoseconds(encoding, text) for _ in range(2)) for text in texts}
    best = dict.fromkeys([ordinary, *sorted(once, key=once.__getitem__)[-SLOWEST:]], math.inf)
    for _ in range(TIMES):
        for text, least in best.items():
            best[text] = min(least, nanoseconds(encoding, text))
    cost = best.pop(ordinary)
    slowest = max(best, key=best.__getitem__)
    return best[slowest], cost, slowest


#: Texts to measure `truncate` and `chunk` on, each repeated.
UNITS = {
    "ordinary text": ORDINARY,
    "Chinese": "敏捷的棕色狐狸跳过了懒狗。",
    "one letter": "a",
    "spaces": " ",
    "newlines": "\n",
    "digits": "31415926535",
    "marks": "e\u0301",
    "marks in another order": "a" + "\u0327\u0301" * 10,
    "ruler lines": "-" * 80 + "\n",
    "rulers in turn": "-" * 71 + "#" * 55 + "~" * 89 + " " * 5,
    "emoji": "🦀👩‍👧 ",
}

#: Limits for `truncate`; limits and overlaps for `chunk`.
LIMITS = (1000, 10_000)
CHUNKS = ((20, 0), (20, 19), (1000, 0))


#: Repeated by ``--files``: one character, or a few, of each kind that a part of a file may treat alone.
CHARACTERS = {
    "letters": "a",
    "capitals": "A",
    "spaces": " ",
    "tabs": "\t",
    "line ends": "\n",
    "CR LF": "\r\n",
    "marks of spaces": "\u2581",
    "spaces and marks of spaces": " \u2581",
    "digits": "1",
    "apostrophes": "'",
    "points": ".",
    "hashes": "#",
    "a letter and a space": "a ",
    "letters and points": "a.",
    "a letter and a mark": "e\u0301",
    "marks": "\u0301",
    "marks out of order": "\u0301\u0327",
    "accented letters": "\u00e9",
    "the wide space": "\u3000",
    "a space of no width": "\u200b",
    "soft hyphens": "\u00ad",
    "NUL": "\0",
    "replacement characters": "\ufffd",
    "Han": "的",
    "Han, and the wide comma": "的，",
    "rare Han": "\U00020000",
    "Hangul": "각",
    "jamo": "\u1100\u1161",
    "half-width kana": "\uff76\uff9e",
    "Thai": "\u0e01\u0e33",
    "Devanagari": "\u0915\u094d",
    "flags": "\U0001f1e9\U0001f1ea",
    "families": "\U0001f469\u200d",
    "ligatures": "\ufb03",
    "U+FDFA, 18 characters in NFKC": "\ufdfa",
    "capital sharp s": "\u1e9e",
    "I with a point": "\u0130",
    "private characters": "\ue000",
    "unassigned characters": "\u0378",
    "names of tokens": "</s>",
    "beginnings of names": "<|",
}


def random_words(draw: random.Random, size: int, length: int) -> str:
    """Makes words of `size` random letters."""
    letters = "".join(draw.choices(string.ascii_lowercase, k=length))
    return " ".join(letters[start : start + size] for start in range(0, length, size))


def measure_files(sources: list[str], length: int) -> None:
    """Prints the nanoseconds per byte of named texts, with empty caches."""
    draw = random.Random(1)
    texts = {name: unit * (length // len(unit)) for name, unit in CHARACTERS.items()}
    texts["random letters"] = random_words(draw, length, length)
    texts["words of 100 random letters"] = random_words(draw, 100, length)
    texts["words of 1,000 random letters"] = random_words(draw, 1000, length)
    texts["random Han"] = "".join(chr(draw.randrange(0x4E00, 0xA000)) for _ in range(length))
    tokenizers = [bpe_engine.open_tokenizer(source) for source in sources]
    print(f"{length:,} characters, nanoseconds per byte\n")
    print("| text |", " | ".join(os.path.basename(source) for source in sources), "|")
    print("|---|" + "---:|" * len(sources))
    for name, text in texts.items():
        cells = [min(nanoseconds(tokenizer, text) for _ in range(3)) for tokenizer in tokenizers]
        print(f"| {name} |", " | ".join(f"{cell:.0f}" for cell in cells), "|", flush=True)


def least(work: Callable[[], object]) -> float:
    """Measures the CPU time of ``work``: the least of a few runs."""
    return min(seconds(work) for _ in range(TIMES // 3))


def measure_parts(encoding: bpe_engine.Encoding, length: int) -> None:
    """Prints the time of `truncate` and `chunk`, relative to encoding the result."""

    def row(text: str, cut: Callable[[str], list[str]]) -> str:
        parts = cut(text)
        encoded = least(lambda: [encoding.encode_ordinary(part) for part in parts])
        return f"{least(lambda: cut(text)) / encoded:.1f}"

    def truncating(limit: int, side: Literal["right", "left"]) -> Callable[[str], list[str]]:
        return lambda text: [encoding.truncate(text, limit, side=side)]

    def chunking(limit: int, overlap: int) -> Callable[[str], list[str]]:
        return lambda text: encoding.chunk(text, limit, overlap)

    columns: dict[str, Callable[[str], list[str]]] = {}
    for limit in LIMITS:
        columns[f"truncate to {limit}"] = truncating(limit, "right")
        columns[f"{limit}, left"] = truncating(limit, "left")
    for limit, overlap in CHUNKS:
        columns[f"chunk by {limit}, overlap {overlap}"] = chunking(limit, overlap)
    print("times encoding what is kept\n")
    print("| text |", " | ".join(columns), "|")
    print("|---|" + "---:|" * len(columns))
    for name, unit in UNITS.items():
        text = unit * (length // len(unit) + 1)
        print(f"| {name} |", " | ".join(row(text, cut) for cut in columns.values()), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--texts", type=int, default=60, help="of each kind")
    parser.add_argument("--length", type=int, default=50_000, help="characters of a text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", action="store_true", help="measure truncate and chunk")
    parser.add_argument("--files", nargs="+", metavar="FILE", help="measure these tokenizers")
    arguments = parser.parse_args()
    if arguments.files:
        measure_files(arguments.files, arguments.length)
        return
    encoding = bpe_engine.get_encoding(arguments.encoding)
    if arguments.parts:
        measure_parts(encoding, arguments.length)
        return
    tokens = Tokens(encoding)
    kinds: dict[str, Draw] = {
        "near-runs": near_runs,
        "periodic": periodic,
        "random letters": random_letters,
        "tokens": tokens.whole,
        "tokens, cut": tokens.cut,
        "punctuation": tokens.punctuation,
    }
    ordinary = ORDINARY * (arguments.length // len(ORDINARY) + 1)
    print(f"{arguments.encoding}, seed {arguments.seed}, {arguments.texts} texts of each kind\n")
    print("| slowest of | caches | ns a byte | x ordinary | starts |\n|---|---|---|---|---|")
    for caches in (False, True):
        encoding.set_caching(caches)
        for kind, draw in kinds.items():
            seeds = (f"{arguments.seed} {kind} {number}" for number in range(arguments.texts))
            texts = [draw(random.Random(seed), arguments.length) for seed in seeds]
            cost, of_ordinary, text = slowest_of(
                encoding, ordinary, [text[: arguments.length] for text in texts]
            )
            row = [kind, "on" if caches else "off", f"{cost:.0f}", f"{cost / of_ordinary:.1f}"]
            print("|", " | ".join([*row, repr(text[:24])]), "|", flush=True)


if __name__ == "__main__":
    main()
