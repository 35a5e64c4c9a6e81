"""Compares `ConversationCache` with encoding whole prompts, and with a cache at special tokens only.

    python -m benchmarks.conversations --sessions 1000 --turns 20 --tokens 30000
    python -m benchmarks.conversations --append 4194304 --encoding qwen3 FILE ...

Every session sends its whole conversation at each turn, the sessions in turn, as they reach a server.
All sides return arrays, and their ids are compared. Times are CPU times of the calls on one thread:
that of an average prompt, and medians of the first turn, which is new but for the system prompt, and
of the last. Three kinds of text: messages between special tokens; one long document, then short
messages; and messages without special tokens.

With ``--append``, a `Conversation` grows behind a text of that many characters: medians of `append`, of
`update` with the whole, and of encoding the whole, for the encodings and the tokenizer files named.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import bpe_engine
from bpe_engine.serving import ConversationCache

from .cases.corpora import find_corpora, read

_Ids = npt.NDArray[np.uint32]
_SYSTEM = "You are a helpful assistant. " * 20


class SpecialTokenCache:
    """Keeps the ids up to each special token, by a hash of all text before it."""

    def __init__(self, enc: bpe_engine.Encoding):
        self._encode = enc.encode_to_numpy
        names = sorted(enc.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, names)).encode())
        self._known: dict[bytes, _Ids] = {}
        self.memory = 0

    def encode(self, text: str) -> _Ids:
        """Encodes a text with all special tokens."""
        raw = text.encode()
        digest, parts, start, is_known = hashlib.blake2b(digest_size=16), [], 0, True
        for found in self._special.finditer(raw):
            digest.update(raw[start : found.end()])
            key = digest.digest()
            ids = self._known.get(key) if is_known else None
            if ids is None:
                is_known = False
                ids = self._encode(raw[start : found.end()].decode(), allowed_special="all").copy()
                self._known[key] = ids
                self.memory += ids.nbytes + len(key)
            parts.append(ids)
            start = found.end()
        parts.append(self._encode(raw[start:].decode(), allowed_special="all"))
        return np.concatenate(parts)


class Texts:
    """Random parts of corpora.

    Args:
        corpora: The texts, and how many of their characters make a token.
    """

    def __init__(self, corpora: list[tuple[str, float]]):
        self._corpora = corpora

    def take(self, rng: random.Random, tokens: int) -> str:
        """Returns a part of one corpus of about this many tokens."""
        text, characters = rng.choice(self._corpora)
        start = rng.randrange(max(1, len(text) - int(tokens * characters)))
        return text[start : start + int(tokens * characters)]


def conversation(
    kind: str, turns: int, tokens: int, rng: random.Random, texts: Texts, names: tuple[str, str]
) -> Iterator[str]:
    """Yields the prompt of each turn; the last has about this many tokens."""
    start, end = ("", "\n\n") if kind == "no special tokens" else names
    prompt = f"{start}system\n{_SYSTEM}{end}"
    each = tokens // (2 * turns)
    if kind == "document":
        prompt += f"{start}user\n{texts.take(rng, tokens * 9 // 10)}{end}"
        each //= 10
    for _ in range(turns):
        prompt += f"{start}user\n{texts.take(rng, each)}{end}{start}assistant\n"
        yield prompt
        prompt += f"{texts.take(rng, each)}{end}"


def measure(
    running: list[Iterator[str]], turns: int, sides: dict[str, Callable[[str], _Ids]]
) -> dict[str, list[list[float]]]:
    """Returns for each side the seconds of each call, by turn."""
    times: dict[str, list[list[float]]] = {name: [[] for _ in range(turns)] for name in sides}
    for turn in range(turns):
        for session in running:
            prompt = next(session)
            expected: Any = None
            for name, encode in sides.items():
                start = time.thread_time()
                ids = encode(prompt)
                times[name][turn].append(time.thread_time() - start)
                assert expected is None or np.array_equal(ids, expected), name
                expected = ids
    return times


def appends(names: list[str], size: int, corpora: list[str]) -> None:
    """Prints the times of what is new behind a text."""
    print(f"Behind {size:,} characters of ASCII, us: medians of 90, 15 and 3 calls\n")
    print("| tokenizer | prompt | new characters | append | update | encode the whole |")
    print("|---|---|---:|---:|---:|---:|")
    text = "".join(corpora).encode("ascii", "ignore").decode()
    history = (text * (size // len(text) + 1))[:size]
    for name in names:
        tokenizer = bpe_engine.open_tokenizer(name)
        for is_text, length in itertools.product((True, False), (16, 256, 4096)):
            prompts: list[Any] = []
            parts: list[Any] = []
            for number in range(90):
                part = text[number * length : (number + 1) * length]
                parts.append(part if is_text else [(part, False)])
                if number < 15:
                    whole = history + text[: len(part) * (number + 1)]
                    prompts.append(whole if is_text else [(whole, False)])
            appended, updated = (tokenizer.conversation(disallowed_special=()) for _ in range(2))
            for conversation in (appended, updated):
                conversation.update(history if is_text else [(history, False)])
            calls: list[tuple[Callable[[Any], Any], list[Any]]] = [
                (updated.update, prompts),
                (appended.append, parts),
                (lambda whole: tokenizer.encode_segments([(whole, False)]), [whole] * 3),
            ]
            medians = []
            for call, given in calls:
                times = []
                for each in given:
                    start = time.perf_counter()
                    ids = call(each)
                    times.append(time.perf_counter() - start)
                    if len(times) == 15 and call == appended.append:
                        assert appended.ids == updated.ids, (name, is_text)
                medians.append(statistics.median(times) * 1e6)
            assert updated.ids == ids, (name, is_text)
            update, append, encode = (f"{median:,.1f}" for median in medians)
            label = Path(name).stem if "/" in name else name
            kind = "text" if is_text else "segments"
            row = f"| {label} | {kind} | {length:,} | {append} | {update} | {encode} |"
            print(row, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints a table for each kind of text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--encoding", default="qwen3")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument(
        "--tokens", type=int, default=30_000, help="of the last prompt of a session"
    )
    parser.add_argument("--corpora", type=Path, help="a folder of *.txt; small ones are made else")
    parser.add_argument("--append", type=int, metavar="SIZE", help="measure `Conversation.append`")
    parser.add_argument("files", nargs="*", help="with --append: further tokenizers")
    options = parser.parse_args(arguments)
    enc = bpe_engine.get_encoding(options.encoding)
    with tempfile.TemporaryDirectory() as folder:
        found = [read(corpus.path) for corpus in find_corpora(options.corpora, Path(folder))]
    if options.append:
        appends([options.encoding, *options.files], options.append, found)
        return
    chatml, harmony = ("<|im_start|>", "<|im_end|>"), ("<|start|>", "<|end|>")
    names = chatml if chatml[0] in enc.special_tokens else harmony
    texts = Texts([(text, len(text) / enc.count(text)) for text in found])
    for kind in ("special tokens", "document", "no special tokens"):
        cache = ConversationCache(enc, max_bytes=1 << 34, allowed_special="all")
        at_special = SpecialTokenCache(enc)
        running = [
            conversation(kind, options.turns, options.tokens, random.Random(i), texts, names)
            for i in range(options.sessions)
        ]
        times = measure(
            running,
            options.turns,
            {
                "encode the whole": lambda prompt: enc.encode_to_numpy(
                    prompt, allowed_special="all"
                ),
                "cache at special tokens": at_special.encode,
                "ConversationCache": cache.encode_to_numpy,
            },
        )
        memory = {
            "cache at special tokens": at_special.memory,
            "ConversationCache": cache.stats().memory,
        }
        print(
            f"\n{kind}: {options.sessions} sessions, {options.turns} turns, {options.tokens} tokens\n"
        )
        print("| side | all prompts, s | first turn, us | last turn, us | KB per session |")
        print("|---|---:|---:|---:|---:|")
        for name, turns in times.items():
            total = sum(map(sum, turns))
            first, last = (statistics.median(turn) * 1e6 for turn in (turns[0], turns[-1]))
            used = memory.get(name, 0) / options.sessions / 1e3
            print(f"| {name} | {total:.3f} | {first:.0f} | {last:.0f} | {used:.0f} |")
        stats = cache.stats()
        print(
            f"\n{stats.tokens} ids, {stats.reused_tokens / stats.tokens:.1%} reused, {stats.blocks} blocks"
        )


if __name__ == "__main__":
    main()
