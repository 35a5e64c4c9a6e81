"""Tests that `QwenTokenizer` behaves like Qwen-7B's own tokenizer class."""

from __future__ import annotations

import copy
import pickle
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts
from vocab_command import run

import bpe_engine
from bpe_engine.load import dump_tiktoken_bpe
from bpe_engine.qwen import QwenTokenizer
from bpe_engine.read.builtin import BUILTIN

SPECIAL_TOKENS = BUILTIN["qwen"].special_tokens

ROOT = Path(__file__).parents[2]
TOKENIZER = QwenTokenizer()
WORDS = (
    "我是一只猫\t20\n你是一只猫\t10\n他是一只猫\t5\n一只\t200\n一只猫\t100\n夸张的 比喻手法\t20\n"
)


def oracle(ranks: dict[bytes, int] | None = None) -> tiktoken.Encoding:
    """Returns the tiktoken encoding that Qwen's own class makes."""
    ranks = TOKENIZER.get_vocab() if ranks is None else ranks
    return tiktoken.Encoding(
        "Qwen",
        pat_str=BUILTIN["qwen"].pattern,
        mergeable_ranks=ranks,
        special_tokens=SPECIAL_TOKENS,
    )


@pytest.fixture(scope="module")
def theirs() -> tiktoken.Encoding:
    return oracle()


