"""Converts SentencePiece models to an equivalent ``tokenizer.json``, as far as possible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from bpe_engine.hf import Tokenizer
from bpe_engine.read.sources import Source

from ..text import few, plural, quoted, shorten
from . import gguf_file
from .battery import battery
from .definition import Definition
from .encoders import encoder
from .sentencepiece_model import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED

#: A score so low that no path contains the token.
_NEVER = -1e9

#: A number of spaces that no text has at its start.
_ALL = 1_000_000

#: Texts that SentencePiece and `tokenizers` treat differently.
TEXTS = (
    "    if x:\n        return 1\n",
    "  two  spaces   three ",
    "\ttabs\tand\n\nline ends\r\n",
    "\u3000wide\u3000spaces \u00a0 and \u2003 others\u200b",
    "ｶﾞｷﾞｸﾞ ﾊﾟﾋﾟ ﾃｽﾄ",
    "a\u0301e\u0301 e\u0323\u0301 \u1100\u1161\u11a8 ﬁ ① ㍿ ¨ ½ ㎏",
    "a" * 60,
    "la" * 30 + " " + "0" * 33 + " " + "-" * 17,
    "\u2581mark \u2581\u2581 marks",
    "\u2581\u2581 mark",
    "mark\u2581",
    " mark \u2581 ",
    "\u2581",
    "\U0001f600\U0001f9ff \ue000 𠮷",
    "<0x41>",
)


def holds(source: Source) -> bool:
    """Returns True for a SentencePiece ``.model``, and for a GGUF file of such a model."""
    if source.format == "gguf":
        return gguf_file.is_pieces(source.path)
    return source.format == "sentencepiece"


def load(source: Source) -> tuple[Tokenizer, dict[str, Any]]:
    """Reads a model; also returns its contents as JSON. Raises ValueError for a malformed file."""
    read = gguf_file.load_pieces if source.format == "gguf" else Tokenizer.from_sentencepiece
    tokenizer = read(source.path)
    contents: dict[str, Any] = json.loads(tokenizer.to_str())
    return tokenizer, contents


def reasons(contents: dict[str, Any]) -> list[str]:
    """Returns properties of a model that a ``tokenizer.json`` cannot express."""
    model, normalizer = contents["model"], contents["normalizer"]
    found = []
    if model["algorithm"] not in ("Unigram", "BPE"):
        found.append(f"no model of tokenizers is SentencePiece's {model['algorithm']}")
    if normalizer["treat_whitespace_as_suffix"] and normalizer["add_dummy_prefix"]:
        found.append("a mark after the text, which no step of tokenizers puts there")
    if UNUSED in model["kinds"]:
        found.append("pieces that are not used, which merging takes apart again")
    defined = normalizer["user_defined"]
    changes = normalizer["add_dummy_prefix"] or normalizer["remove_extra_whitespaces"]
    if defined and (changes or model["algorithm"] == "Unigram"):
        found.append(
            f"{plural(len(defined), 'user-defined piece')}, such as "
            f"{few([quoted(name) for name in defined], 2)}, inside text that is normalized as a whole"
        )
    return found


def convert(contents: dict[str, Any]) -> bytes:
    """Returns a model as a ``tokenizer.json``."""
    model, normalizer = contents["model"], contents["normalizer"]
    marked = " " if not normalizer["escape_whitespaces"] else "\u2581"
    names = [token for token, _ in model["vocab"]]
    special = [
        (id, names[id]) for id, kind in enumerate(model["kinds"]) if kind in (UNKNOWN, CONTROL)
    ]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": id, "content": name, "special": True, **flags} for id, name in special]
    added += [
        {"id": names.index(name), "content": name, "special": False, **flags}
        for name in normalizer["user_defined"]
    ]
    replace: dict[str, Any] = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    decoders: list[dict[str, Any]] = [replace, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if normalizer["add_dummy_prefix"] or normalizer["remove_extra_whitespaces"]:
        most = _ALL if normalizer["remove_extra_whitespaces"] else 1
        decoders.append({"type": "Strip", "content": " ", "start": most, "stop": 0})
    made = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(added, key=lambda token: int(token["id"])),
        "normalizer": {
            "type": "Sequence",
            "normalizers": list(_normalizers(normalizer, marked)),
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": _unigram(model) if model["algorithm"] == "Unigram" else _bpe(model),
    }
    return json.dumps(made, ensure_ascii=False, indent=2).encode()


def _normalizers(spec: dict[str, Any], mark: str) -> Iterator[dict[str, Any]]:
    if spec["precompiled_charsmap"]:
        yield {"type": "Precompiled", "precompiled_charsmap": spec["precompiled_charsmap"]}
    if spec["remove_extra_whitespaces"]:
        # At the end of the text, a literal mark is removed like a mark for a space.
        ends = f"[ {mark}]+" if mark != " " else " +"
        for pattern, content in ((f"\\A +|{ends}\\z", ""), (" {2,}", " ")):
            yield {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
    if spec["add_dummy_prefix"]:
        yield {"type": "Prepend", "prepend": mark}
    if mark != " ":
        yield {"type": "Replace", "pattern": {"String": " "}, "content": mark}


def _unigram(model: dict[str, Any]) -> dict[str, Any]:
    """Returns a Unigram model. Pieces that text never encodes to get a score so low that no path
    contains them."""
    hidden = (CONTROL, BYTE, UNKNOWN)
    rows = zip(model["vocab"], model["kinds"])
    return {
        "type": "Unigram",
        "unk_id": model["kinds"].index(UNKNOWN) if UNKNOWN in model["kinds"] else None,
        "vocab": [[name, _NEVER if kind in hidden else score] for (name, score), kind in rows],
        "byte_fallback": model["byte_fallback"],
    }


def _bpe(model: dict[str, Any]) -> dict[str, Any]:
    rows = list(zip(model["vocab"], model["kinds"]))
    normal = {name: score for (name, score), kind in rows if kind == NORMAL}
    merges = [
        [name[:cut], name[cut:]]
        for name in sorted(normal, key=lambda name: -normal[name])
        for cut in range(1, len(name))
        if name[:cut] in normal and name[cut:] in normal
    ]
    unknown = [name for (name, _), kind in rows if kind == UNKNOWN]
    return {
        "type": "BPE",
        "unk_token": unknown[0] if unknown else None,
        "fuse_unk": True,
        "byte_fallback": model["byte_fallback"],
        "vocab": {name: id for id, ((name, _), _) in enumerate(rows)},
        "merges": merges,
    }


def definition(contents: dict[str, Any]) -> Definition:
    """Returns the tokens of a model as a definition, for messages."""
    rows = list(zip(contents["model"]["vocab"], contents["model"]["kinds"]))
    spelled = {
        name.replace("\u2581", " ").encode(): id
        for id, ((name, _), kind) in enumerate(rows)
        if kind in (NORMAL, USER_DEFINED)
    }
    special = {name: id for id, ((name, _), kind) in enumerate(rows) if kind in (CONTROL, UNKNOWN)}
    notes = []
    if special:
        notes.append(
            f"{few([quoted(name) for name in special], 3)} in a text become special tokens in the "
            f"tokenizer.json, and never in SentencePiece"
        )
    if contents["model"]["algorithm"] == "Unigram":
        notes.append(
            "the sums of scores have double precision in tokenizers and single precision in "
            "SentencePiece: of paths that are nearly as good, each may take another"
        )
    return Definition(spelled, special, None, notes=notes)


def decoded_otherwise(
    tokenizer: Tokenizer, result: Tokenizer, definition: Definition, contents: dict[str, Any]
) -> str | None:
    """Describes the first ids that two tokenizers decode to different texts; None if they agree.

    Omits ids of unknown text, which a ``tokenizer.json`` decodes to the unknown token's name.

    Args:
        tokenizer: the tokenizer to convert.
        result: the tokenizer of the new file.
        definition: the tokens of the model.
        contents: the ``.model`` as JSON.
    """
    kinds = contents["model"]["kinds"]
    unknown = {id for id, kind in enumerate(kinds) if kind == UNKNOWN}
    encode = encoder(tokenizer)
    for block in probes(definition, ()):
        rows = [ids for ids in encode(block) if unknown.isdisjoint(ids)]
        decoded = zip(rows, tokenizer.decode_batch(rows, False), result.decode_batch(rows, False))
        for ids, one, two in decoded:
            if one != two:
                texts = [shorten(quoted(text)) for text in (one, two)]
                shown = few([str(id) for id in ids], 8)
                return f"ids {shown} become {texts[0]}, and would become {texts[1]}"
    return None


def probes(definition: Definition, more: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yields texts for a comparison in blocks; omits texts with names of special tokens."""
    names = list(definition.special_tokens)
    for block in battery(definition.tokens, (), [list(TEXTS), *more]):
        yield [text for text in block if not any(name in text for name in names)]
