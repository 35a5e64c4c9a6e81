"""Tests folders of encoders and text models, BERT to CLIP, against the classes of transformers."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hf_oracle import SHARED, TEXTS
from seeds import seeded
from sentencepiece_oracle import T5, write_class

import bpe_engine
from bpe_engine import Tokenizer, hf

transformers = pytest.importorskip("transformers")
np = pytest.importorskip("numpy")

PAIRS = [
    ("What is it?", "A tokenizer, as it seems."),
    ("Ünïcödé ``quoted'' text", "do n't , he 's !"),
    ("one two three four five six seven", "eight nine"),
    ("", "nothing before"),
    ("日本語 x", "[SEP] </s> <pad> <extra_id_0> <mask>"),
]
WORDS = ["what", "is", "it", "a", "token", "izer", "the", "two", "three", "un", "able", "日本", "é"]
LETTERS = sorted({*"abcdefghijklmnopqrstuvwxyz0123456789,.!?'\"`-<>[]/_éüïö日本語"})


def pieces(first: list[str]) -> list[tuple[str, float]]:
    """A small vocabulary of Unigram, after special tokens."""
    words = [*WORDS, *(f"▁{word}" for word in WORDS), "▁"]
    scores = {**dict.fromkeys(LETTERS, -8.0), **{word: -2.0 - len(word) for word in words}}
    return [*((name, 0.0) for name in first), *scores.items()]


def words(first: list[str]) -> dict[str, int]:
    """A small vocabulary of WordPiece, after special tokens."""
    made = [*first, *LETTERS, *WORDS, *(f"##{word}" for word in [*LETTERS, *WORDS])]
    return {word: id for id, word in enumerate(dict.fromkeys(made))}


def merges() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A small vocabulary of BPE with ends of words, and its merges."""
    level = [bpe_engine.read.byte_level.text_of(bytes([byte])) for byte in range(256)]
    vocab, made = [*level, *(letter + "</w>" for letter in level)], []
    for word in ("what", "is", "it", "token", "izer", "two"):
        for end in range(2, len(word)):
            made.append((word[: end - 1], word[end - 1]))
        made.append((word[:-1], word[-1] + "</w>"))
    vocab += [left + right for left, right in made]
    vocab += ["<|startoftext|>", "<|endoftext|>"]
    return {token: id for id, token in enumerate(dict.fromkeys(vocab))}, list(dict.fromkeys(made))


def byte_merges(first: list[str]) -> dict[str, Any]:
    """A small vocabulary of byte-level BPE, after special tokens."""
    level = [bpe_engine.read.byte_level.text_of(bytes([byte])) for byte in range(256)]
    made = [
        (word[: end - 1], word[end - 1]) for word in WORDS[:8] for end in range(2, len(word) + 1)
    ]
    vocab = dict.fromkeys([*first, *level, *(left + right for left, right in made)])
    return {
        "vocab": {token: id for id, token in enumerate(vocab)},
        "merges": list(dict.fromkeys(made)),
    }


def letter_merges(first: list[str]) -> dict[str, Any]:
    """A small vocabulary of BPE over characters with marks for spaces, after special tokens."""
    made = []
    for word in WORDS[:8]:
        marked = f"▁{word}"
        made += [(marked[: end - 1], marked[end - 1]) for end in range(2, len(marked) + 1)]
    vocab = dict.fromkeys([*first, *LETTERS, "▁", *(left + right for left, right in made)])
    return {
        "vocab": {token: id for id, token in enumerate(vocab)},
        "merges": list(dict.fromkeys(made)),
    }


