"""Compares real files of WordPiece and Unigram models with `tokenizers`: every field, every ability."""

from __future__ import annotations

from pathlib import Path

import pytest
from hf_oracle import SHARED, TEXTS, assert_same, both
from seeds import seeded

from bpe_engine import Tokenizer, hf

FOLDER = SHARED / "tokenizers" / "models"
FILES = [
    "bert-base-cased",
    "bert-base-chinese",
    "bert-base-multilingual-cased",
    "bert-base-uncased",
    "t5-small",
    "wordpiece-added-token-order",
    "wordpiece-dont-strip-accents",
    "wordpiece-minimal",
    "wordpiece-with-empty-token",
    "xlnet-base-cased",
]
PARTS = [
    *TEXTS, " ", " ", "  ", "\n", "\t", "\r\n", "\x85", "\u2028", "\u00a0", "\u3000", "The ", "unaffable", "don't",
    "[SEP]", "[MASK]", "</s>", "<extra_id_0>", "<pad>", "`` quoted ''", "naïve café", "ﬁ½²", "a" * 101, "1,", "한국어",
    "中文字", "İI", "ΑΣ ", "😀", "\u0301", "\x00", "\ufffd", "e\u0301", ".", "-", "$9.99", "ﷺ",
]  # fmt: skip


@pytest.fixture(params=FILES, scope="module")
def pair(request):
    path = FOLDER / f"{request.param}.json"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return both(Path(path).read_text("utf-8"))


def texts(count: int, note: str) -> list[str]:
    rng = seeded(f"model files {note}")
    return ["".join(rng.choices(PARTS, k=rng.randrange(12))) for _ in range(count)]


def test_every_field(pair):
    ours, theirs = pair
    assert ours.to_str() == theirs.to_str()
    assert ours.get_vocab_size() == theirs.get_vocab_size()
    for text in [*TEXTS, *texts(300, "fields")]:
        expected = theirs.encode(text)
        assert_same(ours.encode(text), expected, text)
        assert_same(ours.encode(text, "a b"), theirs.encode(text, "a b"), text)
        for skip in (True, False):
            assert ours.decode(expected.ids, skip) == theirs.decode(expected.ids, skip), text
    for text in ("a" * 50_000, "word " * 20_000, "中" * 20_000, " " * 50_000, "é" * 20_000):
        assert ours.encode(text).ids == theirs.encode(text).ids


def test_a_cache_of_chunks_changes_nothing(pair):
    ours, theirs = pair
    chosen = texts(200, "chunks")
    ours.set_caching(False)
    apart = [ours.encode(text, add_special_tokens=False).ids for text in chosen]
    ours.set_caching(True)
    for _ in range(2):
        for text, expected in zip(chosen, apart):
            assert ours.encode(text, add_special_tokens=False).ids == expected
    long = " ".join(chosen)
    expected = theirs.encode(long, add_special_tokens=False).ids
    assert ours.encode_to_numpy(long, num_threads=2).tolist() == expected
    assert ours.count(long) == len(expected)
    for most in (1, 7, 100):
        # A cut between two tokens makes no more of them.
        assert ours.count(ours.truncate(long, most)) <= most


def test_other_parts_do_not_meet_old_chunks(pair):
    ours = hf.Tokenizer.from_str(pair[0].to_str())
    text = "The naïve Word's café words\nThe naïve"
    for normalizer in (None, '{"type":"Lowercase"}', '{"type":"StripAccents"}', None):
        ours.encode(text)
        ours._set_component("normalizer", normalizer)
        _, theirs = both(ours.to_str())
        assert_same(ours.encode(text), theirs.encode(text), normalizer)
    for step in ('{"type":"WhitespaceSplit"}', '{"type":"Whitespace"}', None):
        ours._set_component("pre_tokenizer", step)
        _, theirs = both(ours.to_str())
        assert_same(ours.encode(text), theirs.encode(text), step)


def test_abilities(pair):
    ours, theirs = pair
    face = Tokenizer(ours)
    for text in texts(30, "abilities"):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert face.encode_to_numpy(text).tolist() == ids
        assert face.count(text) == len(ids)
        assert [token.id for token in face.show(text)] == ids
        conversation = ours.conversation()
        conversation.update(text[: len(text) // 2])
        conversation.update(text)
        assert conversation.ids == ids
