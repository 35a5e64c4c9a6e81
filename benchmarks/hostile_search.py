"""A search for texts that cost much: CPU time a byte, against ordinary text in the same run.

    python -m benchmarks.hostile_search
    python -m benchmarks.hostile_search --encoding o200k_base --texts 500 --seed 7
    python -m benchmarks.hostile_search --chunk --texts 300 --length 3000

Texts of each kind are drawn at random and encoded twice, without caches and with empty ones. The
table has the slowest of each kind, as nanoseconds a byte and as a multiple of ordinary text. The
slowest few are timed again many times, in turn with ordinary text; the least time of each counts.

With ``--chunk`` each text is cut into chunks, of a size and an overlap drawn at random, and the table
has the texts and sizes for which ``chunk`` takes the largest multiple of encoding its chunks.
"""

from __future__ import annotations

import argparse
import math
import random
import string
import time
from collections.abc import Callable
from dataclasses import dataclass

import bpe_engine

ORDINARY = (
    "The house stood on a slight rise just on the edge of the village. It stood on its own and "
    "looked out over a broad spread of West Country farmland. In 1987 it wasn't a remarkable "
    "house by any means;\n\n    def area(self, width: float) -> float:\n        return width ** 2\n"
)

#: The chunks of ``--chunk``: how many tokens they have at most.
MOST_TOKENS = 50

#: How many of the slowest texts are timed again, and how often.
SLOWEST = 4
TIMES = 15

Draw = Callable[[random.Random, int], str]


