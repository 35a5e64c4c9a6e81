"""`open_tokenizer`, which opens any tokenizer."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..common.system import is_uri
from ..common.values import with_text
from ..core import Encoding
from ..hf.tokenizers import Tokenizer
from ..load import load_encoding, read_file_cached
from ..registry import get_encoding
from ..tokenizer import Tokenizer as FolderTokenizer
from ..tokenizer.files import read_json
from ..tokenizer.vocabularies import set_bert_normalizer
from . import gpt2_files
from .sidecar import beside, read_sidecar
from .sources import CONFIG, NOT_OPENED, Source, recognize

__all__ = ["encoding_of_ranks", "open_tokenizer"]


def open_tokenizer(source: str | os.PathLike[str]) -> Encoding:
    """Opens a tokenizer of any kind as an `Encoding`.

    Args:
        source: The name of an encoding; a ``.tiktoken`` file, ``tokenizer.json``, ``tekken.json``,
            SentencePiece ``.model``, ``vocab.json`` with ``merges.txt``, or BERT's
            ``vocab.txt``; or a folder with such a file. A file or a folder takes precedence over an
            encoding of the same name.

    Returns:
        The tokenizer with tiktoken's methods: lists of ids, without the special tokens that the
        post-processor of a file adds, and ValueError for the name of a special token in a text. Files
        without ranks, such as WordPiece and Unigram, have no `mergeable_ranks`, `pattern`,
        `encode_single_token` and `encode_with_unstable`: these raise an error with the reason.
        `Encoding.hf` and `Encoding.transformers` return the tokenizer with the methods of
        `tokenizers` and transformers.

    Raises:
        FileNotFoundError: Neither a file nor an encoding has this name; similar names are in the
            message.
        ValueError: The file is malformed, or has an unsupported format.
        OSError: The file cannot be read.

    >>> open_tokenizer("gpt2")
    <Encoding 'gpt2' bc98d100a6f5>
    """
    found = recognize(source)
    tokenizer = _open(found)
    if isinstance(tokenizer, Encoding):
        return tokenizer
    return Encoding._of_file(tokenizer, found.name)


def encoding_of_ranks(opened: Encoding) -> Encoding:
    """Returns an opened tokenizer as ranks, a pattern and added tokens. The flags of a file's added
    tokens are ignored, and added tokens that merging makes under the same id are dropped.

    Raises:
        UnsupportedTokenizer: The file has no ranks, or several patterns; the message says which.
    """
    if opened._file is None:
        return opened
    return Encoding._of_ranks_of(opened._file, opened.name, any_flags=True)


def _open(source: Source) -> Encoding | Tokenizer:
    """Opens a tokenizer as the class of its format: a `Tokenizer` for a Hugging Face file."""
    path, format, folder = source
    if format in NOT_OPENED:
        raise ValueError(f"{path} {NOT_OPENED[format]}")
    if format == "encoding":
        return get_encoding(path)
    if format == "tokenizer.json":
        return _of_json(path)
    if format == "sentencepiece" and not is_uri(path):
        return Tokenizer.from_sentencepiece(path)
    is_folder = folder is not None and os.path.isfile(os.path.join(folder, CONFIG))
    if format != "tekken" and folder is not None and (is_folder or format == "wordpiece"):
        return FolderTokenizer.from_pretrained(folder).backend
    if format == "wordpiece":
        words = Tokenizer.from_wordpiece(path)
        set_bert_normalizer(words, read_json(Path(path).parent / CONFIG))
        return words
    return _of_pair(path) if format == "gpt2" else load_encoding(path)


def _of_json(path: str) -> Tokenizer:
    if not is_uri(path):
        return Tokenizer.from_file(path)
    try:
        return Tokenizer.from_buffer(read_file_cached(path))
    except ValueError as error:
        raise with_text(error, f"{path}: {error}") from None


def _of_pair(path: str) -> Tokenizer:
    pair = gpt2_files.pair(path)
    assert pair is not None
    vocab, merges = gpt2_files.read_vocab(pair[0]), gpt2_files.read_merges(pair[1])
    settings = (read_sidecar(pair[0]) or {}).get("tokenizer_json")
    if settings is not None:
        model = {**settings["model"], "vocab": vocab, "merges": merges, "ignore_merges": False}
        return Tokenizer(json.dumps({**settings, "model": model}))
    if beside(pair[0]).exists():
        raise ValueError(
            f"{path} has its pattern in {beside(pair[0]).name}; make one file of both: "
            f"vocab-tools convert {path} tokenizer.json"
        )
    return Tokenizer.from_files(*pair, special_tokens=list(gpt2_files.looks_special(vocab, merges)))
