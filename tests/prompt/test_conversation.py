"""Tests that an updated conversation has the ids of `encode`, and that stable ids never change."""

from __future__ import annotations

import copy
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conversations import PATTERNS, custom, text
from oracles import ENCODINGS
from seeds import rounds, seeded

import bpe_engine
from bpe_engine.prompt import Change, special, tokens, trusted, untrusted

ALL = [
    *(bpe_engine.get_encoding(name) for name in ENCODINGS),
    *(custom(pattern, None) for pattern in PATTERNS),
    custom(PATTERNS[0], "NFC"),
]


def edited(rng: random.Random, old: str) -> str:
    """Returns an edited copy of a text: continued, cut off, changed, or without its start."""
    at = rng.randrange(len(old) + 1)
    return rng.choice(
        [
            lambda: old + text(rng, 8),
            lambda: old[:at],
            lambda: old[: max(0, len(old) - rng.randrange(30))] + text(rng, 6),
            lambda: old[:at] + text(rng, 4) + old[at:],
            lambda: old[:at] + old[at + rng.randrange(20) :],
            lambda: old[at:],
            lambda: old,
            lambda: text(rng),
        ]
    )()


def check(conversation: Any, change: Change, before: list[int], expected: list[int]) -> None:
    assert conversation.ids == expected
    assert before[: change.kept] + change.ids == expected
    assert 0 <= change.kept <= len(before)
    # The first reported id differs from the earlier id at that index.
    assert not change.ids or before[change.kept : change.kept + 1] != change.ids[:1]


def run_changes(enc: bpe_engine.Encoding, rng: random.Random, steps: int) -> None:
    """Updates and appends to forks of a conversation at random, and checks each change."""
    allowed: Any = rng.choice([set(), "all", {"<|endoftext|>"}, {"<|im_start|>", "<|endoftext|>"}])
    names: dict[str, Any] = {"allowed_special": allowed, "disallowed_special": ()}
    updates = rng.choice([0.2, 0.5, 1.0])
    branches = [(bpe_engine.prompt.Conversation(enc, **names), "")]
    for _ in range(steps):
        place = rng.randrange(len(branches))
        conversation, current = branches[place]
        if rng.random() < 0.2:
            branches = [*branches[-2:], (conversation.fork(), current)]
            continue
        before = conversation.ids
        if rng.random() < updates:
            current = edited(rng, current)[-20_000:]
            change = conversation.update(current)
        else:
            more = text(rng, rng.choice([3, 8]))
            current += more
            change = conversation.append(more)
        branches[place] = (conversation, current)
        check(conversation, change, before, enc.encode(current, **names))


@pytest.mark.parametrize("enc", ALL, ids=lambda enc: enc.name)
def test_changes_equal_encode(enc: bpe_engine.Encoding) -> None:
    for round in range(rounds(40)):
        run_changes(enc, seeded("changes", enc.name, round), 30)


def test_appends_keep_the_rest(gpt2: bpe_engine.Encoding) -> None:
    """Appending takes work that does not depend on the length of the existing text."""
    line = "one word after the other, and ünïcode. "
    for make in (
        lambda: "word and more" * 10,
        lambda: [untrusted("word "), special("<|endoftext|>")],
    ):
        work = []
        for size in (2_000, 200_000):
            conversation = bpe_engine.prompt.Conversation(gpt2)
            more = make()
            conversation.update(
                line * (size // 40) if isinstance(more, str) else [untrusted(line * (size // 40))]
            )
            kept = len(conversation)
            for _ in range(4):
                change = conversation.append(make())
                assert change.kept >= kept - 2 and len(change.ids) < 60
                kept = len(conversation)
            start = bpe_engine._core.work_done()
            conversation.append(make())
            work.append(bpe_engine._core.work_done() - start)
        assert work[1] <= work[0] + 2_000, work


def test_appends_of_the_other_kind_are_refused(gpt2: bpe_engine.Encoding) -> None:
    conversation = bpe_engine.prompt.Conversation(gpt2)
    assert conversation.append("") == conversation.append([]) == (0, [])
    conversation.append("a text")
    with pytest.raises(TypeError, match="the prompt so far is a text: append a str"):
        conversation.append([untrusted(" more")])
    assert conversation.append(" more").ids == gpt2.encode(" more")
    conversation.update([untrusted("a text")])
    with pytest.raises(TypeError, match="has segments: append a list of segments"):
        conversation.append(" more")
    conversation.append(part for part in [untrusted(" more")])
    assert conversation.ids == gpt2.encode("a text more")
    for wrong in (None, 5, b"bytes", {"a": "b"}):
        with pytest.raises(TypeError, match="must be a list of segments"):
            conversation.append(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not have"):
        conversation.append([special("<|none|>")])
    assert conversation.ids == gpt2.encode("a text more")


def test_concurrent_appends_are_all_there() -> None:
    enc = bpe_engine.get_encoding("cl100k_base")
    for size in (10, 40_000):
        conversation = bpe_engine.prompt.Conversation(enc)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda i: conversation.append(f"{i} " * size), range(12)))
        whole = enc.decode(conversation.ids)
        assert conversation.ids == enc.encode(whole)
        assert sorted(whole.split()) == sorted(str(i) for i in range(12) for _ in range(size))


