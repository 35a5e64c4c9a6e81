"""Reads vocabularies from files other than ``tokenizer.json``: rank files, SentencePiece models,
vocab.json with merges.txt, and vocab.txt."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import patterns
from ..core import Encoding
from ..hf.components import AddedToken
from ..hf.decoders import WordPiece as WordPieceDecoder
from ..hf.models import WordPiece
from ..hf.normalizers import BertNormalizer
from ..hf.pre_tokenizers import BertPreTokenizer
from ..hf.processors import RobertaProcessing, TemplateProcessing
from ..hf.tokenizers import Tokenizer as FileTokenizer
from ..load import load_encoding
from ..read.builtin import BUILTIN, RANK_FILE_SHA256
from ..read.gpt2_files import read_merges, read_vocab
from .classes import BERT
from .special import ROLES, content_of, plain_token

__all__ = [
    "BERT_OPTIONS",
    "add_roles",
    "id_of",
    "of_merges",
    "of_pieces",
    "of_ranks",
    "of_words",
    "put_typed",
    "set_bert_normalizer",
]

#: Configuration fields that set BERT's normalizer.
BERT_OPTIONS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")

# transformers' pattern for every ``tokenizer.model`` in tiktoken's format.
_TIKTOKEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def of_ranks(
    path: Path, pattern: str | None, added: Mapping[int, AddedToken], extra: Any
) -> Encoding:
    """Reads the encoding of a rank file.

    Ids between the special tokens of the configuration are reserved, as in transformers. Extra
    tokens come after them.

    Raises:
        ValueError: The file is not a rank file, or its pattern is unknown.
    """
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    published = next((name for name, sha in RANK_FILE_SHA256.items() if sha == digest), None)
    normalization = None
    if pattern is None and published is not None:
        known = next(known for known in BUILTIN.values() if known.vocabulary == published)
        pattern, normalization = known.name, known.normalization
    elif pattern is None and path.name == "tokenizer.model":
        pattern = _TIKTOKEN_PATTERN
    elif pattern is None:
        raise ValueError(
            f"the pattern of {path} is not known; pass pattern=, the name of an encoding with the "
            "same pattern, or a regular expression"
        )
    special = _special_tokens(load_encoding(path, pattern, {}).n_vocab, added, extra)
    return load_encoding(path, pattern, special, normalization=normalization)


def _special_tokens(first: int, added: Mapping[int, AddedToken], extra: Any) -> dict[str, int]:
    names = {id: token.content for id, token in added.items() if id >= first}
    last = max(names, default=first - 1)
    if last - first > 1_000_000:
        raise ValueError(f"the id {last} of an added token is far beyond the {first} ranks")
    special = {names.get(id, f"<|reserved_token_{id}|>"): id for id in range(first, last + 1)}
    for token in map(content_of, extra or ()):
        special.setdefault(token, first + len(special))
    return special


#: Flags for bos and eos in transformers classes that add tokens around a text.
_AROUND = {
    "CodeLlamaTokenizer": (True, False),
    "GemmaTokenizer": (True, False),
    "LlamaTokenizer": (True, False),
    "T5Tokenizer": (False, True),
}
#: Usual names of roles in a SentencePiece model.
_PIECES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def of_pieces(
    path: str, name: str, added: Mapping[int, AddedToken], settings: dict[str, Any]
) -> FileTokenizer:
    """Reads a SentencePiece model.

    Special tokens in a text are recognized, as in transformers. Unnamed roles get the pieces with
    the usual names.

    Args:
        path: The file.
        name: The transformers class.
        added: The added tokens of the configuration by id.
        settings: The arguments of `Tokenizer`, extended by the settings that the class determines.

    Raises:
        ValueError: The file is malformed.
    """
    tokenizer = FileTokenizer.from_sentencepiece(path)
    tokenizer.add_tokens(list(added.values()))
    tokenizer.encode_special_tokens = False
    for role, piece in _PIECES.items():
        if tokenizer.token_to_id(piece) is not None:
            settings.setdefault(role, piece)
    bos, eos = _AROUND.get(name.removesuffix("Fast"), (False, False))
    settings.setdefault("add_bos_token", bos)
    settings.setdefault("add_eos_token", eos)
    return tokenizer


def of_merges(
    path: Path,
    name: str,
    config: Mapping[str, Any],
    added: Mapping[int, AddedToken],
    settings: Mapping[str, Any],
) -> FileTokenizer:
    """Reads vocab.json and merges.txt.

    Args:
        path: The folder.
        name: The transformers class for the folder.
        config: The configuration of the folder.
        added: The added tokens by id.
        settings: The arguments of `Tokenizer`, with the special tokens.

    Raises:
        ValueError: The class is unknown, or a file is malformed.
    """
    if name not in _PARTS:
        raise ValueError(
            f"the pattern of {name} is unknown; a folder with vocab.json and merges.txt must be of "
            f"the class {', '.join(_PARTS)}. Let transformers save a tokenizer.json instead"
        )
    vocab, merges = read_vocab(path / "vocab.json"), read_merges(path / "merges.txt")
    model = {"type": "BPE", "vocab": vocab, "merges": merges}
    if name in ("CLIPTokenizer", "OpenAIGPTTokenizer"):
        unknown = content_of(settings["unk_token"])
        model |= {"end_of_word_suffix": "</w>", "unk_token": unknown}
    tokenizer = FileTokenizer(json.dumps({**_PARTS[name](config), "model": model}))
    tokenizer.add_tokens(list(added.values()))
    if name == "RobertaTokenizer":
        flags = {
            "trim_offsets": bool(config.get("trim_offsets", True)),
            "add_prefix_space": bool(config.get("add_prefix_space", False)),
        }
        _put_around(tokenizer, settings, "cls_token", "sep_token", **flags)
    elif name == "CLIPTokenizer":
        flags = {"trim_offsets": False, "add_prefix_space": False}
        _put_around(tokenizer, settings, "bos_token", "eos_token", **flags)
    return tokenizer


def _byte_level(config: Mapping[str, Any], use_regex: bool = True) -> dict[str, Any]:
    level = {
        "type": "ByteLevel",
        "add_prefix_space": bool(config.get("add_prefix_space", False)),
        "trim_offsets": True,
        "use_regex": use_regex,
    }
    return {"pre_tokenizer": level, "decoder": level}


def _split_first(pattern: str, level: dict[str, Any], **options: Any) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", **options}
    steps = [{"invert": False, **split}, level]
    return {"type": "Sequence", "pretokenizers": steps}


def _of_qwen(config: Mapping[str, Any]) -> dict[str, Any]:
    parts = _byte_level(config, use_regex=False)
    splits = _split_first(patterns.QWEN, parts["pre_tokenizer"])
    return {**parts, "pre_tokenizer": splits, "normalizer": {"type": "NFC"}}


_CLIP_PATTERN = (
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
)


def _of_clip(config: Mapping[str, Any]) -> dict[str, Any]:
    parts = _byte_level({})
    splits = _split_first(_CLIP_PATTERN, parts["pre_tokenizer"], behavior="Removed", invert=True)
    spaces = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}
    steps = [{"type": "NFC"}, spaces, {"type": "Lowercase"}]
    normalizer = {"type": "Sequence", "normalizers": steps}
    return {**parts, "pre_tokenizer": splits, "normalizer": normalizer}


def _of_gpt1(config: Mapping[str, Any]) -> dict[str, Any]:
    bert = BertNormalizer()
    return {
        "normalizer": json.loads(bert._spec),
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
    }


# Components of each class.
_PARTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "GPT2Tokenizer": _byte_level,
    "RobertaTokenizer": _byte_level,
    "Qwen2Tokenizer": _of_qwen,
    "CLIPTokenizer": _of_clip,
    "OpenAIGPTTokenizer": _of_gpt1,
}


def of_words(
    path: str | os.PathLike[str],
    name: str,
    config: Mapping[str, Any],
    added: Mapping[int, AddedToken],
    settings: Mapping[str, Any],
) -> FileTokenizer:
    """Reads a vocab.txt. The arguments are as in `of_merges`, except for `path`.

    Raises:
        ValueError: The class is unknown, or the file is malformed.
    """
    if name not in BERT:
        raise ValueError(
            f"how {name} reads {os.fspath(path)} is unknown; a folder with a vocab.txt must be of "
            f"the class {', '.join(sorted(BERT))}. Let transformers save a tokenizer.json instead"
        )
    unknown = content_of(settings["unk_token"])
    tokenizer = FileTokenizer(WordPiece.from_file(path, unk_token=unknown))
    tokenizer.add_tokens(list(added.values()))
    tokenizer.normalizer = BertNormalizer()
    set_bert_normalizer(tokenizer, config)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder()
    if name == "MPNetTokenizer":
        _put_around(tokenizer, settings, "cls_token", "sep_token", add_prefix_space=False)
        return tokenizer
    put_typed(tokenizer, settings, 2 if name == "FunnelTokenizer" else 0)
    return tokenizer


def put_typed(tokenizer: FileTokenizer, settings: Mapping[str, Any], first_type: int = 0) -> None:
    """Adds the special tokens, and BERT's post-processor: ``[CLS] A [SEP] B [SEP]``."""
    add_roles(tokenizer, settings)
    cls, sep = (_content_of_role(settings, role) for role in ("cls_token", "sep_token"))
    first = f"{cls}:{first_type}"
    tokenizer.post_processor = TemplateProcessing(
        [first, "$A:0", f"{sep}:0"],
        [first, "$A:0", f"{sep}:0", "$B:1", f"{sep}:1"],
        [(token, id_of(tokenizer, token)) for token in (cls, sep)],
    )