def with_first(first: list[str], vocab: Any, made: Any) -> tuple[dict[str, int], Any]:
    return {token: id for id, token in enumerate(dict.fromkeys([*first, *vocab]))}, made


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LLAMA = ["<unk>", "<s>", "</s>"]
GEMMA = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
#: A small vocabulary for each class.
MADE: dict[str, Any] = {
    "BertTokenizer": lambda: {"vocab": words(BERT)},
    "DistilBertTokenizer": lambda: {"vocab": words(BERT)},
    "MobileBertTokenizer": lambda: {"vocab": words(BERT)},
    "FunnelTokenizer": lambda: {
        "vocab": words(["<pad>", "<unk>", "<cls>", "<sep>", "<mask>", "<s>", "</s>"])
    },
    "MPNetTokenizer": lambda: {"vocab": words([*ROBERTA, "[UNK]"])},
    "AlbertTokenizer": lambda: {"vocab": pieces(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])},
    "CamembertTokenizer": lambda: {"vocab": pieces(["<s>NOTUSED", *ROBERTA])},
    "DebertaV2Tokenizer": lambda: {"vocab": pieces(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])},
    "PegasusTokenizer": lambda: {
        "vocab": pieces(["<pad>", "</s>", "<mask_1>", "<mask_2>", "<unk>"])
    },
    "T5Tokenizer": lambda: {"vocab": pieces(["<pad>", "</s>", "<unk>"])},
    "XLMRobertaTokenizer": lambda: {"vocab": pieces(ROBERTA)},
    "XLNetTokenizer": lambda: {
        "vocab": pieces(["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>"])
    },
    "BarthezTokenizer": lambda: {"vocab": pieces(ROBERTA[:2] + ["</s>", "<unk>", "<mask>"])},
    "BigBirdTokenizer": lambda: {"vocab": pieces(["<pad>", "</s>", "<s>", "<unk>", *BERT[2:]])},
    "BlenderbotTokenizer": lambda: byte_merges(ROBERTA),
    "CodeLlamaTokenizer": lambda: letter_merges(LLAMA),
    "CohereTokenizer": lambda: byte_merges(
        ["<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<BOS_TOKEN>"]
    ),
    "ConvBertTokenizer": lambda: {"vocab": words(BERT)},
    "DPRQuestionEncoderTokenizer": lambda: {"vocab": words(BERT)},
    "DebertaTokenizer": lambda: byte_merges(BERT),
    "FNetTokenizer": lambda: {"vocab": pieces(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])},
    "GPTNeoXTokenizer": lambda: byte_merges(["<|endoftext|>", "<|padding|>"]),
    "GemmaTokenizer": lambda: letter_merges(GEMMA),
    "HerbertTokenizer": lambda: dict(zip(("vocab", "merges"), with_first(ROBERTA, *merges()))),
    "LlamaTokenizer": lambda: letter_merges(LLAMA),
    "NougatTokenizer": lambda: byte_merges(ROBERTA),
    "Qwen2Tokenizer": lambda: byte_merges(["<|endoftext|>"]),
    "Qwen3_5Tokenizer": lambda: byte_merges(["<|endoftext|>"]),
    "ReformerTokenizer": lambda: letter_merges(["</s>", "<unk>"]),
    "RemBertTokenizer": lambda: {"vocab": pieces(["[PAD]", "[CLS]", "<unk>", "[SEP]", "[MASK]"])},
    "RobertaTokenizer": lambda: byte_merges(ROBERTA),
    "Siglip2Tokenizer": lambda: letter_merges(GEMMA),
    "SplinterTokenizer": lambda: {"vocab": words([*BERT, "[QUESTION]"])},
    "WhisperTokenizer": lambda: byte_merges(["<|endoftext|>"]),
    "XGLMTokenizer": lambda: {"vocab": pieces(ROBERTA[:4])},
    "CLIPTokenizer": lambda: dict(zip(("vocab", "merges"), merges())),
    "OpenAIGPTTokenizer": lambda: dict(
        zip(("vocab", "merges"), ({**merges()[0], "<unk>": len(merges()[0])}, merges()[1]))
    ),
}
REAL = [
    ("bert-base-uncased", "BertTokenizer", {"do_lower_case": True, "model_max_length": 512}),
    ("bert-base-uncased", "ElectraTokenizer", {"strip_accents": False}),
    ("bert-base-uncased", "BertTokenizer", {"clean_up_tokenization_spaces": True}),
    ("bert-base-cased", "BertTokenizer", {"do_lower_case": False}),
    ("bert-base-cased", "BertTokenizer", {}),
    ("bert-base-chinese", "DistilBertTokenizer", {"do_lower_case": False, "max_len": 9}),
    ("bert-base-multilingual-cased", "BertTokenizer", {"do_lower_case": False}),
    ("bert-base-uncased", "PreTrainedTokenizerFast", {"unk_token": "[UNK]", "pad_token": "[PAD]"}),
    ("t5-small", "T5Tokenizer", {"model_max_length": 512}),
    ("xlnet-base-cased", "XLNetTokenizer", {}),
]
CALLS: list[dict[str, Any]] = [
    {},
    {"add_special_tokens": False},
    {"return_special_tokens_mask": True, "return_offsets_mapping": True, "return_length": True},
    {"return_token_type_ids": True, "return_attention_mask": False},
    {"truncation": True, "max_length": 7},
    {"truncation": "longest_first", "max_length": 8, "return_token_type_ids": True},
    {"max_length": 12, "truncation": True, "stride": 2, "return_overflowing_tokens": True},
    {"padding": "max_length", "max_length": 12, "truncation": True},
]
BATCHES: list[dict[str, Any]] = [
    {"padding": True, "return_tensors": "np"},
    {"padding": True, "truncation": "longest_first", "max_length": 10, "return_tensors": "np"},
    {"padding": "max_length", "truncation": True, "max_length": 16, "pad_to_multiple_of": 8},
    {"padding": True, "padding_side": "left", "return_token_type_ids": True},
    {"padding": True, "truncation": True, "max_length": 8, "return_overflowing_tokens": True},
]