def check_stable(enc: bpe_engine.Encoding, rng: random.Random, continuations: int) -> float:
    allowed: Any = rng.choice([set(), "all"])
    begin = text(rng, 20)
    ids, characters = bpe_engine.prompt.stable_prefix(
        enc, begin, allowed_special=allowed, disallowed_special=()
    )
    assert 0 <= characters <= len(begin)
    for _ in range(continuations):
        whole = enc.encode(begin + text(rng, 4), allowed_special=allowed, disallowed_special=())
        assert whole[: len(ids)] == ids, (begin, ids)
    part = enc.encode(begin[:characters], allowed_special=allowed, disallowed_special=())
    assert part == ids
    return characters / max(1, len(begin))


@pytest.mark.parametrize("enc", ALL, ids=lambda enc: enc.name)
def test_stable_ids_stay(enc: bpe_engine.Encoding) -> None:
    rng = seeded("prompt")
    shares = [check_stable(enc, rng, 20) for _ in range(rounds(80))]
    shares.append(check_stable(enc, rng, 200))
    if enc.name in ENCODINGS:
        assert sum(shares) / len(shares) > 0.5


def test_stable_prefix_of_a_text_that_grows_only_grows(gpt2: bpe_engine.Encoding) -> None:
    whole = "It's 10 o'clock, and <|endoftext|> all is well.\n\n  Or not?"
    before: list[int] = []
    for end in range(len(whole) + 1):
        ids, _ = bpe_engine.prompt.stable_prefix(gpt2, whole[:end], allowed_special="all")
        assert ids[: len(before)] == before
        before = ids
    assert len(before) > 10


def segments_of(rng: random.Random, enc: bpe_engine.Encoding) -> list[Any]:
    names = sorted(enc.special_tokens_set)
    return [
        rng.choice(
            [
                lambda: untrusted(text(rng, 5)),
                lambda: trusted(text(rng, 3) + rng.choice(names) + text(rng, 2)),
                lambda: special(rng.choice(names)),
                lambda: tokens([rng.randrange(200) for _ in range(rng.randrange(3))]),
            ]
        )()
        for _ in range(rng.randrange(6))
    ]


@pytest.mark.parametrize("enc", ALL, ids=lambda enc: enc.name)
def test_updates_with_segments_equal_encode_segments(enc: bpe_engine.Encoding) -> None:
    rng = seeded("prompt")
    conversation = bpe_engine.prompt.Conversation(enc, allowed_special="all")
    current: list[Any] = []
    before: list[int] = []
    for _ in range(rounds(120)):
        at = rng.randrange(len(current) + 1)
        current = rng.choice(
            [
                current + segments_of(rng, enc),
                current[:at] + segments_of(rng, enc) + current[at:],
                current[:at],
                current[at:],
                current[:at] + current[at + 1 :],
            ]
        )
        if rng.random() < 0.2:
            # The same text in untrusted segments: only special tokens change.
            current = [untrusted(s.text) if s.kind == "text" else s for s in current]
        if rng.random() < 0.5:
            more = segments_of(rng, enc)
            conversation.update(current)
            before = conversation.ids
            current = current + more
            change = conversation.append(more)
        else:
            change = conversation.update(current)
        expected = enc.encode_segments(current)
        check(conversation, change, before, expected)
        before = expected
        if rng.random() < 0.1:
            rendered = "".join(segment.text for segment in current)
            before = enc.encode(rendered, allowed_special="all")
            conversation.update(rendered)
            assert conversation.ids == before


