"""Tests that other packages read the tokenizers of every model of `vocab-tools train --model`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")

from seeds import seeded  # noqa: E402
from vocab_command import run  # noqa: E402

from bpe_engine import hf  # noqa: E402
from bpe_engine.texts import plain_text  # noqa: E402
from vocab_tools import count_pieces, train_model  # noqa: E402
from vocab_tools.corpus import piece_counts  # noqa: E402
from vocab_tools.train import models, rules  # noqa: E402

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "corpora"
PIPELINES = [
    ("wordpiece", "bert"),
    ("unigram", "t5"),
    ("unigram", "sentencepiece"),
    ("bpe", "llama"),
    ("bpe", "gpt2"),
    ("bpe", "sentencepiece"),
    ("wordlevel", "words"),
    ("unigram", "bert"),
    ("wordpiece", "t5"),
    ("wordlevel", "llama"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    text = (SHARED / "en.txt").read_bytes()[:60_000] + (SHARED / "multi.txt").read_bytes()[:60_000]
    path.write_text(text.decode(errors="ignore"), encoding="utf-8", newline="\n")
    return path


def texts(count: int) -> list[str]:
    lines = (SHARED / "messy.txt").read_text(encoding="utf-8").splitlines()
    more = (SHARED / "en.txt").read_text(encoding="utf-8").splitlines()
    random = seeded("texts of models")
    return [line[:200] for line in random.choices(lines + more, k=count)]


@pytest.mark.parametrize(("model", "like"), PIPELINES)
def test_tokenizers_gives_the_same_ids(model: str, like: str, corpus: Path) -> None:
    trained = train_model([corpus], 1200, model=model, like=like)
    theirs = tokenizers.Tokenizer.from_str(trained.tokenizer_json().decode())
    for text in texts(300):
        assert trained.tokenizer.encode(text).ids == theirs.encode(text).ids, text
    assert trained.tokenizer.get_vocab_size() == 1200
    if model == "wordpiece":
        assert trained.tokenizer.decode(trained.tokenizer.encode("the words").ids) == "the words"


#: If scores differ by less, sums in single precision may choose a different path.
NEARLY = 1e-3


def check_with_sentencepiece(trained: Any, path: Path, lines: list[str]) -> None:
    """Compares the ids of a trained tokenizer, of its ``.model``, and of sentencepiece."""
    sentencepiece = pytest.importorskip("sentencepiece")
    path.write_bytes(trained.sentencepiece())
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = hf.Tokenizer.from_sentencepiece(path)
    assert theirs.get_piece_size() == trained.tokenizer.get_vocab_size()
    assert theirs.unk_id() == trained.tokenizer.token_to_id("<unk>")
    assert theirs.bos_id() == trained.tokenizer.token_to_id("<s>")
    for text, ids in zip(lines, theirs.encode(lines)):
        assert ours.encode(text).ids == ids, text
        made = trained.tokenizer.encode(text, add_special_tokens=False).ids
        # In a tokenizer.json, the text after an added token is normalized as a new text.
        if made != ids and "<sep>" not in text:
            scores = [sum(map(theirs.get_score, row)) for row in (made, ids)]
            assert scores[0] == pytest.approx(scores[1], abs=NEARLY), text
            assert model_type(trained) == "Unigram", text


def model_type(trained: Any) -> str:
    return type(trained.tokenizer.model).__name__


@pytest.mark.parametrize(
    ("model", "like"),
    [
        *itertools.product(("unigram", "bpe"), ("sentencepiece", "llama")),
        ("bpe", "sentencepiece:nfkc"),
    ],
)
@pytest.mark.parametrize("coverage", [None, 0.99])
def test_sentencepiece_gives_our_ids(
    model: str, like: str, coverage: float | None, corpus: Path, tmp_path: Path
) -> None:
    trained = train_model(
        [corpus], 1200, model=model, like=like, character_coverage=coverage, user_defined=["<sep>"]
    )
    more = ["a<sep> b", "", "  two  spaces", "\u2581a \u2581", "\t tab\u00a0", "\u2581 \u2581"]
    check_with_sentencepiece(trained, tmp_path / "out.model", [*texts(500), *more])


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "like"), [("unigram", "sentencepiece"), ("bpe", "llama")])
def test_sentencepiece_gives_our_ids_of_many_texts(
    model: str, like: str, corpus: Path, tmp_path: Path
) -> None:
    trained = train_model([corpus], 2000, model=model, like=like)
    check_with_sentencepiece(trained, tmp_path / "out.model", texts(100_000))


def normalized_by(package: Any, **model: Any) -> Any:
    """Returns a function that normalizes text by a model's rules, and does nothing else."""
    flags = ("add_dummy_prefix", "escape_whitespaces", "remove_extra_whitespaces")
    return package.SentencePieceNormalizer(**model, **dict.fromkeys(flags, False)).normalize


