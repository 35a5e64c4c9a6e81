"""The examples of docs/serving-grammars.md: masks equal the masks of each program's loader."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hf_oracle import CHARACTER_FILES, tokenizer_path
from pages import ROOT, Page

import bpe_engine
from bpe_engine import hf

EOS = {"deepseek": "<｜end▁of▁sentence｜>", "mistral-7b-v0.3": "</s>"}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "ünï", "日本"]}},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
DOCUMENT = '{"name": "Zoë 😀 \\"x\\"", "age": 41, "tags": ["a", "ünï", "日本"]}'


@pytest.fixture(params=["gpt2", "dolma2", "deepseek", *CHARACTER_FILES])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ours(name: str) -> hf.Tokenizer:
    return hf.Tokenizer.from_file(tokenizer_path(name))


@pytest.fixture
def eos(name: str, ours: hf.Tokenizer) -> int:
    id = ours.token_to_id(EOS.get(name, "<|endoftext|>"))
    assert id is not None
    return id


def example(program: str, ours: hf.Tokenizer, eos: int) -> Any:
    """Runs the example for a program, and returns its result."""
    blocks = Page(ROOT / "docs" / "serving-grammars.md").blocks
    (code,) = [body for _, body in blocks if body.startswith(f"import {program}\n")]
    names: dict[str, Any] = {"tokenizer": ours, "eos": eos}
    exec(compile(code, "docs/serving-grammars.md", "exec"), names)
    return names["info"]


def document_ids(ours: hf.Tokenizer, document: str = DOCUMENT) -> list[int]:
    """The ids of a document after a line: at the start of a text it may get a space."""
    ids = ours.encode(f"\n{document}", add_special_tokens=False).ids
    table = bpe_engine.TokenTable(ours)
    lengths = itertools.accumulate(len(table[id]) for id in reversed(ids))
    return ids[-list(lengths).index(len(document.encode())) - 1 :]


def test_xgrammar(name: str, ours: hf.Tokenizer, eos: int) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=tokenizer_path(name))
    table = bpe_engine.TokenTable(ours)
    infos = [
        example("xgrammar", ours, eos),
        xgrammar.TokenizerInfo.from_huggingface(fast, stop_token_ids=[eos]),
    ]
    assert infos[0].vocab_size == infos[1].vocab_size
    matchers = [
        xgrammar.GrammarMatcher(
            xgrammar.GrammarCompiler(info).compile_json_schema(json.dumps(SCHEMA))
        )
        for info in infos
    ]
    for id in [*document_ids(ours), eos]:
        masks = []
        for matcher in matchers:
            mask = np.full((1, -(-len(table) // 32)), -1, dtype=np.int32)
            matcher.fill_next_token_bitmask(mask)
            assert matcher.accept_token(id)
            masks.append(mask)
        assert np.array_equal(*masks)
        assert masks[0].view(np.uint32)[0, id // 32] >> (id % 32) & 1


def test_llguidance(name: str, ours: hf.Tokenizer, eos: int) -> None:
    llguidance = pytest.importorskip("llguidance")
    contents = Path(tokenizer_path(name)).read_text("utf-8")
    engines = [
        example("llguidance", ours, eos),
        llguidance.LLTokenizer(contents, eos_token=eos),
    ]
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(SCHEMA))
    matchers = [llguidance.LLMatcher(engine, grammar) for engine in engines]
    table = bpe_engine.TokenTable(ours)
    added = ours.get_added_tokens_decoder()
    ordinary = [id for id, token in added.items() if not token.special]
    for id in [*document_ids(ours), eos]:
        masks = []
        for matcher in matchers:
            mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
            masks.append(np.unpackbits(mask, bitorder="little")[: len(table)])
            masks[-1][ordinary] = 0
            assert matcher.consume_token(id), matcher.get_error()
        assert np.array_equal(*masks), np.nonzero(masks[0] != masks[1])
        assert masks[0][id]


@pytest.mark.parametrize("name", ["gpt2", "phi-2", "whisper-tiny", "dolma2"], indirect=True)
def test_outlines_core(
    name: str, ours: hf.Tokenizer, eos: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outlines_core = pytest.importorskip("outlines_core")
    # outlines' loader reads the cache of downloads.
    repository = tmp_path / ".cache" / "huggingface" / "hub" / f"models--local--{name}"
    snapshot = repository / "snapshots" / "first"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("first")
    (snapshot / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}))
    shutil.copy(tokenizer_path(name), snapshot / "tokenizer.json")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HF_HOME", raising=False)
    vocabularies = [
        example("outlines_core", ours, eos),
        outlines_core.Vocabulary.from_pretrained(f"local/{name}"),
    ]
    pattern = outlines_core.json_schema.build_regex_from_schema(json.dumps(SCHEMA))
    guides = [
        outlines_core.Guide(outlines_core.Index(pattern, vocabulary)) for vocabulary in vocabularies
    ]
    # Their loader takes special tokens for text that the model's vocabulary has as well.
    listed = json.loads(Path(tokenizer_path(name)).read_text("utf-8"))["model"]["vocab"].values()
    as_text = set(bpe_engine.TokenTable(ours).ids("special")).intersection(listed) - {eos}
    assert len(as_text) == (7 if name == "dolma2" else 0)
    for id in document_ids(ours):
        allowed = [sorted(guide.get_tokens()) for guide in guides]
        assert allowed[0] == [id for id in allowed[1] if id not in as_text]
        assert id in allowed[0]
        for guide in guides:
            guide.advance(id)
    assert all(guide.is_finished() for guide in guides)
