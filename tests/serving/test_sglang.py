"""Tests the SGLang plug-in with a stand-in that records hooks, and with the real package."""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from servers import HookType, install_sglang, write_folder

transformers = pytest.importorskip("transformers")

import bpe_engine  # noqa: E402
from bpe_engine import hf  # noqa: E402

TARGET = "sglang.srt.utils.hf_transformers.tokenizer.get_tokenizer"


def plugin() -> Any:
    return importlib.import_module("bpe_engine.serving.sglang")


@pytest.mark.parametrize("names", [None, "", "other", "bpe_engine_other"])
def test_nothing_changes_until_it_is_named(
    monkeypatch: pytest.MonkeyPatch, names: str | None
) -> None:
    hooks = install_sglang(monkeypatch)
    monkeypatch.delenv("SGLANG_PLUGINS", raising=False)
    if names is not None:
        monkeypatch.setenv("SGLANG_PLUGINS", names)
    plugin().register()
    assert hooks == []


@pytest.mark.parametrize("names", ["bpe_engine", "other, bpe_engine"])
def test_the_hook(monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    hooks = install_sglang(monkeypatch)
    monkeypatch.setenv("SGLANG_PLUGINS", names)
    ours = plugin()
    ours.register()
    ours.register()
    assert hooks == [(TARGET, ours.use_ours, HookType.AFTER)]


def test_an_sglang_without_hooks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SGLANG_PLUGINS", "bpe_engine")
    monkeypatch.setitem(sys.modules, "sglang.srt.plugins.hook_registry", None)
    plugin().register()
    assert "it was tried with SGLang 0.5.22 and 0.5.23" in caplog.text


def test_tokenizers_are_ours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    name = write_folder(tmp_path / "model")
    load = transformers.AutoTokenizer.from_pretrained
    loaded, theirs = load(name), load(name)
    ours = plugin().use_ours(loaded, name, tokenizer_mode="auto")
    assert ours is loaded and isinstance(ours._tokenizer, hf.Tokenizer)
    texts = ["hello world", "hello<|end|>", "é 日本語"]
    assert ours(texts)["input_ids"] == theirs(texts)["input_ids"]
    ids = theirs(texts)["input_ids"]
    for options in (
        {"skip_special_tokens": True, "spaces_between_special_tokens": True},
        {"skip_special_tokens": False, "spaces_between_special_tokens": False},
    ):
        assert ours.batch_decode(ids, **options) == theirs.batch_decode(ids, **options)
    assert ours.backend_tokenizer.decode_batch(ids) == theirs.backend_tokenizer.decode_batch(ids)
    assert f"bpe_engine {bpe_engine.__version__} serves {name}: " in caplog.text


def test_tokenizers_that_we_do_not_serve(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    name = write_folder(tmp_path / "model", refused=True)
    loaded = transformers.AutoTokenizer.from_pretrained(name)
    assert plugin().use_ours(loaded, name) is loaded
    assert not isinstance(loaded._tokenizer, hf.Tokenizer)
    other = object()
    assert plugin().use_ours(other, name) is other
    assert caplog.text.count(f"does not serve {name}, SGLang's own tokenizer does: ") == 2


def test_the_real_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = pytest.importorskip("sglang.srt.plugins.hook_registry", exc_type=ImportError)
    monkeypatch.setenv("SGLANG_PLUGINS", "bpe_engine")
    monkeypatch.setattr(registry.HookRegistry, "_hooks", {TARGET: []})
    plugin().register()
    ((kind, hook, *_),) = registry.HookRegistry._hooks[TARGET]
    assert kind is registry.HookType.AFTER and hook is plugin().use_ours
