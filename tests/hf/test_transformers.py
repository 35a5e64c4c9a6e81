"""Compares calls of transformers' tokenizers on this engine and on `tokenizers`."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hf_oracle import TEXTS, tokenizer_path
from work import work

transformers = pytest.importorskip("transformers")
np = pytest.importorskip("numpy")

import tokenizers  # noqa: E402

from bpe_engine import hf  # noqa: E402

THEIR_STREAM = tokenizers.decoders.DecodeStream

CHAT = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% else %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}"
)
SETTINGS = {
    "gpt2": {"pad_token": "<|endoftext|>", "eos_token": "<|endoftext|>"},
    "roberta-base": {"pad_token": "<pad>", "mask_token": "<mask>", "cls_token": "<s>"},
    "deepseek": {"pad_token": "<｜▁pad▁｜>", "bos_token": "<｜begin▁of▁sentence｜>"},
    "whisper-tiny": {"pad_token": "<|endoftext|>"},
}


@pytest.fixture(scope="module", params=list(SETTINGS))
def pair(request):
    path = tokenizer_path(request.param)
    make = transformers.PreTrainedTokenizerFast
    theirs = make(tokenizer_file=path, chat_template=CHAT, **SETTINGS[request.param])
    ours = hf.as_transformers(copy.deepcopy(theirs))
    return ours, theirs


CALLS = [
    {},
    {"add_special_tokens": False},
    {"padding": True},
    {"padding": "max_length", "max_length": 24, "truncation": True},
    {"return_offsets_mapping": True, "return_special_tokens_mask": True},
    {
        "truncation": True,
        "max_length": 9,
        "stride": 2,
        "return_overflowing_tokens": True,
        "return_offsets_mapping": True,
    },
    {"padding": True, "pad_to_multiple_of": 8, "return_tensors": "np", "return_length": True},
    {"padding": True, "padding_side": "left"},
    {"return_token_type_ids": True, "return_attention_mask": False},
    {"split_special_tokens": True},
]


def test_the_rest_of_a_prompt_costs_nothing(pair):
    ours, _ = pair
    text = "They met again in the spring, and nobody was surprised. " * 100_000
    few = work(lambda: ours(text[:30_000], truncation=True, max_length=1000))
    assert work(lambda: ours(text, truncation=True, max_length=1000)) < 4 * few + 50_000


ONE_TEXT = [
    *CALLS,
    {"max_length": 5},
    {"truncation": "only_first", "max_length": 5, "verbose": False},
    {"padding": "max_length", "max_length": 32, "return_tensors": "np"},
    {"return_overflowing_tokens": None, "return_tensors": "np"},
    {"split_special_tokens": None, "verbose": False},
    {"tokenizer_kwargs": {"add_special_tokens": False}},
    {"text_target": "a target", "max_target_length": 2, "truncation": True},
]


def outcome_of(tokenizer, *given, **options):
    """Returns the fields of a call as lists and the first row's tokens, or the error's message."""
    try:
        made = tokenizer(*given, **options)
    except Exception as error:
        return str(error)
    fields = {name: getattr(value, "tolist", lambda v=value: v)() for name, value in made.items()}
    return fields, made.tokens(0)


@pytest.mark.parametrize("options", ONE_TEXT, ids=str)
def test_calls_of_one_text(pair, options):
    for text in (TEXTS[3], "", "<|endoftext|> <pad>x"):
        for given in ((text,), (text, "another"), (text, None), (text, "")):
            ours, theirs = (outcome_of(tokenizer, *given, **options) for tokenizer in pair)
            assert ours == theirs


@pytest.mark.parametrize("other", [1, None, "yes"])
def test_special_tokens_are_added_for_a_bool(pair, other):
    for tokenizer in pair:
        with pytest.raises(TypeError, match=type(other).__name__.removesuffix("Type")):
            tokenizer("a b", add_special_tokens=other)


METHODS = "_encode_plus", "_get_padding_truncation_strategies", "_switch_to_input_mode"


@pytest.mark.parametrize("name", METHODS)
def test_calls_heed_methods_of_a_class_and_of_an_object(pair, name):
    ours, _ = pair
    inherited = getattr(type(ours), name, None)
    called = []

    def method(self, *args, **kwargs):
        called.append(name)
        return inherited(self, *args, **kwargs) if inherited else None

    expected = dict(ours("a b"))
    of_class = copy.copy(ours)
    of_class.__class__ = type("Other", (type(ours),), {name: method})
    of_object = copy.copy(ours)
    vars(of_object)[name] = method.__get__(of_object)
    for tokenizer in (of_class, of_object):
        called.clear()
        assert dict(tokenizer("a b")) == expected
        assert called == [name]


def test_threads_with_other_settings(pair):
    """Each call uses its own settings, although transformers stores settings in the tokenizer,
    which threads share."""
    ours, _ = pair
    text, lengths = "word " * 99, range(10, 90)
    expected = [ours(text, truncation=True, max_length=length).input_ids for length in lengths]
    wrong = []

    def call(step):
        for place in range(0, 400 * step, step):
            at = place % len(lengths)
            made = ours(text, truncation=True, max_length=lengths[at]).input_ids
            if made != expected[at]:
                wrong.append((lengths[at], len(made)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=call, args=(step,)) for step in (7, 11, 13, 17)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


@pytest.mark.parametrize("options", [{}, {"padding": True, "return_tensors": "np"}], ids=str)
def test_results_can_be_copied_and_sent_to_processes(pair, options):
    for text in (TEXTS[4], [TEXTS[4], "another"]):
        ours, theirs = (tokenizer(text, **options) for tokenizer in pair)
        made = [pickle.loads(pickle.dumps(ours, protocol)) for protocol in range(6)]
        for result in (*made, copy.copy(ours), copy.deepcopy(ours)):
            assert list(result) == list(theirs)
            for name, values in theirs.items():
                assert np.array_equal(result[name], values) if options else result[name] == values
            assert result.is_fast and result.tokens(0) == theirs.tokens(0)
        assert {type(result) for result in made} == {type(theirs)}


def test_rows_of_random_ids_have_their_overflow():
    vocab = {"<pad>": 0, "a": 1, "b": 2, "ab": 3, "abab": 4}
    model = hf.BPE(vocab, [("a", "b"), ("ab", "ab")], dropout=0.5)
    tokenizer = hf.as_transformers(hf.Tokenizer(model), pad_token="<pad>")
    texts = ["abab" * 9, "ab"]
    for _ in range(10):
        encoded = tokenizer(texts, truncation=True, max_length=4, padding=True)
        assert [row.ids for row in encoded.encodings] == encoded["input_ids"]
        for row, text in zip(encoded.encodings, texts):
            parts = [part.tokens for part in (row, *row.overflowing)]
            assert "".join(token for part in parts for token in part if token != "<pad>") == text


def test_save_load_pickle_and_collate(pair, tmp_path):
    ours, theirs = pair
    ours.save_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        a, b = (tmp_path / who / name for who in ("ours", "theirs"))
        assert a.read_text() == b.read_text()
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert again(TEXTS[4])["input_ids"] == ours(TEXTS[4])["input_ids"]
    loaded = hf.as_transformers(tmp_path / "ours")
    assert isinstance(loaded._tokenizer, hf.Tokenizer)
    assert loaded(TEXTS[4])["input_ids"] == ours(TEXTS[4])["input_ids"]
    pickled = pickle.loads(pickle.dumps(ours))
    assert pickled(TEXTS[4])["input_ids"] == ours(TEXTS[4])["input_ids"]
    assert pickle.dumps(ours._tokenizer) == pickle.dumps(pickled._tokenizer)
    collator = transformers.DataCollatorWithPadding(ours, return_tensors="np")
    rows = [ours(text) for text in TEXTS[1:4]]
    other = transformers.DataCollatorWithPadding(theirs, return_tensors="np")
    expected = other([theirs(text) for text in TEXTS[1:4]])
    for key, value in collator(rows).items():
        assert np.array_equal(value, expected[key])


def test_patching(pair, tmp_path):
    ours, theirs = pair
    theirs.save_pretrained(tmp_path)
    stream = tokenizers.decoders.DecodeStream
    hf.patch_transformers()
    try:
        hf.patch_transformers()
        loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert isinstance(loaded._tokenizer, hf.Tokenizer)
        assert isinstance(loaded, transformers.PreTrainedTokenizerBase)
        assert tokenizers.decoders.DecodeStream is hf.DecodeStream
    finally:
        hf.unpatch_transformers()
    assert "from_pretrained" not in vars(transformers.TokenizersBackend)
    assert tokenizers.decoders.DecodeStream is stream


def test_reasons_are_logged_once_a_folder(tmp_path, caplog, monkeypatch):
    from bpe_engine.hf import transformers as module

    monkeypatch.setattr(module, "_logged", set())
    contents = json.loads(Path(tokenizer_path("gpt2")).read_text("utf-8"))
    contents["normalizer"] = {"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"}
    drops = tokenizers.Tokenizer.from_str(json.dumps(contents))
    drops = transformers.PreTrainedTokenizerFast(tokenizer_object=drops)
    for name in ("a", "b"):
        drops.save_pretrained(tmp_path / name)
    hf.patch_transformers()
    try:
        for name in ("a", "a", "b"):
            kept = transformers.AutoTokenizer.from_pretrained(tmp_path / name)
    finally:
        hf.unpatch_transformers()
    assert not hf.is_ours(kept)
    reasons = [each.message for each in caplog.records if each.name.startswith("bpe_engine")]
    assert len(reasons) == 2 and all("normalizer" in reason for reason in reasons)


def test_a_reason_that_is_in_no_file_names_the_class(tmp_path, caplog, monkeypatch):
    from bpe_engine.hf import transformers as module

    class Drops(transformers.PreTrainedTokenizerFast):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            whole = json.loads(self._tokenizer.to_str())
            pattern = {"Regex": "^"}
            whole["normalizer"] = {"type": "Replace", "pattern": pattern, "content": "x"}
            self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(whole))

    monkeypatch.setattr(module, "_logged", set())
    monkeypatch.setattr(module, "_replaced", {})
    shutil.copy(tokenizer_path("gpt2"), tmp_path / "tokenizer.json")
    load = module._patched(Drops.from_pretrained.__func__)
    assert not hf.is_ours(load(Drops, tmp_path))
    [record] = [each for each in caplog.records if each.name.startswith("bpe_engine")]
    assert "as Drops makes it: normalizer" in record.message


@pytest.mark.parametrize("skip", [True, False])
def test_decode_stream_accepts_ours_without_the_patch(pair, skip):
    ours, theirs = copy.deepcopy(pair[0]), copy.deepcopy(pair[1])
    assert tokenizers.decoders.DecodeStream is THEIR_STREAM
    for _ in range(2):
        text = "日本語 <new> text 👩‍👩‍👧"
        ids = theirs(text)["input_ids"] + theirs(text)["input_ids"]
        found = []
        for tokenizer in (ours._tokenizer, theirs._tokenizer):
            stream = THEIR_STREAM(ids=ids[:3], skip_special_tokens=skip)
            found.append([stream.step(tokenizer, id) for id in ids])
        assert found[0] == found[1]
        assert any(found[1])
        for tokenizer in (ours, theirs):
            tokenizer.add_tokens(["<new>"])
            tokenizer._tokenizer.decoder = tokenizers.decoders.Sequence(
                [tokenizers.decoders.ByteLevel(), tokenizers.decoders.Replace("t", "T")]
            )


def test_patched_loading_reads_a_file_once(pair, tmp_path, monkeypatch):
    ours, theirs = pair
    theirs.save_pretrained(tmp_path)
    read = []
    from_file = tokenizers.Tokenizer.from_file

    class Counted:
        def __getattr__(self, name):
            read.append(name)
            return getattr(tokenizers.Tokenizer, name)

    import transformers.tokenization_utils_tokenizers as backends

    monkeypatch.setattr(backends, "TokenizerFast", Counted())
    hf.patch_transformers()
    try:
        loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    finally:
        hf.unpatch_transformers()
    assert isinstance(loaded._tokenizer, hf.Tokenizer)
    assert "from_file" not in read
    assert from_file == tokenizers.Tokenizer.from_file
    assert loaded(TEXTS[4]) == theirs(TEXTS[4])
    assert (
        loaded.init_kwargs.keys()
        == transformers.AutoTokenizer.from_pretrained(tmp_path).init_kwargs.keys()
    )


def test_sanitized_chats(pair):
    ours, theirs = pair
    messages = [{"role": "user", "content": "Hello <|endoftext|> there"}]
    options = {"tokenize": True, "return_dict": True, "sanitize_control_tokens": True}
    results = []
    for tokenizer in (ours, theirs):
        try:
            results.append(dict(tokenizer.apply_chat_template(messages, **options)))
        except Exception as error:
            results.append(type(error))
    assert results[0] == results[1]


def test_datasets_map(pair, tmp_path):
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    from datasets.fingerprint import Hasher

    ours, theirs = pair
    rows = datasets.Dataset.from_dict({"text": [text for text in TEXTS if text] * 3})
    fingerprint = Hasher.hash(ours)
    assert fingerprint == Hasher.hash(pickle.loads(pickle.dumps(ours)))
    assert fingerprint == Hasher.hash(copy.deepcopy(ours))

    def mapped(tokenizer):
        return rows.map(
            lambda batch: tokenizer(batch["text"], truncation=True, max_length=8),
            batched=True,
            cache_file_name=str(tmp_path / f"{type(tokenizer._tokenizer).__module__}.arrow"),
        )

    a, b = mapped(ours), mapped(theirs)
    assert a["input_ids"][:] == b["input_ids"][:]
    assert a["attention_mask"][:] == b["attention_mask"][:]


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="int"):
        hf.as_transformers(3)


FORKS = """
import os, signal, sys, threading, time
from bpe_engine.hf import transformers as ours
sys.setswitchinterval(1e-5)
stop = threading.Event()

def patch_and_back():
    ours.patch_transformers()
    ours.unpatch_transformers()

def work():
    while not stop.is_set():
        patch_and_back()

original = ours._backend.from_pretrained.__func__
thread = threading.Thread(target=work)
thread.start()
statuses = []
for _ in range(10):
    time.sleep(0.002)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(5)
        patch_and_back()
        os._exit(ours._backend.from_pretrained.__func__ is not original)
    statuses.append(os.waitpid(child, 0)[1])
    if statuses[-1]:
        break
stop.set()
thread.join()
sys.exit(f"statuses of the children: {statuses}" if any(statuses) else 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_patches():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