@pytest.mark.parametrize("name", rules.RULES)
def test_rules_are_those_of_sentencepiece(name: str) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    from sentencepiece_oracle import made_model

    theirs = normalized_by(sentencepiece, rule_name=name)
    model = made_model([("<unk>", 0.0, 2)], 1, charsmap=rules.charsmap(name))
    ours = normalized_by(sentencepiece, model_proto=model)
    characters = [*map(chr, range(1, 0xD800)), *map(chr, range(0xE000, 0x30000))]
    changed = [it for it in characters if theirs(it) != it]
    # Normalization does not change characters newer than our Unicode tables.
    newer = {it for it in changed if ours(it) == it}
    assert len(newer) < 350 and all(ord(it) > 0x1C00 for it in newer)
    assert [it for it in characters if it not in newer and ours(it) != theirs(it)] == []
    random = seeded("rules", name)
    known = [it for it in changed if it not in newer]
    joined = [*"aeiouAEIOUn ｶﾊﾞﾟ가\0", *"\u0301\u0300\u0302\u0323\u3099\u1100\u1161\u11a8"]
    for _ in range(3000):
        line = "".join(random.choice(random.choice([known, joined])) for _ in range(8))
        assert ours(line) == theirs(line), line


def test_sentencepiece_normalizes_by_the_rules_of_a_model(corpus: Path, tmp_path: Path) -> None:
    like = "sentencepiece:nmt_nfkc_cf"
    trained = train_model([corpus], 1200, like=like)
    path = tmp_path / "out.model"
    check_with_sentencepiece(
        trained, path, [*texts(300), "ﬁ ①\u200b", "\u2581a", "  \ufb01\ufb01 "]
    )
    theirs = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(path))
    # A tokenizer.json applies the shortest of several rules at one position.
    for text in ("ｶﾞ", "A\u0301", "A\u0301\u0323"):
        assert hf.Tokenizer.from_sentencepiece(path).encode(text).ids == theirs.encode(text)
    outputs = [tmp_path / "again.model", tmp_path / "again.json"]
    options = ["--vocab-size", 1200, "--like", like, "-o", outputs[0], "-o", outputs[1]]
    assert json.loads(run("train", corpus, *options, "--json").stdout)["size"] == 1200
    written = [output.read_bytes() for output in outputs]
    assert written == [trained.sentencepiece(), trained.tokenizer_json()]


def test_what_a_model_of_sentencepiece_cannot_express_is_named(corpus: Path) -> None:
    with pytest.raises(ValueError, match="cannot express the normalizer Nmt; the normalizer NFKC"):
        train_model([corpus], 300, model="unigram", like="t5").sentencepiece()
    with pytest.raises(ValueError, match="a WordPiece model"):
        train_model([corpus], 700, model="wordpiece").sentencepiece()


