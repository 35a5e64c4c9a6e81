"""Shows byte pair encoding step by step, with the names of `tiktoken._educational`.

`visualise` is ``"colour"`` or ``"color"`` for tokens on colored backgrounds, ``"simple"`` for lists,
or None to print nothing. Needs the package `regex`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from .core import Encoding
from .reference import merge_steps  # must precede `regex`: its ImportError names the extra
from .registry import get_encoding

# isort: split
import regex

__all__ = ["SimpleBytePairEncoding", "bpe_encode", "bpe_train", "visualise_tokens"]

Visualise = Literal["colour", "color", "simple"] | None

# Background colors of tokens, as numbers of the 256 terminal colors.
_BACKGROUNDS = (167, 179, 185, 77, 80, 68, 134)

_GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class SimpleBytePairEncoding:
    """A BPE encoding made of a `regex` pattern and token ranks, without special tokens.

    >>> enc = SimpleBytePairEncoding.from_tiktoken("gpt2")
    >>> enc.encode("hello world", visualise=None)
    [31373, 995]
    >>> enc.encode("bees", visualise="simple")
    [b'b', b'e', b'e', b's']
    [b'b', b'e', b'es']
    [b'be', b'es']
    [b'bees']
    <BLANKLINE>
    [41712]
    """

    def __init__(self, *, pat_str: str, mergeable_ranks: dict[bytes, int]) -> None:
        self.pat_str = pat_str
        self.mergeable_ranks = mergeable_ranks
        self._decoder = {id: token for token, id in mergeable_ranks.items()}
        self._pat = regex.compile(pat_str)

    def encode(self, text: str, visualise: Visualise = "colour") -> list[int]:
        """Returns the ids of a text."""
        ids: list[int] = []
        for piece in self._pat.findall(text):
            ids += bpe_encode(self.mergeable_ranks, piece.encode(), visualise)
        return ids

    def decode_bytes(self, tokens: Iterable[int]) -> bytes:
        """Decodes ids to bytes; raises KeyError for an unknown id."""
        return b"".join(self.decode_tokens_bytes(tokens))

    def decode(self, tokens: Iterable[int]) -> str:
        """Decodes ids to text; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(tokens).decode(errors="replace")

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """Returns the bytes of each token; raises KeyError for an unknown id."""
        return [self._decoder[id] for id in tokens]

    @staticmethod
    def train(training_data: str, vocab_size: int, pat_str: str) -> SimpleBytePairEncoding:
        """Trains an encoding on a text, with `bpe_train`."""
        ranks = bpe_train(training_data, vocab_size, pat_str)
        return SimpleBytePairEncoding(pat_str=pat_str, mergeable_ranks=ranks)

    @staticmethod
    def from_tiktoken(encoding: str | Encoding) -> SimpleBytePairEncoding:
        """Makes an encoding with the pattern and ranks of `encoding`, an object or a name."""
        full = get_encoding(encoding) if isinstance(encoding, str) else encoding
        return SimpleBytePairEncoding(
            pat_str=full.pattern, mergeable_ranks=dict(full.mergeable_ranks)
        )


def bpe_encode(
    mergeable_ranks: dict[bytes, int], input: bytes, visualise: Visualise = "colour"
) -> list[int]:
    """Encodes one piece: merges the pair with the lowest rank until no pair has a rank.

    Prints the tokens before the first merge and after each. Raises KeyError for an unknown byte.

    >>> bpe_encode({b"a": 0, b"b": 1, b"ab": 2}, b"abba", visualise=None)
    [2, 1, 0]
    """
    parts: list[bytes] = []
    for parts in merge_steps(input, mergeable_ranks):
        _show(parts, visualise)
    if visualise:
        print()
    return [mergeable_ranks[part] for part in parts]


def bpe_train(
    data: str, vocab_size: int, pat_str: str, visualise: Visualise = "colour"
) -> dict[bytes, int]:
    """Learns the ranks of a vocabulary: the 256 bytes, then the most frequent pair, repeatedly.

    Of equally frequent pairs, the first in the text is merged. Prints each merge and the first
    pieces. Raises ValueError if `vocab_size` is below 256, or the text has no pair left to merge.

    >>> ranks = bpe_train("ab ab abc", 258, r"\\w+", visualise=None)
    >>> [token for token, rank in ranks.items() if rank >= 256]
    [b'ab', b'abc']
    """
    if vocab_size < 256:
        raise ValueError(f"vocab_size must be at least 256, one for each byte, not {vocab_size}")
    ranks = {bytes([byte]): byte for byte in range(256)}
    pieces = [[bytes([byte]) for byte in piece.encode()] for piece in regex.findall(pat_str, data)]
    while len(ranks) < vocab_size:
        frequencies = Counter(pair for parts in pieces for pair in zip(parts, parts[1:]))
        if not frequencies:
            raise ValueError(
                f"the text has no pair left to merge after {len(ranks)} tokens; train on more "
                f"text, or lower vocab_size from {vocab_size}"
            )
        pair, count = max(frequencies.items(), key=lambda entry: entry[1])
        ranks[pair[0] + pair[1]] = len(ranks)
        pieces = [_join(parts, pair) for parts in pieces]
        if visualise:
            print(f"{pair[0]!r} + {pair[1]!r} ({count} times) is token {len(ranks) - 1}:")
            # Colors print all pieces on one line; "simple" prints a list for each piece.
            are_lists = visualise == "simple"
            shown = pieces[:20] if are_lists else [[one for parts in pieces[:50] for one in parts]]
            for parts in shown:
                _show(parts, visualise)
            print()
    return ranks


def _join(parts: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    joined, rest = [], iter(zip(parts, [*parts[1:], b""]))
    for both in rest:
        joined.append(b"".join(pair) if both == pair else both[0])
        if both == pair:
            next(rest)
    return joined


def _show(parts: list[bytes], visualise: Visualise) -> None:
    if visualise in ("colour", "color"):
        visualise_tokens(parts)
    elif visualise == "simple":
        print(parts)


def visualise_tokens(token_values: list[bytes]) -> None:
    """Prints tokens on one line; adjacent tokens have different background colors.

    Incomplete characters become U+FFFD.
    """
    characters, last = 0, -1
    for token in token_values:
        shown = token.decode(errors="replace")
        # The color depends on the position in the text, so a merge does not change earlier colors.
        place = characters % len(_BACKGROUNDS)
        last = (place + (place == last)) % len(_BACKGROUNDS)
        print(f"\x1b[48;5;{_BACKGROUNDS[last]}m{shown}", end="")
        characters += len(shown)
    print("\x1b[0m")


def train_simple_encoding() -> SimpleBytePairEncoding:
    """Trains an encoding of 600 tokens on the source of this module, and shows its merges."""
    with open(__file__, encoding="utf-8") as file:
        encoding = SimpleBytePairEncoding.train(file.read(), 600, _GPT2_PATTERN)
    print("How 'the text of a token' is merged:")
    encoding.encode("the text of a token")
    return encoding
