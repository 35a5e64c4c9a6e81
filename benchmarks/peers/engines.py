"""Adapters for the compared tokenizers, which call the fastest public function for each result.

Every engine loads files of this repository or of its own package; nothing is downloaded. A field of
:class:`Engine` is None if the engine lacks the operation. If a package offers several ways to one
result, the adapter uses the way that was measured fastest.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..cases.encodings import EncodingSpec, tokenizer_file

if TYPE_CHECKING:
    from ..cases.inputs import Column


class Unsupported(Exception):
    """Raised if an engine lacks the encoding or the operation of a case."""


class FlatRows(NamedTuple):
    """A batch as one array of ids, and the n + 1 offsets of its rows."""

    ids: Any
    offsets: Any


@dataclass
class Engine:
    """The operations of one loaded engine. Texts are str, ids are ints.

    ``encode`` is the library's own call with its defaults (tiktoken raises for names of special
    tokens in the text); ``encode_list`` ignores special tokens; some libraries have one call for
    both purposes. The ``_short`` fields are for prompts, for which a different call of the same
    library is faster. The batch functions take ``(texts, threads)``, ``numpy_threads`` takes
    ``(text, threads)``. ``others`` maps names to operations that few engines support.
    """

    encode_list: Callable[[str], list[int]]
    encode: Callable[[str], list[int]] | None = None
    encode_list_short: Callable[[str], list[int]] | None = None
    encode_short: Callable[[str], list[int]] | None = None
    encode_numpy: Callable[[str], Any] | None = None
    count: Callable[[str], int] | None = None
    batch_list: Callable[[list[str], int], Sequence[list[int]]] | None = None
    batch_numpy: Callable[[list[str], int], Any] | None = None
    numpy_threads: Callable[[str, int], Any] | None = None
    decode_list: Callable[[list[int]], str] | None = None
    decode_numpy: Callable[[Any], str] | None = None
    others: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.encode = self.encode or self.encode_list
        self.encode_list_short = self.encode_list_short or self.encode_list
        self.encode_short = self.encode_short or self.encode

    def need(self, operation: str) -> Callable[..., Any]:
        """Returns the operation of this name; raises :class:`Unsupported` if the engine lacks it."""
        call: Callable[..., Any] | None = getattr(self, operation, self.others.get(operation))
        if call is None:
            raise Unsupported(f"no {operation}")
        return call


@dataclass(frozen=True)
class Plan:
    """Loads an engine in a user's two steps: import, then get_encoding.

    ``load`` takes ``(spec, cache)``; ``cache`` is the folder that ``prepare`` filled. With
    ``only``, the engine runs only the cases of that group. ``folder`` names an environment
    variable, whose value is the folder of a second version of a package, installed by ``pip install
    --target``.
    """

    name: str
    distribution: str
    module: str
    load: Callable[[EncodingSpec, Path], Engine]
    prepare: Callable[[EncodingSpec, Path], Any] | None = None
    only: str | None = None
    folder: str | None = None

    def installed(self) -> bool:
        """Returns True if the package can be imported."""
        if self.folder is not None:
            return self.folder in os.environ
        return importlib.util.find_spec(self.module.partition(".")[0]) is not None

    def import_module(self) -> None:
        """Imports the package; raises the error of a broken installation."""
        if self.folder is not None:
            sys.path.insert(0, os.environ[self.folder])
        importlib.import_module(self.module)

    def version(self) -> str:
        """Returns the installed version, or a question mark without metadata."""
        import importlib.metadata

        if self.folder is not None:
            path = [os.environ[self.folder]]
            return next(importlib.metadata.distributions(name=self.distribution, path=path)).version
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return "?"


def _each(encode: Callable[[str], Any]) -> Callable[[list[str], int], list[Any]]:
    """Makes a batch function from a function for one text, as a user would write it."""

    def batch(texts: list[str], threads: int) -> list[Any]:
        if threads == 1:
            return [encode(text) for text in texts]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(encode, texts))

    return batch


def _flat_rows(ids: bytes, offsets: bytes) -> FlatRows:
    """Wraps the flat results of splintr and fastokens: the bytes of the ids and of the offsets."""
    import numpy

    return FlatRows(numpy.frombuffer(ids, numpy.uint32), numpy.frombuffer(offsets, numpy.uint64))


def _ids(encode: Callable[..., Any], **options: Any) -> Callable[[str], list[int]]:
    """Wraps a method whose result has an attribute ``ids``, and returns only the ids."""
    return lambda text: encode(text, **options).ids


def _rows(encode_batch: Callable[..., Any], **options: Any) -> Callable[..., list[list[int]]]:
    """Makes a batch function from a method that chooses its own number of threads."""
    return lambda texts, threads: [row.ids for row in encode_batch(texts, **options)]


def _ours(spec: EncodingSpec, cache: Path) -> Engine:
    import bpe_engine

    enc = bpe_engine.open_tokenizer(spec.file or spec.name)

    def batch_flat(texts: Any, threads: int) -> FlatRows:
        batch = enc.encode_batch_to_numpy(texts, num_threads=threads, disallowed_special=())
        return FlatRows(batch.values, batch.row_splits)

    def column(texts: Column, threads: int) -> FlatRows:
        return batch_flat(texts.arrow, threads)

    def padded(texts: list[str]) -> Any:
        tokenizer = bpe_engine.Tokenizer(enc, pad_token="<|endoftext|>")
        return tokenizer(texts, padding=True, return_tensors="np")

    def build(ranks: dict[bytes, int]) -> Any:
        return bpe_engine.Encoding(
            "x", pat_str=spec.pattern, mergeable_ranks=ranks, special_tokens={}
        )

    def read_ranks(path: str) -> Any:
        from bpe_engine.load import load_tiktoken_bpe

        return load_tiktoken_bpe(path)

    return Engine(
        encode_list=enc.encode_ordinary,
        encode=enc.encode,
        encode_numpy=enc.encode_to_numpy,
        count=enc.count,
        batch_list=lambda texts, threads: enc.encode_ordinary_batch(texts, num_threads=threads),
        batch_numpy=batch_flat,
        numpy_threads=lambda text, threads: enc.encode_to_numpy(text, num_threads=threads),
        decode_list=enc.decode,
        decode_numpy=enc.decode,
        others={
            "column": column,
            "padded": padded,
            "build": build,
            "read_ranks": read_ranks,
            "truncate to half": lambda text: enc.truncate(text, len(text) // 8),
            "truncate left to half": lambda text: enc.truncate(text, len(text) // 8, side="left"),
            "truncate to 10": lambda text: enc.truncate(text, 10),
            "truncate left to 10": lambda text: enc.truncate(text, 10, side="left"),
            "chunk by 1000": lambda text: enc.chunk(text, 1000),
            "encode_with_offsets": enc.encode_with_offsets,
            "split": enc.split,
            "encode_with_unstable": enc.encode_with_unstable,
            "batch_count": lambda texts, threads: enc.count_batch(texts, num_threads=threads),
        },
    )


def _ours_hf(spec: EncodingSpec, cache: Path) -> Engine:
    import bpe_engine

    tok = bpe_engine.open_tokenizer(spec.file or spec.name).hf
    return Engine(
        encode_list=_ids(tok.encode, add_special_tokens=False),
        batch_list=_rows(tok.encode_batch, add_special_tokens=False),
        decode_list=functools.partial(tok.decode, skip_special_tokens=False),
    )


def _ours_64m(spec: EncodingSpec, cache: Path) -> Engine:
    import bpe_engine

    bpe_engine.get_encoding(spec.name).set_cache_size(2**26)
    return _ours(spec, cache)


def _tiktoken(spec: EncodingSpec, cache: Path) -> Engine:
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    _refuse_file(spec)

    def build(ranks: dict[bytes, int]) -> Any:
        return tiktoken.Encoding(
            "x", pat_str=spec.pattern, mergeable_ranks=ranks, special_tokens={}
        )

    enc = tiktoken.Encoding(
        spec.name,
        pat_str=spec.pattern,
        mergeable_ranks=load_tiktoken_bpe(str(spec.ranks)),
        special_tokens=spec.special_tokens,
    )

    numpy = functools.partial(enc.encode_to_numpy, disallowed_special=())
    return Engine(
        encode_list=enc.encode_ordinary,
        encode=enc.encode,
        encode_numpy=numpy,
        count=lambda text: len(numpy(text)),
        batch_list=_each(enc.encode_ordinary),  # tiktoken's batch function also uses a pool.
        batch_numpy=_each(numpy),
        decode_list=enc.decode,
        decode_numpy=enc.decode,
        others={"build": build, "read_ranks": load_tiktoken_bpe},
    )


def _gigatoken(spec: EncodingSpec, cache: Path) -> Engine:
    import gigatoken

    if spec.file is not None:
        loaded = gigatoken.Tokenizer(str(spec.file))
        return Engine(
            encode_list=lambda text: loaded.encode(text).tolist(),
            batch_list=lambda texts, threads: loaded.encode_batch_list(texts, parallel=threads > 1),
        )
    try:
        native = gigatoken.Tokenizer.from_tiktoken(
            spec.ranks, pretokenizer=spec.gigatoken, special_tokens=spec.special_tokens
        )
    except (RuntimeError, ValueError) as error:  # The engine rejects ranks with gaps.
        raise Unsupported(str(error)) from error
    adapter = native.as_tiktoken()

    def to_list(text: str) -> list[int]:
        return native.encode(text).tolist()

    return Engine(
        encode_list=adapter.encode_ordinary,
        encode=adapter.encode,
        encode_list_short=to_list,
        encode_short=to_list,
        encode_numpy=native.encode,
        count=lambda text: len(native.encode(text)),
        batch_list=lambda texts, threads: native.encode_batch_list(texts, parallel=threads > 1),
        batch_numpy=lambda texts, threads: native.encode_batch(texts, parallel=threads > 1),
        numpy_threads=lambda text, threads: (
            native.encode_batch([text], parallel=True) if threads > 1 else native.encode(text)
        ),
        decode_list=adapter.decode,
        decode_numpy=adapter.decode,
        others={"column": lambda texts, threads: native.encode_batch(texts, parallel=threads > 1)},
    )


def _splintr(spec: EncodingSpec, cache: Path) -> Engine:
    import numpy
    import splintr

    if spec.file is not None:
        loaded = splintr.from_json(str(spec.file))
        # The engine's batch function adds special tokens.
        return Engine(
            encode_list=loaded.encode_raw,
            batch_list=_each(loaded.encode_raw),
            decode_list=loaded.decode,
        )
    if spec.splintr is not None:
        tok = splintr.Tokenizer.from_pretrained(spec.splintr)
    else:
        pattern = splintr.QWEN2_PATTERN if spec.name == "qwen" else splintr.GPT2_PATTERN
        tok = splintr.Tokenizer(str(spec.ranks), pattern, spec.special_tokens)

    return Engine(
        encode_list=tok.encode_ordinary,
        encode=tok.encode,
        encode_numpy=lambda text: numpy.frombuffer(tok.encode_flat(text), numpy.uint32),
        count=lambda text: len(tok.encode_flat(text)) // 4,
        batch_list=lambda texts, threads: tok.encode_batch(texts),
        batch_numpy=lambda texts, threads: _flat_rows(*tok.encode_batch_flat(texts)),
        decode_list=tok.decode,
        decode_numpy=tok.decode,
    )


def _quicktok(spec: EncodingSpec, cache: Path) -> Engine:
    import quicktok

    _refuse_file(spec)
    enc = quicktok.get_encoding(spec.name)
    return Engine(
        encode_list=enc.encode_ordinary,
        encode=enc.encode,
        count=enc.count,
        decode_list=enc.decode,
        others={"batch_count": lambda texts, threads: quicktok.count_batch(enc, texts, threads)},
    )


def _toktok(spec: EncodingSpec, cache: Path) -> Engine:
    import toktok

    def batch_count(texts: list[str], threads: int) -> list[int]:
        return toktok.batch_count(texts, spec.name, threads)

    def encode(text: str) -> list[int]:
        raise Unsupported("counts only")

    return Engine(
        encode_list=encode,
        count=lambda text: batch_count([text], 1)[0],
        others={"batch_count": batch_count},
    )


def _hf_tokenizers(spec: EncodingSpec, cache: Path) -> Engine:
    import tokenizers

    tok = tokenizers.Tokenizer.from_file(str(tokenizer_file(spec, cache)))
    # Uses the call without offsets, if this version has such a call.
    encode_batch = getattr(tok, "encode_batch_fast", tok.encode_batch)
    batch_list = _rows(encode_batch, add_special_tokens=False)
    encode = _ids(tok.encode, add_special_tokens=False)
    return Engine(
        encode_list=lambda text: batch_list([text], 1)[0],
        encode_list_short=encode,
        encode_short=encode,
        count=lambda text: len(tok.encode(text, add_special_tokens=False)),
        batch_list=batch_list,
        decode_list=functools.partial(tok.decode, skip_special_tokens=False),
    )


def _fastokens(spec: EncodingSpec, cache: Path) -> Engine:
    import fastokens

    tok = fastokens.Tokenizer.from_file(str(tokenizer_file(spec, cache)))
    return Engine(
        encode_list=_ids(tok.encode, add_special_tokens=False),
        batch_list=_rows(tok.encode_batch),
        others={"column": lambda texts, threads: _flat_rows(*tok.encode_batch_flat(texts))},
    )


def _nanotoken(spec: EncodingSpec, cache: Path) -> Engine:
    import nanotoken

    try:
        contents = tokenizer_file(spec, cache).read_text(encoding="utf-8")
        tok = nanotoken.Tokenizer.from_json(contents)
    except ValueError as error:  # The engine supports only WordPiece.
        raise Unsupported(str(error)) from error
    options = {"add_special_tokens": False}

    def batch_flat(texts: list[str], threads: int) -> FlatRows:
        rows = tok.encode_batch(texts, parallel=threads > 1, **options)
        return FlatRows(rows.ids, rows.offsets)

    return Engine(
        encode_list=lambda text: tok.encode(text, **options).tolist(),
        encode_numpy=functools.partial(tok.encode, **options),
        batch_list=lambda texts, threads: tok.encode_batch_list(
            texts, parallel=threads > 1, **options
        ),
        batch_numpy=batch_flat,
    )


def _sentencepiece(spec: EncodingSpec, cache: Path) -> Engine:
    import sentencepiece

    model = spec.file.with_suffix(".model") if spec.file else None
    if model is None or not model.exists():
        raise Unsupported("no .model, or none beside a tokenizer.json")
    tok = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return Engine(
        encode_list=tok.encode,
        batch_list=lambda texts, threads: tok.encode(texts, num_threads=threads),
        decode_list=tok.decode,
    )


def _pretrained_folder(spec: EncodingSpec, cache: Path) -> Path:
    """Returns a folder that transformers can open, made once."""
    folder = cache / f"{spec.name}.pretrained"
    if not folder.exists():
        partial = folder.with_suffix(f".{os.getpid()}")
        partial.mkdir(parents=True)
        shutil.copy(tokenizer_file(spec, cache), partial / "tokenizer.json")
        config = {"tokenizer_class": "PreTrainedTokenizerFast"}
        (partial / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        partial.rename(folder)
    return folder


def _transformers(spec: EncodingSpec, cache: Path) -> Engine:
    from transformers import AutoTokenizer

    tok = AutoTokenizer.from_pretrained(str(_pretrained_folder(spec, cache)))
    tok.pad_token = next(iter(spec.special_tokens), None) or tok.convert_ids_to_tokens(0)

    def padded(texts: list[str]) -> Any:
        return tok(texts, add_special_tokens=False, padding=True, return_tensors="np")

    return Engine(
        encode_list=lambda text: tok(text, add_special_tokens=False)["input_ids"],
        decode_list=tok.decode,
        others={"padded": padded},
    )


def _transformers_patched(spec: EncodingSpec, cache: Path) -> Engine:
    from bpe_engine.hf import patch_transformers

    patch_transformers()
    return _transformers(spec, cache)


def _refuse_file(spec: EncodingSpec) -> None:
    if spec.file is not None:
        raise Unsupported("no tokenizer.json")


def _trainer(spec: EncodingSpec, cache: Path) -> Engine:
    raise Unsupported("a trainer")


OURS = "bpe_engine"
_AUTO = "transformers.models.auto.tokenization_auto"
PLANS = {
    plan.name: plan
    for plan in (
        Plan(OURS, "bpe-engine", "bpe_engine", _ours),
        Plan("tiktoken", "tiktoken", "tiktoken", _tiktoken),
        Plan("gigatoken", "gigatoken", "gigatoken", _gigatoken),
        Plan("splintr", "splintr-rs", "splintr", _splintr),
        Plan("quicktok", "quicktok-v1", "quicktok", _quicktok),
        Plan("toktok", "toktok-rs", "toktok", _toktok),
        Plan("tokenizers", "tokenizers", "tokenizers", _hf_tokenizers, tokenizer_file),
        Plan("tokenizers-next", "tokenizers", "tokenizers", _hf_tokenizers, tokenizer_file,
             folder="BENCHMARK_TOKENIZERS_NEXT"),
        Plan("fastokens", "fastokens", "fastokens", _fastokens, tokenizer_file),
        Plan("nanotoken", "nanotoken", "nanotoken", _nanotoken, tokenizer_file),
        Plan("sentencepiece", "sentencepiece", "sentencepiece", _sentencepiece),
        Plan("transformers", "transformers", _AUTO, _transformers, _pretrained_folder),
        Plan(f"{OURS}-transformers", "bpe-engine", _AUTO, _transformers_patched, _pretrained_folder),
        Plan(f"{OURS}-hf", "bpe-engine", "bpe_engine", _ours_hf),
        Plan(f"{OURS}-64MiB", "bpe-engine", "bpe_engine", _ours_64m),
        Plan(f"{OURS}-bytes", "bpe-engine", "vocab_tools", _trainer, only="training"),
        Plan("rustbpe", "rustbpe", "rustbpe", _trainer, only="training"),
    )
}  # fmt: skip


def is_ours(engine: str) -> bool:
    """Returns True for this project's engine, with any settings."""
    return engine.startswith(OURS)


def installed_engines() -> list[str]:
    """Returns the names of the installed engines, in the order of the table."""
    return [plan.name for plan in PLANS.values() if plan.installed()]
