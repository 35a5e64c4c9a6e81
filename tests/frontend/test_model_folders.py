"""Compares folders of encoders and text models, BERT to CLIP, with transformers' classes."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from folders import PAIRS, plain, same, write
from hf_oracle import SHARED, TEXTS
from seeds import seeded
from sentencepiece_oracle import T5, write_class

import bpe_engine
from bpe_engine import Tokenizer, hf

transformers = pytest.importorskip("transformers")
np = pytest.importorskip("numpy")

WORDS = ["what", "is", "it", "a", "token", "izer", "the", "two", "three", "un", "able", "日本", "é"]
LETTERS = sorted({*"abcdefghijklmnopqrstuvwxyz0123456789,.!?'\"`-<>[]/_éüïö日本語"})


def pieces(first: list[str]) -> list[tuple[str, float]]:
    """Returns a small Unigram vocabulary that begins with these special tokens."""
    words = [*WORDS, *(f"▁{word}" for word in WORDS), "▁"]
    scores = {**dict.fromkeys(LETTERS, -8.0), **{word: -2.0 - len(word) for word in words}}
    return [*((name, 0.0) for name in first), *scores.items()]


def words(first: list[str]) -> dict[str, int]:
    """Returns a small WordPiece vocabulary that begins with these special tokens."""
    made = [*first, *LETTERS, *WORDS, *(f"##{word}" for word in [*LETTERS, *WORDS])]
    return {word: id for id, word in enumerate(dict.fromkeys(made))}


def merges() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Returns a small BPE vocabulary with word-end suffixes, and its merges."""
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
    """Returns a small byte-level BPE vocabulary that begins with these special tokens."""
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
    """Returns a small character-level BPE vocabulary that begins with these special tokens."""
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
    "GPT2Tokenizer": lambda: byte_merges(["<|endoftext|>"]),
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


def patched(path: Path, name: str) -> Any:
    hf.patch_transformers()
    try:
        ours = theirs_of(path, name)
    finally:
        hf.unpatch_transformers()
    assert hf.is_ours(ours)
    return ours