def write(path: Path, **files: Any) -> Path:
    """A folder with these files; `__` in a name is a dot."""
    path.mkdir(exist_ok=True)
    for name, contents in files.items():
        text = contents if isinstance(contents, str) else json.dumps(contents)
        (path / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return path


def plain(result: Any) -> dict[str, Any]:
    """The fields of a result, as lists."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in result.items()
    }


def same_outcome(ours: Any, theirs: Any, *args: Any, **options: Any) -> None:
    found = []
    for tokenizer in (ours, theirs):
        try:
            found.append(plain(tokenizer(*args, **options)))
        except Exception as error:
            found.append({"raised": type(error).__name__ != ""})
    assert found[0] == found[1], (args, options)


def same(ours: Any, theirs: Any) -> None:
    """All that a program asks of the two."""
    for name in (
        "model_input_names", "padding_side", "truncation_side", "special_tokens_map", "pad_token_id",
        "all_special_tokens", "all_special_ids", "vocab_size", "model_max_length", "mask_token",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len(ours) == len(theirs)
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.get_added_vocab() == theirs.get_added_vocab()
    assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)
    for text in [*TEXTS, *(text for pair in PAIRS for text in pair)]:
        for options in CALLS:
            same_outcome(ours, theirs, text, **options)
        ids = theirs.encode(text)
        assert ours.tokenize(text) == theirs.tokenize(text)
        for options in (
            {},
            {"skip_special_tokens": True},
            {"clean_up_tokenization_spaces": True},
            {"skip_special_tokens": True, "clean_up_tokenization_spaces": False},
        ):
            assert ours.decode(ids, **options) == theirs.decode(ids, **options), (text, options)
    for first, second in PAIRS:
        for options in [*CALLS, *({"truncation": which, "max_length": 11} for which in
                                  ("only_first", "only_second"))]:  # fmt: skip
            same_outcome(ours, theirs, first, second, **options)
    batch, others = [a for a, _ in PAIRS], [b for _, b in PAIRS]
    if theirs.pad_token is None:
        return
    for options in BATCHES:
        same_outcome(ours, theirs, batch, **options)
        same_outcome(ours, theirs, batch, others, **options)
        same_outcome(ours, theirs, PAIRS, **options)
    rows = [theirs(text) for text in batch]
    assert plain(ours.pad(rows)) == plain(theirs.pad(rows))
    split = [text.split() or ["x"] for text in batch]
    same_outcome(ours, theirs, split, is_split_into_words=True, padding=True)


def theirs_of(path: Path, name: str) -> Any:
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    found: Any = tokenizer_class_from_name(name)
    return found.from_pretrained(path)


def real(tmp_path: Path, file: str, config: Any) -> Path:
    source = SHARED / "tokenizers" / "models" / f"{file}.json"
    if not source.exists():
        pytest.skip(f"{source} is missing")
    path = write(tmp_path / file, tokenizer_config__json=config)
    (path / "tokenizer.json").symlink_to(source)
    return path


@pytest.mark.parametrize(("file", "name", "config"), REAL)
def test_real_files(tmp_path: Path, file: str, name: str, config: dict[str, Any]) -> None:
    path = real(tmp_path, file, {"tokenizer_class": name, **config})
    same(Tokenizer.from_pretrained(path), theirs_of(path, name))


@pytest.mark.parametrize("name", ["T5Tokenizer", "PreTrainedTokenizerFast"])
def test_scores_decide_between_equal_sums(tmp_path: Path, name: str) -> None:
    """`tokenizers` rounds scores when it reads a file; the classes that take the vocabulary do not."""
    path = real(tmp_path, "t5-small", {"tokenizer_class": name})
    theirs = theirs_of(path, name)
    rng = seeded("equal sums")
    texts = [
        " ".join(rng.choice("aeinot-.=*0x_") * rng.randrange(1, 40) for _ in range(3))
        for _ in range(2000)
    ]
    expected = theirs(texts).input_ids
    own = Tokenizer.from_pretrained(path)
    hf.patch_transformers()
    try:
        patched = theirs_of(path, name)
    finally:
        hf.unpatch_transformers()
    for each in (
        own,
        pickle.loads(pickle.dumps(own)),
        patched,
        pickle.loads(pickle.dumps(patched)),
    ):
        assert each(texts).input_ids == expected
    file = hf.Tokenizer.from_file(path / "tokenizer.json")
    is_same = [each.ids for each in file.encode_batch(texts)] == expected
    assert is_same == (name == "PreTrainedTokenizerFast")


@pytest.mark.parametrize("name", MADE)
def test_what_transformers_saved(tmp_path: Path, name: str) -> None:
    made = getattr(transformers, name)(**MADE[name]())
    path = tmp_path / "model"
    made.save_pretrained(path)
    theirs = theirs_of(path, name)
    ours = Tokenizer.from_pretrained(path)
    same(ours, theirs)
    same(pickle.loads(pickle.dumps(ours)), theirs)
    ours.save_pretrained(tmp_path / "again")
    same(Tokenizer.from_pretrained(tmp_path / "again"), theirs)


@pytest.mark.parametrize("name", MADE)
def test_what_the_class_takes_where_no_file_says(tmp_path: Path, name: str) -> None:
    getattr(transformers, name)(**MADE[name]()).save_pretrained(tmp_path / "model")
    path = write(tmp_path / "model", tokenizer_config__json={"tokenizer_class": name})
    same(Tokenizer.from_pretrained(path), theirs_of(path, name))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("bert", "BertTokenizer"),
        ("distilbert", "BertTokenizer"),
        ("t5", "T5Tokenizer"),
        ("xlm-roberta", "XLMRobertaTokenizer"),
        ("clip", "CLIPTokenizer"),
        ("mpnet", "MPNetTokenizer"),
    ],
)
def test_the_class_of_a_model(tmp_path: Path, kind: str, name: str) -> None:
    """Old folders have no class; transformers takes the model's class in ``config.json``."""
    getattr(transformers, name)(**MADE[name]()).save_pretrained(tmp_path / "model")
    config = {"model_max_length": 20}
    path = write(
        tmp_path / "model", tokenizer_config__json=config, config__json={"model_type": kind}
    )
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    assert type(theirs).__name__ == name
    same(Tokenizer.from_pretrained(path), theirs)


@pytest.mark.parametrize("name", ["BertTokenizer", "T5Tokenizer", "XLNetTokenizer"])
def test_truncation_and_padding_of_the_file(tmp_path: Path, name: str) -> None:
    """As in files of sentence-transformers, which truncate and pad to 128."""
    getattr(transformers, name)(**MADE[name]()).save_pretrained(tmp_path / "model")
    file = hf.Tokenizer.from_file(tmp_path / "model" / "tokenizer.json")
    file.enable_truncation(12, direction="left")
    pad = next(token for token in ("[PAD]", "<pad>") if file.token_to_id(token) is not None)
    id = file.token_to_id(pad)
    assert id is not None
    file.enable_padding(direction="left", pad_id=id, pad_token=pad, length=20)
    file.save(tmp_path / "model" / "tokenizer.json")
    path = write(tmp_path / "model", tokenizer_config__json={"tokenizer_class": name})
    same(Tokenizer.from_pretrained(path), theirs_of(path, name))


# ---- vocab.txt ----


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("BertTokenizer", {}),
        ("BertTokenizer", {"do_lower_case": False}),
        ("BertTokenizer", {"strip_accents": False, "tokenize_chinese_chars": False}),
        ("BertTokenizer", {"do_lower_case": False, "strip_accents": True, "model_max_length": 9}),
        ("DistilBertTokenizer", {"mask_token": "[M]", "additional_special_tokens": ["[X]", "the"]}),
        ("MPNetTokenizer", {}),
        ("FunnelTokenizer", {"do_lower_case": True}),
    ],
)
def test_vocab_txt(tmp_path: Path, name: str, config: dict[str, Any]) -> None:
    vocab = "".join(f"{word}\n" for word in MADE[name]()["vocab"])
    config = {"tokenizer_class": name, **config}
    path = write(tmp_path / "model", vocab__txt=vocab, tokenizer_config__json=config)
    same(Tokenizer.from_pretrained(path), theirs_of(path, name))


