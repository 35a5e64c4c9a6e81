"""Patterns, special tokens and tokenizer files of the encodings, and peers' names for them."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"

_O200K_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        + _O200K_SUFFIX,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        + _O200K_SUFFIX,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
# The pattern for a tokenizer.json. It has no possessive quantifiers, because the regex engine of
# tokenizers reads `{1,3}+` as a repeated group. It cuts whitespace at the end of a text
# differently; the correctness flag of each row shows any effect.
_CL100K_PLAIN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_END = "<|endoftext|>"
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")


@dataclass(frozen=True)
class EncodingSpec:
    """The parts that define an encoding, for engines that have no registry of encodings.

    ``gigatoken`` is that package's name for the pre-tokenization, ``splintr`` that package's name
    for the bundled vocabulary (None: not bundled). ``file`` is the user's tokenizer file, which
    takes the place of a built-in encoding.
    """

    name: str
    rank_file: str
    pattern: str
    special_tokens: dict[str, int]
    gigatoken: str
    splintr: str | None
    file: Path | None = None

    @property
    def ranks(self) -> Path:
        """The path of the rank file."""
        return DATA / self.rank_file


ENCODINGS = {
    spec.name: spec
    for spec in (
        EncodingSpec(
            "o200k_base", "o200k_base.tiktoken", _O200K,
            {_END: 199999, "<|endofprompt|>": 200018}, "o200k", "o200k_base",
        ),
        EncodingSpec(
            "cl100k_base", "cl100k_base.tiktoken", _CL100K,
            {_END: 100257, **dict(zip(_FIM, range(100258, 100261))), "<|endofprompt|>": 100276},
            "cl100k", "cl100k_base",
        ),
        EncodingSpec(
            "p50k_base", "p50k_base.tiktoken", _R50K, {_END: 50256}, "r50k", None
        ),
        EncodingSpec(
            "r50k_base", "r50k_base.tiktoken", _R50K, {_END: 50256}, "r50k", None
        ),
        EncodingSpec(
            "qwen", "qwen.tiktoken", _QWEN,
            {
                _END: 151643, "<|im_start|>": 151644, "<|im_end|>": 151645,
                **{f"<|extra_{n}|>": 151646 + n for n in range(205)},
            },
            "qwen2", None,
        ),
    )
}  # fmt: skip


#: Suffixes of tokenizer files.
FILES = (".json", ".model")


def spec_of(name: str) -> EncodingSpec:
    """Returns the declaration of the encoding ``name``, or of the tokenizer file at this path.

    Raises ValueError for other names.
    """
    if name.endswith(FILES):
        path = Path(name).resolve()
        if not path.exists():
            raise ValueError(f"No file {name!r}.")
        stem = path.name if path.suffix == ".model" else path.stem
        title = path.parent.name if path.stem == "tokenizer" else stem
        return EncodingSpec(title, "", "", {}, "", None, path)
    try:
        return ENCODINGS[name]
    except KeyError:
        raise ValueError(
            f"The benchmark does not know the encoding {name!r}; choose from {', '.join(ENCODINGS)}, "
            "or give a tokenizer.json or a .model."
        ) from None


def read_ranks(path: Path) -> dict[bytes, int]:
    """Reads the rank file ``path``: token to rank."""
    with open(path, "rb") as lines:
        fields = (line.split() for line in lines if line.strip())
        return {base64.b64decode(token): int(rank) for token, rank in fields}


def tokenizer_file(spec: EncodingSpec, folder: Path) -> Path:
    """Returns the path of a tokenizer.json for ``spec``; writes a built-in encoding's file once.

    The written files have the usual settings of published files.
    """
    if spec.file is not None:
        if spec.file.suffix != ".json":
            raise ValueError(f"{spec.file} is not a tokenizer.json.")
        return spec.file
    path = folder / f"{spec.name}.tokenizer.json"
    if path.exists():
        return path
    from vocab_tools import convert_tokenizer

    converted = convert_tokenizer(spec.name, str(path))
    document = json.loads(converted.contents[str(path)])
    document["model"]["ignore_merges"] = True
    if spec.name == "cl100k_base":
        document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = _CL100K_PLAIN
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(document), encoding="utf-8")
    partial.replace(path)
    return path
