"""The engines that read tokenizer files, each as a function and under transformers."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable

__all__ = ["ENGINES", "NEXT", "load", "prepare", "transformers_tokenizer"]

# `tokenizers` of the next major version is imported from a folder of its own.
NEXT = "tokenizers 1.0"
ENGINES = ["bpe_engine", "tokenizers", NEXT, "fastokens", "gigatoken"]


def prepare(engine: str, next_folder: str | None) -> None:
    """Imports the package of an engine, before anything is measured."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if engine == NEXT:
        sys.path.insert(0, str(next_folder))
        import tokenizers

        if tokenizers.__version__ < "1":
            raise ImportError(f"{next_folder} has no tokenizers 1.0")
        return
    __import__({"bpe_engine": "bpe_engine.hf"}.get(engine, engine))


def load(engine: str, path: str) -> Callable[[str], list[int]]:
    """A function from text to ids, special tokens of post-processors left out."""
    if engine == "bpe_engine":
        from bpe_engine.hf import Tokenizer

        ours = Tokenizer.from_file(path)
        return lambda text: ours.encode(text, add_special_tokens=False).ids
    if engine in ("tokenizers", NEXT):
        import tokenizers

        theirs = tokenizers.Tokenizer.from_file(path)
        return lambda text: theirs.encode(text, add_special_tokens=False).ids
    if engine == "fastokens":
        import fastokens

        fast = fastokens.Tokenizer.from_file(path)
        return lambda text: fast.encode(text, add_special_tokens=False).ids
    import gigatoken

    giga = gigatoken.Tokenizer(path)
    return lambda text: list(giga.encode(text))


def pad_token(path: str) -> str:
    """A token of the file to pad with: not every engine adds one."""
    with open(path, encoding="utf-8") as file:
        added: list[dict[str, Any]] = json.load(file).get("added_tokens", [])
    return str(added[0]["content"]) if added else "!"


def transformers_tokenizer(engine: str, path: str) -> Any:
    """A transformers tokenizer with this engine."""
    import transformers

    if engine == "gigatoken":
        import gigatoken

        wrapped = gigatoken.Tokenizer(path).as_hf()
        wrapped.pad_token = pad_token(path)
        return wrapped
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=path, pad_token=pad_token(path))
    if engine == "bpe_engine":
        from bpe_engine.hf import as_transformers

        return as_transformers(tokenizer)
    if engine == "fastokens":
        import fastokens

        fastokens._swap_backend(tokenizer, fastokens._TokenizerShim)
    return tokenizer