@pytest.mark.parametrize(
    "options",
    [{"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}],
)
def test_options_of_the_call(tmp_path: Path, options: dict[str, Any]) -> None:
    vocab = "".join(f"{word}\n" for word in words(BERT))
    path = write(
        tmp_path / "model",
        vocab__txt=vocab,
        tokenizer_config__json={"tokenizer_class": "BertTokenizer"},
    )
    theirs = transformers.BertTokenizer.from_pretrained(path, **options)
    same(Tokenizer.from_pretrained(path, **options), theirs)
    theirs.save_pretrained(tmp_path / "saved")
    write(tmp_path / "saved", tokenizer_config__json={"tokenizer_class": "BertTokenizer"})
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path / "saved", **options)
    same(Tokenizer.from_pretrained(tmp_path / "saved", **options), theirs)


def test_lines_of_a_vocab_txt(tmp_path: Path) -> None:
    """White space at the end of a line does not count; a later line of the same token does."""
    vocab = "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\n[MASK]\nthe \nthe\n\nit\u3000\n##s\x85\nunit"
    path = write(tmp_path / "model", vocab__txt=vocab)
    theirs = theirs_of(path, "BertTokenizer")
    ours = Tokenizer.from_pretrained(path)
    assert ours.get_vocab() == theirs.get_vocab()
    for text in ("the its unit x", "", "[CLS] the"):
        assert dict(ours(text, text)) == dict(theirs(text, text))


def test_real_vocab_txt(tmp_path: Path) -> None:
    source = SHARED / "tokenizers" / "models" / "bert-base-uncased.vocab.txt"
    if not source.exists():
        pytest.skip(f"{source} is missing")
    path = write(tmp_path / "model")
    (path / "vocab.txt").symlink_to(source)
    same(Tokenizer.from_pretrained(path), theirs_of(path, "BertTokenizer"))


@pytest.mark.parametrize("lowercase", [True, False])
def test_from_wordpiece(tmp_path: Path, lowercase: bool) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{word}\n" for word in words(BERT)), encoding="utf-8")
    theirs = tokenizers.BertWordPieceTokenizer(str(path), lowercase=lowercase)
    ours = hf.Tokenizer.from_wordpiece(path, lowercase=lowercase)
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())
    for first, second in [*PAIRS, *((text, None) for text in TEXTS)]:
        a, b = ours.encode(first, second), theirs.encode(first, second)
        assert (a.ids, a.type_ids, a.offsets, a.tokens) == (b.ids, b.type_ids, b.offsets, b.tokens)
    opened = bpe_engine.open_tokenizer(path)
    assert (
        opened.hf.encode("What É?").ids == hf.Tokenizer.from_wordpiece(path).encode("What É?").ids
    )
    write(tmp_path, tokenizer_config__json={"do_lower_case": lowercase})
    for source in (path, tmp_path):
        opened = bpe_engine.open_tokenizer(source)
        assert opened.hf.encode("What É?").ids == ours.encode("What É?").ids


