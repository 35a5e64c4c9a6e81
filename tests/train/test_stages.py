"""Tests training with a second stage (superwords), and balanced training on several corpora."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seeds import seeded

import bpe_engine
from vocab_tools import TrainOptions, train_vocabulary
from vocab_tools.train.superwords import LINES


@pytest.fixture
def english(tmp_path: Path) -> Path:
    chooser = seeded("superwords")
    phrases = [
        "by the way", "on the other hand", "as well as", "cat", "dog", "in", "1990", "at all",
    ]  # fmt: skip
    path = tmp_path / "english.txt"
    lines = (" ".join(chooser.choices(phrases, k=8)) + ".\n" for _ in range(400))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def words_of(token: bytes) -> int:
    return len(token.split())


def test_superwords(english: Path) -> None:
    """No token learned before the transition crosses a word boundary. Later tokens may, within a
    line and up to four words, and the text needs fewer tokens."""
    plain = train_vocabulary(english, 340)
    result = train_vocabulary(english, 340, TrainOptions(superwords_from=280))
    assert list(result.ranks)[:280] == list(plain.ranks)[:280]
    subwords, superwords = list(result.ranks)[256:280], list(result.ranks)[280:]
    splitter = plain.encoding()
    assert all(len(splitter.split(token.decode())) == 1 for token in subwords)
    assert any(words_of(token) > 1 for token in superwords)
    assert any(len(splitter.split(token.decode())) > 1 for token in superwords)
    assert max(map(words_of, superwords)) <= 4
    assert not any(b"\n" in token.strip(b"\n") for token in superwords)
    assert sum(result.corpus_tokens) < sum(plain.corpus_tokens)
    text = english.read_text(encoding="utf-8")
    assert len(result.encoding().encode(text)) == sum(result.corpus_tokens)
    two = train_vocabulary(english, 340, TrainOptions(superwords_from=280, max_words=2))
    assert max(map(words_of, list(two.ranks)[280:])) == 2


def test_superwords_in_a_tokenizer_json(english: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    result = train_vocabulary(english, 340, TrainOptions(superwords_from=280))
    text = english.read_text(encoding="utf-8")
    contents = result.tokenizer_json().decode()
    ids = result.encoding().encode(text)
    assert tokenizers.Tokenizer.from_str(contents).encode(text).ids == ids
    assert bpe_engine.hf.Tokenizer.from_str(contents).encode(text).ids == ids
    assert LINES in json.dumps(json.loads(contents), ensure_ascii=False).replace("\\\\", "\\")


def test_lines_need_text(english: Path) -> None:
    with pytest.raises(ValueError, match="balance by lines needs text files"):
        train_vocabulary([{"ab": 2}, {"cd": 3}], 258, TrainOptions(balance="lines"))
    with pytest.raises(ValueError, match="corpus 2 is empty"):
        train_vocabulary([{"ab": 2}, {}], 258, TrainOptions(balance="bytes"))
    with pytest.raises(ValueError, match="counts have no lines"):
        train_vocabulary({"ab": 3}, 300, TrainOptions(superwords_from=280))
    with pytest.raises(ValueError, match="counts have no lines"):
        train_vocabulary(["-", english], 300, TrainOptions(superwords_from=280))


def corpora(folder: Path) -> list[list[Path]]:
    """Writes a large corpus, a small corpus, and a corpus with Han characters."""
    chooser = seeded("balance")
    found = []
    for name, letters, lines in [("a", "abcde", 200), ("b", "vwxyz", 30), ("c", "猫犬鳥魚", 30)]:
        words = ["".join(chooser.choices(letters, k=chooser.randint(2, 6))) for _ in range(80)]
        path = folder / f"{name}.txt"
        path.write_text("".join(" ".join(chooser.choices(words, k=9)) + "\n" for _ in range(lines)))
        found.append([path])
    return found


def tokens_of(text: bytes, merges: list[tuple[bytes, bytes]]) -> int:
    """Returns the number of tokens of a text after applying the merges one by one."""
    tokens = [text[place : place + 1] for place in range(len(text))]
    for left, right in merges:
        place = 0
        while place + 1 < len(tokens):
            if tokens[place] == left and tokens[place + 1] == right:
                tokens[place : place + 2] = [left + right]
            place += 1
    return len(tokens)


@pytest.mark.parametrize("unit", ["bytes", "characters", "lines"])
def test_each_merge_serves_the_corpus_that_is_worst_off(tmp_path: Path, unit: str) -> None:
    parts = corpora(tmp_path)
    result = train_vocabulary(parts, 276, TrainOptions(balance=unit))
    texts = [part[0].read_text(encoding="utf-8") for part in parts]
    units = {
        "bytes": [len(text.encode()) for text in texts],
        "characters": [len(text) for text in texts],
        "lines": [len(text.splitlines()) for text in texts],
    }[unit]
    pairs = [(merge.left, merge.right) for merge in result.merges]
    assert len(pairs) == 20
    for number, merge in enumerate(result.merges):
        # Merges never cross pieces, and pieces begin at spaces, so texts are merged as a whole.
        tokens = [tokens_of(text.encode(), pairs[:number]) for text in texts]
        rates = [unit / count for unit, count in zip(units, tokens)]
        assert rates[merge.corpus] == min(rates), number
    assert [tokens_of(text.encode(), pairs) for text in texts] == result.corpus_tokens


def test_a_corpus_without_pairs_leaves_its_turn_to_the_next(tmp_path: Path) -> None:
    for name, text in (("a", "a b c d " * 50), ("b", "hello hello")):
        (tmp_path / name).write_text(text)
    result = train_vocabulary(
        [[tmp_path / "a"], [tmp_path / "b"]], 262, TrainOptions(balance="bytes", pattern=r"\w+")
    )
    assert result.served() == [0, 4] and result.size == 260
