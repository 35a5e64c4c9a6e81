"""Post-processors: the step of a tokenizer that adds special tokens.

>>> from bpe_engine.hf import processors
>>> processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101)).num_special_tokens_to_add(is_pair=True)
3
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Sequence_
from typing import Any

from .._core import HfEncoding, hf_added_tokens, hf_process
from . import fields
from .component import Component

__all__ = [
    "BertProcessing",
    "ByteLevel",
    "PostProcessor",
    "RobertaProcessing",
    "Sequence",
    "TemplateProcessing",
]


class PostProcessor(Component):
    """The base class of all post-processors."""

    _kind = "post_processor"

    def process(
        self, encoding: HfEncoding, pair: HfEncoding | None = None, add_special_tokens: bool = True
    ) -> HfEncoding:
        """Post-processes the encoding of one sequence, or of two."""
        return hf_process(self._spec, encoding, pair, add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Returns how many tokens a post-processor adds to one sequence, or to two."""
        return hf_added_tokens(self._spec, is_pair)


class BertProcessing(PostProcessor):
    """Puts one token before the first sequence, and another token after each sequence.

    Args:
        sep: The token after a sequence, and its id.
        cls_token: The token before the first sequence, and its id.
    """

    sep: tuple[str, int] = fields.token()
    cls: tuple[str, int] = fields.token(alias="cls_token")


class ByteLevel(PostProcessor):
    """Excludes whitespace from offsets.

    Args:
        add_prefix_space: Whether a single leading space was added and stays in the offsets.
        trim_offsets: Enables the exclusion.
        use_regex: Not used.
    """

    _takes_others = True
    add_prefix_space: bool = fields.flag(default=None, of_none=True)
    trim_offsets: bool = fields.flag(default=None, of_none=True)
    use_regex: bool = fields.flag(default=None, of_none=True)


class RobertaProcessing(PostProcessor):
    """Puts one token before the first sequence, another token after each sequence and before the
    second sequence, and excludes whitespace from offsets.

    Args:
        sep: The token after a sequence, and its id.
        cls_token: The token before the first sequence, and its id.
        trim_offsets: Exclude whitespace from offsets.
        add_prefix_space: Whether a single leading space was added and stays in the offsets.
    """

    sep: tuple[str, int] = fields.token()
    cls: tuple[str, int] = fields.token(alias="cls_token")
    trim_offsets: bool = fields.flag(default=True)
    add_prefix_space: bool = fields.flag(default=True)


Template = str | Sequence_[str]
_SpecialToken = tuple[str, int] | tuple[int, str] | Mapping[str, Any]


class TemplateProcessing(PostProcessor):
    """Inserts sequences into a template.

    A template is a list of parts, or a text of parts with a space between them. ``$A`` and ``$B``
    are the sequences, optionally with a type id, as in ``$B:1``; ``$``, ``$0`` and ``$1`` are the
    first sequence. Other parts are the names of special tokens.

    Args:
        single: The template for one sequence.
        pair: The template for two sequences.
        special_tokens: The special tokens of the templates: pairs of a name and an id, or
            dictionaries with ``"id"``, ``"ids"`` and ``"tokens"``.

    Raises:
        ValueError: A part is malformed, or names a token that is not given.

    >>> TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)]).num_special_tokens_to_add(False)
    1
    """

    single: Template | None = fields.field(
        lambda value: _pieces(value), show=lambda value: _debug(value), default=None, of_none="$0"
    )
    _pair: Template | None = fields.field(
        lambda value: _pieces(value), default=None, of_none="$A:0 $B:1", alias="pair"
    )
    _special_tokens: Iterable[_SpecialToken] | None = fields.field(
        lambda value: _tokens(value), default=None, of_none=(), alias="special_tokens"
    )

    def _check(self) -> None:
        single, pair, tokens = self._fields.values()
        if {piece["Sequence"]["id"] for piece in pair if "Sequence" in piece} != {"A", "B"}:
            raise ValueError("Template for `pair` must use both sequences")
        used = {piece["SpecialToken"]["id"] for piece in single + pair if "SpecialToken" in piece}
        if missing := sorted(used - tokens.keys()):
            names = ", ".join(f"`{name}`" for name in missing)
            raise ValueError(f"Missing SpecialToken(s) with id(s) {names}")


def _pieces(template: Template) -> list[dict[str, Any]]:
    parts = template.split(" ") if isinstance(template, str) else template
    return [_piece(part) for part in parts]


def _piece(part: str) -> dict[str, Any]:
    found = re.fullmatch(r"(\$(?:[AaBb]|\+?\d+)?|[^$:][^:]*|)(?::\+?(\d+))?", part, re.ASCII)
    if found is None:
        raise ValueError(f'Cannot build Piece from string "{part}"')
    name, type_id = found[1], int(found[2] or 0)
    if not name.startswith("$"):
        return {"SpecialToken": {"id": name, "type_id": type_id}}
    if name[1:].lstrip("+").isdigit() and found[2] is None:
        type_id = int(name[1:])
    return {"Sequence": {"id": "B" if name in ("$B", "$b") else "A", "type_id": type_id}}


def _tokens(given: Iterable[Any]) -> dict[str, Any]:
    tokens = {}
    for token in given:
        if isinstance(token, Mapping):
            fields = {name: token[name] for name in ("id", "ids", "tokens")}
        else:
            name, id = token if isinstance(token[0], str) else (token[1], token[0])
            fields = {"id": name, "ids": [id], "tokens": [name]}
        if len(fields["ids"]) != len(fields["tokens"]):
            raise ValueError("SpecialToken: ids and tokens must be of the same length")
        tokens[fields["id"]] = fields
    return dict(sorted(tokens.items()))


def _debug(pieces: list[dict[str, Any]]) -> str:
    shown = []
    for piece in pieces:
        [(kind, fields)] = piece.items()
        is_name = kind == "SpecialToken"
        id = json.dumps(fields["id"], ensure_ascii=False) if is_name else fields["id"]
        shown.append(f"{kind} {{ id: {id}, type_id: {fields['type_id']} }}")
    return f"Template([{', '.join(shown)}])"


class Sequence(PostProcessor):
    """Runs post-processors in sequence.

    Args:
        processors: The post-processors.
    """

    _list: list[Any] = fields.parts(alias="processors")
