"""Tokenizers of every model from `vocab-tools train --model`, as other packages read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")

from seeds import seeded  # noqa: E402
from vocab_command import run  # noqa: E402

from bpe_engine import hf  # noqa: E402
from bpe_engine.texts import stretches  # noqa: E402
from vocab_tools import count_pieces, train_model  # noqa: E402
from vocab_tools.train import models  # noqa: E402

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


#: Of paths whose scores differ by less than this, sums in single precision may choose another.
NEARLY = 1e-3


def check_with_sentencepiece(trained: Any, path: Path, lines: list[str]) -> None:
    """Compares ids of a trained tokenizer, of its ``.model`` and of sentencepiece."""
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
        # An added token of a tokenizer.json begins a new text.
        if made != ids and "<sep>" not in text:
            scores = [sum(map(theirs.get_score, row)) for row in (made, ids)]
            assert scores[0] == pytest.approx(scores[1], abs=NEARLY), text
            assert model_type(trained) == "Unigram", text


def model_type(trained: Any) -> str:
    return type(trained.tokenizer.model).__name__


@pytest.mark.parametrize(
    ("model", "like"),
    [
        ("unigram", "sentencepiece"),
        ("unigram", "llama"),
        ("bpe", "llama"),
        ("bpe", "sentencepiece"),
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


def test_the_command_writes_both_files(corpus: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "out.json", tmp_path / "out.model"
    options = ["--vocab-size", 600, "--model", "unigram", "--like", "sentencepiece"]
    done = run("train", corpus, *options, "-o", out, "-o", model, "--json")
    found = json.loads(done.stdout)
    assert found["size"] == 600
    hf.Tokenizer.from_file(out)
    hf.Tokenizer.from_file(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "bpe", "--pattern", "gpt2"], "--pattern is an option of byte-level BPE"),
        (["--model", "bpe", "--like", "nothing"], "like is 'nothing'; give a folder"),
        (["--character-coverage", "0.9"], "--character-coverage needs --model or --like"),
    ],
)
def test_options_that_do_not_fit_are_named(options: list[str], message: str, corpus: Path) -> None:
    done = run("train", corpus, "--vocab-size", 600, "-o", "never.json", *options)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gpt"}, "model is 'gpt'; choose one of bpe, wordpiece"),
        ({"model": "bpe", "vocab_size": 270}, "270 tokens has no room for the .* characters"),
        ({"model": "unigram", "vocab_size": 20}, "20 tokens has no room for the .* characters"),
        ({"model": "unigram", "character_coverage": 2.0}, "character_coverage is 2.0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str, corpus: Path) -> None:
    with pytest.raises(ValueError, match=message):
        train_model([corpus], **{"vocab_size": 500, **options})


@pytest.mark.parametrize("like", ["bert", "t5", "llama", "words"])
def test_counts_in_files_change_nothing(
    like: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_model([corpus], 900, like=like).tokenizer_json()
    monkeypatch.setattr(stretches, "BLOCK_CHARACTERS", 1 << 14)
    monkeypatch.setattr(models, "TABLES_SHARE", 1 << 20)
    assert train_model([corpus], 900, like=like, max_memory=1 << 28).tokenizer_json() == whole
    with models.count_words([corpus], like=like, max_memory=1 << 28) as counts:
        assert len(counts.files) > 1
        assert train_model(counts, 900, like=like).tokenizer_json() == whole
    with pytest.raises(ValueError, match="more than the 10,000 bytes of max-memory"):
        train_model([corpus], 900, like=like, max_memory=10_000)
    frequent = train_model([corpus], 900, like=like, drop_rare=100)
    assert "rare pieces left out" in frequent.notes[0]


def test_the_command_bounds_memory(corpus: Path, tmp_path: Path) -> None:
    options = ["--vocab-size", 900, "--like", "bert", "--max-memory", "1M"]
    done = run("train", corpus, *options, "--drop-rare", 2, "-o", tmp_path / "out.json")
    assert done.returncode == 0 and "rare pieces left out" in done.stderr, done.stderr


def test_an_empty_corpus_is_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_text(" \n\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the corpus has no words: it is empty"):
        train_model([path], 500, model="wordpiece")


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
