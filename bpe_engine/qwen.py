"""The encoding of the first Qwen models: pattern, special tokens, normalization.

Text is brought into Unicode normalization form C before anything else is done with it, special
tokens included: U+212A, the Kelvin sign, is encoded as the letter K.
"""

from __future__ import annotations

from .patterns import QWEN as PATTERN

__all__ = ["NORMALIZATION", "PATTERN", "SPECIAL_TOKENS"]

NORMALIZATION = "NFC"

# 208 names, numbered on from the 151,643 ranks.
SPECIAL_TOKENS: dict[str, int] = {
    name: 151_643 + place
    for place, name in enumerate(
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(205)]
    )
}