@pytest.mark.parametrize("kind", ["mistral", "phi3", "modernbert", "granite"])
def test_models_whose_class_does_not_count(tmp_path: Path, kind: str) -> None:
    """For these, AutoTokenizer takes the file as it is, whatever class it names."""
    transformers.LlamaTokenizer(**MADE["LlamaTokenizer"]()).save_pretrained(tmp_path / "model")
    config = {"tokenizer_class": "LlamaTokenizerFast"}
    path = write(
        tmp_path / "model", tokenizer_config__json=config, config__json={"model_type": kind}
    )
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    assert theirs.padding_side == "right"
    same(Tokenizer.from_pretrained(path), theirs)


# ---- Refused classes ----


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("LayoutLMv2Tokenizer", "takes words with their places on a page"),
        ("MarkupLMTokenizer", "takes words with their places on a page"),
        ("TapasTokenizer", "takes words with their places on a page"),
        ("NllbTokenizerFast", "puts the language of a translation around each text"),
        ("MBart50Tokenizer", "puts the language of a translation around each text"),
        ("MLukeTokenizer", "takes the places of entities in each text"),
        ("RoFormerTokenizer", "splits texts in Python"),
        ("SiglipTokenizer", "splits texts in Python"),
    ],
)
def test_classes_that_do_more_than_the_files_say(tmp_path: Path, name: str, why: str) -> None:
    transformers.BertTokenizer(vocab=words(BERT)).save_pretrained(tmp_path / "model")
    path = write(tmp_path / "model", tokenizer_config__json={"tokenizer_class": name})
    name = name.removesuffix("Fast")
    with pytest.raises(ValueError, match=f"{name} {why}.*AutoTokenizer, or bpe_engine.hf"):
        Tokenizer.from_pretrained(path)
    assert hf.Tokenizer.from_pretrained(str(path)).token_to_id("[CLS]") == 2