@pytest.fixture(scope="module")
def extra(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the file that `vocab-tools learn` writes for the worked example."""
    folder = tmp_path_factory.mktemp("extra")
    (folder / "words.txt").write_text(WORDS, encoding="utf-8")
    base, file = ROOT / "data" / "qwen.tiktoken", folder / "extra.tiktoken"
    done = run("learn", base, folder / "words.txt", "-o", file)
    assert done.returncode == 0, done.stderr
    return file


def test_decoding_half_a_character() -> None:
    assert TOKENIZER.decode([51461]) == " \ufffd"
    assert TOKENIZER.decode([51461], errors="ignore") == " "
    ignoring = QwenTokenizer(errors="ignore")
    assert ignoring.decode([51461]) == " "
    assert ignoring.decode([51461], errors="replace") == " \ufffd"
    assert TOKENIZER.decode([51461, 117]) == " 根"
    assert TOKENIZER.convert_ids_to_tokens([51461, 117]) == [b" \xe6\xa0", b"\xb9"]
    with pytest.raises(UnicodeDecodeError):
        TOKENIZER.decode([51461], errors="strict")


def test_special_tokens_in_text() -> None:
    text = 'print("<|endoftext|>")'
    result = TOKENIZER(text)
    assert dict(result) == {
        "input_ids": [1350, 445, 151643, 899],
        "token_type_ids": [0] * 4,
        "attention_mask": [1] * 4,
    }
    assert list(result) == ["input_ids", "token_type_ids", "attention_mask"]
    assert dict(TOKENIZER(text, allowed_special="all", disallowed_special=())) == dict(result)
    ordinary = [1350, 9639, 91, 8691, 723, 427, 91, 82598]
    assert TOKENIZER(text, allowed_special=set())["input_ids"] == ordinary


def test_some_special_tokens_in_text() -> None:
    text, allowed = 'print("<|extra_0|>")<|endoftext|>', {"<|endoftext|>"}
    ids = [1350, 9639, 91, 15460, 62, 15, 91, 82598, 151643]
    assert TOKENIZER(text, allowed_special=allowed)["input_ids"] == ids
    with pytest.raises(ValueError) as error:
        TOKENIZER(text, allowed_special=allowed, disallowed_special=("<|extra_0|>",))
    assert str(error.value) == (
        "Encountered text corresponding to disallowed special token '<|extra_0|>'.\n"
        "If you want this text to be encoded as a special token, pass it to `allowed_special`, "
        "e.g. `allowed_special={'<|extra_0|>', ...}`.\n"
        "If you want this text to be encoded as normal text, disable the check for this token by "
        "passing `disallowed_special=(enc.special_tokens_set - {'<|extra_0|>'})`.\n"
        "To disable this check for all special tokens, pass `disallowed_special=()`.\n"
    )


def test_tokens() -> None:
    for text, tokens in [
        ("Panda", [b"P", b"anda"]),
        (" Panda", [b" Panda"]),
        ("Pandas", [b"P", b"andas"]),
        (" Pandas", [b" Pand", b"as"]),
        ('print("<|endoftext|>")', [b"print", b'("', "<|endoftext|>", b'")']),
    ]:
        assert TOKENIZER.tokenize(text) == tokens
        assert TOKENIZER.convert_tokens_to_string(tokens) == text
        ids = TOKENIZER.convert_tokens_to_ids(tokens)
        assert ids == TOKENIZER.encode(text)
        assert TOKENIZER.convert_ids_to_tokens(ids) == tokens
    assert TOKENIZER.tokenize("<|im_end|>", set()) == TOKENIZER.tokenize(
        "<|im_end|>", allowed_special=()
    )
    with pytest.raises(ValueError, match="disallowed special token"):
        TOKENIZER.tokenize("<|im_end|>", set(), "all")
    assert TOKENIZER.convert_tokens_to_ids(b"P") == 47
    assert TOKENIZER.convert_tokens_to_ids([None]) == [None]
    # Ranks are bytes: a str is the name of a special token, or unknown.
    assert TOKENIZER.convert_tokens_to_ids(["P", b"no such token"]) == [None, None]
    assert TOKENIZER.convert_tokens_to_ids(b"<|endoftext|>") is None
    with pytest.raises(ValueError, match="unknown ids: 151851"):
        TOKENIZER.convert_ids_to_tokens([151851])
    with pytest.raises(TypeError, match="not int"):
        TOKENIZER.convert_tokens_to_string([3])


def test_the_vocabulary() -> None:
    assert len(TOKENIZER) == TOKENIZER.vocab_size == 151851
    vocab = TOKENIZER.get_vocab()
    assert len(vocab) == 151643 and vocab[b" Panda"] == TOKENIZER.encode(" Panda")[0]
    special = TOKENIZER.special_tokens
    assert special == SPECIAL_TOKENS and len(special) == 208
    assert [special[f"<|extra_{i}|>"] for i in (0, 204)] == [151646, 151850]
    decoder = TOKENIZER.decoder
    assert len(decoder) == 151851 and decoder[47] == b"P" and decoder[151643] == "<|endoftext|>"
    ids = (TOKENIZER.eod_id, TOKENIZER.im_start_id, TOKENIZER.im_end_id)
    assert ids == (151643, 151644, 151645)


@given(texts, st.sampled_from(["all", "none", "some"]))
def test_ids_are_those_of_the_original(theirs: tiktoken.Encoding, text: str, which: str) -> None:
    allowed: Any = {"all": "all", "none": set(), "some": {"<|im_start|>", "<|extra_0|>"}}[which]
    normal = unicodedata.normalize("NFC", text)
    ids = theirs.encode(normal, allowed_special=allowed, disallowed_special=())
    assert TOKENIZER(text, allowed_special=allowed)["input_ids"] == ids
    names = {id: name for name, id in SPECIAL_TOKENS.items()}
    tokens = [names.get(id) or theirs.decode_single_token_bytes(id) for id in ids]
    assert TOKENIZER.tokenize(text, allowed_special=allowed) == tokens
    for errors in ("replace", "ignore"):
        assert TOKENIZER.decode(ids, errors=errors) == theirs.decode(ids, errors)
        part = ids[1:-1]
        assert TOKENIZER.decode(part, errors=errors) == theirs.decode(part, errors)
    kept = [id for id in ids if id < 151643]
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == theirs.decode(kept)


def test_extra_tokens(extra: Path) -> None:
    tokenizer = QwenTokenizer(extra_vocab_file=extra)
    assert len(tokenizer) == 151857
    assert dict(tokenizer("我是一只猫")) == {
        "input_ids": [151854],
        "token_type_ids": [0],
        "attention_mask": [1],
    }
    # Added ranks have ids above the special tokens, and are not special.
    ids = [151854, 151643, 151851]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "我是一只猫一只猫"
    assert tokenizer.convert_ids_to_tokens([151852]) == ["只猫".encode()]
    right = oracle(tokenizer.get_vocab())
    for text in ("你是一只猫。他是一只猫", "一只 猫<|im_end|>", "e\u0301一只猫"):
        normal = unicodedata.normalize("NFC", text)
        assert tokenizer.encode(text) == right.encode(normal, allowed_special="all")


def test_extra_tokens_that_exist(tmp_path: Path, extra: Path) -> None:
    file = tmp_path / "more.tiktoken"
    known = next(iter(TOKENIZER.get_vocab()))
    dump_tiktoken_bpe({known: 151900}, str(file))
    lines = extra.read_text() + file.read_text()
    file.write_text(lines)
    with pytest.warns(UserWarning, match="1 tokens exist already and are skipped"):
        tokenizer = QwenTokenizer(extra_vocab_file=file)
    assert len(tokenizer) == 151857 and tokenizer.get_vocab()[known] != 151900
    file.write_text(extra.read_text() * 2)
    with pytest.warns(UserWarning, match="6 tokens exist already.*, ..."):
        assert len(QwenTokenizer(extra_vocab_file=file)) == 151857


@pytest.mark.parametrize(
    "tokens, message",
    [
        ({b"\xff\xfe one": 5}, "line 1: the id 5 .* is taken by b"),
        ({b"\xff\xfe one": 151643}, "line 1: .* is taken by '<|endoftext|>'"),
    ],
)
def test_extra_ids_that_are_taken(tmp_path: Path, tokens: Any, message: str) -> None:
    file = tmp_path / "bad.tiktoken"
    dump_tiktoken_bpe(tokens, str(file))
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        QwenTokenizer(extra_vocab_file=file)


def test_invalid_extra_files(tmp_path: Path) -> None:
    file = tmp_path / "bad.tiktoken"
    for contents, message in [
        ("/w== 151851\n/g== 151852 x\n", "line 2"),
        ("not base64 at all\n", "line 1"),
    ]:
        file.write_text(contents)
        with pytest.raises(ValueError, match=message):
            QwenTokenizer(extra_vocab_file=file)
    # The file gives the same new id twice.
    file.write_text("5LiA5Y+q54yr 151851\n5Y+q54yr 151851\n")
    with pytest.raises(ValueError, match="line 2: the id 151851 .* is taken"):
        QwenTokenizer(extra_vocab_file=file)
    with pytest.raises(OSError):
        QwenTokenizer(extra_vocab_file=tmp_path / "missing.tiktoken")


def test_extra_ids_with_gaps(tmp_path: Path) -> None:
    file = tmp_path / "sparse.tiktoken"
    file.write_text("5LiA5Y+q54yr 152000\n")
    tokenizer = QwenTokenizer(extra_vocab_file=file)
    assert len(tokenizer) == 152001
    assert tokenizer.encode("一只猫") == [152000]
    with pytest.raises(ValueError, match="unknown ids: 151999"):
        tokenizer.convert_ids_to_tokens([151999])
    with pytest.raises(KeyError):
        tokenizer.decode([151999])


def test_only_known_names_play_a_part() -> None:
    tokenizer = QwenTokenizer(
        pad_token="<|endoftext|>", eos_token="<|im_end|>", extra_special_tokens=["<|extra_0|>"]
    )
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (151643, 151645)
    tokenizer.pad_token = "<|extra_1|>"
    assert tokenizer.pad_token_id == 151647
    assert tokenizer.add_special_tokens({"bos_token": "<|extra_2|>"}) == 0
    assert tokenizer.all_special_tokens == [
        "<|extra_2|>",
        "<|im_end|>",
        "<|extra_1|>",
        "<|extra_0|>",
    ]
    for make in (
        lambda: QwenTokenizer(pad_token="[PAD]"),
        lambda: QwenTokenizer(extra_special_tokens={"image_token": "<img>"}),
        lambda: setattr(tokenizer, "pad_token", "Panda"),
        lambda: setattr(tokenizer, "extra_special_tokens", ["<other>"]),
        lambda: tokenizer.add_special_tokens({"pad_token": "[PAD]"}),
        lambda: tokenizer.add_tokens("<other>", special_tokens=True),
        lambda: tokenizer.add_tokens(["word"]),
    ):
        with pytest.raises(ValueError, match="not supported"):
            make()
    assert tokenizer.pad_token == "<|extra_1|>" and len(tokenizer) == 151851


def test_batches() -> None:
    tokenizer = QwenTokenizer(pad_token="<|endoftext|>", padding_side="left")
    batch = tokenizer(["Panda", " Panda"], padding=True)
    assert batch.input_ids == [tokenizer.encode("Panda"), [151643, *tokenizer.encode(" Panda")]]
    assert batch.attention_mask == [[1, 1], [0, 1]]
    pair = tokenizer("Panda", " Pandas")
    assert pair.input_ids == tokenizer.encode("Panda") + tokenizer.encode(" Pandas")
    assert pair.token_type_ids == [0, 0, 1, 1]
    offsets = tokenizer("e\u0301 <|im_end|>根", return_offsets_mapping=True)["offset_mapping"]
    assert offsets == [(0, 2), (2, 3), (3, 13), (13, 14)]
    with pytest.raises(ValueError, match="does not have a padding token"):
        TOKENIZER(["a", "b c"], padding=True)


def test_saving_and_loading(tmp_path: Path, extra: Path) -> None:
    tokenizer = QwenTokenizer(
        extra_vocab_file=extra,
        errors="ignore",
        pad_token="<|extra_0|>",
        padding_side="left",
        model_max_length=8192,
    )
    (path,) = tokenizer.save_vocabulary(tmp_path)
    assert Path(path).name == "qwen.tiktoken"
    assert QwenTokenizer(path).get_vocab() == tokenizer.get_vocab()
    saved = tokenizer.save_pretrained(tmp_path / "saved")
    assert {Path(file).name for file in saved} == {"qwen.tiktoken", "tokenizer_config.json"}
    for loaded in (
        QwenTokenizer.from_pretrained(tmp_path / "saved"),
        bpe_engine.Tokenizer.from_pretrained(tmp_path / "saved"),
        pickle.loads(pickle.dumps(tokenizer)),
        copy.copy(tokenizer),
        copy.deepcopy(tokenizer),
    ):
        assert type(loaded) is QwenTokenizer
        assert loaded.get_vocab() == tokenizer.get_vocab() and len(loaded) == 151857
        assert loaded(["我是一只猫", "e\u0301 根<|im_end|>"], padding=True) == tokenizer(
            ["我是一只猫", "e\u0301 根<|im_end|>"], padding=True
        )
        assert loaded.decode([51461]) == " " and loaded.model_max_length == 8192
        assert loaded.pad_token == "<|extra_0|>" and loaded.padding_side == "left"
    overridden = QwenTokenizer.from_pretrained(tmp_path / "saved", errors="replace")
    assert overridden.decode([51461]) == " \ufffd"


def test_a_folder_as_published(tmp_path: Path) -> None:
    (tmp_path / "qwen.tiktoken").symlink_to(ROOT / "data" / "qwen.tiktoken")
    (tmp_path / "tokenizer_config.json").write_text(
        '{"model_max_length": 8192, "tokenizer_class": "QWenTokenizer", '
        '"auto_map": {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", null]}}'
    )
    tokenizer = bpe_engine.Tokenizer.from_pretrained(tmp_path)
    assert type(tokenizer) is QwenTokenizer and tokenizer.model_max_length == 8192
    assert tokenizer.tokenizer is bpe_engine.get_encoding("qwen")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert QwenTokenizer.from_pretrained(tmp_path, pad_token="<|endoftext|>").pad_token_id
    with pytest.raises(FileNotFoundError, match="not a folder on this machine"):
        QwenTokenizer.from_pretrained(tmp_path / "missing")


def test_copies_change_by_themselves() -> None:
    tokenizer = QwenTokenizer()
    other = copy.copy(tokenizer)
    other.pad_token = "<|extra_0|>"
    other.model_input_names.remove("token_type_ids")
    assert tokenizer.pad_token is None
    assert "token_type_ids" in tokenizer("a") and "token_type_ids" not in other("a")
