"""Makes tiktoken's encodings from the rank files in data/, without network access."""

from __future__ import annotations

import base64
import functools
import pathlib
import unicodedata

import tiktoken
from tiktoken_ext import openai_public

# The encodings of the package, except later generations of Qwen: these have qwen's ranks and
# pattern, and test_qwen compares their special tokens with tiktoken and tokenizers.
ENCODINGS = [*openai_public.ENCODING_CONSTRUCTORS, "qwen"]

DATA = pathlib.Path(__file__).parents[2] / "data"

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [
    f"<|extra_{i}|>" for i in range(205)
]


@functools.cache
def ranks(file: str) -> dict[bytes, int]:
    """Reads a rank file in data/ with plain Python."""
    lines = (DATA / f"{file}.tiktoken").read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


def _load(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    return ranks(url.rsplit("/", 1)[1].removesuffix(".tiktoken"))


@functools.cache
def oracle(name: str) -> tiktoken.Encoding:
    """Returns tiktoken's encoding with this name."""
    if name == "qwen":
        special = {text: 151_643 + i for i, text in enumerate(QWEN_SPECIAL)}
        return tiktoken.Encoding(
            name, pat_str=QWEN_PATTERN, mergeable_ranks=ranks(name), special_tokens=special
        )
    saved = openai_public.load_tiktoken_bpe, openai_public.data_gym_to_mergeable_bpe_ranks
    openai_public.load_tiktoken_bpe = _load
    openai_public.data_gym_to_mergeable_bpe_ranks = lambda **_: ranks("r50k_base")
    try:
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    finally:
        openai_public.load_tiktoken_bpe, openai_public.data_gym_to_mergeable_bpe_ranks = saved


def repaired(text: str) -> str:
    """Repairs surrogates as all methods of the engine do."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def normalized(name: str, text: str) -> str:
    """Returns a text as the encoding normalizes it."""
    text = repaired(text)
    return unicodedata.normalize("NFC", text) if name == "qwen" else text
