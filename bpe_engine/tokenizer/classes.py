"""The tokenizer classes of transformers, with their defaults for settings that a folder lacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..hf.components import AddedToken
from .files import TOKENIZER, read_json

__all__ = ["BERT", "BUILDERS", "FILE_CLASS", "check_known", "class_name", "defaults"]

Tokens = Mapping[str, "str | AddedToken"]


class _Class(NamedTuple):
    #: Special tokens by role.
    tokens: Tokens
    #: Inputs of the model.
    input_names: tuple[str, ...] = ("input_ids", "attention_mask")
    padding_side: str = "right"
    #: Special tokens that have no role.
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
_ROBERTA: Tokens = {**_ENDS, "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
_ALBERT: Tokens = {
    **_BERT,
    "bos_token": "[CLS]",
    "eos_token": "[SEP]",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}
_T5: Tokens = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
_CLS: Tokens = {"sep_token": "[SEP]", "cls_token": "[CLS]"}
_LLAMA: Tokens = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
_GEMMA: Tokens = {
    "unk_token": "<unk>",
    "bos_token": "<bos>",
    "eos_token": "<eos>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_GPT2: Tokens = {"unk_token": _END, "bos_token": _END, "eos_token": _END}

_CLASSES: dict[str, _Class] = {
    "AlbertTokenizer": _Class(_ALBERT),
    "BarthezTokenizer": _Class({**_ROBERTA, "mask_token": _SPACED}),
    "BertTokenizer": _Class(_BERT, _TYPED),
    "BigBirdTokenizer": _Class(
        {**_ROBERTA, **_CLS, "mask_token": AddedToken("[MASK]", lstrip=True, special=True)}
    ),
    "BlenderbotTokenizer": _Class({**_ROBERTA, "mask_token": _SPACED}),
    "CLIPTokenizer": _Class({**_GPT2, "bos_token": "<|startoftext|>", "pad_token": _END}),
    "CodeLlamaTokenizer": _Class(
        {
            **_LLAMA,
            "prefix_token": "▁<PRE>",
            "middle_token": "▁<MID>",
            "suffix_token": "▁<SUF>",
            "eot_token": "▁<EOT>",
            "fill_token": "<FILL_ME>",
        },
        padding_side="left",
        extra=("▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>", "<FILL_ME>"),
    ),
    "CohereTokenizer": _Class(
        {
            "unk_token": "<UNK>",
            "bos_token": "<BOS_TOKEN>",
            "eos_token": "<|END_OF_TURN_TOKEN|>",
            "pad_token": "<PAD>",
            "cls_token": "<CLS>",
            "sep_token": "<SEP>",
            "mask_token": "<MASK_TOKEN>",
        },
        padding_side="left",
    ),
    "CamembertTokenizer": _Class(
        {**_ROBERTA, "mask_token": _SPACED}, extra=("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED")
    ),
    "DebertaTokenizer": _Class(
        {
            **_BERT,
            "bos_token": "[CLS]",
            "eos_token": "[SEP]",
            "mask_token": AddedToken("[MASK]", lstrip=True, special=True),
        },
        ("input_ids", "attention_mask", "token_type_ids"),
    ),
    "DebertaV2Tokenizer": _Class(
        {**_BERT, "bos_token": "[CLS]", "eos_token": "[SEP]"},
        ("input_ids", "attention_mask", "token_type_ids"),
    ),
    "ConvBertTokenizer": _Class(_BERT, _TYPED),
    "DPRContextEncoderTokenizer": _Class(_BERT, _TYPED),
    "DPRQuestionEncoderTokenizer": _Class(_BERT, _TYPED),
    "DistilBertTokenizer": _Class(_BERT),
    "FNetTokenizer": _Class(_ALBERT, ("input_ids", "token_type_ids")),
    "FunnelTokenizer": _Class({**_ROBERTA, "sep_token": "<sep>", "cls_token": "<cls>"}),
    "GPT2Tokenizer": _Class(_GPT2),
    "GPTNeoXTokenizer": _Class({**_GPT2, "pad_token": "<|padding|>"}),
    "GemmaTokenizer": _Class(_GEMMA, padding_side="left"),
    "HerbertTokenizer": _Class(
        {
            role: _ROBERTA[role]
            for role in ("cls_token", "unk_token", "pad_token", "mask_token", "sep_token")
        }
    ),
    "LlamaTokenizer": _Class(_LLAMA, padding_side="left"),
    "MPNetTokenizer": _Class({**_ROBERTA, "unk_token": "[UNK]", "mask_token": _SPACED}),
    "NougatTokenizer": _Class({**_T5, "bos_token": "<s>"}),
    "OpenAIGPTTokenizer": _Class({"unk_token": "<unk>"}),
    "PegasusTokenizer": _Class(
        {**_T5, "mask_token": "<mask_2>"},
        extra=("<mask_1>", *(f"<unk_{number}>" for number in range(2, 103))),
    ),
    "Qwen2Tokenizer": _Class({"unk_token": _END, "eos_token": _END, "pad_token": _END}),
    "Qwen3_5Tokenizer": _Class({"unk_token": _END, "eos_token": _END, "pad_token": _END}),
    "ReformerTokenizer": _Class({"eos_token": "</s>", "unk_token": "<unk>"}),
    "RemBertTokenizer": _Class(_ALBERT),
    "RobertaTokenizer": _Class(_ROBERTA),
    "Siglip2Tokenizer": _Class(_GEMMA, padding_side="left"),
    "SplinterTokenizer": _Class({**_BERT, "question_token": "[QUESTION]"}),
    "T5Tokenizer": _Class(_T5, extra=tuple(f"<extra_id_{number}>" for number in range(100))),
    "WhisperTokenizer": _Class(_GPT2),
    "XGLMTokenizer": _Class(
        {role: token for role, token in _ROBERTA.items() if role != "mask_token"},
        extra=tuple(f"<madeupword{number}>" for number in range(7)),
    ),
    "XLMRobertaTokenizer": _Class(_ROBERTA),
    "XLNetTokenizer": _Class(
        {**_ROBERTA, "sep_token": "<sep>", "cls_token": "<cls>", "mask_token": _SPACED},
        padding_side="left",
        extra=("<eop>", "<eod>"),
    ),
}
# Aliases of classes.
_SAME = {
    **dict.fromkeys(
        """ElectraTokenizer LayoutLMTokenizer LxmertTokenizer MobileBertTokenizer
        SqueezeBertTokenizer""".split(),
        "BertTokenizer",
    ),
    **dict.fromkeys(
        "BartTokenizer LEDTokenizer LongformerTokenizer MvpTokenizer".split(), "RobertaTokenizer"
    ),
}

#: Classes that set BERT's normalizer from the configuration.
BERT = frozenset(name for name, known in _CLASSES.items() if known.tokens is _BERT) | {
    "FunnelTokenizer",
    "MPNetTokenizer",
}

#: Classes that take only the vocabulary of a ``tokenizer.json`` and build the model themselves.
BUILDERS = frozenset(_CLASSES) - {
    "ConvBertTokenizer",
    "DPRContextEncoderTokenizer",
    "DPRQuestionEncoderTokenizer",
    "FNetTokenizer",
}

#: Classes that a Tokenizer does not reproduce, with their extra behavior.
_REFUSED = {
    **dict.fromkeys(
        """LayoutLMv2Tokenizer LayoutLMv3Tokenizer LayoutXLMTokenizer MarkupLMTokenizer TapasTokenizer
        UdopTokenizer""".split(),
        "takes words with their positions on a page",
    ),
    **dict.fromkeys(
        """M2M100Tokenizer MBart50Tokenizer MBartTokenizer MarianTokenizer NllbTokenizer PLBartTokenizer
        SeamlessM4TTokenizer""".split(),
        "puts the language of a translation around each text",
    ),
    **dict.fromkeys(
        ("LukeTokenizer", "MLukeTokenizer"), "takes the spans of entities in each text"
    ),
    **dict.fromkeys(
        """BartphoTokenizer BertGenerationTokenizer BertJapaneseTokenizer BertweetTokenizer
        BioGptTokenizer BlenderbotSmallTokenizer ByT5Tokenizer CTRLTokenizer CanineTokenizer
        ClvpTokenizer CpmAntTokenizer CpmTokenizer DiaTokenizer EsmTokenizer FSMTTokenizer
        FastSpeech2ConformerTokenizer FlaubertTokenizer GPTNeoXJapaneseTokenizer GPTSw3Tokenizer
        MgpstrTokenizer MyT5Tokenizer PerceiverTokenizer PhobertTokenizer ProphetNetTokenizer
        RoCBertTokenizer RoFormerTokenizer SiglipTokenizer Speech2TextTokenizer SpeechT5Tokenizer
        VitsTokenizer Wav2Vec2CTCTokenizer Wav2Vec2PhonemeCTCTokenizer XLMTokenizer""".split(),
        "splits texts in Python",
    ),
}
# Model types for which transformers 5.24 reads ``tokenizer.json`` and ignores the named class.
_BY_FILE = frozenset(
    """EvollaModel arctic aria beam bigbird_pegasus canary chatlm cohere_asr ernie4_5 ernie4_5_moe
    flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image glmasr got_ocr2 gpt_bigcode
    gradium_phonon_tts granite granitemoe granitemoehybrid granitemoeshared h2ovl_chat hyperclovax
    hyperclovax_vlm internlm2 internlm3 iquestcoder jamba kimi_k25 kimi_linear kosmos-2 llava llava_next
    mimo_v2_flash minicpm3 minicpm_ocr minicpmv minicpmv4_6 minicpmv4_7 minimax_m2 ministral ministral3
    mistral mistral3 mistral_large4 mixtral modernbert modernbert-decoder molmo molmo2 nemo_speechlm
    nemotron nvfp4 nystromformer olmo2 olmo3 olmo_hybrid omniasr opencua openvla paddleocr_vl pegasus_x
    persimmon phi3 phi3_v phimoe pix2struct pixtral pocket_tts smolvlm stablelm step3_vl umt5 vipllava
    voxtral voxtral_realtime xlm-roberta-xl""".split()
)
#: The class that follows ``tokenizer.json``.
FILE_CLASS = "PreTrainedTokenizerFast"

_AS_IT_IS = (
    ", or bpe_engine.hf.Tokenizer.from_pretrained, which encodes texts as tokenizer.json alone says"
)

# The class of a model, for a folder that names no class.
_OF_MODELS = {
    model: f"{name}Tokenizer"
    for model, name in (
        pair.split(":")
        for pair in """albert:Albert bart:Roberta barthez:Barthez bartpho:Bartpho bert:Bert
        bert-generation:BertGeneration big_bird:BigBird biogpt:BioGpt blenderbot:Blenderbot
        blenderbot-small:BlenderbotSmall byt5:ByT5 camembert:Camembert canine:Canine clip:CLIP
        clvp:Clvp cohere:Cohere cohere2:Cohere convbert:Bert cpm:Cpm cpmant:CpmAnt ctrl:CTRL
        deberta:Deberta deberta-v2:DebertaV2 dia:Dia distilbert:Bert dpr:DPRQuestionEncoder
        electra:Bert esm:Esm flaubert:Flaubert fnet:FNet fsmt:FSMT funnel:Funnel gemma:Gemma
        gemma2:Gemma gemma3:Gemma gemma3_text:Gemma gpt-sw3:GPTSw3 gpt2:GPT2 gpt_neox:GPTNeoX
        gpt_neox_japanese:GPTNeoXJapanese herbert:Herbert layoutlm:Bert layoutlmv2:LayoutLMv2
        layoutlmv3:LayoutLMv3 layoutxlm:LayoutXLM longformer:Roberta luke:Luke m2m_100:M2M100
        marian:Marian markuplm:MarkupLM mbart:MBart mbart50:MBart50 mgp-str:Mgpstr mluke:MLuke
        mobilebert:Bert mpnet:MPNet mt5:T5 myt5:MyT5 nllb:Nllb nllb-moe:Nllb nomic_bert:Bert
        olmo:GPTNeoX openai-gpt:OpenAIGPT pegasus:Pegasus perceiver:Perceiver phobert:Phobert
        plbart:PLBart prophetnet:ProphetNet qwen2:Qwen2 qwen3:Qwen2 reformer:Reformer
        rembert:RemBert roberta:Roberta roc_bert:RoCBert roformer:RoFormer seamless_m4t:SeamlessM4T
        seamless_m4t_v2:SeamlessM4T siglip:Siglip siglip2:Siglip2 speech_to_text:Speech2Text
        speecht5:SpeechT5 splinter:Splinter squeezebert:Bert t5:T5 tapas:Tapas udop:Udop vits:Vits
        wav2vec2:Wav2Vec2CTC whisper:Whisper xglm:XGLM xlm:XLM xlm-roberta:XLMRoberta xlnet:XLNet""".split()
    )
}


def class_name(path: Path, config: Mapping[str, Any]) -> str | None:
    """Returns the class of a folder, without ``Fast``, from ``tokenizer_config.json`` or
    ``config.json``, or else by model type; None if unspecified.

    Raises:
        ValueError: ``config.json`` is not a JSON object.
    """
    name = config.get("tokenizer_class")
    model = read_json(path / "config.json")
    if name and model.get("model_type") in _BY_FILE and (path / TOKENIZER).is_file():
        return FILE_CLASS
    if not name:
        name = model.get("tokenizer_class") or _OF_MODELS.get(str(model.get("model_type")))
    name = str(name).removesuffix("Fast") if name else None
    return _SAME.get(name, name) if name else None


def check_known(name: str | None, path: Path) -> None:
    """Raises ValueError for a class with behavior beyond the folder's files."""
    if name in _REFUSED:
        raise ValueError(
            f"{path}: {name} {_REFUSED[name]}, which a Tokenizer does not; use "
            f"transformers.AutoTokenizer{_AS_IT_IS if (path / TOKENIZER).is_file() else ''}"
        )


def defaults(name: str | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the default arguments of `Tokenizer` for a class. A role that is null in the
    configuration has no token.

    >>> defaults("XLNetTokenizer", {})["padding_side"], defaults("SomeTokenizer", {})
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