@pytest.mark.parametrize("kind", ["roformer", "m2m_100", "siglip"])
def test_refused_classes_of_models(tmp_path: Path, kind: str) -> None:
    """The type of the model names the class of a folder that names none."""
    transformers.BertTokenizer(vocab=words(BERT)).save_pretrained(tmp_path / "model")
    path = write(tmp_path / "model", tokenizer_config__json={}, config__json={"model_type": kind})
    with pytest.raises(ValueError, match="which a Tokenizer does not; use transformers"):
        Tokenizer.from_pretrained(path)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("MarianTokenizer", "source.spm"),
        ("M2M100Tokenizer", "sentencepiece.bpe.model"),
        ("T5Tokenizer", "spiece.model"),
        (None, "spm.model"),
    ],
)
def test_models_of_sentencepiece_that_a_class_renumbers(
    tmp_path: Path, name: str | None, file: str
) -> None:
    path = write_class(tmp_path / "model", name, file, T5, {})
    for open in (Tokenizer.from_pretrained, bpe_engine.open_tokenizer):
        with pytest.raises(ValueError, match=r"AutoTokenizer"):
            open(path)
    assert hf.Tokenizer.from_sentencepiece(path / file).encode("the token").ids


# ---- Models of files ----


def test_models_of_paths(tmp_path: Path) -> None:
    vocab, made = merges()
    write(tmp_path, vocab__json=vocab, merges__txt="".join(f"{a} {b}\n" for a, b in made))
    write(tmp_path, vocab__txt="[UNK]\nun\n##able\n", words__json={"<unk>": 0, "un": 1})
    assert [token.id for token in hf.WordPiece(str(tmp_path / "vocab.txt")).tokenize("unable")] == [
        1,
        2,
    ]
    assert hf.WordLevel(str(tmp_path / "words.json")).token_to_id("un") == 1
    bpe = hf.BPE(
        str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"), end_of_word_suffix="</w>"
    )
    assert [token.value for token in bpe.tokenize("what")] == ["what</w>"]
    with pytest.raises(FileNotFoundError):
        hf.WordPiece(str(tmp_path / "missing.txt"))


