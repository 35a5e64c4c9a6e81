"""One adapter per engine: the fastest public way to each kind of result.

Every engine loads from what this repository or its own package holds; nothing is downloaded.
A field of :class:`Engine` is None where the engine lacks the thing. Where a package offers
several ways to one result, the adapter takes the one that measured fastest.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..cases.encodings import EncodingSpec, write_tokenizer_json


class Unsupported(Exception):
    """The engine lacks the encoding or the operation that a case asks for."""


class FlatRows(NamedTuple):
    """A batch as one array of ids and the n + 1 offsets that cut it into rows."""

    ids: Any
    offsets: Any


@dataclass
class Engine:
    """What one loaded engine can do. Texts are str, ids are ints.

    ``encode`` is the library's own call with its defaults (tiktoken's refuses names of special
    tokens in the text), ``encode_list`` ignores special tokens where the library can. The
    ``_short`` fields are for texts of prompt size, where another call of the same library wins.
    The batch functions take ``(texts, threads)``, ``numpy_threads`` takes ``(text, threads)``.
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

    def __post_init__(self) -> None:
        self.encode_list_short = self.encode_list_short or self.encode_list
        self.encode_short = self.encode_short or self.encode

    def need(self, field: str) -> Callable[..., Any]:
        """The callable ``field``; :class:`Unsupported` where the engine lacks it."""
        call: Callable[..., Any] | None = getattr(self, field)
        if call is None:
            raise Unsupported(f"no {field}")
        return call


@dataclass(frozen=True)
class Plan:
    """How an engine is loaded, in the two steps that a user sees: import, then get_encoding.

    ``load`` takes ``(spec, cache)`` where ``cache`` is the folder that ``prepare`` filled.
    """

    name: str
    distribution: str
    module: str
    load: Callable[[EncodingSpec, Path], Engine]
    prepare: Callable[[EncodingSpec, Path], Any] | None = None

    def installed(self) -> bool:
        """Whether the package can be imported here."""
        return importlib.util.find_spec(self.module.partition(".")[0]) is not None

    def import_module(self) -> None:
        """Imports the package; a broken installation raises what its import raises."""
        importlib.import_module(self.module)

    def version(self) -> str:
        """The installed version, or a question mark where no metadata tells it."""
        import importlib.metadata

        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return "?"


def _each(encode: Callable[[str], Any]) -> Callable[[list[str], int], list[Any]]:
    """A batch function out of a function for one text, as a user would write it."""

    def batch(texts: list[str], threads: int) -> list[Any]:
        if threads == 1:
            return [encode(text) for text in texts]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(encode, texts))

    return batch


def _ours(spec: EncodingSpec, cache: Path) -> Engine:
    import bpe_engine

    enc = bpe_engine.get_encoding(spec.name)

    def batch_flat(texts: list[str], threads: int) -> FlatRows:
        return FlatRows(
            *enc.encode_batch_to_numpy(texts, num_threads=threads, disallowed_special=())
        )

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
    )


def _tiktoken(spec: EncodingSpec, cache: Path) -> Engine:
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

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
        batch_list=_each(enc.encode_ordinary),  # its own batch function does the same, in a pool
        batch_numpy=_each(numpy),
        decode_list=enc.decode,
        decode_numpy=enc.decode,
    )


def _gigatoken(spec: EncodingSpec, cache: Path) -> Engine:
    import gigatoken

    try:
        native = gigatoken.Tokenizer.from_tiktoken(
            spec.ranks, pretokenizer=spec.gigatoken, special_tokens=spec.special_tokens
        )
    except (RuntimeError, ValueError) as error:  # it takes no ranks with gaps
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
    )


