"""Maps model names to encodings."""

from __future__ import annotations

import re

from .common.suggest import did_you_mean
from .core import Encoding
from .registry import get_encoding, list_encoding_names

__all__ = [
    "MODEL_PREFIX_TO_ENCODING",
    "MODEL_TO_ENCODING",
    "encoding_for_model",
    "encoding_name_for_model",
]

# Prefixes of model names, tried in order for names without an exact match.
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

# Qwen's models, published with or without "Qwen/": a pattern, and the encoding or None with the
# reason; a model and its encoding must have the same special tokens. The first match wins. Sizes
# look like 7b, 1_8b or 30b-a3b, and suffixes (-instruct, -fp8) are ignored.
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

_QWEN_MODELS = {"qwen": ["Qwen-*"], "qwen2.5": ["Qwen2.5-*"], "qwen3": ["Qwen3-*", "QwQ-32B"]}


def _qwen_encoding_name(model_name: str) -> str | None:
    name = model_name.lower().removeprefix("qwen/")
    for family, encoding_name, reason in _QWEN_FAMILIES:
        if re.fullmatch(family, name):
            if encoding_name is None:
                raise KeyError(
                    f"the model {model_name!r} has no encoding in this package: {reason}; open its "
                    "tokenizer.json by bpe_engine.open_tokenizer"
                )
            return encoding_name
    return None


def encoding_name_for_model(model_name: str) -> str:
    """Returns the name of the encoding that a model uses.

    Args:
        model_name: The model's name, such as ``"gpt-4o"``. Dated and fine-tuned variants are found
            by prefixes of their names, and models of Qwen by their published names, with or without
            the owner, in any case: ``"Qwen/Qwen3-8B"``, ``"qwen2.5-7b-instruct"``.

    Raises:
        KeyError: The model is unknown, or no encoding has its special tokens.

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
    if model_name in list_encoding_names():
        hint = f" It is the name of an encoding: call get_encoding({model_name!r})."
    else:
        begun = [f"{prefix}*" for prefix in MODEL_PREFIX_TO_ENCODING]
        hint = did_you_mean(model_name, [*MODEL_TO_ENCODING, *begun])
    raise KeyError(
        f"the encoding of the model {model_name!r} is unknown.{hint} Give the model's tokenizer.json "
        "or folder, or the name of its encoding: bpe_engine.open_tokenizer(...) in Python, --encoding "
        "on the command line"
    )


def unknown_encoding(name: str) -> str:
    """Returns the error message for an unknown encoding name, with similar names, or the encoding
    of the model if the name is a model's.

    >>> unknown_encoding("gpt4")[:53]
    "unknown encoding 'gpt4'. Did you mean 'cl100k_base'? "
    """
    names = list_encoding_names()
    meant = next((model for model in MODEL_TO_ENCODING if _letters(model) == _letters(name)), name)
    try:
        hint = f" Did you mean {encoding_name_for_model(meant)!r}?"
    except KeyError:
        hint = did_you_mean(name, names)
    return f"unknown encoding {name[:60]!r}.{hint} There are {', '.join(names)}."


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def models_of(encoding_name: str) -> list[str]:
    """Returns models that use an encoding: names, and prefixes of names followed by ``*``.

    >>> models_of("o200k_harmony"), models_of("qwen3")
    (['gpt-oss-*'], ['Qwen3-*', 'QwQ-32B'])
    """
    names = [model for model, name in MODEL_TO_ENCODING.items() if name == encoding_name]
    begun = [
        prefix.rstrip("-")
        for prefix, name in MODEL_PREFIX_TO_ENCODING.items()
        if name == encoding_name and not prefix.startswith("ft:")
    ]
    more = [f"{prefix}-*" for prefix in begun if prefix not in names]
    return [*names, *more, *_QWEN_MODELS.get(encoding_name, [])]


def encoding_for_model(model_name: str) -> Encoding:
    """Returns the encoding that a model uses.

    Args:
        model_name: As in `encoding_name_for_model`.

    Raises:
        KeyError: As in `encoding_name_for_model`.

    >>> encoding_for_model("gpt-4").name
    'cl100k_base'
    """
    return get_encoding(encoding_name_for_model(model_name))
