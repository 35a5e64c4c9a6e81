"""Passes damaged columns of pyarrow and pandas as each argument of each public function.

A child process calls a function with each argument, and prints the errors.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import signal
import struct
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

#: Modules that docs/reference omits.
MORE = ["load", "model", "registry", "hf.decoders", "hf.normalizers", "hf.pre_tokenizers"]
TEMPLATE = "{% for m in messages %}{{ m.role }}{{ m.content }}{{ x }}{% endfor %}"
CHAT = [{"role": "user", "content": "a"}]


def columns() -> Iterator[Any]:
    """Yields columns whose third item lies far outside the buffers."""
    import pandas
    import pyarrow as pa

    whole = pa.array([f"hello {at}" for at in range(8)])
    offsets = bytearray(whole.buffers()[1].to_pybytes())
    offsets[8:12] = struct.pack("<i", 0x7FFFFF00)
    buffers = [None, pa.py_buffer(bytes(offsets)), whole.buffers()[2]]
    text = pa.Array.from_buffers(pa.string(), 8, buffers)
    ends = [None, pa.py_buffer(struct.pack("<4i", 0, 2, 0x7FFFFF00, 3))]
    messages = pa.StructArray.from_arrays([text[:3], text[:3]], ["role", "content"])
    yield from (text, [text], {"text": text}, pa.table({"text": text}))
    yield pa.Array.from_buffers(pa.list_(messages.type), 3, ends, children=[messages])
    yield pandas.Series(pandas.arrays.ArrowExtensionArray(pa.chunked_array([text])))


def objects() -> list[Any]:
    """Returns the objects whose methods are tried."""
    import bpe_engine
    from bpe_engine import hf, prompt, serving

    gpt2 = bpe_engine.get_encoding("gpt2")
    tokenizer = bpe_engine.Tokenizer(gpt2, pad_token="<|endoftext|>")
    return [
        *(gpt2, gpt2.hf, tokenizer, gpt2.encode_batch_to_numpy(["a"]), gpt2.hf.encode("a")),
        *(tokenizer(["a"]), gpt2.hf.model, gpt2.stream_decoder(), bpe_engine.StreamPool(gpt2)),
        *(bpe_engine.TokenTable(gpt2), prompt.Rollout(TEMPLATE, gpt2, CHAT)),
        *(prompt.ChatTemplate(TEMPLATE), serving.ConversationCache(gpt2)),
        *(hf.trainers.BpeTrainer(), hf.WordPiece, hf.BPE),
    ]


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yields public functions and classes, and methods and settable attributes of `objects`."""
    pages = (ROOT / "docs" / "reference").glob("*.md")
    texts = "".join(page.read_text(encoding="utf-8") for page in sorted(pages))
    names = re.findall(r"^\.\. automodule:: ([\w.]+)$", texts, re.MULTILINE)
    for module in map(importlib.import_module, [*names, *(f"bpe_engine.{name}" for name in MORE)]):
        for name in module.__all__:
            value = getattr(module, name)
            is_record = isinstance(value, type) and issubclass(value, (tuple, Exception, dict))
            if callable(value) and not is_record:
                yield f"{module.__name__}.{name}", value
    for owner in objects():
        kind = owner if isinstance(owner, type) else type(owner)
        for name in dir(kind):
            static = inspect.getattr_static(kind, name)
            if name[0] == "_" and name != "__call__":
                continue
            if isinstance(static, (property, types.GetSetDescriptorType)):
                yield f"{kind.__name__}.{name}", lambda value, o=owner, n=name: setattr(o, n, value)
            elif callable(getattr(owner, name, None)):
                yield f"{kind.__name__}.{name}", getattr(owner, name)


def others() -> dict[str, Any]:
    """Returns, by name, values for the other arguments of a function."""
    import bpe_engine

    gpt2 = bpe_engine.get_encoding("gpt2")
    return {
        **dict.fromkeys(["tokenizer", "a", "b", "engine", "base", "extended", "encoding"], gpt2),
        **dict.fromkeys(["texts", "inputs", "words", "corpus", "files", "iterator"], ["a"]),
        **dict.fromkeys(["messages", "conversation"], CHAT),
        **dict.fromkeys(["ids", "tokens", "token_ids"], [1, 2]),
        **dict.fromkeys(["batch", "sequences"], [[1, 2]]),
        **dict.fromkeys(["max_tokens", "limit", "size", "length", "vocab_size", "max_bytes"], 300),
        **dict.fromkeys(["first", "second"], 0),
        "path": "x.tiktoken",
        "model": "gpt-4o",
        "template": TEMPLATE,
        "encoded_inputs": {"input_ids": [1]},
        "mergeable_ranks": {bytes([byte]): byte for byte in range(256)},
    }


def try_call(
    function: Callable[..., Any], tried: inspect.Parameter, column: Any, values: dict[str, Any]
) -> None:
    """Calls a function with a column as an argument, and prints the error."""
    args: list[Any] = []
    named: dict[str, Any] = {}
    for each in inspect.signature(function).parameters.values():
        is_optional = each.default is not each.empty
        is_rest = each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        if each.name != tried.name and (is_optional or is_rest):
            continue
        value = column if each.name == tried.name else values.get(each.name, "gpt2")
        if each.kind is each.VAR_KEYWORD:
            named["x"] = value
        elif (
            each.kind is each.KEYWORD_ONLY or is_optional and each.kind is not each.POSITIONAL_ONLY
        ):
            named[each.name] = value
        else:
            args.append(value)
    signal.alarm(2)
    try:
        result = function(*args, **named)
        if isinstance(result, Iterator):
            next(result, None)
    except BaseException as error:
        print(error)
    signal.alarm(0)


def _stop(*_: Any) -> None:
    raise TimeoutError


def walk(part: int, parts: int) -> None:
    """Tries one part of the functions, each in a child, and prints calls that a signal ended."""
    bad, values, count = list(columns()), others(), 0
    signal.signal(signal.SIGALRM, _stop)
    silent = os.open(os.devnull, os.O_RDWR)
    for name, function in [*functions()][part::parts]:
        try:
            given = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            continue
        count += len(given)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            for stream in range(3):
                os.dup2(silent, stream)
            for tried in given:
                os.write(writer, f"{tried.name} ".encode())
                for column in bad:
                    try_call(function, tried, column, values)
            os._exit(0)
        os.close(writer)
        status = os.waitpid(child, 0)[1]
        *_, last = ["", *os.read(reader, 1 << 16).decode().split()]
        os.close(reader)
        if status:
            print(f"{name}({last}=...): {os.waitstatus_to_exitcode(status)}", flush=True)
    assert count * parts > 1000, count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("part", range(2))
def test_no_public_function_reads_a_damaged_column(part: int, tmp_path: Path) -> None:
    for package in ("pyarrow", "pandas", "jinja2"):
        pytest.importorskip(package)
    program = (
        f"import sys; sys.path += {[str(Path(__file__).parent), str(ROOT / 'tests' / 'support')]!r}\n"
        f"from {Path(__file__).stem} import walk; walk({part}, 2)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr[-2000:]
