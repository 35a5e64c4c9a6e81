"""Tests training on files: which text is read, cut out or refused, and what changes nothing."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from seeds import seeded

import bpe_engine
from bpe_engine import vocabulary
from bpe_engine.texts import plain_text
from bpe_engine.texts.listed import corpus_files
from bpe_engine.texts.reading import read_texts
from vocab_tools import TrainOptions, train_vocabulary
from vocab_tools.corpus.cutting import cutting
from vocab_tools.corpus.piece_counts import CorpusCounts, TooLittleMemory, count_corpus

SPANISH = "La cigüeña añadió más leña; ¿cómo está el pingüino? El niño soñó con la montaña. "
ROMANIAN = "Științele naturii: mulți învățăcei își fac lecțiile în pădure, lângă o cărare îngustă. "


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Writes a folder with three files."""
    chooser = seeded("training corpus")
    words = "low lower lowest new newer newest wide wider widest the of and in 2024 猫 犬".split()
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        lines = (" ".join(chooser.choices(words, k=12)) + "\n" for _ in range(300))
        (folder / name).write_text("".join(lines), encoding="utf-8")
    return folder


def test_tokens_of_the_corpus_are_those_that_encoding_gives(corpus: Path) -> None:
    result = train_vocabulary(corpus, 400, TrainOptions(special_tokens=["<|end|>"]))
    text = [path.read_text(encoding="utf-8") for path in sorted(corpus.iterdir())]
    encoding = result.encoding()
    assert sum(len(encoding.encode_ordinary(part)) for part in text) == sum(result.corpus_tokens)
    assert sum(len(part.encode()) for part in text) == sum(result.corpus_bytes)
    assert encoding.decode(encoding.encode("lowest<|end|>", allowed_special="all")).endswith(
        "end|>"
    )


