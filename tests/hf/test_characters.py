"""Compares character-level files with byte fallback, made-up and real, with `tokenizers`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hf_oracle import CHARACTER_FILES, assert_same, both, tokenizer_path, tokenizers
from pages import ROOT
from seeds import rounds, seeded
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from work import work

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import tokens, untrusted
from bpe_engine.serving import ConversationCache

SPACED = normalizers.Replace(" ", "▁")
PLAIN = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
STRIPPED = decoders.Sequence([*PLAIN, decoders.Strip(" ", 1, 0)])
RUNS = [mark * count for mark in "▁\n" for count in (2, 3, 4, 8)]

#: Normalizer, pre-tokenizer and decoder, and whether runs of spaces and line ends are added tokens.
KINDS: dict[str, tuple[Any, Any, Any, bool]] = {
    "gemma": (
        SPACED,
        pre_tokenizers.Split(" ", "merged_with_previous"),
        decoders.Sequence(PLAIN),
        False,
    ),
    "gemma, added runs": (SPACED, None, decoders.Sequence(PLAIN), True),
    "llama": (normalizers.Sequence([normalizers.Prepend("▁"), SPACED]), None, STRIPPED, False),
    "first": (None, pre_tokenizers.Metaspace("▁", "first", False), STRIPPED, False),
    "always": (None, pre_tokenizers.Metaspace("▁", "always", True), decoders.Metaspace(), False),
    "never": (None, pre_tokenizers.Metaspace("▁", "never", False), STRIPPED, False),
    "digits": (None, pre_tokenizers.Split(Regex(r"\d"), "isolated"), STRIPPED, False),
}


@cache
def trained() -> dict[str, Any]:
    """Returns the vocabulary and merges of a small SentencePiece-like file."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), SPACED])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("▁+[^▁]*"), "isolated")
    text = (ROOT / "benchmarks" / "cases" / "texts" / "multi.txt").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)[:3000] + [" " * 40 + "x\n" * 9] * 20
    trainer = trainers.BpeTrainer(vocab_size=4000, limit_alphabet=300, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names += [name for name in model["vocab"] if name not in names]
    model["vocab"] = {name: id for id, name in enumerate(dict.fromkeys([*names, "▁of▁the"]))}
    return model


def made(kind: str, **options: Any) -> tuple[hf.Tokenizer, tokenizers.Tokenizer]:
    """Returns our tokenizer and theirs for a kind in `KINDS`, with options for the model."""
    model = {**trained(), "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, **options}
    if model.pop("shuffled", False):
        names = list(model["vocab"])
        ids = seeded("shuffled").sample(range(len(names)), len(names))
        model["vocab"] = dict(zip(names, ids, strict=True))
    normalizer, pre_tokenizer, decoder, has_added_runs = KINDS[kind]
    theirs = tokenizers.Tokenizer(models.BPE())
    contents = {**json.loads(theirs.to_str()), "model": model}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(contents))
    theirs.decoder = decoder
    if normalizer is not None:
        theirs.normalizer = normalizer
    if pre_tokenizer is not None:
        theirs.pre_tokenizer = pre_tokenizer
    theirs.add_special_tokens(["<s>", "</s>", AddedToken("<|user|>", rstrip=True)])
    if has_added_runs:
        theirs.add_tokens([AddedToken(run, normalized=False) for run in RUNS])
    return both(theirs.to_str())


def random_texts(name: str, theirs: tokenizers.Tokenizer, count: int) -> list[str]:
    """Returns texts with many spaces, marks, digits, unknown characters and added tokens."""
    rng = seeded(name, count)
    added = [token.content for token in theirs.get_added_tokens_decoder().values()]
    halves = [part for name in added for part in (name[: len(name) // 2], name[len(name) // 2 :])]
    vocabulary = list(theirs.get_vocab(False))
    some = rng.sample(vocabulary, 2000)
    likely = [
        " ",
        " ",
        "  ",
        "▁",
        "▁▁",
        "\n",
        "\n\n",
        "   ",
        "\t",
        "0",
        "7",
        "42",
        "1999",
        "³",
        "٣",
    ]
    likely += ["\U0001f600", "☃", "\ue000", "\u0301", "é", "日", "本語", "\x00", "\x1c", "\ufeff"]
    likely += ["<0x0A>", "<0xE2>", "<unk>", "the", " of the ", "naïve", "x", ".", "don't", "\u2028"]
    pools = [likely, likely, [token.replace("▁", " ") for token in some], some, added or likely]
    pools.append(halves or likely)
    return [
        "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 12)))
        for _ in range(count)
    ]


def compare_fields(ours: hf.Tokenizer, theirs: tokenizers.Tokenizer, texts: list[str]) -> None:
    for text, expected in zip(texts, theirs.encode_batch(texts), strict=True):
        assert_same(ours.encode(text), expected, text)
        for skip in (True, False):
            assert ours.decode(expected.ids, skip) == theirs.decode(expected.ids, skip), text
    pairs = list(zip(texts[::2], texts[1::2]))[: len(texts) // 10]
    for pair, expected in zip(pairs, theirs.encode_batch(pairs), strict=True):
        assert_same(ours.encode(*pair), expected, pair)


OPTIONS: dict[str, dict[str, Any]] = {
    "fallback": {},
    "unknown": {"byte_fallback": False, "fuse_unk": False},
    "fused": {"byte_fallback": False},
    "whole": {"ignore_merges": True},
    "ids in another order": {"shuffled": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
def test_fields_of_random_texts(kind, options):
    ours, theirs = made(kind, **OPTIONS[options])
    assert ours.to_str() == theirs.to_str()
    compare_fields(ours, theirs, random_texts(kind + options, theirs, 150))


BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
REFUSED: dict[str, tuple[dict[str, int], list[Any], Any]] = {
    "a part out of the vocabulary": ({"é": 0, "é\n": 1}, [["é", "\n"]], None),
    "a result out of the vocabulary": ({"日": 0, "1": 1, "a long one": 2}, [["日", "1"]], None),
    "a text out of the vocabulary, not of bytes": (
        {"日": 0, "☃": 1, "a long one": 2},
        [["日", "☃"]],
        BYTE_LEVEL,
    ),
    "strings and lists": ({"a": 0, "b": 1, "ab": 2, "aba": 3}, ["a b", ["ab", "a"]], None),
    "lists and strings": ({"a": 0, "b": 1, "ab": 2, "aba": 3}, [["a", "b"], "ab a"], None),
    "three tokens in a string": ({"a": 0, "aa": 1}, ["a a a"], None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_merges_that_tokenizers_refuses(name):
    vocab, merges, pre_tokenizer = REFUSED[name]
    empty = tokenizers.Tokenizer(models.BPE())
    if pre_tokenizer is not None:
        empty.pre_tokenizer = pre_tokenizer
    file = json.loads(empty.to_str())
    file["model"].update(vocab=vocab, merges=merges)
    for kind, error in ((tokenizers.Tokenizer, Exception), (hf.Tokenizer, ValueError)):
        with pytest.raises(error, match=r"merges|vocabulary|MergeType|Merges"):
            kind.from_str(json.dumps(file))


#: Texts of a million characters that are hard for BPE.
HARD = {
    "a": lambda rng: "a" * 10**6,
    "spaces": lambda rng: " " * 10**6,
    "marks": lambda rng: "▁" * 10**6,
    "digits": lambda rng: "".join(rng.choices("0123456789", k=10**6)),
    "Han": lambda rng: "".join(map(chr, rng.choices(range(0x4E00, 0xA000), k=10**6))),
}


@pytest.mark.parametrize("name", ["gemma", "llama", "first", *CHARACTER_FILES])
@pytest.mark.parametrize("kind", HARD)
def test_work_is_linear(name, kind):
    text = HARD[kind](seeded(kind))
    ours = made(name)[0] if name in KINDS else hf.Tokenizer.from_file(tokenizer_path(name))
    short, long = (work(lambda: ours.encode(part)) for part in (text[: len(text) // 8], text))
    assert long <= 9 * short + 10_000
    assert len(text) <= long <= 20 * len(text.encode())


def test_merging_by_the_list_can_be_stopped():
    ours, theirs = made("gemma", merges=trained()["merges"][::-1])
    text = "the " * 20_000
    assert ours.encode(text).ids == theirs.encode(text).ids
    assert work(lambda: ours.encode_segments([untrusted(text)])) > 10 * len(text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["right", "left"])
def test_truncated_texts_and_overflow(kind, direction):
    ours, theirs = made(kind)
    given = random_texts(kind, theirs, 400)
    texts = ["".join(given[at::20]) for at in range(rounds(20))]
    texts += ["☃" * 500, " " * 900, "\n☃ " * 300, "日本語 " * 200]
    for length, stride in ((1, 0), (7, 3), (64, 0), (300, 20)):
        for each in (ours, theirs):
            each.enable_truncation(length, stride=stride, direction=direction)
        for text in texts:
            expected = theirs.encode(text)
            assert ours.encode_batch([text])[0].ids == expected.ids
            assert_same(ours.encode(text), expected, (length, stride, text))


@pytest.mark.parametrize("kind", ["llama", "first", "always", "gemma"])
def test_truncation_reads_a_text_as_far_as_it_keeps_it(kind):
    ours, _ = made(kind)
    ours.enable_truncation(500)
    text = "the spring of 1999\n日本語 " * 20_000
    assert work(lambda: ours.encode(text)) < 2 * work(lambda: ours.encode(text[:20_000]))


@pytest.mark.parametrize("kind", KINDS)
def test_caches_and_prefixes_of_long_texts(kind):
    ours, theirs = made(kind)
    cache, rng = ConversationCache(ours), seeded("long", kind)
    for _ in range(8):
        parts = random_texts(kind, theirs, 200)
        parts += ["x", "\n \n" * 700, "<|user|>", "\n\n" * 700, "hi<|user|>\n   <", "\u3000" * 500]
        rng.shuffle(parts)
        text = "".join(parts)
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert cache.encode(text) == expected
        for end in rng.choices(range(len(text)), k=20):
            stable = list(bpe_engine.prompt.stable_prefix(ours, text[:end])[0])
            assert expected[: len(stable)] == stable, text[:end]
        if kind != "gemma, added runs":  # There, the model also produces added runs.
            segments = [tokens([5] * 100), untrusted(text)]
            assert cache.encode(segments) == ours.encode_segments(segments)


@pytest.mark.parametrize("kind", KINDS)
def test_caches_where_added_tokens_overlap(kind):
    """An added token takes the spaces after it, even where two spaces are also an added token."""
    ours, theirs = made(kind)
    for each in (ours, theirs):
        added = hf.AddedToken if each is ours else AddedToken
        each.add_tokens(
            [added("<t>", rstrip=True, normalized=False), added("  ", normalized=False)]
        )
    cache = ConversationCache(ours)
    for count in range(7):
        text = "a" * 300 + "<t>" + " " * count + "b" * 2000 + "<t>" * 300 + " " * count + "c"
        for part in (text, text[:1900], text):
            assert cache.encode(part) == theirs.encode(part, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", KINDS)
def test_token_tables_have_what_ids_add(kind):
    ours, theirs = made(kind)
    table = bpe_engine.TokenTable(ours)
    for text in random_texts(kind, theirs, 300):
        ids = theirs.encode(text, add_special_tokens=False).ids
        joined = b"".join(table[id] for id in ids)
        if kind == "always":
            # The decoder removes all marks from the first token.
            assert (
                theirs.decode(ids, False)
                == theirs.decode(ids[:1], False) + b"".join(table[id] for id in ids[1:]).decode()
            )
        else:
            start = b"" if "gemma" in kind else b" "
            assert theirs.decode(ids, False).encode() == joined.removeprefix(start), text
    # Metaspace alone does not decode the names of bytes.
    assert table[ours.token_to_id("<0xE2>")] == (b"<0xE2>" if kind == "always" else b"\xe2")
    assert table[ours.token_to_id("▁of▁the")] == b" of the"
    assert table.kind(ours.token_to_id("<s>")) == "special"
    assert len(table) == max(theirs.get_vocab().values()) + 1


def test_token_tables_without_a_decoder():
    """Without a decoder, decoding joins tokens with spaces."""
    ours, theirs = made("gemma")
    ours.decoder = theirs.decoder = None
    table = bpe_engine.TokenTable(ours)
    for text in [*random_texts("none", theirs, 100), "e\u0301\u2603 <s> the"]:
        ids = theirs.encode(text, add_special_tokens=False).ids
        joined = b"".join(table[id] for id in ids)
        assert theirs.decode(ids, False).encode() == joined.removeprefix(b" "), text
        pool = bpe_engine.StreamPool(ours)
        slot = pool.open(skip_special_tokens=False)
        shown = "".join(pool.step([slot], [id])[0][0] for id in ids)
        assert theirs.decode(ids, False) == shown, text


ODD_DECODERS = [
    decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]),
    decoders.Sequence([decoders.Fuse(), decoders.Replace("a", "b")]),
    decoders.Sequence([decoders.ByteFallback(), decoders.Replace("▁", " ")]),
    decoders.Sequence([decoders.ByteFallback(), decoders.Strip(" ", 1, 0)]),
    decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteLevel()]),
]


@pytest.mark.parametrize("decoder", ODD_DECODERS, ids=repr)
def test_token_tables_that_do_not_exist(decoder):
    ours, _ = made("gemma")
    ours.decoder = decoder
    with pytest.raises(hf.UnsupportedTokenizer, match="an id has no bytes of its own"):
        bpe_engine.TokenTable(ours)
    with pytest.raises(hf.UnsupportedTokenizer, match="decode with a DecodeStream"):
        bpe_engine.StreamPool(ours)
