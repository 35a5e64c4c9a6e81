"""Models of SentencePiece to tokenizer.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seeds import seeded
from sentencepiece_oracle import random_text, write_model
from vocab_command import run

from bpe_engine import hf
from vocab_tools.convert import NotAlikeError, convert_tokenizer

tokenizers = pytest.importorskip("tokenizers")


def test_a_model_that_tokenizers_can_express(tmp_path: Path) -> None:
    path, target = write_model(tmp_path, "bpe llama"), tmp_path / "tokenizer.json"
    conversion = convert_tokenizer(str(path), str(target))
    assert conversion.is_exact and conversion.compared > 100
    conversion.save()
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(target))
    rng = seeded("converted model")
    for _ in range(500):
        text = random_text(rng)
        if not any(name in text for name in ("<s>", "</s>", "<unk>")):
            found = theirs.encode(text)
            assert ours.encode(text).ids == found.ids, text
            assert ours.decode(found.ids) == theirs.decode(found.ids), text


def test_models_that_it_cannot(tmp_path: Path) -> None:
    for name, reason in (
        ("bpe defined", "user-defined piece"),
        ("unigram suffix", "a mark after the text"),
        ("char", "SentencePiece's Char"),
        ("bpe", " is \\["),
    ):
        path = write_model(tmp_path, name)
        with pytest.raises(NotAlikeError, match=reason):
            convert_tokenizer(str(path), str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=r"the target is a tokenizer\.json"):
        convert_tokenizer(str(path), str(tmp_path / "x.tiktoken"))


def test_the_command(tmp_path: Path) -> None:
    path, target = write_model(tmp_path, "bpe llama"), tmp_path / "made" / "tokenizer.json"
    done = run("convert", str(path), str(target))
    assert done.returncode == 0, done.stderr
    assert json.loads(target.read_text())["model"]["type"] == "BPE"
    refused = run("convert", str(write_model(tmp_path, "bpe defined")), str(target), "--force")
    assert refused.returncode != 0 and "would not tokenize as" in refused.stderr
