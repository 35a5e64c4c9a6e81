"""Replaces tiktoken's plugin `tiktoken_ext.openai_public` if tiktoken is not installed.

Each constructor returns the arguments of `Encoding`, without network access.
"""

from __future__ import annotations

from .. import patterns
from ..read.builtin import BUILTIN

ENDOFTEXT = "<|endoftext|>"
FIM_PREFIX = "<|fim_prefix|>"
FIM_MIDDLE = "<|fim_middle|>"
FIM_SUFFIX = "<|fim_suffix|>"
ENDOFPROMPT = "<|endofprompt|>"

r50k_pat_str = patterns.R50K

gpt2 = BUILTIN["gpt2"]
r50k_base = BUILTIN["r50k_base"]
p50k_base = BUILTIN["p50k_base"]
p50k_edit = BUILTIN["p50k_edit"]
cl100k_base = BUILTIN["cl100k_base"]
o200k_base = BUILTIN["o200k_base"]
o200k_harmony = BUILTIN["o200k_harmony"]

ENCODING_CONSTRUCTORS = {
    constructor.name: constructor
    for constructor in (
        gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base, o200k_base, o200k_harmony
    )
}  # fmt: skip