def near_runs(draw: random.Random, length: int) -> str:
    """One string over and over, and another now and then."""
    unit = "".join(
        draw.choices(draw.choice(["-=*#/_ ", "ab", "\n \t", "的一是"]), k=draw.randint(1, 3))
    )
    other = draw.choice(["=", "b", "x", " ", "*", "的", "\n"])
    stretch = unit * draw.randint(3, 300) + other
    return stretch * (length // len(stretch) + 1)


def periodic(draw: random.Random, length: int) -> str:
    """A few letters over and over."""
    period = "".join(draw.choices(string.ascii_letters, k=draw.randint(2, 40)))
    return period * (length // len(period) + 1)


def random_letters(draw: random.Random, length: int) -> str:
    """One word of random letters of an alphabet."""
    alphabet = draw.choice(
        [string.ascii_lowercase, "etaoin", "aeiou", "абвгдежзик", "的一是不了人"]
    )
    return "".join(draw.choices(alphabet, k=length))


def white_space(draw: random.Random, length: int) -> str:
    """Nothing but white space, or white space and a letter now and then."""
    alphabet = draw.choice([" \n", " \n\t", " \r\n", "\n", "  \u3000\n", "      \nx"])
    return "".join(draw.choices(alphabet, k=length))


def runs(draw: random.Random, length: int) -> str:
    """Runs of one character each, of a few characters or of one."""
    characters = draw.sample("-= \n\ta1A'的é.\u0301🦀", draw.randint(1, 3))
    most = draw.choice([5, 40, 200])
    parts = (draw.choice(characters) * draw.randint(1, most) for _ in range(length))
    return "".join(parts)[:length]


def runs_in_turn(draw: random.Random, length: int) -> str:
    """Long runs of two to four characters, one behind the other, again and again."""
    signs = [*"-/=*_#!.~+|<>'\"() \t\na", "…", "—", "“", "😀", "e\u0301"]
    unit = "".join(
        draw.choice(signs) * draw.choice([draw.randint(1, 8), draw.randint(1, 130)])
        for _ in range(draw.randint(2, 4))
    )
    return unit * (length // len(unit) + 1)


def digits(draw: random.Random, length: int) -> str:
    """Digits, and letters or marks now and then."""
    return "".join(draw.choices("0123456789" * 3 + draw.choice(["", "x", ". ", "é１"]), k=length))


def decomposed(draw: random.Random, length: int) -> str:
    """Text that NFC changes: letters with marks, Hangul in parts, signs that are letters."""
    syllables = draw.choice(
        [
            ["e\u0301"],
            ["o\u0323\u0302", "n\u0303"],
            ["\u1112\u1161\u11ab", "\u1100\u1161"],
            ["e\u0301", "the", " "],
            ["e\u0301", "-", " "],
            ["\u212b", "K\u0301"],
        ]
    )
    return "".join(draw.choices(syllables, k=length))


def marks(draw: random.Random, length: int) -> str:
    """Marks in an order that NFC changes, alone or on letters."""
    few = draw.choice(["\u0f71\u0f72", "\u0327\u0301", "\u0301\u0327\u0323\u0302", "\u0378"])
    stack = "".join(draw.choices(few, k=draw.choice([2, 10, 50, 300])))
    unit = draw.choice(["", "a", "的" * 9, " I", "a b "]) + stack
    return unit * (length // len(unit) + 1)


@dataclass
class Tokens:
    """Draws from the tokens of an encoding that are words of letters, or punctuation."""

    encoding: bpe_engine.Encoding

    def __post_init__(self) -> None:
        tokens = [token.decode(errors="ignore") for token in self.encoding.token_byte_values()]
        self.words = [token for token in tokens if token.isalpha() and len(token) >= 3]
        marks = set(string.punctuation)
        self.marks = [token for token in tokens if len(token) >= 3 and set(token) <= marks]

    def whole(self, draw: random.Random, length: int) -> str:
        """Tokens without anything between them, from a few or from many."""
        least = draw.choice([3, 6, 10, 14])
        tokens = [token for token in self.words if len(token) >= least]
        few = draw.sample(tokens, min(len(tokens), draw.choice([2, 20, 1000])))
        return "".join(draw.choices(few, k=length // least + 1))

    def cut(self, draw: random.Random, length: int) -> str:
        """Tokens without their first letters or their last ones."""
        words = draw.sample(self.words, draw.choice([3, 50, 2000]))
        parts = (word[draw.randint(0, 2) : len(word) - draw.randint(0, 2)] for word in words)
        few = [part for part in parts if part] or words
        return "".join(draw.choices(few, k=length // 3 + 1))

    def punctuation(self, draw: random.Random, length: int) -> str:
        """Tokens of punctuation."""
        few = draw.sample(self.marks, min(len(self.marks), draw.choice([2, 10, 100])))
        return "".join(draw.choices(few, k=length // 3 + 1))


def nanoseconds(encoding: bpe_engine.Encoding, text: str) -> float:
    """CPU time for each byte of ``text``."""
    encoding.clear_cache()
    start = time.process_time()
    encoding.count(text)
    return (time.process_time() - start) * 1e9 / len(text.encode())


def slowest_of(
    encoding: bpe_engine.Encoding, ordinary: str, texts: list[str]
) -> tuple[float, float, str]:
    """Of the slowest text: nanoseconds a byte, the same of ordinary text, and the text."""
    once = {text: min(nanoseconds(encoding, text) for _ in range(2)) for text in texts}
    best = dict.fromkeys([ordinary, *sorted(once, key=once.__getitem__)[-SLOWEST:]], math.inf)
    for _ in range(TIMES):
        for text, least in best.items():
            best[text] = min(least, nanoseconds(encoding, text))
    cost = best.pop(ordinary)
    slowest = max(best, key=best.__getitem__)
    return best[slowest], cost, slowest


def times_encoding(
    encoding: bpe_engine.Encoding, text: str, max_tokens: int, overlap: int, times: int
) -> float:
    """CPU time of ``chunk`` as a multiple of that of encoding its chunks: the least of each."""
    try:
        chunks = encoding.chunk(text, max_tokens, overlap)
    except ValueError:  # a character alone has more tokens
        return 0.0
    chunking, encoded = math.inf, math.inf
    for _ in range(times):
        start = time.process_time()
        encoding.chunk(text, max_tokens, overlap)
        middle = time.process_time()
        for chunk in chunks:
            encoding.encode_ordinary(chunk)
        chunking = min(chunking, middle - start)
        encoded = min(encoded, time.process_time() - middle)
    return chunking / encoded


def search_chunks(
    encoding: bpe_engine.Encoding, kinds: dict[str, Draw], arguments: argparse.Namespace
) -> None:
    """Prints for each kind of text what makes ``chunk`` slowest beside encoding its chunks."""
    print("| slowest of | max_tokens | overlap | chunk / encoding its chunks | starts |")
    print("|---|---|---|---|---|")
    for kind, draw in kinds.items():
        tried = []
        for number in range(arguments.texts):
            random_ = random.Random(f"{arguments.seed} {kind} {number}")
            text = draw(random_, arguments.length)[: arguments.length]
            max_tokens = random_.choice([random_.randint(1, 8), random_.randint(1, MOST_TOKENS)])
            overlap = random_.choice([0, max_tokens - 1, random_.randrange(max_tokens)])
            ratio = times_encoding(encoding, text, max_tokens, overlap, 2)
            tried.append((ratio, text, max_tokens, overlap))
        again = (
            (times_encoding(encoding, *case, TIMES), *case)
            for _, *case in sorted(tried, reverse=True)[:SLOWEST]
        )
        ratio, text, max_tokens, overlap = max(again)
        row = [kind, str(max_tokens), str(overlap), f"{ratio:.1f}", repr(text[:24])]
        print("|", " | ".join(row), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--texts", type=int, default=60, help="of each kind")
    parser.add_argument("--length", type=int, default=50_000, help="characters of a text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chunk", action="store_true", help="search what makes chunk slow")
    arguments = parser.parse_args()
    encoding = bpe_engine.get_encoding(arguments.encoding)
    tokens = Tokens(encoding)
    kinds: dict[str, Draw] = {
        "near-runs": near_runs,
        "periodic": periodic,
        "random letters": random_letters,
        "tokens": tokens.whole,
        "tokens, cut": tokens.cut,
        "punctuation": tokens.punctuation,
    }
    if arguments.chunk:
        kinds |= {"white space": white_space, "runs": runs, "digits": digits}
        kinds |= {"runs in turn": runs_in_turn}
        kinds |= {"decomposed": decomposed, "marks": marks}  # changed by the normalization of qwen
    ordinary = ORDINARY * (arguments.length // len(ORDINARY) + 1)
    print(f"{arguments.encoding}, seed {arguments.seed}, {arguments.texts} texts of each kind\n")
    if arguments.chunk:
        search_chunks(encoding, kinds, arguments)
        return
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