FACES: dict[str, Any] = {
    "Tokenizer": lambda path, _: Tokenizer.from_pretrained(path),
    "as_transformers": lambda path, _: hf.as_transformers(path),
    "patched": patched,
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(("file", "name", "config"), REAL)
def test_real_files(
    tmp_path: Path, file: str, name: str, config: dict[str, Any], face: str
) -> None:
    path = real(tmp_path, file, {"tokenizer_class": name, **config})
    same(FACES[face](path, name), theirs_of(path, name))


@pytest.mark.parametrize("name", ["T5Tokenizer", "PreTrainedTokenizerFast"])
def test_scores_decide_between_equal_sums(tmp_path: Path, name: str) -> None:
    """`tokenizers` rounds scores in a file; classes that take the vocabulary keep exact scores."""
    path = real(tmp_path, "t5-small", {"tokenizer_class": name})
    theirs = theirs_of(path, name)
    rng = seeded("equal sums")
    texts = [
        " ".join(rng.choice("aeinot-.=*0x_") * rng.randrange(1, 40) for _ in range(3))
        for _ in range(2000)
    ]
    expected = theirs(texts).input_ids
    for face in ("Tokenizer", "patched"):
        own = FACES[face](path, name)
        for each in (own, pickle.loads(pickle.dumps(own))):
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
    """The model type in ``config.json`` selects the class if an old folder names none."""
    getattr(transformers, name)(**MADE[name]()).save_pretrained(tmp_path / "model")
    config = {"model_max_length": 20}
    path = write(
        tmp_path / "model", tokenizer_config__json=config, config__json={"model_type": kind}
    )
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    assert type(theirs).__name__ == name
    same(Tokenizer.from_pretrained(path), theirs)


@pytest.mark.parametrize(
    "name", ["BertTokenizer", "T5Tokenizer", "XLNetTokenizer", "PreTrainedTokenizerFast"]
)
def test_truncation_and_padding_of_the_file(tmp_path: Path, name: str) -> None:
    """Files can set truncation and padding, as sentence-transformers files do."""
    made = name if name in MADE else "BertTokenizer"
    getattr(transformers, made)(**MADE[made]()).save_pretrained(tmp_path / "model")
    file = hf.Tokenizer.from_file(tmp_path / "model" / "tokenizer.json")
    file.enable_truncation(12, direction="left")
    pad = next(token for token in ("[PAD]", "<pad>") if file.token_to_id(token) is not None)
    id = file.token_to_id(pad)
    assert id is not None
    file.enable_padding(direction="left", pad_id=id, pad_token=pad, length=20)
    file.save(tmp_path / "model" / "tokenizer.json")
    path = write(tmp_path / "model", tokenizer_config__json={"tokenizer_class": name})
    same(Tokenizer.from_pretrained(path), theirs_of(path, name))


# ---- vocab.txt, vocab.json and merges.txt ----


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
        ("CLIPTokenizer", {"model_max_length": 77}),
        ("OpenAIGPTTokenizer", {"model_max_length": 77}),
        ("GPT2Tokenizer", None),
        ("GPT2Tokenizer", {"pad_token": "<|pad|>", "add_prefix_space": True}),
        ("GPT2Tokenizer", {"add_bos_token": True, "bos_token": "<s>", "model_max_length": 7}),
        ("RobertaTokenizer", {}),
        ("RobertaTokenizer", {"add_prefix_space": True, "trim_offsets": False, "cls_token": "<c>"}),
        ("Qwen2Tokenizer", {}),
        ("Qwen2Tokenizer", {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}),
    ],
)
def test_files_of_the_model_alone(tmp_path: Path, name: str, config: Any) -> None:
    made = MADE[name]()
    if "merges" in made:
        lines = "".join(f"{left} {right}\n" for left, right in made["merges"])
        path = write(tmp_path, vocab__json=made["vocab"], merges__txt=f"#version: 0.2\n{lines}")
    else:
        path = write(tmp_path, vocab__txt="".join(f"{word}\n" for word in made["vocab"]))
    if config is not None:
        write(path, tokenizer_config__json={"tokenizer_class": name, **config})
    theirs = theirs_of(path, name)
    same(Tokenizer.from_pretrained(path), theirs)
    if name == "CLIPTokenizer":
        # The class has a different decoder from the file's.
        ids, swapped = theirs("what a day, isn't it?")["input_ids"], hf.as_transformers(path)
        for skip in (False, True):
            assert swapped.decode(ids, skip) == theirs.decode(ids, skip)


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
    """AutoTokenizer reads these files without the class that they name."""
    transformers.LlamaTokenizer(**MADE["LlamaTokenizer"]()).save_pretrained(tmp_path / "model")
    config = {"tokenizer_class": "LlamaTokenizerFast"}
    path = write(
        tmp_path / "model", tokenizer_config__json=config, config__json={"model_type": kind}
    )
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    assert theirs.padding_side == "right"
    same(Tokenizer.from_pretrained(path), theirs)


# ---- Classes that are refused ----


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("LayoutLMv2Tokenizer", "takes words with their positions on a page"),
        ("MarkupLMTokenizer", "takes words with their positions on a page"),
        ("TapasTokenizer", "takes words with their positions on a page"),
        ("NllbTokenizerFast", "puts the language of a translation around each text"),
        ("MBart50Tokenizer", "puts the language of a translation around each text"),
        ("MLukeTokenizer", "takes the spans of entities in each text"),
        ("RoFormerTokenizer", "splits texts in Python"),
        ("BertJapaneseTokenizer", "splits texts in Python"),
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
    """The model type determines the class if the folder names none."""
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


# ---- Models from files ----


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


# ---- Calls by programs ----


@pytest.mark.parametrize(("file", "name", "config"), REAL[:2] + REAL[-2:])
@pytest.mark.parametrize("face", ["as_transformers", "patched"])
def test_copies_of_another_class_in_threads(
    tmp_path: Path, file: str, name: str, config: dict[str, Any], face: str
) -> None:
    """vLLM's renderers and scorers call a tokenizer for rows that end one token after the limit,
    and for pairs with types."""
    path = real(tmp_path, file, {"tokenizer_class": name, **config})

    def cached(tokenizer: Any) -> Any:
        vocab, made = tokenizer.get_vocab(), copy.copy(tokenizer)
        methods = {"get_vocab": lambda _: dict(vocab), "__len__": lambda _: len(vocab)}
        made.__class__ = type("Cached", (type(tokenizer),), {"longest": len(max(vocab)), **methods})
        return made

    ours, expected = cached(FACES[face](path, name)), cached(theirs_of(path, name))
    assert isinstance(ours, transformers.PreTrainedTokenizerBase)
    assert (ours.longest, len(ours)) == (expected.longest, len(expected))
    pools = [copy.deepcopy(ours) for _ in range(2)]
    texts = [text for text in TEXTS if text] * 3

    def call(number: int) -> list[Any]:
        tokenizer, text = pools[number % 2], texts[number]
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