def test_a_tokenizer_json_has_the_same_ids(corpus: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text = (corpus / "a.txt").read_text(encoding="utf-8") + "<|end|> newest"
    for pattern in ("o200k_base", "qwen", "gpt2", r"\w+|\W"):
        result = train_vocabulary(
            corpus, 400, TrainOptions(special_tokens=["<|end|>"], pattern=pattern)
        )
        ids = result.encoding().encode(text, allowed_special="all")
        contents = result.tokenizer_json().decode()
        assert bpe_engine.hf.Tokenizer.from_str(contents).encode(text).ids == ids
        assert tokenizers.Tokenizer.from_str(contents).encode(text).ids == ids


def test_threads_order_and_memory_do_not_matter(corpus: Path) -> None:
    files = sorted(corpus.iterdir())
    expected = train_vocabulary(files, 350)
    for other, options in [
        (files[::-1], {"num_threads": 3}),
        ([str(corpus / "[ab].txt"), str(corpus / "c*")], {"num_threads": 1}),
        ([corpus], {"max_memory": 300_000}),
    ]:
        found = train_vocabulary(other, 350, TrainOptions(**options))  # type: ignore[arg-type]
        assert (found.ranks, found.merges) == (expected.ranks, expected.merges)


@pytest.mark.parametrize("text", [SPANISH, ROMANIAN], ids=["Spanish", "Romanian"])
def test_normalization_forms(text: str, tmp_path: Path) -> None:
    """Composed and decomposed text yield different tokens; with NFC, the same tokens."""
    results = {}
    for form in ("NFC", "NFD"):
        path = tmp_path / form
        path.write_text(unicodedata.normalize(form, text) * 20, encoding="utf-8")  # type: ignore[arg-type]
        results[form] = [
            train_vocabulary(path, 330, TrainOptions(nfc=nfc)).ranks for nfc in (False, True)
        ]
    assert results["NFC"][0] == results["NFC"][1] == results["NFD"][1]
    assert results["NFD"][0] != results["NFC"][0]
    composed = [token for token in results["NFC"][0] if "\u0303".encode() in token]
    assert not composed
    encoding = train_vocabulary(tmp_path / "NFD", 330, TrainOptions(nfc=True)).encoding()
    nfd, nfc = (unicodedata.normalize(form, text) for form in ("NFD", "NFC"))
    assert encoding.encode(nfd) == encoding.encode(nfc)


def test_special_tokens_are_cut_out(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("ab<|end|>ab<|end|>" * 50, encoding="utf-8")
    result = train_vocabulary(path, 259, TrainOptions(special_tokens=["<|end|>", "<pad>"]))
    assert result.special_tokens == {"<|end|>": 257, "<pad>": 258}
    assert list(result.new_tokens) == [b"ab"]
    plain = train_vocabulary(path, 300)
    assert any(b"end" in token for token in plain.ranks)


def test_a_base_keeps_its_ids(corpus: Path) -> None:
    base = bpe_engine.get_encoding("cl100k_base")
    ranks = dict(base.mergeable_ranks)
    special = len(base.special_tokens_set)
    result = train_vocabulary(
        corpus, len(ranks) + special + 7, TrainOptions(special_tokens=["<x>"]), base=base
    )
    assert ranks.items() <= result.ranks.items()
    assert list(result.new_tokens.values()) == list(range(100277, 100277 + 6))
    assert result.special_tokens == {**dict(base.special_tokens), "<x>": 100283}
    # Some words of the corpus are now one token; tokens of the base are unchanged.
    text = (corpus / "a.txt").read_text(encoding="utf-8")
    assert len(result.encoding().encode(text)) < len(base.encode(text))
    assert result.encoding().encode("Nothing of it") == base.encode("Nothing of it")


def test_base_in_two_steps_is_as_in_one(corpus: Path) -> None:
    once = train_vocabulary(corpus, 400, TrainOptions(pattern="o200k_base"))
    first = train_vocabulary(corpus, 330, TrainOptions(pattern="o200k_base"))
    second = train_vocabulary(corpus, 400, TrainOptions(pattern="o200k_base"), base=first.ranks)
    assert second.ranks == once.ranks
    assert second.merge_list == once.merge_list


def test_fewer_merges_than_asked_for() -> None:
    result = train_vocabulary({"ab": 2, "xyz": 1}, 1000)
    assert result.size == 257 and "257 tokens in place of 1,000" in result.notes[0]
    assert "2 times or more" in result.notes[0] and "--min-frequency" in result.notes[0]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"vocab_size": 256, "special_tokens": ["<x>"]}, "ask for 257 or more"),
        ({"vocab_size": 10}, "no room for the 256 single bytes"),
        ({"special_tokens": ["a", "a"]}, "given twice"),
        ({"special_tokens": [""]}, "is empty"),
        ({"special_tokens": ["a\nb"]}, "line end"),
        ({"pattern": "gpt5"}, "unknown encoding 'gpt5'"),
        ({"min_frequency": -1}, "min_frequency is -1"),
        ({"max_token_length": 0}, "max_token_length is 0"),
        ({"errors": "ignore"}, "errors is 'ignore'"),
        ({"superwords_from": 100}, "superwords_from is 100"),
        ({"balance": "tokens"}, "choose one of bytes"),
    ],
)
def test_options_that_are_refused(corpus: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        others = {name: value for name, value in options.items() if name != "vocab_size"}
        train_vocabulary(corpus, options.get("vocab_size", 300), TrainOptions(**others))


def test_bad_corpora(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    with pytest.raises(ValueError, match="the corpus is empty"):
        train_vocabulary(empty, 300)
    (tmp_path / "digits.txt").write_text("123 456")
    with pytest.raises(
        ValueError, match="the pattern finds no piece in 7 bytes of the corpus; give"
    ):
        train_vocabulary(tmp_path / "digits.txt", 300, TrainOptions(pattern="[a-z]+"))
    with pytest.raises(ValueError, match="but 2 rare pieces"):
        train_vocabulary({"ab": 1, "cd": 1}, 300, TrainOptions(drop_rare=2))
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"x" * (3 << 20) + b"\nab\xe9 c")
    with pytest.raises(ValueError, match=r"latin.txt is not UTF-8 at byte 3145731 \(0xe9\)"):
        train_vocabulary(latin, 300)
    replaced = "".join(sum(read_texts(latin, errors="replace"), []))
    assert replaced.endswith("ab\ufffd c")
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b'{"text": "a"}\n{"text": "\xff"}\n')
    with pytest.raises(
        ValueError, match=r"rows.jsonl, line 2: invalid UTF-8: byte 0xff at 0; --errors replace"
    ):
        train_vocabulary(rows, 300)
    with pytest.raises(FileNotFoundError):
        train_vocabulary(tmp_path / "nothing.txt", 300)
    with pytest.raises(FileNotFoundError, match="matches no file"):
        corpus_files([tmp_path / "*.csv"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="has no files"):
        corpus_files([tmp_path / "folder"])
    with pytest.raises(ValueError, match="is not a piece and its count"):
        train_vocabulary({"ab": -1}, 300)
    with pytest.raises(ValueError, match="give a list of them"):
        train_vocabulary(str(latin), 300, TrainOptions(balance="bytes"))


def test_counts_in_files_are_the_same_counts(corpus: Path) -> None:
    cut = cutting("o200k_base")
    with count_corpus([corpus], cut) as whole, CorpusCounts(cut) as parts:
        for path in sorted(corpus.iterdir()):
            with count_corpus([path], cut) as some:
                parts.pieces.add(*next(iter(some.rows())))
            parts.spill()
        assert len(parts.files) == 3
        expected = {piece: n for rows in whole.rows() for piece, n in zip(*rows)}
        assert {piece: n for rows in parts.rows() for piece, n in zip(*rows)} == expected
        parts.load(least=5)
        kept = {piece: n for rows in parts.rows() for piece, n in zip(*rows)}
        assert kept == {piece: n for piece, n in expected.items() if n >= 5}
        rare = [n for n in expected.values() if n < 5]
        assert parts.dropped == (len(rare), sum(rare))


def test_rare_pieces_are_reported() -> None:
    result = train_vocabulary({"ab": 9, "cd": 2, "ce": 1}, 257, TrainOptions(drop_rare=3))
    assert list(result.new_tokens) == [b"ab"]
    assert result.notes == ["2 rare pieces left out, which occurred 3 times together"]


@pytest.mark.parametrize("in_files", [False, True])
def test_training_needs_more_memory_than_the_counts(in_files: bool) -> None:
    # Each byte of text takes eight bytes for a cell and four for a position.
    pieces = {f"{number:015x}": 1 for number in range(20_000)}
    counts = CorpusCounts(cutting(None))
    with counts:
        counts.pieces.add([piece.encode() for piece in pieces], list(pieces.values()))
        needed = counts.pieces.training_memory()
        assert needed > counts.pieces.memory() + 20_000 * (16 * 8 + 15 * 4)
        if in_files:
            counts.spill()
        with pytest.raises(TooLittleMemory):
            counts.load(1, needed - 1)
    counts = CorpusCounts(cutting(None))
    with counts:
        counts.pieces.add([piece.encode() for piece in pieces], list(pieces.values()))
        if in_files:
            counts.spill()
        counts.load(1, needed)
        assert counts.pieces.totals()[0] == 20_000


def test_files_of_counts_that_are_cut_off(tmp_path: Path) -> None:
    counts = CorpusCounts(cutting(None))
    counts.pieces.add([b"ab", b"cd"], [1, 2])
    path = tmp_path / "counts"
    counts.pieces.spill(str(path))
    whole = path.read_bytes()
    for length in (1, 7, 13, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(OSError):
            counts.pieces.read([str(path)])


def test_paragraphs_that_are_lines_are_counted_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting in parts gives the same counts; a special token with a space prevents the cut."""
    monkeypatch.setattr(plain_text, "BLOCK_CHARACTERS", 64)
    path = tmp_path / "text.txt"
    text = "It's a long paragraph that ends in a full stop, not in a word. <|a b|>.\n\n" * 60
    path.write_text(text)
    for special, parts in [("<|end|>", True), ("<|a b|>", False)]:
        cut = cutting("o200k_base", [special])
        assert cut.inside_lines == parts
        assert (len(list(read_texts(path, inside_lines=cut.inside_lines))) > 1) == parts
        whole = cut.counter()
        whole.count([text])
        with count_corpus([path], cut) as counts:
            assert [row for rows in counts.rows() for row in zip(*rows)] == _rows(whole, tmp_path)
    assert not cutting(r"[^\n]+|\n").inside_lines


def _rows(pieces: vocabulary.PieceCounts, folder: Path) -> list[tuple[bytes, int]]:
    path = str(folder / "rows.counts")
    pieces.spill(path)
    return list(zip(*vocabulary.CountReader([path]).read(1 << 16)))


def test_text_that_the_pattern_leaves_out_is_named(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("foo, bar! Übung\n" * 20, encoding="utf-8")
    found = train_vocabulary(corpus, 260, TrainOptions(pattern=r"\w+"))
    lost = 20 * len(", ! \n")
    assert [note for note in found.notes if "leaves out" in note] == [
        f"the pattern leaves out {lost} bytes of the corpus: the encoding loses text that the pattern "
        r"does not match; add an alternative that matches the rest, such as |.|\s+"
    ]
    assert found.encoding().decode(found.encoding().encode("foo, bar!")) == "foobar"
    for pattern in (r"\w+|.|\s+", "gpt2", None):
        assert not any(
            "leaves out" in note
            for note in train_vocabulary(corpus, 260, TrainOptions(pattern=pattern)).notes
        )
    with_name = train_vocabulary(corpus, 260, TrainOptions(pattern=r"\w+", special_tokens=["<s>"]))
    assert any("names of special tokens included" in note for note in with_name.notes)
