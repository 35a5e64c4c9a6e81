"""Tests loading every kind of folder, compared with transformers if it can read the folder."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from folders import same, write
from hf_oracle import TEXTS, tokenizer_path

import bpe_engine
from bpe_engine import Tokenizer, hf
from bpe_engine.load import dump_tiktoken_bpe
from bpe_engine.qwen import QwenTokenizer

transformers = pytest.importorskip("transformers")
pytest.importorskip("numpy")

GPT2 = bpe_engine.get_encoding("gpt2")


# ---- Rank files ----

CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|begin_of_text|>",
    "eos_token": "<|end|>",
    "pad_token": "<|end|>",
    "model_input_names": ["input_ids", "attention_mask"],
    "added_tokens_decoder": {
        "2256": {"content": "<|begin_of_text|>", "special": True},
        "2259": {"content": "<|end|>", "special": True},
    },
}


def small_ranks() -> dict[bytes, int]:
    ranks = bpe_engine.get_encoding("cl100k_base")._mergeable_ranks
    return {token: rank for token, rank in ranks.items() if rank < 2256}


def test_tokenizer_model(tmp_path: Path) -> None:
    """Tests tiktoken's format, as in Llama 3, which transformers converts."""
    pytest.importorskip("tiktoken")
    path = write(tmp_path / "model", tokenizer_config__json=CONFIG)
    dump_tiktoken_bpe(small_ranks(), str(path / "tokenizer.model"))
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    ours = Tokenizer.from_pretrained(path)
    assert ours.get_added_vocab() == theirs.get_added_vocab()
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.all_special_tokens == theirs.all_special_tokens
    for text in [*TEXTS, "<|begin_of_text|>a<|reserved_token_2257|> <|end|>"]:
        for options in ({}, {"return_offsets_mapping": True, "return_token_type_ids": True}):
            assert dict(ours(text, **options)) == dict(theirs(text, **options)), text
        assert ours.tokenize(text) == theirs.tokenize(text)
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))
    rows = [ours(TEXTS, padding=True, max_length=9, truncation=True, return_tensors="np")]
    rows += [theirs(TEXTS, padding=True, max_length=9, truncation=True, return_tensors="np")]
    assert all((rows[0][name] == rows[1][name]).all() for name in ("input_ids", "attention_mask"))


def test_rank_files(tmp_path: Path) -> None:
    path = write(tmp_path / "model", tokenizer_config__json={"pad_token": "<pad>"})
    file = path / "some.tiktoken"
    dump_tiktoken_bpe(small_ranks(), str(file))
    with pytest.raises(
        ValueError, match="the pattern of .*some.tiktoken is not known; pass pattern="
    ):
        Tokenizer.from_pretrained(path)
    tokenizer = Tokenizer.from_pretrained(path, pattern="cl100k_base", padding_side="left")
    encoding = bpe_engine.load_encoding(file, "cl100k_base")
    for text in TEXTS:
        assert tokenizer.encode(text) == encoding.encode_ordinary(text)
    assert tokenizer.pad_token_id == 2256 and tokenizer.padding_side == "left"
    (path / "more.tiktoken").write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="a folder with more.tiktoken, some.tiktoken; give"):
        Tokenizer.from_pretrained(path, pattern="cl100k_base")


# ---- Other files in a folder ----


def test_templates(tmp_path: Path) -> None:
    config = {"chat_template": "from the configuration"}
    path = write(tmp_path / "model", tokenizer_config__json=config)
    (path / "tokenizer.json").symlink_to(tokenizer_path("gpt2"))
    assert Tokenizer.from_pretrained(path).chat_template == "from the configuration"
    (path / "chat_template.jinja").write_text("from the file")
    assert Tokenizer.from_pretrained(path).chat_template == "from the file"
    (path / "additional_chat_templates").mkdir()
    (path / "additional_chat_templates" / "tool_use.jinja").write_text("with tools")
    tokenizer = Tokenizer.from_pretrained(path)
    assert tokenizer.chat_template == {"default": "from the file", "tool_use": "with tools"}
    assert tokenizer.get_chat_template(tools=[{}]) == "with tools"
    named = [{"name": "default", "template": "one"}, {"name": "rag", "template": "two"}]
    tokenizer = Tokenizer(GPT2, chat_template=named)  # type: ignore[arg-type]
    assert tokenizer.get_chat_template("rag") == "two"


