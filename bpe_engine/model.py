"""Which encoding a model uses."""

from __future__ import annotations

import re

from ._suggest import did_you_mean
from .core import Encoding
from .registry import get_encoding

__all__ = [
    "MODEL_PREFIX_TO_ENCODING",
    "MODEL_TO_ENCODING",
    "encoding_for_model",
    "encoding_name_for_model",
]

# Names that start with one of these, tried in this order when the whole name is not known.
MODEL_PREFIX_TO_ENCODING: dict[str, str] = {
    "o1-": "o200k_base",
    "o3-": "o200k_base",
    "o4-mini-": "o200k_base",
    "gpt-5": "o200k_base",
    "gpt-4.5-": "o200k_base",
    "gpt-4.1-": "o200k_base",
    "chatgpt-4o-": "o200k_base",
    "gpt-4o-": "o200k_base",
    "gpt-4-": "cl100k_base",
    "gpt-3.5-turbo-": "cl100k_base",
    "gpt-35-turbo-": "cl100k_base",
    "gpt-oss-": "o200k_harmony",
    "ft:gpt-4o": "o200k_base",
    "ft:gpt-4": "cl100k_base",
    "ft:gpt-3.5-turbo": "cl100k_base",
    "ft:davinci-002": "cl100k_base",
    "ft:babbage-002": "cl100k_base",
}

_MODELS_BY_ENCODING = {
    "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    "cl100k_base": """
        gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo
        davinci-002 babbage-002
        text-embedding-ada-002 text-embedding-3-small text-embedding-3-large
    """,
    "p50k_base": """
        text-davinci-003 text-davinci-002
        code-davinci-002 code-davinci-001 code-cushman-002 code-cushman-001
        davinci-codex cushman-codex
    """,
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "r50k_base": """
        text-davinci-001 text-curie-001 text-babbage-001 text-ada-001
        davinci curie babbage ada
        text-similarity-davinci-001 text-similarity-curie-001
        text-similarity-babbage-001 text-similarity-ada-001
        text-search-davinci-doc-001 text-search-curie-doc-001
        text-search-babbage-doc-001 text-search-ada-doc-001
        code-search-babbage-code-001 code-search-ada-code-001
    """,
    "gpt2": "gpt2 gpt-2",
}

MODEL_TO_ENCODING: dict[str, str] = {
    model: encoding for encoding, models in _MODELS_BY_ENCODING.items() for model in models.split()
}

# Qwen's models, as published with or without "Qwen/": a family, its encoding or None, and then why
# no encoding fits: what is special to a model must be special to its encoding, and nothing else.
# The first that matches counts. Sizes are such as 7b, 1_8b or 30b-a3b, and what follows (-instruct,
# -fp8) does not matter.
_SIZE = r"\d+(?:[._]\d+)?b(?:-a\d+(?:\.\d+)?b)?(?:-.*)?"
_CHAT_ONLY = "its special tokens are <|endoftext|>, <|im_start|> and <|im_end|> only"
_OTHER_RANKS = "its vocabulary is another"
_QWEN_FAMILIES: list[tuple[str, str | None, str]] = [
    (rf"qwen-{_SIZE}", "qwen", ""),
    (r"qwen-(?:vl|audio)(?:-.*)?", None, "it has more special tokens than qwen"),
    (r"codeqwen1\.5-.*", None, _OTHER_RANKS),
    (r"qwen1\.5-.*", None, _CHAT_ONLY),
    (r"(?:qwen2-vl|qvq)-.*", None, "it has fewer special tokens than qwen2.5"),
    (r"qwen2-audio-.*", None, "it has other special tokens than qwen2.5"),
    (r"qwen2-.*", None, _CHAT_ONLY),
    (r"qwen2\.5-(?:omni|math-prm|math-rm)-.*", None, "it has other special tokens than qwen2.5"),
    (rf"qwen2\.5-(?:coder-|math-|vl-)?{_SIZE}", "qwen2.5", ""),
    (r"qwq-32b-preview(?:-.*)?", "qwen2.5", ""),
    (r"qwq-32b(?:-.*)?", "qwen3", ""),
    (r"qwen3-(?:omni|asr|tts)(?:-.*)?", None, "it has more special tokens than qwen3"),
    (rf"qwen3-(?:coder-|next-|vl-|embedding-|reranker-)?{_SIZE}", "qwen3", ""),
    (r"qwen3\.\d.*", None, _OTHER_RANKS),
]


def _qwen_encoding_name(model_name: str) -> str | None:
    """The encoding of a model of Qwen; None for what is none."""
    name = model_name.lower().removeprefix("qwen/")
    for family, encoding_name, reason in _QWEN_FAMILIES:
        if re.fullmatch(family, name):
            if encoding_name is None:
                raise KeyError(
                    f"no encoding of this package is that of the model {model_name!r}: {reason}; "
                    "make one of its own tokenizer.json"
                )
            return encoding_name
    return None


def encoding_name_for_model(model_name: str) -> str:
    """The name of the encoding that a model uses.

    Args:
        model_name: The model's name, such as ``"gpt-4o"``. Dated and fine-tuned variants are
            known by how their names begin. Models of Qwen are known by their published names,
            with the owner or without, in any case: ``"Qwen/Qwen3-8B"``, ``"qwen2.5-7b-instruct"``.

    Raises:
        KeyError: No such model is known, or it has special tokens that no encoding has.

    >>> encoding_name_for_model("gpt-4o-2024-05-13")
    'o200k_base'
    >>> encoding_name_for_model("Qwen/Qwen3-8B")
    'qwen3'
    """
    if not isinstance(model_name, str):
        raise TypeError(f"a model name must be a str, not {type(model_name).__name__}")
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding_name in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding_name
    qwen = _qwen_encoding_name(model_name)
    if qwen is not None:
        return qwen
    hint = did_you_mean(model_name, MODEL_TO_ENCODING)
    raise KeyError(
        f"no encoding is known for the model {model_name!r}.{hint} Choose an encoding by its name, "
        "such as 'o200k_base': get_encoding(...) in Python, --encoding on the command line"
    )


def encoding_for_model(model_name: str) -> Encoding:
    """The encoding that a model uses.

    Args:
        model_name: As in `encoding_name_for_model`.

    Raises:
        KeyError: No such model is known.

    >>> encoding_for_model("gpt-4").name
    'cl100k_base'
    """
    return get_encoding(encoding_name_for_model(model_name))
