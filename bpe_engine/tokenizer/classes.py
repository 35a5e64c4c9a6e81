"""The classes of transformers: what each one takes where the files of a folder do not say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..hf.components import AddedToken
from .files import read_json

__all__ = ["BERT", "BUILDERS", "class_name", "defaults"]

Tokens = Mapping[str, "str | AddedToken"]


class _Class(NamedTuple):
    """The defaults of a class."""

    #: The special tokens by their roles.
    tokens: Tokens
    #: The inputs of the model.
    input_names: tuple[str, ...] = ("input_ids", "attention_mask")
    padding_side: str = "right"
    #: Special tokens without a role.
    extra: tuple[str, ...] = ()


_SPACED = AddedToken("<mask>", lstrip=True, special=True)
_TYPED = ("input_ids", "token_type_ids", "attention_mask")
_END = "<|endoftext|>"
_ENDS: Tokens = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>"}
_BERT: Tokens = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_ROBERTA: Tokens = {
    **_ENDS,
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_ALBERT: Tokens = {
    **_BERT,
    "bos_token": "[CLS]",
    "eos_token": "[SEP]",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}
_T5: Tokens = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
_GPT2: Tokens = {"unk_token": _END, "bos_token": _END, "eos_token": _END}

_CLASSES: dict[str, _Class] = {
    "AlbertTokenizer": _Class(_ALBERT),
    "BarthezTokenizer": _Class({**_ROBERTA, "mask_token": _SPACED}),
    "BertTokenizer": _Class(_BERT, _TYPED),
    "CLIPTokenizer": _Class({**_GPT2, "bos_token": "<|startoftext|>", "pad_token": _END}),
    "CamembertTokenizer": _Class(
        {**_ROBERTA, "mask_token": _SPACED},
        extra=("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"),
    ),
    "DebertaV2Tokenizer": _Class(
        {**_BERT, "bos_token": "[CLS]", "eos_token": "[SEP]"},
        ("input_ids", "attention_mask", "token_type_ids"),
    ),
    "DistilBertTokenizer": _Class(_BERT),
    "FNetTokenizer": _Class(_ALBERT, ("input_ids", "token_type_ids")),
    "FunnelTokenizer": _Class(
        {
            **_ROBERTA,
            "sep_token": "<sep>",
            "cls_token": "<cls>",
        }
    ),
    "GPT2Tokenizer": _Class(_GPT2),
    "MarianTokenizer": _Class(_T5),
    "MPNetTokenizer": _Class({**_ROBERTA, "unk_token": "[UNK]", "mask_token": _SPACED}),
    "OpenAIGPTTokenizer": _Class({"unk_token": "<unk>"}),
    "PegasusTokenizer": _Class(
        {**_T5, "mask_token": "<mask_2>"},
        extra=("<mask_1>", *(f"<unk_{number}>" for number in range(2, 103))),
    ),
    "Qwen2Tokenizer": _Class({"unk_token": _END, "eos_token": _END, "pad_token": _END}),
    "RemBertTokenizer": _Class(_ALBERT),
    "RobertaTokenizer": _Class(_ROBERTA),
    "T5Tokenizer": _Class(_T5, extra=tuple(f"<extra_id_{number}>" for number in range(100))),
    "XLMRobertaTokenizer": _Class(_ROBERTA),
    "XLNetTokenizer": _Class(
        {
            **_ROBERTA,
            "sep_token": "<sep>",
            "cls_token": "<cls>",
            "mask_token": _SPACED,
        },
        padding_side="left",
        extra=("<eop>", "<eod>"),
    ),
}
# Classes that are others under one more name.
_SAME = {
    **dict.fromkeys(
        (
            "ConvBertTokenizer",
            "DPRContextEncoderTokenizer",
            "DPRQuestionEncoderTokenizer",
            "ElectraTokenizer",
            "LayoutLMTokenizer",
            "LxmertTokenizer",
            "MobileBertTokenizer",
            "SqueezeBertTokenizer",
        ),
        "BertTokenizer",
    ),
    **dict.fromkeys(
        ("BartTokenizer", "LEDTokenizer", "LongformerTokenizer", "MvpTokenizer"),
        "RobertaTokenizer",
    ),
}

#: The classes that set BERT's normalizer by the configuration.
BERT = frozenset(name for name, known in _CLASSES.items() if known.tokens is _BERT) | {
    "FunnelTokenizer",
    "MPNetTokenizer",
}

#: The classes that take the vocabulary of a ``tokenizer.json`` and make the model themselves.
BUILDERS = frozenset(_CLASSES) - {"FNetTokenizer", "MarianTokenizer"}

# The class of a model, for a folder that names no class.
_OF_MODELS = {
    "albert": "AlbertTokenizer",
    "bart": "RobertaTokenizer",
    "barthez": "BarthezTokenizer",
    "bert": "BertTokenizer",
    "camembert": "CamembertTokenizer",
    "clip": "CLIPTokenizer",
    "convbert": "BertTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "distilbert": "BertTokenizer",
    "electra": "BertTokenizer",
    "fnet": "FNetTokenizer",
    "funnel": "FunnelTokenizer",
    "gpt2": "GPT2Tokenizer",
    "layoutlm": "BertTokenizer",
    "longformer": "RobertaTokenizer",
    "mobilebert": "BertTokenizer",
    "marian": "MarianTokenizer",
    "mpnet": "MPNetTokenizer",
    "mt5": "T5Tokenizer",
    "nomic_bert": "BertTokenizer",
    "openai-gpt": "OpenAIGPTTokenizer",
    "pegasus": "PegasusTokenizer",
    "rembert": "RemBertTokenizer",
    "roberta": "RobertaTokenizer",
    "squeezebert": "BertTokenizer",
    "t5": "T5Tokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "xlnet": "XLNetTokenizer",
}


def class_name(path: Path, config: Mapping[str, Any]) -> str | None:
    """Returns the class of a folder, without ``Fast``, from ``tokenizer_config.json`` or ``config.json``,
    or else for its type of model; None where no file says.

    Raises:
        ValueError: ``config.json`` does not hold a JSON object.
    """
    name = config.get("tokenizer_class")
    if not name:
        model = read_json(path / "config.json")
        name = model.get("tokenizer_class") or _OF_MODELS.get(str(model.get("model_type")))
    name = str(name).removesuffix("Fast") if name else None
    return _SAME.get(name, name) if name else None


def defaults(name: str | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `Tokenizer` that a class takes if no file says otherwise. A role that
    is null in the configuration has no token.

    >>> defaults("XLNetTokenizer", {})["padding_side"], defaults("LlamaTokenizer", {})
    ('left', {})
    """
    known = _CLASSES.get(name or "")
    if known is None:
        return {}
    taken: dict[str, Any] = {**known.tokens, "model_input_names": list(known.input_names)}
    if known.padding_side != "right":
        taken["padding_side"] = known.padding_side
    if known.extra:
        taken["extra_special_tokens"] = list(known.extra)
    return {field: value for field, value in taken.items() if config.get(field, value) is not None}