def set_bert_normalizer(tokenizer: FileTokenizer, config: Mapping[str, Any]) -> None:
    """Sets the fields of BERT's normalizer, if the tokenizer has it, as BERT's classes do."""
    normalizer: Any = tokenizer.normalizer
    if not isinstance(normalizer, BertNormalizer):
        return
    lowercase, accents, chinese = map(config.get, BERT_OPTIONS, (True, None, True))
    wanted = {
        "lowercase": bool(lowercase),
        "strip_accents": None if accents is None else bool(accents),
        "handle_chinese_chars": bool(chinese),
    }
    for field, value in wanted.items():
        if getattr(normalizer, field) != value:
            setattr(normalizer, field, value)


def add_roles(tokenizer: FileTokenizer, settings: Mapping[str, Any]) -> None:
    """Adds the special tokens that have roles."""
    given = [settings[role] for role in ROLES if settings.get(role) is not None]
    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    tokens = [plain_token(token, True) for token in given if content_of(token) not in known]
    tokenizer.add_tokens(tokens)


def _content_of_role(settings: Mapping[str, Any], role: str) -> str:
    if settings.get(role) is None:
        raise ValueError(
            f"tokenizer_config.json has no {role}, which this class puts around each text"
        )
    return content_of(settings[role])


def id_of(tokenizer: FileTokenizer, token: str) -> int:
    """Returns the id of a token that the tokenizer has."""
    id = tokenizer.token_to_id(token)
    assert id is not None  # The token was added, so it has an id.
    return id


def _put_around(
    tokenizer: FileTokenizer, settings: Mapping[str, Any], first: str, last: str, **flags: bool
) -> None:
    """Adds the special tokens, and RoBERTa's post-processor: ``<s> A </s></s> B </s>``."""
    add_roles(tokenizer, settings)
    cls, sep = (_content_of_role(settings, role) for role in (first, last))
    tokenizer.post_processor = RobertaProcessing(
        (sep, id_of(tokenizer, sep)), (cls, id_of(tokenizer, cls)), **flags
    )
