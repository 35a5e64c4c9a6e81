"""Tests that `open_tokenizer` opens every kind of file as an `Encoding`."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_files import MERGES, byte_level_file, character_file

import bpe_engine
from bpe_engine import hf, open_tokenizer
from bpe_engine.read.sources import in_folder, recognize

tokenizers = pytest.importorskip("tokenizers")

NFC = {"type": "NFC"}
#: A file, and whether its encoding has ranks.
FILES = {
    "plain": (byte_level_file(), True),
    "nfc": (byte_level_file({"normalized": True}, normalizer=NFC), True),
    "nested nfc": (
        byte_level_file(
            {"normalized": True}, normalizer={"type": "Sequence", "normalizers": [NFC]}
        ),
        True,
    ),
    "nfc, and names that are found before": (byte_level_file(normalizer=NFC), False),
    "nfc, and a name that it changes": (
        byte_level_file({"normalized": True, "content": "<e\u0301>"}, normalizer=NFC),
        False,
    ),
    "nfd": (byte_level_file(normalizer={"type": "NFD"}), False),
    "not special": (byte_level_file({"special": False}), False),
    "whitespace": (byte_level_file({"content": "   "}), False),
    "lstrip": (byte_level_file({"lstrip": True}), False),
    "characters": (character_file(), False),
}

ends = st.sampled_from(["<|end|>", "<e\u0301>", "<\xe9>", "\u0338", "   "])
texts = st.lists(ends | st.text(st.sampled_from("helo 1<e\u0301\xe9\u212a"), max_size=6)).map(
    "".join
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """Opens each file with this package and with `tokenizers`."""
    found = {}
    for name, (contents, _) in FILES.items():
        path = tmp_path_factory.mktemp("file") / "tokenizer.json"
        path.write_text(json.dumps(contents), encoding="utf-8")
        found[name] = (open_tokenizer(path), tokenizers.Tokenizer.from_file(str(path)))
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_class_and_its_ids(name: str, opened: dict[str, tuple[Any, Any]]) -> None:
    ours, theirs = opened[name]
    assert type(ours) is bpe_engine.Encoding
    assert type(ours.hf) is hf.Tokenizer and type(ours.transformers) is bpe_engine.Tokenizer
    assert ours.hf.fingerprint == ours.transformers.backend.fingerprint
    # Programs search for this word in the type's name.
    assert "tokenizers" in str(type(ours.hf))
    has_ranks = FILES[name][1]
    if has_ranks:
        assert ours.mergeable_ranks and ours.pattern
    else:
        for use in (
            lambda: ours.mergeable_ranks,
            lambda: ours.pattern,
            lambda: ours.encode_single_token(b"h"),
            lambda: ours.encode_with_unstable("h"),
            lambda: ours.token_byte_values(),
        ):
            with pytest.raises(hf.UnsupportedTokenizer, match="this tokenizer has no ranks: "):
                use()
    assert ours.n_vocab == max(theirs.get_vocab().values()) + 1

    @given(texts)
    def check(text: str) -> None:
        expected = theirs.encode(text, add_special_tokens=False).ids
        found = bpe_engine.prompt.Conversation(ours, allowed_special="all", disallowed_special=())
        found.update(text)
        assert found.ids == expected
        assert ours.encode(text, allowed_special="all") == expected
        assert ours.hf.encode(text, add_special_tokens=False).ids == expected
        assert ours.hf.encoding.encode(text, allowed_special="all") == expected
        # Added tokens that are not special are found even if special tokens are encoded as text.
        theirs.encode_special_tokens = True
        ordinary = theirs.encode(text, add_special_tokens=False).ids
        theirs.encode_special_tokens = False
        found = bpe_engine.prompt.Conversation(ours, allowed_special=(), disallowed_special=())
        found.update(text)
        assert found.ids == ordinary
        assert ours.encode(text, disallowed_special=()) == ours.encode_ordinary(text) == ordinary
        assert ours.encode_batch([text], disallowed_special=()) == [ordinary]
        assert ours.count(text) == len(ordinary)
        special = {
            id: token.content
            for id, token in theirs.get_added_tokens_decoder().items()
            if token.special
        }
        is_named = any(name in text for name in special.values())
        if is_named and special.keys() & set(expected):
            with pytest.raises(ValueError, match="disallowed special token"):
                ours.encode(text)
        elif not is_named:
            assert ours.encode(text) == ordinary

    check()
    again = pickle.loads(pickle.dumps(ours))
    assert again.name == ours.name
    assert again.encode("hello 1", allowed_special="all") == ours.encode(
        "hello 1", allowed_special="all"
    )
    assert copy.copy(ours).hf.to_str() == again.hf.to_str() == ours.hf.to_str()


def test_kinds_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    contents = byte_level_file()
    merges = "".join(f"{a} {b}\n" for a, b in MERGES)
    vocab = {**contents["model"]["vocab"], "<|end|>": 262}
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}", encoding="utf-8")
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    pair = open_tokenizer(folder)
    assert pair.encode("hello<|end|>", allowed_special="all") == [259, 262]
    assert open_tokenizer(folder / "merges.txt").special_tokens_set == {"<|end|>"}
    # Ranks take precedence over GPT-2's two files, and a tokenizer.json over both formats.
    bpe_engine.load.dump_tiktoken_bpe(dict(pair.mergeable_ranks), str(folder / "mine.tiktoken"))
    assert open_tokenizer(folder).special_tokens == {}
    (folder / "tokenizer.json").write_text(json.dumps(contents), encoding="utf-8")
    assert [Path(source.path).name for source in in_folder(folder)] == [
        "tokenizer.json",
        "mine.tiktoken",
        "vocab.json",
    ]
    assert recognize(folder).name == open_tokenizer(folder).name == "mine"
    # The format depends on the contents, not on the name.
    (tmp_path / "other").write_text(json.dumps(contents), encoding="utf-8")
    assert open_tokenizer(tmp_path / "other").encode("hello") == [259]


@pytest.mark.parametrize(
    "name, contents, message",
    [
        ("x.json", "{", "x.json .* the JSON is broken"),
        ("x.json", '{"a": 0}', "name the file vocab.json, next to merges.txt"),
        ("x.json", '{"a": []}', "is JSON, but no tokenizer.json"),
        ("x.model", "\n\x0d\x0a", "x.model: not a SentencePiece model: it is cut off"),
        ("x.gguf", "GGUF", "x.gguf is a GGUF file; `vocab-tools convert`"),
        ("x.tiktoken", '["a"]', "x.tiktoken is JSON, not a rank file"),
        (
            "x.json",
            '{"model": {"type": "SuperBPE"}}',
            "x.json: model.type: .*SuperBPE.* is not supported",
        ),
    ],
)
def test_what_is_not_opened(tmp_path: Path, name: str, contents: str, message: str) -> None:
    (tmp_path / name).write_text(contents, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        open_tokenizer(tmp_path / name)


def test_files_of_other_kinds_are_named(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab.txt is a vocab.txt, which Tokenizer.from_wordp"):
        hf.Tokenizer.from_file(path)
    with pytest.raises(
        ValueError, match="is a word list of WordPiece, which has no ranks; bpe_eng"
    ):
        bpe_engine.load_encoding(path, "gpt2")
    with pytest.raises(
        FileNotFoundError, match=r"open_tokenizer reads the vocab.txt in that folder"
    ):
        hf.Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"expected value.*: the class takes the contents of a f"):
        hf.Tokenizer(str(path))
    path.write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab.txt is not a tokenizer.json: expected"):
        hf.Tokenizer.from_file(path)
    words = tmp_path / "words"
    words.write_text("[UNK]\nun\n", encoding="utf-8")
    assert open_tokenizer(words).hf.encode("un").tokens == ["[CLS]", "un", "[SEP]"]
    assert open_tokenizer(words).encode("un") == [1]


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    """UnicodeDecodeError is a ValueError, but cannot be made from a message alone."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b'{"model": "\xff"}')
    for read in (bpe_engine.hf.Tokenizer.from_file, bpe_engine.open_tokenizer):
        with pytest.raises(ValueError, match=r"tokenizer.json.*utf-8"):
            read(path)


def test_names_of_the_hub_are_not_downloaded() -> None:
    with pytest.raises(FileNotFoundError, match="nothing is downloaded, so give the folder"):
        bpe_engine.open_tokenizer("Qwen/Qwen3-0.6B")
