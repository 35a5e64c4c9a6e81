"""Extends a vocabulary in plain Python, counting all pairs again after every merge.

A slow reference for ``vocab_tools`` that reproduces Qwen's add_merges.py, including its defects.
The tests compare results with this module.
"""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Mapping, Sequence

import regex
from oracles import QWEN_PATTERN

Pieces = tuple[bytes, ...]
PairOfPieces = tuple[bytes, bytes]


def join_everywhere(pieces: Pieces, pair: PairOfPieces) -> Pieces:
    """Joins each occurrence of a pair, from left to right."""
    joined: list[bytes] = []
    rest = list(reversed(pieces))
    while rest:
        piece = rest.pop()
        if piece == pair[0] and rest and rest[-1] == pair[1]:
            piece += rest.pop()
        joined.append(piece)
    return tuple(joined)


def apply_ranks(word: bytes, ranks: Mapping[bytes, int]) -> Pieces:
    """Returns the pieces of a word after applying the merges of a vocabulary."""
    pieces = tuple(word[i : i + 1] for i in range(len(word)))
    while True:
        known = [pair for pair in zip(pieces, pieces[1:]) if pair[0] + pair[1] in ranks]
        if not known:
            return pieces
        pieces = join_everywhere(pieces, min(known, key=lambda pair: ranks[pair[0] + pair[1]]))


def learn(words: Mapping[str, int], ranks: Mapping[bytes, int]) -> list[PairOfPieces]:
    """Returns the merges that make every word one piece, in the order in which they are learned."""
    open_words = [(apply_ranks(word.encode(), ranks), count) for word, count in words.items()]
    merges: list[PairOfPieces] = []
    while True:
        open_words = [(pieces, count) for pieces, count in open_words if len(pieces) > 1]
        if not open_words:
            return merges
        frequencies: dict[PairOfPieces, int] = {}
        for pieces, count in open_words:
            for pair in zip(pieces, pieces[1:]):
                frequencies[pair] = frequencies.get(pair, 0) + count

        def order(pair: PairOfPieces) -> tuple[int, int, int, str, bytes]:
            joined = pair[0] + pair[1]
            text = joined.decode(errors="replace")
            count = frequencies[pair]
            return -count, len(text), len(joined), text, joined

        best = min(frequencies, key=order)
        merges.append(best)
        open_words = [(join_everywhere(pieces, best), count) for pieces, count in open_words]


def read_words(text: str) -> dict[str, int]:
    """Returns words and frequencies, without words that the pre-tokenizer would split."""
    words: dict[str, int] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        word, count = line.strip().split("\t")
        word = unicodedata.normalize("NFC", word)
        if len(regex.findall(QWEN_PATTERN, word)) > 1:
            continue
        try:
            number = int(count)
        except ValueError:
            number = 1
        words[word] = words.get(word, 0) + number
    return words


def extra_file(words: Mapping[str, int], ranks: Mapping[bytes, int], start_id: int) -> bytes:
    """Returns add_merges.py's file, in which a token learned twice has its last id, after a gap."""
    if start_id in (0, -1) or start_id < len(ranks):
        start_id = len(ranks)
    wanted = {word: count for word, count in words.items() if word.encode() not in ranks}
    ids: dict[bytes, int] = {}
    for number, (left, right) in enumerate(learn(wanted, ranks), start=start_id):
        ids[left + right] = number
    return dump(ids)


def dump(ids: Mapping[bytes, int]) -> bytes:
    """Returns the contents of a rank file."""
    rows: Sequence[tuple[bytes, int]] = sorted(ids.items(), key=lambda row: row[1])
    return b"".join(base64.b64encode(token) + b" %d\n" % number for token, number in rows)