def _splintr(spec: EncodingSpec, cache: Path) -> Engine:
    import numpy
    import splintr

    if spec.splintr is not None:
        tok = splintr.Tokenizer.from_pretrained(spec.splintr)
    else:
        pattern = splintr.QWEN2_PATTERN if spec.name == "qwen" else splintr.GPT2_PATTERN
        tok = splintr.Tokenizer(str(spec.ranks), pattern, spec.special_tokens)

    def batch_flat(texts: list[str], threads: int) -> FlatRows:
        ids, offsets = tok.encode_batch_flat(texts)
        return FlatRows(
            numpy.frombuffer(ids, numpy.uint32), numpy.frombuffer(offsets, numpy.uint64)
        )

    return Engine(
        encode_list=tok.encode_ordinary,
        encode=tok.encode,
        encode_numpy=lambda text: numpy.frombuffer(tok.encode_flat(text), numpy.uint32),
        count=lambda text: len(tok.encode_flat(text)) // 4,
        batch_list=lambda texts, threads: tok.encode_batch(texts),
        batch_numpy=batch_flat,
        decode_list=tok.decode,
        decode_numpy=tok.decode,
    )


def _riptoken(spec: EncodingSpec, cache: Path) -> Engine:
    import riptoken

    core = riptoken.CoreBPE(
        riptoken.load_tiktoken_bpe(spec.ranks), spec.special_tokens, spec.pattern
    )
    return Engine(
        encode_list=core.encode_ordinary,
        encode=functools.partial(core.encode, allowed_special=set()),
        count=lambda text: len(core.encode_ordinary(text)),
        batch_list=lambda texts, threads: core.encode_ordinary_batch(texts),
        decode_list=lambda ids: core.decode_bytes(ids).decode("utf-8", "replace"),
    )


def _rs_bpe(spec: EncodingSpec, cache: Path) -> Engine:
    from rs_bpe.bpe import openai

    if spec.name not in ("cl100k_base", "o200k_base"):
        raise Unsupported(f"rs-bpe has no {spec.name}")
    tok = getattr(openai, spec.name)()

    def batch_list(texts: list[str], threads: int) -> list[list[int]]:
        if threads == 1:
            return tok.encode_batch(texts)[0]
        options = openai.ParallelOptions(1, max(1, len(texts) // (4 * threads)), threads)
        return tok.encode_batch_parallel(texts, options)[0]

    return Engine(
        encode_list=tok.encode,
        encode=tok.encode,
        count=tok.count,
        batch_list=batch_list,
        decode_list=tok.decode,
    )


def _hf_tokenizers(spec: EncodingSpec, cache: Path) -> Engine:
    import tokenizers

    tok = tokenizers.Tokenizer.from_file(str(write_tokenizer_json(spec, cache)))

    def encode(text: str) -> list[int]:
        ids: list[int] = tok.encode(text, add_special_tokens=False).ids
        return ids

    def batch_list(texts: list[str], threads: int) -> list[list[int]]:
        return [row.ids for row in tok.encode_batch_fast(texts, add_special_tokens=False)]

    def without_offsets(text: str) -> list[int]:
        return batch_list([text], 1)[0]

    return Engine(
        encode_list=without_offsets,
        encode=without_offsets,
        encode_list_short=encode,
        encode_short=encode,
        count=lambda text: len(tok.encode(text, add_special_tokens=False)),
        batch_list=batch_list,
        decode_list=functools.partial(tok.decode, skip_special_tokens=False),
    )


OURS = "bpe_engine"
PLANS = {
    plan.name: plan
    for plan in (
        Plan(OURS, "bpe-engine", "bpe_engine", _ours),
        Plan("tiktoken", "tiktoken", "tiktoken", _tiktoken),
        Plan("gigatoken", "gigatoken", "gigatoken", _gigatoken),
        Plan("splintr", "splintr-rs", "splintr", _splintr),
        Plan("riptoken", "riptoken", "riptoken", _riptoken),
        Plan("rs-bpe", "rs-bpe", "rs_bpe", _rs_bpe),
        Plan("tokenizers", "tokenizers", "tokenizers", _hf_tokenizers, write_tokenizer_json),
    )
}


def installed_engines() -> list[str]:
    """The names of the engines that can be imported here, in the order of the table."""
    return [plan.name for plan in PLANS.values() if plan.installed()]