# ---- vocab.json and merges.txt ----


@pytest.mark.parametrize("name", ["CLIPTokenizer", "OpenAIGPTTokenizer"])
def test_pairs_of_files_with_ends_of_words(tmp_path: Path, name: str) -> None:
    made = MADE[name]()
    lines = "".join(f"{left} {right}\n" for left, right in made["merges"])
    path = write(
        tmp_path / "model",
        vocab__json=made["vocab"],
        merges__txt=f"#version: 0.2\n{lines}",
        tokenizer_config__json={"tokenizer_class": name, "model_max_length": 77},
    )
    theirs: Any = theirs_of(path, name)
    same(Tokenizer.from_pretrained(path), theirs)
    # CLIP's class has another decoder.
    ids = theirs("what a day, isn't it?")["input_ids"]
    swapped = hf.as_transformers(path)
    for options in ({}, {"skip_special_tokens": True}):
        assert swapped.decode(ids, **options) == theirs.decode(ids, **options)


def test_classes_that_are_unknown(tmp_path: Path) -> None:
    config = {"tokenizer_class": "BertJapaneseTokenizer"}
    path = write(tmp_path / "model", vocab__txt="[UNK]\n", tokenizer_config__json=config)
    with pytest.raises(ValueError, match="BertJapaneseTokenizer splits texts in Python, which"):
        Tokenizer.from_pretrained(path)


# ---- Calls of programs ----