def test_special_tokens_map(tmp_path: Path) -> None:
    """Added tokens come from the file if the configuration lists none, as in transformers."""
    special = {
        "pad_token": {"content": "<pad>", "lstrip": False, "rstrip": True, "normalized": False,
                      "single_word": False},
        "eos_token": "<|endoftext|>",
        "additional_special_tokens": ["<a>", "<b>"],
    }  # fmt: skip
    path = write(
        tmp_path / "model",
        special_tokens_map__json=special,
        tokenizer_config__json={"tokenizer_class": "PreTrainedTokenizerFast"},
    )
    (path / "tokenizer.json").symlink_to(tokenizer_path("gpt2"))
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(path)
    ours = Tokenizer.from_pretrained(path)
    same(ours, theirs)
    text = "x<pad> y <a><b> <|endoftext|>"
    assert ours.encode(text) == theirs.encode(text)
    assert ours.extra_special_tokens == theirs.extra_special_tokens == ["<a>", "<b>"]
    write(path, tokenizer_config__json={"pad_token": "<c>", "added_tokens_decoder": {}})
    ours = Tokenizer.from_pretrained(path)
    assert ours.pad_token == "<c>" and ours.eos_token is None


@pytest.mark.parametrize("kind", ["file", "encoding", "nfc"])
def test_saving(tmp_path: Path, kind: str) -> None:
    source: Any = GPT2 if kind == "encoding" else bpe_engine.get_encoding("qwen2.5")
    if kind == "file":
        source = bpe_engine.hf.Tokenizer.from_file(tokenizer_path("gpt2"))
    tokenizer = Tokenizer(
        source,
        pad_token="<pad>",
        bos_token="<start>",
        extra_special_tokens={"image_token": "<image>"},
        padding_side="left",
        truncation_side="left",
        model_max_length=77,
        errors="ignore",
        chat_template={"default": "{{ messages }}", "tool_use": "{{ tools }}"},
        add_bos_token=True,
    )
    tokenizer.add_tokens("<word>")
    files = tokenizer.save_pretrained(tmp_path / "saved")
    assert all(Path(file).is_file() for file in files) and len(files) == 4
    loaded = Tokenizer.from_pretrained(tmp_path / "saved")
    for text in [*TEXTS, "<start><image><word>e\u0301 \u212a<pad>"]:
        assert loaded(text, return_special_tokens_mask=True) == tokenizer(
            text, return_special_tokens_mask=True
        )
        ids = tokenizer.encode(text)
        for skip in (False, True):
            assert loaded.decode(ids, skip) == tokenizer.decode(ids, skip)
    for name in ("padding_side", "truncation_side", "model_max_length", "errors", "chat_template",
                 "special_tokens_map", "image_token_id", "model_input_names", "name_or_path"):  # fmt: skip
        if name != "name_or_path":
            assert getattr(loaded, name) == getattr(tokenizer, name), name
    assert loaded.get_vocab() == tokenizer.get_vocab()
    if kind == "file":
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
        assert theirs.encode("a<image><word>") == loaded.encode("a<image><word>")


def test_files_that_would_be_read_instead_are_refused(tmp_path: Path) -> None:
    """Refuses to save next to another tokenizer's files, which would be read instead."""
    file = Tokenizer(bpe_engine.hf.Tokenizer.from_file(tokenizer_path("roberta-base")))
    plain = Tokenizer(GPT2, chat_template={"default": "one", "rag": "two"})
    file.save_pretrained(tmp_path / "model")
    for other in (plain, QwenTokenizer()):
        with pytest.raises(FileExistsError, match="tokenizer.json belongs to another tokenizer"):
            other.save_pretrained(tmp_path / "model")
        assert Tokenizer.from_pretrained(tmp_path / "model").encode("a") == file.encode("a")
    plain.save_pretrained(tmp_path / "plain")
    plain.save_pretrained(tmp_path / "plain")  # Saving the same files again is allowed.
    for template, name in (("one", "rag"), ({"rag": "two"}, "chat_template"), (None, "chat_temp")):
        other = Tokenizer(GPT2, chat_template=template)
        with pytest.raises(FileExistsError, match=rf"{name}.*\.jinja belongs to another tokenizer"):
            other.save_pretrained(tmp_path / "plain")
    loaded = Tokenizer.from_pretrained(tmp_path / "plain")
    assert loaded.chat_template == plain.chat_template


