"""Tests conversions between SentencePiece models and tokenizer.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seeds import rounds, seeded
from sentencepiece_oracle import made_model, model_bytes, processor, random_text, write_model
from vocab_command import run

from bpe_engine import hf
from vocab_tools import train_model
from vocab_tools.convert.conversion import NotAlikeError, convert_tokenizer

tokenizers = pytest.importorskip("tokenizers")


def test_a_model_that_tokenizers_can_express(tmp_path: Path) -> None:
    path, target = write_model(tmp_path, "bpe llama"), tmp_path / "tokenizer.json"
    conversion = convert_tokenizer(str(path), str(target))
    assert conversion.is_exact and conversion.compared > 100
    conversion.save()
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(str(target))
    rng = seeded("converted model")
    for _ in range(rounds(500)):
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


@pytest.mark.parametrize(
    ("model", "like"), [("unigram", "sentencepiece"), ("bpe", "llama"), ("bpe", "sentencepiece")]
)
def test_a_tokenizer_json_becomes_a_model(model: str, like: str, tmp_path: Path) -> None:
    text, source, target = tmp_path / "text.txt", tmp_path / "a.json", tmp_path / "a.model"
    text.write_text("low lower lowest, new newer newest. 猫と犬 " * 20, encoding="utf-8")
    trained = train_model([text], 320, model=model, like=like)
    source.write_bytes(trained.tokenizer_json())
    done = run("convert", str(source), str(target))
    assert done.returncode == 0, done.stderr
    theirs = processor(target.read_bytes())
    rng = seeded("converted to a model", model, like)
    for _ in range(rounds(500)):
        line = random_text(rng)
        if not any(name in line for name in ("<s>", "</s>", "<unk>")):
            ids = trained.tokenizer.encode(line, add_special_tokens=False).ids
            assert ids == theirs.encode(line), line


def test_what_a_model_cannot_express_is_named(tmp_path: Path) -> None:
    path, target = tmp_path / "a.json", str(tmp_path / "a.model")
    tokenizer = hf.Tokenizer(hf.Unigram([("<unk>", 0.0), ("a", -1.0), ("\u2581", -2.0)], 0))
    tokenizer.pre_tokenizer = hf.pre_tokenizers.Metaspace(prepend_scheme="first")
    for part, reason in (
        (hf.normalizers.Lowercase(), "the normalizer Lowercase; .*prepend_scheme 'first'"),
        (hf.normalizers.Prepend("\u2581"), "the pre-tokenizer Metaspace with"),
    ):
        tokenizer.normalizer = part
        tokenizer.save(str(path))
        with pytest.raises(ValueError, match=f"cannot express {reason}"):
            convert_tokenizer(str(path), target)
    tokenizer.pre_tokenizer = hf.pre_tokenizers.Metaspace()
    tokenizer.normalizer = hf.normalizers.Sequence([])
    tokenizer.save(str(path))
    # A Metaspace pre-tokenizer adds no mark to a text that begins with a mark.
    with pytest.raises(NotAlikeError, match="would not tokenize as"):
        convert_tokenizer(str(path), target)
    with pytest.raises(ValueError, match="is made of a tokenizer.json, .* not of gpt2"):
        convert_tokenizer("gpt2", target)


def test_marks_at_the_ends(tmp_path: Path) -> None:
    """If the model removes extra whitespace, a mark in the text is removed only at the end."""
    letters = [(token, -float(place), 1) for place, token in enumerate("\u2581abc")]
    single = [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    rows = [("<unk>", 0.0, 2), *single, *letters]
    path, target = tmp_path / "a.model", tmp_path / "tokenizer.json"
    options = {"byte_fallback": True, "remove_extra_whitespaces": True, "add_dummy_prefix": True}
    path.write_bytes(made_model(rows, 2, escape_whitespaces=True, **options))
    convert_tokenizer(str(path), str(target)).save()
    theirs, ours = tokenizers.Tokenizer.from_file(str(target)), processor(path.read_bytes())
    for text in ("a\u2581", "a\u2581 ", " a \u2581", "\u2581", "\u2581\u2581 a", "\u2581 b  c "):
        ids = theirs.encode(text).ids
        assert ids == ours.encode(text), text
        assert theirs.decode(ids) == ours.decode(ids), text
    # The model's decoding removes one of a piece's two marks, which no decoder can express.
    path.write_bytes(
        made_model([*rows, ("\u2581\u2581", -9.0, 1)], 2, escape_whitespaces=True, **options)
    )
    with pytest.raises(NotAlikeError, match="and would become"):
        convert_tokenizer(str(path), str(target))


def test_the_command(tmp_path: Path) -> None:
    path, target = write_model(tmp_path, "bpe llama"), tmp_path / "made" / "tokenizer.json"
    done = run("convert", str(path), str(target))
    assert done.returncode == 0, done.stderr
    assert json.loads(target.read_text())["model"]["type"] == "BPE"
    refused = run("convert", str(write_model(tmp_path, "bpe defined")), str(target), "--force")
    assert refused.returncode != 0 and "would not tokenize as" in refused.stderr


def written_gguf(path: Path, model: str, contents: bytes, *, scores: bool = True) -> Path:
    """Writes a SentencePiece model as llama.cpp's converter does."""
    gguf = pytest.importorskip("gguf")
    theirs = processor(contents)
    ids = range(theirs.get_piece_size())
    kinds = [
        2 if theirs.is_unknown(id)
        else 3 if theirs.is_control(id)
        else 6 if theirs.is_byte(id)
        else 1
        for id in ids
    ]  # fmt: skip
    writer = gguf.GGUFWriter(str(path), model)
    writer.add_tokenizer_model(model)
    writer.add_token_list([theirs.id_to_piece(id) for id in ids])
    if scores:
        writer.add_token_scores([theirs.get_score(id) for id in ids])
    writer.add_token_types(kinds)
    writer.add_add_space_prefix(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(("model", "name"), [("llama", "bpe llama"), ("t5", "unigram")])
def test_gguf_files_of_sentencepiece(tmp_path: Path, model: str, name: str) -> None:
    contents = model_bytes(name)
    spec = json.loads(hf.Tokenizer.from_sentencepiece(write_model(tmp_path, name)).to_str())
    plain = made_model(
        [(token, score, kind) for (token, score), kind in zip(*map(spec["model"].get, ("vocab", "kinds")))],
        2 if model == "llama" else 1,
        byte_fallback=model == "llama",
        add_dummy_prefix=True,
        escape_whitespaces=True,
    )  # fmt: skip
    path, target = written_gguf(tmp_path / "m.gguf", model, contents), tmp_path / "tokenizer.json"
    conversion = convert_tokenizer(str(path), str(target))
    assert conversion.is_exact and conversion.compared > 100
    conversion.save()
    theirs, ours = tokenizers.Tokenizer.from_file(str(target)), processor(plain)
    rng = seeded("converted gguf")
    for _ in range(rounds(300)):
        text = random_text(rng)
        if not any(name in text for name in ("<s>", "</s>", "<unk>", "<pad>")):
            assert theirs.encode(text).ids == ours.encode(text), text
    with pytest.raises(ValueError, match=r"the target is a tokenizer\.json"):
        convert_tokenizer(str(path), str(tmp_path / "x.tiktoken"))


def test_names_of_bytes_in_text(tmp_path: Path) -> None:
    """A `tokenizers` Unigram model encodes the name of a byte token in text as that token."""
    path = write_model(tmp_path, "unigram bytes")
    with pytest.raises(NotAlikeError) as refused:
        convert_tokenizer(str(path), str(tmp_path / "tokenizer.json"))
    assert "<0x41>" in [one.text for one in refused.value.conversion.differences]


def test_gguf_files_without_scores_are_refused(tmp_path: Path) -> None:
    path = written_gguf(tmp_path / "m.gguf", "llama", model_bytes("bpe llama"), scores=False)
    with pytest.raises(ValueError, match=r"has no tokenizer\.ggml\.scores, so nothing orders"):
        convert_tokenizer(str(path), str(tmp_path / "tokenizer.json"))


def test_gguf_files_of_other_models_are_refused(tmp_path: Path) -> None:
    path = written_gguf(tmp_path / "m.gguf", "bert", model_bytes("bpe llama"))
    with pytest.raises(ValueError, match=r"'bert'.*take the tokenizer\.json of the model"):
        convert_tokenizer(str(path), str(tmp_path / "tokenizer.json"))
