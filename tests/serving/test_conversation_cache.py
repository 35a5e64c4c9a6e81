"""Tests that `ConversationCache` returns the prompt's ids in bounded memory and linear work."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conversations import PATTERNS, custom, text
from oracles import ranks, repaired
from seeds import rounds, seeded
from small_files import LEVEL, added_token
from work import work

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import special, tokens, trusted, untrusted
from bpe_engine.read import byte_level
from bpe_engine.serving import ConversationCache


def file(normalizer: Any, prefix_space: bool = False, **flags: bool) -> hf.Tokenizer:
    some = {token: rank for token, rank in ranks("r50k_base").items() if rank < 1000}
    vocab = {byte_level.text_of(token): rank for token, rank in some.items()}
    merges = [
        [left, right]
        for token in vocab
        for left, right in [(token[:at], token[at:]) for at in range(1, len(token))]
        if left in vocab and right in vocab
    ]
    contents = {
        "added_tokens": [
            added_token(1000, "<|endoftext|>"),
            added_token(1001, "<|im_start|>"),
            added_token(1002, "<mask>", lstrip=True, rstrip=True),
            added_token(1003, "lore", single_word=True, special=False),
            added_token(1004, "Word", special=False, **flags),
        ],
        "normalizer": normalizer,
        "pre_tokenizer": {**LEVEL, "add_prefix_space": prefix_space},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }
    return hf.Tokenizer(json.dumps(contents))


def replaced(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


FILES: dict[str, Callable[[], hf.Tokenizer]] = {
    "plain": lambda: file(None),
    "plain, normalized token": lambda: file(None, normalized=True),
    "NFC": lambda: file({"type": "NFC"}),
    "NFKD, normalized token": lambda: file({"type": "NFKD"}, normalized=True),
    "Lowercase": lambda: file({"type": "Lowercase"}),
    "prefix space": lambda: file(None, prefix_space=True),
    "Prepend": lambda: file({"type": "Prepend", "prepend": "_"}),
    "Replace": lambda: file(replaced(r"[ \n]+", " ")),
    "Strip": lambda: file({"type": "Strip", "strip_left": True, "strip_right": True}),
}
ENCODINGS: dict[str, Callable[[], bpe_engine.Encoding]] = {
    **{
        name: lambda name=name: bpe_engine.get_encoding(name)
        for name in ("gpt2", "o200k_base", "qwen")
    },  # type: ignore[misc]
    **{pattern: lambda pattern=pattern: custom(pattern, None) for pattern in PATTERNS},  # type: ignore[misc]
    "NFC, custom": lambda: custom(PATTERNS[0], "NFC"),
}
ALL: dict[str, Callable[[], Any]] = {**ENCODINGS, **FILES}


def whole(tokenizer: Any) -> Callable[[str], list[int]]:
    """Returns a function that encodes a text as a whole, with all special tokens."""
    if isinstance(tokenizer, bpe_engine.Encoding):
        return lambda text: tokenizer.encode(text, allowed_special="all")
    return lambda text: tokenizer.encode(repaired(text), add_special_tokens=False).ids


def varied(rng: random.Random, pool: list[Any], new: Callable[[int], Any]) -> Any:
    """Returns another prompt: usually an earlier prompt continued, cut or changed."""
    old = rng.choice(pool) if pool and rng.random() < 0.85 else new(40)
    at = rng.randrange(len(old) + 1)
    made = rng.choice(
        [
            lambda: old + new(10),
            lambda: old[:at],
            lambda: old[:at] + new(4) + old[at:],
            lambda: old[:at] + old[at + 1 :],
            lambda: old,
        ]
    )()
    if len(pool) < 20:
        pool.append(made)
    else:
        pool[rng.randrange(20)] = made
    return made


@pytest.mark.parametrize("max_bytes", [0, 10_000, 1 << 30])
@pytest.mark.parametrize("name", ALL)
def test_texts_have_the_ids_of_the_whole(name: str, max_bytes: int) -> None:
    tokenizer, rng = ALL[name](), seeded("cache")
    cache = ConversationCache(
        tokenizer, max_bytes=max_bytes, allowed_special="all", disallowed_special=()
    )
    encode = whole(tokenizer)
    pool: list[Any] = []
    for _ in range(rounds(60)):
        prompt = varied(rng, pool, lambda most: text(rng, 12 * most))
        assert cache.encode(prompt) == encode(prompt)
        assert cache.stats().memory <= max_bytes
    stats = cache.stats()
    assert stats.prompts == rounds(60) and stats.reused_tokens <= stats.tokens
    assert (stats.reused_tokens > 0) == (max_bytes > 0)
    assert (stats.evicted_blocks > 0) == (max_bytes == 10_000)


@pytest.mark.parametrize("max_bytes", [10_000, 1 << 30])
@pytest.mark.parametrize("name", ALL)
def test_segments_have_the_ids_of_the_whole(name: str, max_bytes: int) -> None:
    tokenizer, rng = ALL[name](), seeded("cache")
    cache = ConversationCache(tokenizer, max_bytes=max_bytes)
    names = sorted(tokenizer.special_tokens_set)
    pool: list[Any] = []

    def new(most: int) -> list[Any]:
        return [
            rng.choice(
                [
                    lambda: untrusted(text(rng)),
                    lambda: trusted(text(rng)),
                    lambda: (text(rng), {rng.choice(names)}),
                    lambda: special(rng.choice(names)),
                    lambda: tokens([rng.randrange(200) for _ in range(rng.choice([0, 1, 2, 90]))]),
                ]
            )()
            for _ in range(rng.randrange(most // 4 + 1))
        ]

    for _ in range(rounds(50)):
        prompt = varied(rng, pool, new)
        assert cache.encode(prompt) == tokenizer.encode_segments(prompt)
        rendered = "".join(getattr(part, "text", part[0]) for part in prompt)
        if isinstance(tokenizer, hf.Tokenizer):
            assert cache.encode(rendered) == whole(tokenizer)(rendered)
        assert cache.stats().memory <= max_bytes


def chat(messages: int, rng: random.Random) -> str:
    return "".join(
        f"<|im_start|>{'user' if turn % 2 == 0 else 'assistant'}\n"
        f"{' '.join(rng.choices(['token', 'of', 'a', 'message,', 'and', 'what?', '12'], k=400))}<|im_end|>\n"
        for turn in range(messages)
    )


def test_a_turn_costs_what_is_new() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    cache = ConversationCache(enc, allowed_special="all", disallowed_special=())
    conversation = chat(20, seeded("chat"))
    total = len(cache.encode(conversation))
    assert cache.stats().reused_tokens == 0
    # Two more sessions begin with the same conversation.
    for more in ("<|im_start|>user\nOne?", "<|im_start|>user\nOr another?"):
        before = cache.stats().reused_tokens
        ids = cache.encode_to_numpy(conversation + more)
        assert ids.tolist() == enc.encode(conversation + more, allowed_special="all")
        assert total - (cache.stats().reused_tokens - before) < 400
    assert cache.stats().memory < 12 * total
    cache.clear()
    assert (cache.stats().memory, cache.stats().blocks) == (0, 0)
    assert len(cache.encode(conversation)) == total


def test_the_longest_unused_is_dropped_first() -> None:
    enc = bpe_engine.get_encoding("gpt2")
    texts = [f"{name} and so on, " * 2_000 for name in ("One", "Two", "Three", "Four")]
    probe = ConversationCache(enc)
    probe.encode(texts[0])
    cache = ConversationCache(enc, max_bytes=probe.stats().memory * 7 // 2)
    for index in (0, 1, 2, 0, 3):
        cache.encode(texts[index])

    def reused(index: int) -> int:
        before = cache.stats().reused_tokens
        cache.encode(texts[index])
        return cache.stats().reused_tokens - before

    assert reused(0) > 9_000 and reused(3) > 7_000
    # Eviction drops tails before prefixes.
    assert 0 < reused(1) < 6_000


def test_guards_are_those_of_the_tokenizer(gpt2: bpe_engine.Encoding) -> None:
    cache = ConversationCache(gpt2)
    with pytest.raises(ValueError) as ours:
        cache.encode("Hello <|endoftext|>")
    with pytest.raises(ValueError) as theirs:
        gpt2.encode("Hello <|endoftext|>")
    assert str(ours.value) == str(theirs.value)
    assert ConversationCache(bpe_engine.Tokenizer(gpt2)).encode("<|endoftext|>") == [50256]
    for wrong in (None, 5, b"bytes", {"a": 1}):
        with pytest.raises(TypeError, match="a prompt must be a str or a list of segments"):
            cache.encode(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tokenizer must be an Encoding"):
        ConversationCache("gpt2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_bytes"):
        ConversationCache(gpt2, max_bytes=-1)
    with pytest.raises(ValueError, match="special token"):
        cache.encode([special("<|nothing|>")])
    assert repr(cache) == f"<ConversationCache of 'gpt2': 0 blocks, 0 of {1 << 30} bytes>"


def test_later_changes_of_a_file_have_no_effect() -> None:
    tokenizer = file(None)
    cache = ConversationCache(tokenizer)
    before = cache.encode("some <new> text")
    tokenizer.add_tokens(["<new>"])
    assert cache.encode("some <new> text") == before != whole(tokenizer)("some <new> text")


HOSTILE: dict[str, Callable[[int], list[str]]] = {
    "branches after one character": lambda n: [
        "a" + chr(0x4E00 + i) + "b c " * 500 for i in range(n // 2000)
    ],
    "no place to cut": lambda n: ["a" * n, "a" * n + "b"],
    "many special tokens": lambda n: ["<|endoftext|>" * (n // 13)],
    "special tokens and single characters": lambda n: ["x<|endoftext|>" * (n // 14)],
    "growing by a character": lambda n: ["word " * (n // 500) + "x" * i for i in range(50)],
    "spaces": lambda n: [" " * n, " " * (n - 1) + "a"],
    "beginnings of names": lambda n: ["<|endoftex" * (n // 10)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_prompts_take_linear_work(name: str) -> None:
    def cost(size: int) -> float:
        prompts = HOSTILE[name](size)
        enc = bpe_engine.get_encoding("gpt2")
        cache = ConversationCache(enc, max_bytes=1_000_000, allowed_special="all")

        def run() -> None:
            for prompt in prompts:
                cache.encode(prompt)
                assert cache.stats().memory <= 1_000_000

        return work(run) / sum(map(len, prompts))

    assert cost(3_000_000) < 3 * cost(300_000) + 1


def test_many_threads_share_a_cache() -> None:
    enc = bpe_engine.get_encoding("cl100k_base")
    rng = seeded("threads")
    shared = chat(6, rng)
    prompts = [shared + chat(turns, rng) for turns in range(12)]
    expected = [enc.encode(prompt, allowed_special="all") for prompt in prompts]
    cache = ConversationCache(enc, max_bytes=100_000, allowed_special="all")

    def encode(seed: int) -> None:
        own = seeded("threads", seed)
        for _ in range(40):
            index = own.randrange(len(prompts))
            assert cache.encode(prompts[index]) == expected[index]

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(encode, range(6)))
    assert cache.stats().prompts == 240 and cache.stats().memory <= 100_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_while_threads_encode() -> None:
    enc = bpe_engine.get_encoding("gpt2")
    cache = ConversationCache(enc, max_bytes=200_000, disallowed_special=())
    prompt = chat(12, seeded("fork"))
    expected = enc.encode(prompt, disallowed_special=())
    done = threading.Event()

    def encode() -> None:
        while not done.is_set():
            cache.encode(prompt + str(random.random()))

    threads = [threading.Thread(target=encode) for _ in range(2)]
    for thread in threads:
        thread.start()
    context = multiprocessing.get_context("fork")
    try:
        for _ in range(20):
            child = context.Process(target=lambda: os._exit(int(cache.encode(prompt) != expected)))
            child.start()
            child.join(60)
            assert child.exitcode == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_special_tokens_are_text_where_the_tokenizer_says_so() -> None:
    ours = file(None)
    whole, text = bpe_engine.Tokenizer(file(None)), "a<|endoftext|>b"
    assert 1000 in ConversationCache(ours).encode(text)
    ours.encode_special_tokens = whole.split_special_tokens = True
    expected = ours.encode(text).ids
    assert 1000 not in expected
    for tokenizer in (ours, whole):
        assert list(ConversationCache(tokenizer).encode(text)) == expected
