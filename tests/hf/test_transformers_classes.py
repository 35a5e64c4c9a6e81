"""Tests transformers classes that build their own tokenizer, patched and unpatched."""

from __future__ import annotations

import json
import pickle
import threading
from pathlib import Path

import pytest
from hf_oracle import TEXTS, tokenizer_path
from seeds import few

transformers = pytest.importorskip("transformers")

import tokenizers  # noqa: E402

from bpe_engine import hf  # noqa: E402

CLASSES = [
    ("gpt2", "GPT2Tokenizer"),
    ("dolma2", "GPT2Tokenizer"),
    ("phi-2", "CodeGenTokenizer"),
    ("gpt-neox-pii", "GPTNeoXTokenizer"),
    ("roberta-base", "RobertaTokenizer"),
    ("whisper-tiny", "WhisperTokenizer"),
    ("phi-3-mini.sentencepiece-like", "LlamaTokenizer"),
    ("mistral-7b-v0.3", "LlamaTokenizer"),
    ("phi-3-mini.sentencepiece-like", "GemmaTokenizer"),
    ("models/bert-base-uncased", "BertTokenizer"),
    ("models/t5-small", "T5Tokenizer"),
    ("models/xlnet-base-cased", "XLNetTokenizer"),
    ("models/t5-small", "XLMRobertaTokenizer"),
]
OTHERS = [
    ("deepseek", "LlamaTokenizer"),
    ("gpt2", "Qwen2Tokenizer"),
    ("gpt2", "LukeTokenizer"),
    ("gpt2", "CohereTokenizer"),
    ("gpt2", "CodeGenTokenizer"),
    ("roberta-base", "BlenderbotTokenizer"),
    ("roberta-base", "DebertaTokenizer"),
    ("roberta-base", "LayoutLMv3Tokenizer"),
    ("roberta-base", "NougatTokenizer"),
    ("phi-2", "GPT2Tokenizer"),
    ("dolma2", "GPTNeoXTokenizer"),
    ("mistral-7b-v0.3", "GemmaTokenizer"),
    ("mistral-7b-v0.3", "CodeLlamaTokenizer"),
    ("phi-3-mini.sentencepiece-like", "SeamlessM4TTokenizer"),
    ("phi-3-mini.sentencepiece-like", "NllbTokenizer"),
    ("models/bert-base-cased", "BertTokenizer"),
    ("models/bert-base-multilingual-cased", "DistilBertTokenizer"),
    ("models/bert-base-chinese", "MPNetTokenizer"),
    ("models/t5-small", "CamembertTokenizer"),
    ("models/t5-small", "PegasusTokenizer"),
    ("models/t5-small", "DebertaV2Tokenizer"),
    ("models/t5-small", "MBartTokenizer"),
    ("models/t5-small", "RemBertTokenizer"),
    ("models/t5-small", "BigBirdTokenizer"),
]
WITHOUT_BEGINNING = {"BertTokenizer", "DistilBertTokenizer", "PegasusTokenizer", "T5Tokenizer"}
OPTIONS = [
    {},
    {
        "add_bos_token": True,
        "add_prefix_space": True,
        "pad_token": "<new>",
        "extra_special_tokens": ["<a>", " b"],
    },
]


@pytest.fixture
def patched():
    hf.patch_transformers()
    yield
    hf.unpatch_transformers()


