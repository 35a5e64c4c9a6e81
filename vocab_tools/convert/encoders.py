"""Encoders for the files of a conversion, to compare both sides.

Files of Hugging Face go through the package `tokenizers`, the others through this package.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bpe_engine import byte_level, vocabulary
from bpe_engine.gpt2_files import pair
from bpe_engine.sources import Source

from .definition import Definition
from .tokenizer_json import dump

#: Encodes texts; names of special tokens in them become these tokens.
Encoder = Callable[[list[str]], list[list[int]]]


def encoder_of(definition: Definition, location: Source, *, is_read: bool = True) -> Encoder:
    """Returns the encoder of a definition.

    Args:
        definition: the definition in the files.
        location: the files.
        is_read: True if the files exist and hold this definition; otherwise only it is used.

    Raises ImportError where the package `tokenizers` is needed and not installed.
    """
    if location.format in ("tiktoken", "tekken", "encoding"):
        return _by_ranks(definition)
    if not is_read:
        expressible = definition.pattern is not None and not definition.inexpressible
        if expressible and definition.list_differs_from(definition.order) is None:
            return _by_ranks(definition)
        return _by_tokenizers(require_tokenizers().Tokenizer.from_str(dump(definition).decode()))
    tokenizers = require_tokenizers()
    if location.format == "tokenizer.json":
        return _by_tokenizers(tokenizers.Tokenizer.from_file(location.path))
    if location.format == "gpt2":
        found = pair(location.path)
        assert found is not None
        model = tokenizers.models.BPE.from_file(*map(str, found))
    else:
        model = _model(definition)
    return _by_tokenizers(_around(model, definition))


def require_tokenizers() -> Any:
    """Returns the package `tokenizers`. Raises ImportError that names the extra with it."""
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "files of Hugging Face are verified with the package tokenizers; install it with "
            "pip install 'bpe-engine[vocab-tools]'"
        ) from error
    return tokenizers


def _by_ranks(definition: Definition) -> Encoder:
    """Encodes with an encoding of this package; its ranks are the order of merging."""
    assert definition.pattern is not None
    free = len(definition.order)
    places = {name: free + place for place, name in enumerate(definition.special_tokens)}
    encoding = vocabulary.make_encoding(
        "definition",
        definition.order,
        definition.pattern,
        places,
        definition.normalization,
    )
    ids = [definition.tokens[token] for token in definition.order]
    ids += definition.special_tokens.values()

    def encode(texts: list[str]) -> list[list[int]]:
        batch = encoding.encode_batch(texts, allowed_special="all")
        return [[ids[place] for place in places] for places in batch]

    return encode


def _by_tokenizers(tokenizer: Any) -> Encoder:
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def encode(texts: list[str]) -> list[list[int]]:
        found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in found]

    return encode


def _model(definition: Definition) -> Any:
    """Returns a definition as a model of `tokenizers`."""
    vocab = {byte_level.text_of(token): number for token, number in definition.tokens.items()}
    return require_tokenizers().models.BPE(
        vocab={**vocab, **definition.others, **definition.special_tokens},
        merges=[
            (byte_level.text_of(left), byte_level.text_of(right))
            for left, right in definition.merge_list
        ],
        ignore_merges=definition.whole_pieces,
    )


def _around(model: Any, definition: Definition) -> Any:
    """Returns a tokenizer of `tokenizers` with a model and the other components of a definition."""
    tokenizers = require_tokenizers()
    settings = definition.settings
    assert settings is not None
    empty = {**settings["model"], "vocab": {}, "merges": []}
    shell = {**settings, "added_tokens": [], "post_processor": None, "model": empty}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(shell))
    tokenizer.model = model
    for token in sorted(settings["added_tokens"], key=lambda token: int(token["id"])):
        flags = {key: value for key, value in token.items() if key not in ("id", "content")}
        added = tokenizers.AddedToken(token["content"], **flags)
        tokenizer.add_special_tokens([added]) if token["special"] else tokenizer.add_tokens([added])
    return tokenizer
