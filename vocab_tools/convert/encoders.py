"""Makes encoders from the definitions and files of a conversion, to compare ids."""

from __future__ import annotations

import json
from collections.abc import Callable

from bpe_engine import vocabulary
from bpe_engine.hf import BPE, Tokenizer
from bpe_engine.read.gpt2_files import pair
from bpe_engine.read.sources import Source

from .definition import Definition
from .tokenizer_json import dump

#: A function that encodes texts; names of special tokens in texts become special tokens.
Encoder = Callable[[list[str]], list[list[int]]]


def encoder_of(definition: Definition, location: Source, *, is_read: bool = True) -> Encoder:
    """Returns the encoder of a definition.

    Args:
        definition: the definition that the files contain.
        location: the location of the files.
        is_read: True if the files exist and contain this definition; False to ignore the files.
    """
    if location.format in ("tiktoken", "tekken", "encoding"):
        return _by_ranks(definition)
    if not is_read:
        expressible = definition.pattern is not None and not definition.inexpressible
        if expressible and definition.list_differs_from(definition.order) is None:
            return _by_ranks(definition)
        return encoder(Tokenizer.from_str(dump(definition).decode()))
    if location.format == "tokenizer.json":
        return encoder(Tokenizer.from_file(location.path))
    if location.format != "gpt2":
        return encoder(Tokenizer.from_str(dump(definition).decode()))
    files, settings = pair(location.path), definition.settings
    assert files is not None and settings is not None
    vocab, merges = BPE.read_file(*map(str, files))
    model = {**settings["model"], "vocab": vocab, "merges": merges}
    contents = json.dumps({**settings, "post_processor": None, "model": model})
    return encoder(Tokenizer.from_str(contents))


def _by_ranks(definition: Definition) -> Encoder:
    """Returns an encoder that merges by ranks, made with an encoding of this package."""
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


def encoder(tokenizer: Tokenizer) -> Encoder:
    """Returns the encoder of a tokenizer, which adds no tokens around a text."""
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def encode(texts: list[str]) -> list[list[int]]:
        found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in found]

    return encode
