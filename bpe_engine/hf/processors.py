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
from .component import (
    Component,
    Field,
    flag_field,
)

__all__ = [
    "BertProcessing",
    "ByteLevel",
    "PostProcessor",
    "RobertaProcessing",
    "Sequence",
    "TemplateProcessing",
]


class PostProcessor(Component):
    """The base of all post-processors."""

    __slots__ = ()
    _kind = "post_processor"

    def process(
        self,
        encoding: HfEncoding,
        pair: HfEncoding | None = None,
        add_special_tokens: bool = True,
    ) -> HfEncoding:
        """Post-processes the encoding of one sequence, or of two."""
        return hf_process(self._spec, encoding, pair, add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Returns how many tokens a post-processor adds to one sequence, or to two."""
        return hf_added_tokens(self._spec, is_pair)


def _token() -> Field[tuple[str, int]]:
    """A field of a token and its id."""

    def check(value: tuple[str, int]) -> list[Any]:
        if not isinstance(value, tuple) or list(map(type, value)) != [str, int]:
            raise TypeError(f"expected a tuple of a token and its id, not {value!r}")
        return list(value)

    return Field(check, lambda value: (value[0], value[1]))


class BertProcessing(PostProcessor):
    """Puts a token before the first sequence, and another one after each.

    Args:
        sep: The token after a sequence, and its id.
        cls_token: The token before the first one, and its id.
    """

    __slots__ = ()
    sep: Field[tuple[str, int]] = _token()
    cls: Field[tuple[str, int]] = _token()

    def __new__(cls, sep: tuple[str, int], cls_token: tuple[str, int]) -> BertProcessing:
        return cls._made(sep=sep, cls=cls_token)


class ByteLevel(PostProcessor):
    """Leaves white space out of places in the text.

    Args:
        add_prefix_space: Whether a single space at the beginning was added, and stays.
        trim_offsets: Whether it does so.
        use_regex: Not used.
    """

    __slots__ = ()
    add_prefix_space: Field[bool] = flag_field()
    trim_offsets: Field[bool] = flag_field()
    use_regex: Field[bool] = flag_field()

    def __new__(
        cls,
        add_prefix_space: bool | None = None,
        trim_offsets: bool | None = None,
        use_regex: bool | None = None,
        **_others: Any,
    ) -> ByteLevel:
        given = {
            "add_prefix_space": add_prefix_space,
            "trim_offsets": trim_offsets,
            "use_regex": use_regex,
        }
        return cls._made(**{name: value is None or value for name, value in given.items()})


class RobertaProcessing(PostProcessor):
    """Puts a token before the first sequence, another one after each and before the second, and
    leaves white space out of places in the text.

    Args:
        sep: The token after a sequence, and its id.
        cls_token: The token before the first one, and its id.
        trim_offsets: Whether places leave out white space.
        add_prefix_space: Whether a single space at the beginning was added, and stays.
    """

    __slots__ = ()
    sep: Field[tuple[str, int]] = _token()
    cls: Field[tuple[str, int]] = _token()
    trim_offsets: Field[bool] = flag_field()
    add_prefix_space: Field[bool] = flag_field()

    def __new__(
        cls,
        sep: tuple[str, int],
        cls_token: tuple[str, int],
        trim_offsets: bool = True,
        add_prefix_space: bool = True,
    ) -> RobertaProcessing:
        return cls._made(
            sep=sep, cls=cls_token, trim_offsets=trim_offsets, add_prefix_space=add_prefix_space
        )


Template = str | Sequence_[str]


class TemplateProcessing(PostProcessor):
    """Fills sequences into a template.

    A template is a list of parts, or a text of parts with a space between them. ``$A`` and ``$B``
    are the sequences, also with a type id, as in ``$B:1``; ``$``, ``$0`` and ``$1`` are the first
    one. Other parts are the names of special tokens.

    Args:
        single: The template for one sequence.
        pair: The template for two.
        special_tokens: The special tokens of the templates: pairs of a name and an id, or
            dictionaries with ``"id"``, ``"ids"`` and ``"tokens"``.

    Raises:
        ValueError: A part is malformed, or the name of a token that is not given.

    >>> TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)]).num_special_tokens_to_add(False)
    1
    """

    __slots__ = ()
    single: Field[Any] = Field(lambda value: _pieces(value), lambda value: _debug(value))
    _pair: Field[Any] = Field(lambda value: _pieces(value), name="pair")
    _special_tokens: Field[Any] = Field(lambda value: _tokens(value), name="special_tokens")

    def __new__(
        cls,
        single: Template | None = None,
        pair: Template | None = None,
        special_tokens: Iterable[tuple[str, int] | tuple[int, str] | Mapping[str, Any]]
        | None = None,
    ) -> TemplateProcessing:
        made = cls._made(
            single="$0" if single is None else single,
            _pair="$A:0 $B:1" if pair is None else pair,
            _special_tokens=special_tokens or [],
        )
        fields = made._fields
        if pair is not None and len(_sequences(fields["pair"])) < 2:
            raise ValueError("Template for `pair` must use both sequences")
        used = {name for part in fields["single"] + fields["pair"] for name in _names(part)}
        if missing := sorted(used - fields["special_tokens"].keys()):
            names = ", ".join(f"`{name}`" for name in missing)
            raise ValueError(f"Missing SpecialToken(s) with id(s) {names}")
        return made


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


def _sequences(pieces: list[dict[str, Any]]) -> set[str]:
    return {piece["Sequence"]["id"] for piece in pieces if "Sequence" in piece}


def _names(piece: dict[str, Any]) -> list[str]:
    return [piece["SpecialToken"]["id"]] if "SpecialToken" in piece else []


def _debug(pieces: list[dict[str, Any]]) -> str:
    """A template as `tokenizers` shows it."""
    shown = []
    for piece in pieces:
        [(kind, fields)] = piece.items()
        is_name = kind == "SpecialToken"
        id = json.dumps(fields["id"], ensure_ascii=False) if is_name else fields["id"]
        shown.append(f"{kind} {{ id: {id}, type_id: {fields['type_id']} }}")
    return f"Template([{', '.join(shown)}])"


class Sequence(PostProcessor):
    """Runs post-processors one after the other.

    Args:
        processors: The post-processors.
    """

    __slots__ = ()

    def __new__(cls, processors: list[Any]) -> Sequence:
        return cls._with_parts(processors)
