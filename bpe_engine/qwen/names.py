"""The encodings of the Qwen models: pattern, special tokens, normalization.

Three generations share ranks, pattern and normalization, and differ in their special tokens:
``qwen`` is that of Qwen-7B and its kin, ``qwen2.5`` that of Qwen2.5, and ``qwen3`` that of Qwen3
and QwQ. Text is brought into Unicode normalization form C before anything else is done with it,
special tokens included: U+212A, the Kelvin sign, is encoded as the letter K.
"""

from __future__ import annotations

from ..patterns import QWEN as PATTERN

__all__ = [
    "NORMALIZATION",
    "PATTERN",
    "QWEN2_5_SPECIAL_TOKENS",
    "QWEN3_SPECIAL_TOKENS",
    "SPECIAL_TOKENS",
]

NORMALIZATION = "NFC"

_CHAT = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def _numbered(names: list[str]) -> dict[str, int]:
    """Special tokens are numbered on from the 151,643 ranks."""
    return {name: 151_643 + place for place, name in enumerate(names)}


# 208 names.
SPECIAL_TOKENS = _numbered([*_CHAT, *(f"<|extra_{i}|>" for i in range(205))])

_QWEN2_5_NAMES = """
    <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> <|quad_start|> <|quad_end|>
    <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>
    <tool_call> </tool_call>
    <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>
""".split()

# 22 names, as in the tokenizer_config.json of Qwen2.5-7B-Instruct.
QWEN2_5_SPECIAL_TOKENS = _numbered(_CHAT + _QWEN2_5_NAMES)

# 26 names, as in the tokenizer_config.json of Qwen3-8B.
QWEN3_SPECIAL_TOKENS = _numbered(
    [*QWEN2_5_SPECIAL_TOKENS, "<tool_response>", "</tool_response>", "<think>", "</think>"]
)
