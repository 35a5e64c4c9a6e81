"""The class for TensorRT-LLM, with a stand-in for its base, and with the real package."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import Any

import pytest
from servers import install_tensorrt_llm, write_folder

transformers = pytest.importorskip("transformers")

import tokenizers  # noqa: E402

import bpe_engine  # noqa: E402
from bpe_engine import hf  # noqa: E402

NAME = "bpe_engine.serving.tensorrt_llm"


@pytest.fixture
def tokenizer_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    install_tensorrt_llm(monkeypatch)
    return importlib.import_module(NAME).Tokenizer


def test_tokenizers_are_ours(
    tokenizer_class: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    name = write_folder(tmp_path / "model")
    ours = tokenizer_class.from_pretrained(name, trust_remote_code=False)
    assert type(ours) is tokenizer_class
    assert isinstance(ours.tokenizer._tokenizer, hf.Tokenizer)
    assert (ours.tokenizer.padding_side, ours.tokenizer.truncation_side) == ("left", "left")
    other = tokenizer_class.from_pretrained(name, truncation_side="right")
    assert other.tokenizer.truncation_side == "right"
    caplog.clear()
    tokenizer_class.from_pretrained(name)
    assert f"bpe_engine {bpe_engine.__version__} serves {name}: " in caplog.text


def test_texts_arrive_as_without_ours(tokenizer_class: Any, tmp_path: Path) -> None:
    name = write_folder(tmp_path / "model")
    ours = tokenizer_class.from_pretrained(name)
    theirs = tokenizer_class.__mro__[1].from_pretrained(name)
    ids = theirs.tokenizer("hello 日本語 wörld<|end|>é", add_special_tokens=False)["input_ids"]
    for skip in (False, True):
        streams = [tokenizers.decoders.DecodeStream(skip_special_tokens=skip) for _ in range(2)]
        for id in ids:
            mine, expected = (
                stream.step(each.tokenizer._tokenizer, id)
                for stream, each in zip(streams, (ours, theirs))
            )
            assert mine == expected


def test_tokenizers_that_we_do_not_serve(
    tokenizer_class: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = write_folder(tmp_path / "model", refused=True)
    loaded = tokenizer_class.from_pretrained(name)
    assert not isinstance(loaded.tokenizer._tokenizer, hf.Tokenizer)
    assert f"does not serve {name}, transformers' tokenizer does: " in caplog.text


def test_the_real_base() -> None:
    base = pytest.importorskip("tensorrt_llm.tokenizer", exc_type=ImportError)
    ours = importlib.import_module(NAME).Tokenizer
    assert issubclass(ours, base.TransformersTokenizer)
    assert {"from_pretrained", "decode_incrementally"} <= set(dir(base.TransformersTokenizer))
