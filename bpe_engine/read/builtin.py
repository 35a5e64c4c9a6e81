"""Defines the built-in encodings: vocabulary, pattern, special tokens, normalization.

A new encoding needs a row in `BUILTIN` and, if its ranks are new, their file in ``data/`` and its
hash in `RANK_FILE_SHA256`. The build turns every rank file in ``data/`` into a vocabulary inside
the native module; the registry, the command line and the tests read `BUILTIN`.
"""

from __future__ import annotations

from typing import Any

from .. import patterns
from .._tiktoken import CoreBPE
from ..core import Encoding

__all__ = ["BUILTIN", "RANK_FILE_SHA256", "BuiltIn"]


class BuiltIn:
    """The definition of a built-in encoding.

    Calling the object returns the arguments of `Encoding`, like a constructor in a plugin.
    `encoding()` makes the same encoding faster, without a dict of the ranks.
    """

    # Avoids `dataclasses`, whose import would add a third to `import bpe_engine`.
    def __init__(
        self,
        name: str,
        vocabulary: str,
        pattern: str,
        special_tokens: dict[str, int],
        normalization: str | None = None,
        explicit_n_vocab: int | None = None,
    ) -> None:
        self.name = name
        self.vocabulary = vocabulary  # Name of the rank file in data/, without .tiktoken.
        self.pattern = pattern
        self.special_tokens = special_tokens
        self.normalization = normalization
        self.explicit_n_vocab = explicit_n_vocab

    def __call__(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "name": self.name,
            "pat_str": self.pattern,
            "mergeable_ranks": self._core_bpe()._ranks_dict(),
            "special_tokens": dict(self.special_tokens),
        }
        if self.explicit_n_vocab is not None:
            arguments["explicit_n_vocab"] = self.explicit_n_vocab
        if self.normalization is not None:
            arguments["normalization"] = self.normalization
        return arguments

    def encoding(self) -> Encoding:
        """Returns a new `Encoding`."""
        return Encoding._from_core(
            self.name,
            self._core_bpe(),
            pat_str=self.pattern,
            special_tokens=dict(self.special_tokens),
            normalization=self.normalization,
        )

    def _core_bpe(self) -> CoreBPE:
        return CoreBPE(self.vocabulary, self.special_tokens, self.pattern, self.normalization)


_END_OF_TEXT = "<|endoftext|>"
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")

_O200K_SPECIAL = {_END_OF_TEXT: 199_999, "<|endofprompt|>": 200_018}

# Reserved names fill the ids without another name; 200018 has a name of each kind.
_HARMONY_SPECIAL = {
    **_O200K_SPECIAL,
    "<|startoftext|>": 199_998,
    "<|return|>": 200_002,
    "<|constrain|>": 200_003,
    "<|channel|>": 200_005,
    "<|start|>": 200_006,
    "<|end|>": 200_007,
    "<|message|>": 200_008,
    "<|call|>": 200_012,
    **{
        f"<|reserved_{id}|>": id
        for id in [200_000, 200_001, 200_004, 200_009, 200_010, 200_011, *range(200_013, 201_088)]
    },
}


_QWEN_CHAT = [_END_OF_TEXT, "<|im_start|>", "<|im_end|>"]

_QWEN2_5_NAMES = [
    *_QWEN_CHAT,
    *"""
    <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> <|quad_start|> <|quad_end|>
    <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>
    <tool_call> </tool_call>
    <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>
    """.split(),
]


def _qwen(name: str, special_names: list[str]) -> BuiltIn:
    """Defines a Qwen encoding. Three generations differ only in the names of special tokens.

    NFC is applied before everything else: U+212A, the Kelvin sign, is encoded as the letter K.
    """
    special_tokens = {special: 151_643 + place for place, special in enumerate(special_names)}
    return BuiltIn(name, "qwen", patterns.QWEN, special_tokens, "NFC")


BUILTIN: dict[str, BuiltIn] = {
    encoding.name: encoding
    for encoding in [
        BuiltIn(
            "gpt2", "r50k_base", patterns.R50K, {_END_OF_TEXT: 50_256}, explicit_n_vocab=50_257
        ),
        BuiltIn(
            "r50k_base",
            "r50k_base",
            patterns.R50K,
            {_END_OF_TEXT: 50_256},
            explicit_n_vocab=50_257,
        ),
        BuiltIn(
            "p50k_base",
            "p50k_base",
            patterns.R50K,
            {_END_OF_TEXT: 50_256},
            explicit_n_vocab=50_281,
        ),
        BuiltIn(
            "p50k_edit",
            "p50k_base",
            patterns.R50K,
            {_END_OF_TEXT: 50_256, **{name: 50_281 + i for i, name in enumerate(_FIM)}},
        ),
        BuiltIn(
            "cl100k_base",
            "cl100k_base",
            patterns.CL100K,
            {
                _END_OF_TEXT: 100_257,
                **{name: 100_258 + i for i, name in enumerate(_FIM)},
                "<|endofprompt|>": 100_276,
            },
        ),
        BuiltIn("o200k_base", "o200k_base", patterns.O200K, _O200K_SPECIAL),
        BuiltIn("o200k_harmony", "o200k_base", patterns.O200K, _HARMONY_SPECIAL),
        # Qwen-7B and related models.
        _qwen("qwen", [*_QWEN_CHAT, *(f"<|extra_{i}|>" for i in range(205))]),
        # From the tokenizer_config.json of Qwen2.5-7B-Instruct.
        _qwen("qwen2.5", _QWEN2_5_NAMES),
        # From the tokenizer_config.json of Qwen3-8B; also for QwQ.
        _qwen(
            "qwen3",
            [*_QWEN2_5_NAMES, "<tool_response>", "</tool_response>", "<think>", "</think>"],
        ),
    ]
}

# The hashes of the published rank files, by vocabulary.
RANK_FILE_SHA256 = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "qwen": "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
}