def test_arguments_of_transformers(tmp_path: Path) -> None:
    """Arguments for downloads or classes have no effect, and never become special tokens."""
    Tokenizer(GPT2).save_pretrained(tmp_path / "model" / "inner")
    options = {
        "cache_dir": None, "revision": "main", "token": "secret", "use_auth_token": "secret",
        "trust_remote_code": True, "use_fast": False, "local_files_only": True,
    }  # fmt: skip
    tokenizer = Tokenizer.from_pretrained(tmp_path / "model", subfolder="inner", **options)
    assert tokenizer.encode("a") == [64] and tokenizer.special_tokens_map == {}
    assert len(tokenizer) == GPT2.n_vocab
    qwen = QwenTokenizer.from_pretrained(tmp_path, trust_remote_code=True, use_auth_token="secret")
    assert qwen.special_tokens_map == {}
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_pretrained(tmp_path / "model", subfolder="other")
    with pytest.raises(TypeError, match="no argument 'trust'"):
        Tokenizer.from_pretrained(tmp_path / "model" / "inner", trust=True)


def test_paths_that_are_not_a_tokenizer_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not a folder on this machine"):
        Tokenizer.from_pretrained("openai-community/gpt2")
    path = write(tmp_path / "model", README__md="x")
    with pytest.raises(IsADirectoryError, match="without a tokenizer .*it has README.md"):
        Tokenizer.from_pretrained(path)
    for files, message in [
        ({"tokenizer_config__json": "[1]"}, "must hold a JSON object, not a list"),
        ({"tokenizer_config__json": "{"}, "is not JSON"),
        ({"tokenizer_config__json": "[" * 100_000}, "is not JSON"),
        ({"tokenizer_config__json": {}, "tokenizer__json": "{}"}, "tokenizer.json: "),
        ({"tokenizer_config__json": {}, "tokenizer__model": "\n\x07<unk>"}, "SentencePiece"),
        ({"tokenizer_config__json": {}, "tokenizer__model": "hello\n"}, "line 1"),
        (
            {
                "tokenizer_config__json": {"tokenizer_class": "T5"},
                "vocab__json": {},
                "merges__txt": "",
            },
            "the pattern of T5 is unknown",
        ),
        (
            {
                "tokenizer_config__json": {"added_tokens_decoder": {"99999999": {"content": "a"}}},
                "tokenizer__model": base64.b64encode(b"a").decode() + " 0\n",
            },
            "99999999 of an added token is far beyond",
        ),
        (
            {
                "tokenizer_config__json": {
                    "added_tokens_decoder": {"1": {"content": "<x>", "lstrip": True}}
                },
                "tokenizer__model": base64.b64encode(b"a").decode() + " 0\n",
            },
            '"<x>" asks for lstrip',
        ),
    ]:
        path = write(tmp_path / f"wrong {len(list(tmp_path.iterdir()))}", **files)
        with pytest.raises(ValueError, match=message):
            Tokenizer.from_pretrained(path)


@pytest.mark.parametrize(
    "config",
    [
        {"padding_side": 5},
        {"model_max_length": "9"},
        {"model_input_names": [1]},
        {"errors": []},
        {"chat_template": 5},
        {"chat_template": [{"name": "default"}]},
        {"extra_special_tokens": [1]},
        {"additional_special_tokens": "<x>"},
        {"added_tokens_decoder": [1]},
        {"added_tokens_decoder": {"1": 5}},
        {"added_tokens_decoder": {"x": {"content": "<x>"}}},
        {"added_tokens_decoder": {"1": {}}},
    ],
)
def test_configurations_that_are_malformed(tmp_path: Path, config: dict[str, Any]) -> None:
    for kind in ("PreTrainedTokenizerFast", "QWenTokenizer"):
        path = write(tmp_path / kind, tokenizer_config__json={"tokenizer_class": kind, **config})
        if kind != "QWenTokenizer":
            (path / "tokenizer.json").symlink_to(tokenizer_path("gpt2"))
        with pytest.raises(ValueError, match=r"tokenizer_config.json: .*" + next(iter(config))):
            Tokenizer.from_pretrained(path)


def test_files_in_place_of_folders_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    for load in (hf.Tokenizer.from_pretrained, Tokenizer.from_pretrained):
        with pytest.raises(NotADirectoryError, match="is a file; give its folder, or open"):
            load(path)
        with pytest.raises(FileNotFoundError, match="is not a folder on this machine; download"):
            load(tmp_path / "missing")