def folder_of(file, name, folder):
    with open(tokenizer_path(file), encoding="utf-8") as read:
        (folder / "tokenizer.json").write_text(read.read(), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    return folder


def load_both(folder, **options):
    load = transformers.AutoTokenizer.from_pretrained
    theirs = load(folder, **options)
    hf.patch_transformers()
    try:
        ours = transformers.AutoTokenizer.from_pretrained(folder, **options)
    finally:
        hf.unpatch_transformers()
    assert transformers.AutoTokenizer.from_pretrained == load
    return ours, theirs


def attributes(tokenizer):
    return {name: repr(value) for name, value in vars(tokenizer).items() if name != "_tokenizer"}


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "plain")
@pytest.mark.parametrize(("file", "name"), few(CLASSES + OTHERS, len(CLASSES)))
def test_loaded_alike(file, name, options, tmp_path):
    if name in WITHOUT_BEGINNING:
        # In transformers 5.0, the class requires a BOS token.
        options = {key: value for key, value in options.items() if key != "add_bos_token"}
    ours, theirs = load_both(folder_of(file, name, tmp_path), **options)
    assert type(ours) is type(theirs)
    assert isinstance(ours._tokenizer, hf.Tokenizer)
    assert attributes(ours) == attributes(theirs)
    assert ours._tokenizer.to_str() == theirs._tokenizer.to_str()
    assert ours.added_tokens_decoder == theirs.added_tokens_decoder
    if name != "LayoutLMv3Tokenizer":
        for text in [*TEXTS, "x<new>y <a> b"]:
            a, b = ours(text, "b c"), theirs(text, "b c")
            assert a == b
            assert ours.tokenize(text) == theirs.tokenize(text)
            for skipped in (False, True):
                found = (
                    each.decode(b["input_ids"], skip_special_tokens=skipped)
                    for each in (ours, theirs)
                )
                assert next(found) == next(found)
    saved = []
    for each, who in ((ours, "ours"), (theirs, "theirs")):
        each.save_pretrained(tmp_path / who)
        files = sorted((tmp_path / who).iterdir())
        saved.append({path.name: path.read_text(encoding="utf-8") for path in files})
    assert saved[0] == saved[1]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("models/bert-base-uncased", "BertTokenizer"),
        ("models/t5-small", "T5Tokenizer"),
        ("models/xlnet-base-cased", "PreTrainedTokenizerFast"),
    ],
)
def test_pickles_and_training(file, name, tmp_path):
    ours, theirs = load_both(folder_of(file, name, tmp_path))
    assert isinstance(ours, transformers.PreTrainedTokenizerFast)
    again = pickle.loads(pickle.dumps(ours))
    assert hf.is_ours(again)
    assert again._tokenizer.to_str() == ours._tokenizer.to_str()
    batch = ["a text with new words, words, words"] * 20
    for text in TEXTS:
        assert again(text, "b c") == theirs(text, "b c")
    # In `tokenizers`, training breaks ties at random.
    made = [each.train_new_from_iterator([batch], 300) for each in (ours, theirs)]
    assert hf.is_ours(made[0]) and not hf.is_ours(made[1])
    assert type(made[0]) is type(ours) and len(made[0]) == len(made[1])
    assert made[0].special_tokens_map == made[1].special_tokens_map


@pytest.mark.parametrize("kind", [None, "BPE"])
@pytest.mark.parametrize(
    "name", [None, "PreTrainedTokenizerFast", "TokenizersBackend", "GPT2Tokenizer"]
)
def test_files_whose_model_has_no_type(name, kind, tmp_path):
    contents = json.loads(Path(tokenizer_path("roberta-base")).read_text(encoding="utf-8"))
    contents["model"] = {"type": kind, **contents["model"]}
    if kind is None:
        del contents["model"]["type"]
    contents["truncation"] = {
        "direction": "Right",
        "max_length": 7,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(contents), encoding="utf-8")
    config = {} if name is None else {"tokenizer_class": name}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    ours, theirs = load_both(tmp_path)
    assert isinstance(ours._tokenizer, hf.Tokenizer)
    for text in ["hello", *TEXTS]:
        assert ours(text) == theirs(text)
    assert ours("hello")["input_ids"]
    assert ours._tokenizer.to_str() == theirs._tokenizer.to_str()
    pickled = pickle.loads(pickle.dumps(ours))
    ours.save_pretrained(tmp_path / "saved")
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert pickled("hello") == saved("hello") == theirs("hello")


def jieba(*_: object) -> None:
    """Stands in for a component written in Python."""


@pytest.mark.parametrize("part", ["pre_tokenizer", "decoder", "normalizer"])
def test_a_part_written_in_python_stays_with_transformers(
    part, patched, tmp_path, monkeypatch, caplog
):
    from transformers.models.gpt2 import tokenization_gpt2 as module

    class Part:
        pre_tokenize = decode_chain = normalize = jieba

    init = module.GPT2Tokenizer.__init__
    kinds = {"pre_tokenizer": "PreTokenizer", "decoder": "Decoder", "normalizer": "Normalizer"}
    custom = getattr(getattr(tokenizers, f"{part}s"), kinds[part]).custom(Part())

    def with_part(self, *args, **kwargs):
        init(self, *args, **kwargs)
        setattr(self._tokenizer, part, custom)

    monkeypatch.setattr(module.GPT2Tokenizer, "__init__", with_part)
    folder = folder_of("gpt2", "GPT2Tokenizer", tmp_path)
    for _ in range(2):
        assert not hf.is_ours(transformers.AutoTokenizer.from_pretrained(folder))
    reason = "it has a part that no file can hold"
    assert sum(reason in record.getMessage() for record in caplog.records) == 1
    with pytest.raises(hf.UnsupportedTokenizer, match=reason):
        hf.as_transformers(folder)


def test_threads_load_and_build_at_once(patched, tmp_path):
    gpt2 = folder_of("gpt2", "GPT2Tokenizer", tmp_path)
    vocab = {character: id for id, character in enumerate(["a", "b", "ab"])}
    errors, found = [], []

    def loads():
        found.append(type(transformers.AutoTokenizer.from_pretrained(gpt2)._tokenizer))

    def builds():
        for _ in range(200):
            made = transformers.GPT2Tokenizer(vocab=vocab, merges=[("a", "b")])._tokenizer
            if type(made) is not tokenizers.Tokenizer:
                errors.append(made)

    threads = [threading.Thread(target=work) for work in (loads, builds, loads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(found) == 2
    assert all(issubclass(each, hf.Tokenizer) for each in found)