def test_only_what_changed_is_new() -> None:
    enc = bpe_engine.get_encoding("o200k_base")
    conversation = bpe_engine.prompt.Conversation(enc)
    history = "One message after the other, and nothing new. " * 400
    conversation.update(history)
    change = conversation.update(history + "But this is.")
    assert change.kept >= len(conversation.ids) - 6 and len(change.ids) <= 6
    change = conversation.update(history[:-10])
    assert len(change.ids) <= 2
    assert conversation.ids_numpy.tolist() == conversation.ids
    assert len(conversation) == len(conversation.ids)
    assert conversation.memory < 4 * len(history)


def test_guards_are_those_of_encode(gpt2: bpe_engine.Encoding) -> None:
    conversation = bpe_engine.prompt.Conversation(gpt2)
    conversation.update("Hello <|endof")
    ids = conversation.ids
    with pytest.raises(ValueError) as ours:
        conversation.update("Hello <|endoftext|>")
    with pytest.raises(ValueError) as whole:
        gpt2.encode("Hello <|endoftext|>")
    assert str(ours.value) == str(whole.value)
    # The conversation is unchanged.
    assert conversation.ids == ids
    assert conversation.update("Hello <|endof") == (len(ids), [])
    with pytest.raises(ValueError):
        bpe_engine.prompt.Conversation(gpt2, disallowed_special={"lo w"}).update("Hello world")
    with pytest.raises(TypeError, match='must be "all" or a set of names'):
        bpe_engine.prompt.Conversation(gpt2, allowed_special="<|endoftext|>")  # type: ignore[arg-type]
    for wrong in (None, 5, b"bytes"):
        with pytest.raises(TypeError):
            conversation.update(wrong)  # type: ignore[arg-type]
    assert conversation.ids == ids


def test_guards_find_names_across_what_stayed(gpt2: bpe_engine.Encoding) -> None:
    rng = seeded("prompt")
    for _ in range(rounds(300)):
        disallowed: Any = rng.choice(["all", {"ab c"}, {"<|endoftext|>", "x"}])
        conversation = bpe_engine.prompt.Conversation(gpt2, disallowed_special=disallowed)
        current = ""
        for _ in range(6):
            more = rng.choice(["<|endof", "text|>", "ab", " c", "x", " y", "<|"])
            appends = rng.random() < 0.5
            current = current[: len(current) if appends else rng.randrange(len(current) + 1)] + more
            try:
                expected: Any = gpt2.encode(current, disallowed_special=disallowed)
            except ValueError as error:
                expected = str(error)
            try:
                conversation.append(more) if appends else conversation.update(current)
                assert conversation.ids == expected
            except ValueError as error:
                assert str(error) == expected
                current = ""
                conversation.update("")


def test_forks_go_their_own_ways(gpt2: bpe_engine.Encoding) -> None:
    conversation = bpe_engine.prompt.Conversation(gpt2)
    conversation.update("Once upon a time")
    for other in (conversation.fork(), copy.copy(conversation), copy.deepcopy(conversation)):
        other.update("Once upon a hill")
        assert other.ids == gpt2.encode("Once upon a hill")
        assert conversation.ids == gpt2.encode("Once upon a time")


def test_many_threads() -> None:
    enc = bpe_engine.get_encoding("cl100k_base")
    conversation = bpe_engine.prompt.Conversation(enc)
    texts = [f"thread {i} " * 9000 for i in range(4)]
    expected = {i: enc.encode(text) for i, text in enumerate(texts)}

    def work(i: int) -> None:
        for n in range(6):
            own = texts[i][: len(texts[i]) - 7 * n]
            change = conversation.update(own)
            ids = enc.encode(own)
            assert not change.ids or change.ids[-1] == ids[-1]
            assert change.kept + len(change.ids) == len(ids)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    conversation.update(texts[0])
    assert conversation.ids == expected[0]