@pytest.mark.parametrize(("file", "name", "config"), REAL[:3] + REAL[-2:])
@pytest.mark.parametrize("is_ours", ["Tokenizer", "as_transformers", "patched"])
def test_calls_of_sentence_transformers_and_pipelines(
    tmp_path: Path, file: str, name: str, config: dict[str, Any], is_ours: str
) -> None:
    path = real(tmp_path, file, {"tokenizer_class": name, **config})
    theirs: Any = theirs_of(path, name)
    ours: Any
    if is_ours == "Tokenizer":
        ours = Tokenizer.from_pretrained(path)
    elif is_ours == "as_transformers":
        ours = hf.as_transformers(path) if hasattr(hf, "as_transformers") else None
    else:
        hf.patch_transformers()
        try:
            ours = theirs_of(path, name)
        finally:
            hf.unpatch_transformers()
        assert hf.is_ours(ours)
    texts = [text for text in TEXTS if text]
    first, second = [a for a, _ in PAIRS], [b for _, b in PAIRS]
    # sentence-transformers, a text or pairs in a list; a cross-encoder; a pipeline; a pooling server.
    strip = {
        "padding": True,
        "truncation": "longest_first",
        "max_length": 24,
        "return_tensors": "np",
    }
    same_outcome(ours, theirs, texts, **strip)
    same_outcome(ours, theirs, PAIRS, **strip)
    same_outcome(ours, theirs, first, second, **strip)
    same_outcome(ours, theirs, [list(pair) for pair in PAIRS], padding=True, truncation=True)
    same_outcome(ours, theirs, texts[1], return_tensors="np", truncation=True, max_length=12)
    same_outcome(
        ours, theirs, texts[1], text_pair=second[0], truncation="only_second", max_length=9
    )
    for text in texts:
        assert ours.encode(text, add_special_tokens=True) == theirs.encode(text)
        assert (
            ours(text=text, truncation=True, max_length=5, add_special_tokens=True)["input_ids"]
            == (
                theirs(text=text, truncation=True, max_length=5, add_special_tokens=True)[
                    "input_ids"
                ]
            )
        )
    lengths = [len(text) for text in texts]
    order = np.argsort(lengths)
    rows = ours([texts[place] for place in order])
    assert ours.pad(rows, return_tensors="np").input_ids.shape[0] == len(texts)


@pytest.mark.parametrize(("file", "name", "config"), REAL[:2] + REAL[-2:])
@pytest.mark.parametrize("is_ours", ["as_transformers", "patched"])
def test_calls_of_pooling_servers(
    tmp_path: Path, file: str, name: str, config: dict[str, Any], is_ours: str
) -> None:
    """As vLLM's renderers and scorers call a tokenizer: copies with another class and in threads, rows
    that end one token after the limit, pairs with types."""
    path = real(tmp_path, file, {"tokenizer_class": name, **config})
    theirs: Any = theirs_of(path, name)
    if is_ours == "as_transformers":
        own: Any = hf.as_transformers(path)
    else:
        hf.patch_transformers()
        try:
            own = theirs_of(path, name)
        finally:
            hf.unpatch_transformers()

    def cached(tokenizer: Any) -> Any:
        vocab, made = tokenizer.get_vocab(), copy.copy(tokenizer)

        class Cached(type(tokenizer)):  # type: ignore[misc]
            max_token_id = max(vocab.values())
            max_chars_per_token = max(map(len, vocab))

            def get_vocab(self) -> dict[str, int]:
                return dict(vocab)

            def __len__(self) -> int:
                return len(vocab)

        made.__class__ = Cached
        return made

    ours, expected = cached(own), cached(theirs)
    assert isinstance(ours, transformers.PreTrainedTokenizerBase)
    assert (ours.max_token_id, ours.max_chars_per_token, len(ours)) == (
        expected.max_token_id,
        expected.max_chars_per_token,
        len(expected),
    )
    assert ours.pad_token_id == expected.pad_token_id
    assert ours.num_special_tokens_to_add(pair=True) == expected.num_special_tokens_to_add(
        pair=True
    )
    pools = [copy.deepcopy(ours) for _ in range(2)]
    texts = [text for text in TEXTS if text] * 3

    def call(number: int) -> list[Any]:
        tokenizer = pools[number % 2]
        text = texts[number]
        limit = {"truncation": True, "max_length": 1 + number % 9 + 4, "add_special_tokens": True}
        second = PAIRS[number % len(PAIRS)][1]
        return [
            tokenizer.encode(text, **limit),
            plain(tokenizer(text=text, text_pair=second, **limit)),
            tokenizer(text, add_special_tokens=False, return_offsets_mapping=True).offset_mapping,
            tokenizer.decode(tokenizer.encode(text, truncation=False, max_length=None)),
        ]

    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(call, range(len(texts))))
    pools = [expected, expected]
    assert found == [call(number) for number in range(len(texts))]