@pytest.mark.parametrize("like", ["bert", "t5", "gpt2"])
def test_a_trained_tokenizer_is_a_pipeline_for_the_next(
    like: str, corpus: Path, tmp_path: Path
) -> None:
    first = train_model([corpus], 900, like=like)
    path = tmp_path / "tokenizer.json"
    path.write_bytes(first.tokenizer_json())
    for source in (path, tmp_path):
        again = train_model([corpus], 900, like=source)
        assert json.loads(again.tokenizer_json()) == json.loads(first.tokenizer_json())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "bpe", "--pattern", "gpt2"], "--pattern is an option of byte-level BPE"),
        (["--model", "bpe", "--like", "nothing"], "like is 'nothing'; give a folder"),
        (["--character-coverage", "0.9"], "--character-coverage needs --model or --like"),
        (["--max-memory", "tiny"], "is not a size of 1M or more"),
        # The error precedes reading the corpus, because the pattern matches no file.
        (["--like", "t5", "-o", "x.model"], "a .model cannot express the normalizer Nmt"),
    ],
)
def test_options_that_do_not_fit_are_named(options: list[str], message: str, corpus: Path) -> None:
    files = "no*.txt" if "x.model" in options else corpus
    done = run("train", files, "--vocab-size", 600, "-o", "never.json", *options)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"like": "llama:nfc"}, "the rules are 'nfc'; choose one of nfkc, nfkc_cf, nmt_nfkc"),
        ({"model": "gpt"}, "model is 'gpt'; choose one of bpe, wordpiece"),
        ({"model": "bpe", "vocab_size": 270}, "270 tokens has no room for the .* characters"),
        ({"model": "unigram", "vocab_size": 20}, "20 tokens has no room for the .* characters"),
        ({"model": "unigram", "character_coverage": 2.0}, "character_coverage is 2.0"),
        ({"model": "bpe", "max_token_length": 0}, "max_token_length is 0; it must be 1 or more"),
        ({"model": "wordpiece", "limit_alphabet": -1}, "limit_alphabet is -1"),
        ({"model": "unigram", "limit_alphabet": 5}, "a Unigram model has no limit_alphabet"),
        ({"model": "wordlevel", "character_coverage": 0.9}, "has no character_coverage"),
        ({"model": "unigram", "max_token_length": 300}, "the longest piece has 300 characters"),
        ({"model": "bpe", "num_threads": -1}, "num_threads is -1; it cannot be negative"),
        ({"model": "unigram", "vocab_size": 1 << 62}, "it can be at most 2,096,640"),
        ({"model": "bpe", "special_tokens": [""]}, "token is empty; give it a name"),
        ({"model": "bpe", "user_defined": ["<s>"]}, "'<s>' is special and user-defined"),
        ({"model": "wordlevel", "vocab_size": 1, "user_defined": ["a"]}, "no room for"),
        ({"special_tokens": ["\ud800"]}, r"special_tokens has '\\ud800' with a surrogate"),
        ({"user_defined": ["a\ud800"]}, r"user_defined has 'a\\ud800' with a surrogate"),
        ({"min_frequency": 1 << 70}, "min_frequency is .*; it can be at most"),
        ({"model": "bpe", "max_token_length": 1 << 70}, "max_token_length is .*; it can be at"),
        ({"character_coverage": "1"}, "character_coverage is the str '1'; it must be a number"),
        ({"like": 5}, "like is the int 5; give a name, a folder or a file"),
        ({"like": b"t5"}, "like is the bytes b't5'"),
        ({"progress": 5}, "progress is the int 5; it must be a function"),
        ({"field": 5}, "field is the int 5; give a name"),
        ({"drop_rare": None}, "drop_rare is None; it must be an int"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str, corpus: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        train_model([corpus], **{"vocab_size": 500, **options})


@pytest.mark.parametrize("model", ["bpe", "wordpiece", "unigram", "wordlevel"])
def test_a_user_defined_token_is_no_second_token(model: str, corpus: Path) -> None:
    """User-defined tokens are not learned again, even if the text has them as words."""
    names = ["the", "\u2581the", "e", "##e"]
    trained = train_model([corpus], 1200, model=model, user_defined=names)
    contents = json.loads(trained.tokenizer_json())["model"]["vocab"]
    tokens = [row[0] for row in contents] if model == "unigram" else list(contents)
    assert len({*tokens}) == len(tokens) == trained.tokenizer.get_vocab_size() == 1200
    assert {*names} < {*tokens}
    assert trained.tokenizer.encode("xthey", add_special_tokens=False).tokens.count("the") == 1


@pytest.mark.parametrize("like", ["bert", "t5", "llama", "words"])
def test_counts_in_files_change_nothing(
    like: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_model([corpus], 900, like=like).tokenizer_json()
    monkeypatch.setattr(plain_text, "BLOCK_CHARACTERS", 1 << 14)
    monkeypatch.setattr(piece_counts, "TABLES_SHARE", 1 << 20)
    assert train_model([corpus], 900, like=like, max_memory=1 << 28).tokenizer_json() == whole
    cut = models.words_of(None, like)
    with piece_counts.count_corpus([corpus], cut, max_memory=1 << 28) as counts:
        assert len(counts.files) > 1
        assert train_model(counts, 900, like=like).tokenizer_json() == whole
    with pytest.raises(ValueError, match="more than the 10,000 bytes of max-memory"):
        train_model([corpus], 900, like=like, max_memory=10_000)
    frequent = train_model([corpus], 900, like=like, drop_rare=100)
    assert "rare pieces left out" in frequent.notes[0]


def test_an_empty_corpus_is_named_and_memory_is_bounded(corpus: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the corpus has no words: it is empty"):
        train_model([empty], 500, model="wordpiece")
    options = ["--vocab-size", 900, "--like", "bert", "--max-memory", "1M"]
    done = run("train", corpus, *options, "--drop-rare", 2, "-o", tmp_path / "out.json")
    assert done.returncode == 0 and "rare pieces left out" in done.stderr, done.stderr


@pytest.mark.parametrize("like", ["bert", "t5", "llama", "words"])
def test_counts_of_several_machines_train_every_model(
    like: str, corpus: Path, tmp_path: Path
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    whole, files = tmp_path / "whole.json", []
    for number, part in enumerate((lines[:300], lines[300:])):
        text, counts = tmp_path / f"{number}.txt", tmp_path / f"{number}.parquet"
        text.write_text("".join(part), encoding="utf-8", newline="\n")
        if number:
            table = count_pieces(pyarrow.table({"text": part}), like=like)
            pyarrow.parquet.write_table(table, counts)
        else:
            assert run("count", text, "--like", like, "-o", counts).returncode == 0
        files.append(counts)
    options = ["--vocab-size", 1200, "--like", like, "-o"]
    done = run("train", *files, "--counts", *options, whole)
    assert done.returncode == 0, done.stderr
    assert whole.read_bytes() == train_model([corpus], 1200, like=like).tokenizer_json()
    other = "t5" if like != "t5" else "bert"
    done = run("train", *files, "--counts", "--vocab-size", 1200, "--like", other, "-o", "no.json")
    assert done.returncode != 0 and "was counted with" in " ".join(done.stderr.split())
