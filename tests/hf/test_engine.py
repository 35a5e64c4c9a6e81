"""The abilities of native engines, over tokenizer files of every kind: against `tokenizers`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from charsmaps import charsmap
from hf_components import (
    added_tokens,
    examples,
    extra_texts,
    flags,
    model,
    normalizer_chains,
    pre_tokenizer_chains,
)
from hf_oracle import (
    CHARACTER_FILES,
    FILES,
    TEXTS,
    both,
    texts_with_added,
    tokenizer_path,
    tokenizers,
)
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded
from tokenizers import normalizers, pre_tokenizers

from bpe_engine import hf
from bpe_engine.prompt import trusted, untrusted

WORDS = (
    "Hello world, don't STOP  12345 \n\n e\u0301 日本語。 😀 <s> </s> <mask>x <|endoftext|> a_b ﬁ "
)


def engine_of(ours: hf.Tokenizer) -> Any:
    return ours._native_engine


def check(ours: hf.Tokenizer, theirs: Any, text: str, limits: list[int]) -> None:
    """Compares every ability with what `tokenizers` gives for a text."""
    engine = engine_of(ours)
    try:
        expected = theirs.encode(text, add_special_tokens=False)
    except Exception:  # As no unknown token: each ability raises, too.
        with pytest.raises(ValueError):
            engine.count(text, None, "all", ())
        return
    ids = expected.ids
    assert engine.encode(text, "all", ()) == ids
    assert engine.encode_to_numpy(text, 4, "all", ()).tolist() == ids
    assert engine.encode_batch([text, "", text], 2, "all", ())[2] == ids
    assert engine.encode_with_offsets(text, "all", ()) == (ids, expected.offsets)
    assert engine.count(text, None, "all", ()) == len(ids)
    for name, start, end in engine.find_special(text):
        assert name.strip() in text[start:end] or ours.normalizer is not None
    borders = {0, len(text), *(place for span in expected.offsets for place in span)}
    for limit in limits:
        count = engine.count(text, limit, "all", ())
        assert count == len(ids) or min(count, len(ids)) > limit
        for place in check_parts(ours, engine, text, limit):
            assert place in borders or ours.post_processor is not None, (text, place)


def check_parts(ours: hf.Tokenizer, engine: Any, text: str, limit: int) -> list[int]:
    """Compares the counts of parts. Returns where `truncate` cuts."""

    def count(part: str) -> int:
        return len(ours.encode(part, add_special_tokens=False).ids)

    kept = engine.truncate(text, limit, False, "all", ())
    last = engine.truncate(text, limit, True, "all", ())
    assert count(text[:kept]) <= limit, (text, kept)
    assert count(text[len(text) - last :]) <= limit, (text, last)
    if count(text) <= limit:
        assert kept == last == len(text)
    for overlap in (0, limit // 2):
        try:
            chunks = engine.chunk(text, max(limit, 1), overlap, "all", ())
        except ValueError as error:
            assert "alone has more than" in str(error)
            continue
        assert all(count(text[start:end]) <= max(limit, 1) for start, end in chunks)
        joined = chunks[0][0] if chunks else 0
        for start, end in chunks:
            assert start <= joined < end
            joined = end
        assert joined == len(text)
    return [kept, len(text) - last]


@pytest.mark.parametrize("name", [*FILES, *CHARACTER_FILES])
def test_real_files(name):
    path = tokenizer_path(name)
    with open(path, encoding="utf-8") as file:
        ours, theirs = both(file.read())
    for text in [*TEXTS, *texts_with_added(path), WORDS * 3]:
        check(ours, theirs, text, [0, 1, 7])
    long = WORDS * 40
    check(ours, theirs, long, [100, 1000])


@pytest.mark.parametrize("name", [*FILES, *CHARACTER_FILES])
def test_long_texts_are_cut_near_the_limit(name):
    with open(tokenizer_path(name), encoding="utf-8") as file:
        ours, _ = both(file.read())
    engine, text = engine_of(ours), WORDS * 3000
    ids = ours.encode(text, add_special_tokens=False).ids
    assert engine.encode_to_numpy(text, 2, "all", ()).tolist() == ids
    for from_left in (False, True):
        kept = engine.truncate(text, 1000, from_left, "all", ())
        part = text[len(text) - kept :] if from_left else text[:kept]
        assert 990 <= engine.count(part, None, "all", ()) <= 1000


@pytest.mark.parametrize("name", [*FILES, *CHARACTER_FILES])
def test_ids_are_decoded(name):
    with open(tokenizer_path(name), encoding="utf-8") as file:
        ours, theirs = both(file.read())
    engine = engine_of(ours)
    for text in [*TEXTS, WORDS]:
        ids = theirs.encode(text, add_special_tokens=False).ids
        decoded = theirs.decode(ids, skip_special_tokens=False)
        try:
            assert engine.decode(ids, "replace") == decoded
        except hf.UnsupportedTokenizer:
            assert "\ufffd" in decoded
            continue
        found, starts = engine.decode_with_offsets(ids)
        assert found == decoded and len(starts) == len(ids) and sorted(starts) == starts
        if theirs.encode(decoded, add_special_tokens=False).ids == ids and "<" not in text:
            assert engine.is_canonical(ids), text
    ids = theirs.encode(WORDS, add_special_tokens=False).ids
    shuffled = seeded("shuffled").sample(ids, len(ids))
    assert not engine.is_canonical(shuffled)


@examples(120)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["bytes", "characters", "fallback"]),
    permuted=flags,
    split=pre_tokenizer_chains,
    normalizer=normalizer_chains,
    added=added_tokens,
    texts=st.lists(extra_texts, min_size=1, max_size=4),
    limit=st.integers(0, 12),
)
def test_random_files(seed, kind, permuted, split, normalizer, added, texts, limit):
    over = kind != "bytes"
    byte_tokens = 256 if kind == "fallback" else 0
    theirs = tokenizers.Tokenizer(
        model(
            seed,
            False,
            permuted,
            40,
            unk_token="<u>",
            over_characters=over,
            byte_tokens=byte_tokens,
        )
    )
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.pre_tokenizer = split if over else (split or level)
    theirs.normalizer = normalizer
    try:
        theirs.add_tokens(added)
        ours, theirs = both(theirs.to_str())
    except Exception:  # Refused here, or there: other tests compare why.
        return
    for text in texts:
        check(ours, theirs, text + " " + text, [limit])


def test_caches_stay_as_they_are_set(monkeypatch):
    monkeypatch.setenv("BPE_ENGINE_CACHE", "off")
    monkeypatch.setenv("BPE_ENGINE_CACHE_SIZE", "1 MiB")
    with open(tokenizer_path("gpt2"), encoding="utf-8") as file:
        ours = hf.Tokenizer.from_str(file.read())
    monkeypatch.delenv("BPE_ENGINE_CACHE")
    engine = engine_of(ours)
    assert not engine.is_caching and engine.cache_size == 1 << 20
    ours.add_tokens(["<new>"])
    ours.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    assert not engine.is_caching and engine.cache_size == 1 << 20
    engine.set_caching(True)
    ours.pre_tokenizer = pre_tokenizers.ByteLevel()
    assert engine.is_caching
    engine.clear_cache()
    assert json.loads(ours.to_str())["added_tokens"][-1]["content"] == "<new>"


def test_a_run_of_bytes_is_cut_between_characters() -> None:
    """Unigram makes the bytes of unknown characters together, with one span in `tokenizers`."""
    pieces = [("<unk>", 0.0), *((f"<0x{byte:02X}>", 0.0) for byte in range(256)), ("▁", -3.0)]
    tokenizer = hf.Tokenizer(hf.Unigram([*pieces, ("a", -2.0)], 0, True))
    text = "日本語" * 50 + " a " + "éü" * 30
    for most in (3, 7, 20):
        spans = tokenizer.chunk_spans(text, most)
        assert "".join(text[start:end] for start, end, _ in spans) == text
        assert all(count <= most for *_, count in spans)
        assert tokenizer.truncate(text, most) == text[: most // 3]
        assert tokenizer.truncate(text, most, side="left") == text[-(most // 2) :]


@pytest.mark.parametrize("has_bytes", [False, True])
def test_unknown_characters_never_become_names_in_segments(has_bytes: bool) -> None:
    """Unigram looks a run of unknown characters up, which may be the name of a special token."""
    bytes_of = [(f"<0x{byte:02X}>", 0.0) for byte in range(256)] if has_bytes else []
    pieces = [("<unk>", 0.0), ("▁", -1.0), ("a", -1.0), ("</s>", 0.0), ("#", -1.0), *bytes_of]
    theirs = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, 0, has_bytes))
    theirs.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", True)
    theirs.add_special_tokens(["</s>", "#"])
    ours, _ = both(theirs.to_str())
    for text in ("a</s>", "</s>", "a#a", "#", "日本</s>"):
        for segment in (untrusted(text), untrusted(text.replace("a", "a "))):
            ids = ours.encode_segments([segment])
            assert not {3, 4} & set(ids), (segment, ids)
            ours.audit_segments([segment]).assert_safe()
    assert ours.encode_segments([untrusted("a</s>")])[:2] == [1, 2]
    assert ours.encode_segments([trusted("a</s>")])[-1] == 3


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Replace(tokenizers.Regex(" {2,}"), "▁"),
        normalizers.Precompiled(charsmap({"a": "", "é": "x y", "\t": ""})),
        normalizers.Replace("a", ""),
    ],
    ids=["joined", "removed by a rule", "removed"],
)
@pytest.mark.parametrize("is_cut", [False, True])
def test_beginnings_that_a_normalizer_changes(normalizer: Any, is_cut: bool) -> None:
    """Metaspace marks a beginning by its offset, which is that of the last of joined spaces, and of what
    a rule removes."""
    vocab = {"<unk>": 0, "_": 1, "▁": 2, "_b": 3, "b": 4, "y": 5, "_y": 6}
    theirs = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, "<unk>"))
    theirs.normalizer = normalizer
    metaspace = pre_tokenizers.Metaspace("_", "first")
    cut = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    theirs.pre_tokenizer = cut if is_cut else metaspace
    theirs.add_tokens(["x"])
    ours, theirs = both(theirs.to_str())
    texts = [
        "  ",
        "   a",
        "a",
        " a",
        "",
        "  a  b",
        "a  ",
        "ab",
        "ab b",
        "\tb",
        "aab",
        "aé",
        "éb",
        "xb",
    ]
    for text in texts:
        expected = theirs.encode(text).ids
        assert ours.encode(text).ids == expected
        assert ours.encode_segments([trusted(text)]) == expected
        assert ours.conversation().update(text).ids == expected
        assert ours.encode_with_offsets(text, unit="bytes")[0] == expected
