"""Tests calls whose memory or work must be bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hf_oracle import tokenizer_path
from prepared import with_room
from work import work

import bpe_engine
from bpe_engine import Tokenizer
from bpe_engine.hf import Tokenizer as FileTokenizer

GPT2 = bpe_engine.get_encoding("gpt2")

ROWS = """
import sys
import bpe_engine
from bpe_engine.hf import Tokenizer as FileTokenizer
source = FileTokenizer.from_file(sys.argv[1]) if sys.argv[1] else bpe_engine.get_encoding("gpt2")
tokenizer = bpe_engine.Tokenizer(source, pad_token="<|endoftext|>")
text = "a b c " * 20_000
texts = ["a b"] * 1_000_000
tokenizer([text, "b"], padding=True)
"""


def ended(program: str, *arguments: str) -> str:
    """Runs a program that must not crash, and returns its output."""
    command = [sys.executable, "-c", program, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, (arguments, run.returncode, run.stderr[-500:])
    return run.stdout


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits are those of Linux")
def test_rows_that_exceed_memory() -> None:
    assert ended(ROWS + with_room("tokenizer(texts)", 24 << 10), "") == "MemoryError\n"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits are those of Linux")
@pytest.mark.parametrize("kind", ["encoding", "file"])
def test_pairs_that_are_cut_take_the_room_of_their_texts(kind: str) -> None:
    """The overflow of one text is never combined with the other text's overflow."""
    file = "" if kind == "encoding" else str(tokenizer_path("gpt2"))
    call = "tokenizer(text, text, truncation=True, max_length=64, stride=20)"
    assert ended(ROWS + with_room(call, 200 << 10), file) == "done\n"


def test_overflow_that_would_be_far_more_than_the_texts() -> None:
    text = "a b c " * 20_000
    for source in (GPT2, FileTokenizer.from_file(tokenizer_path("gpt2"))):
        tokenizer = Tokenizer(source)
        options = {"truncation": True, "max_length": 64, "return_overflowing_tokens": True}
        with pytest.raises(ValueError, match='cut one text of a pair only: "only_first"'):
            tokenizer(text, text, **options)
        with pytest.raises(ValueError, match="take a smaller stride"):
            tokenizer(text * 8, **{**options, "max_length": 4000}, stride=3999)
        rows = tokenizer(text, "b", **{**options, "truncation": "only_first"})
        assert len(rows.input_ids) == -(-60_001 // 63)
        short = tokenizer("a b c d", "e f g h", **{**options, "max_length": 4})
        assert len(short.input_ids) == 4


TEMPLATE = (
    "{% for m in messages %}{{ '<|endoftext|>' }}{{ m.role }}:{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
    "{% endfor %}"
)
TURN = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": " Nobody."}]


def test_long_conversations_are_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_engine.prompt.limits.clock", lambda: 0.0)
    source = FileTokenizer.from_file(tokenizer_path("gpt2"))
    file = Tokenizer(source, chat_template=TEMPLATE)

    def render(turns: int) -> Any:
        return file.apply_chat_template(TURN * turns, return_assistant_tokens_mask=True)

    render(2)
    assert work(lambda: render(800)) <= 9 * work(lambda: render(100))
    result = render(800)
    plain = Tokenizer(GPT2, chat_template=TEMPLATE)
    expected = plain.apply_chat_template(TURN * 800, return_assistant_tokens_mask=True)
    assert dict(result) == dict(expected)


def test_parts_of_text_whose_tokens_cross_characters() -> None:
    """Each character becomes several words, and the last word continues in the next character."""
    contents = {
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "vocab": [["<unk>", 0.0]], "unk_id": 0},
    }
    tokenizer = FileTokenizer.from_str(json.dumps(contents))
    text = "\ufdfa" * 10_000
    one = work(lambda: tokenizer.encode_with_offsets(text))
    for limit in (10, 1000, 20_000):
        kept: list[str] = []
        done = work(lambda limit=limit, kept=kept: kept.append(tokenizer.truncate(text, limit)))
        assert done < 3 * one
        assert kept == [""]
    spans: list[tuple[int, int, int]] = []
    assert work(lambda: spans.extend(tokenizer.chunk_spans(text, 1000))) < 8 * one
    assert "".join(text[start:end] for start, end, _ in spans) == text
    assert all(tokenizer.count(text[start:end]) == count <= 1000 for start, end, count in spans)
