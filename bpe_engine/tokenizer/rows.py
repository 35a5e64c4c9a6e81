"""Converts a `Tokenizer`'s inputs for native code, and native rows to results."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core import EncodedRows, arrange_rows
from ..abilities.ragged import TokenBatch
from ..common.tensors import as_tensor, matrix_as_tensor
from ..common.values import checked, listed
from .batch_encoding import BatchEncoding
from .options import Layout

__all__ = ["arranged", "inputs_of", "make_tensors", "padded", "plain_ids", "result"]

# Fields with a number per id.
_PER_ID = ("input_ids", "token_type_ids", "attention_mask", "special_tokens_mask")
_NO_TEXT = (
    "text input must be of type `str` (single example), `list[str]` (batch or single pretokenized "
    "example) or `list[list[str]]` (batch of pretokenized examples) or `list[tuple[list[str], "
    "list[str]]]` (batch of pretokenized sequence pairs)."
)


def inputs_of(text: Any, text_pair: Any, is_pretokenized: bool) -> tuple[list[Any], bool]:
    """Returns the inputs of a call, and whether the inputs are a batch.

    Raises:
        ValueError: An argument is not text, or the two arguments are batches of different lengths.
        TypeError: One argument is a batch, the other is not.
    """
    for value in (text, text_pair):
        if value is not None and not _is_text(value):
            way_out = " Give the list of its texts." if isinstance(value, Iterable) else ""
            is_list = isinstance(value, (list, tuple))
            raise ValueError(f"{_NO_TEXT} Found {_wrong(value)}.{'' if is_list else way_out}")
    is_batch = isinstance(text, (list, tuple))
    if is_pretokenized:
        is_batch = is_batch and bool(text) and isinstance(text[0], (list, tuple))
    if not is_batch:
        inputs = [(_copied(text), _copied(text_pair)) if text_pair else _copied(text)]
        return inputs, False
    if text_pair is None:
        return [_copied(each) for each in text], True
    if isinstance(text_pair, str):
        raise TypeError(
            "when tokenizing batches of text, `text_pair` must be a list or tuple with the same "
            "length as `text`."
        )
    if len(text) != len(text_pair):
        raise ValueError(
            f"batch length of `text`: {len(text)} does not match batch length of `text_pair`: "
            f"{len(text_pair)}."
        )
    return [(_copied(one), _copied(other)) for one, other in zip(text, text_pair)], True


def _copied(text: Any) -> Any:
    """Copies words that the caller may change later."""
    return text.copy() if type(text) is list else text


def _wrong(value: Any) -> str:
    where = ""
    while isinstance(value, (list, tuple)) and value:
        value, where = value[0], where or " in row 0"
    return f"{type(value).__name__}{where}"


def _is_text(value: Any) -> bool:
    """Returns True for the form of a text, words, or a batch of texts, words or pairs."""
    for _ in range(4):
        if isinstance(value, str):
            return True
        if not isinstance(value, (list, tuple)):
            return False
        if not value:
            return True
        value = value[0]
    return isinstance(value, str)


def result(rows: EncodedRows, names: tuple[str, ...], module: Any, is_batch: bool) -> BatchEncoding:
    """Returns the fields of rows of ids, as a package's tensors or as lists; if the input is not a
    batch, returns the fields of the single row."""
    if module is None:
        return BatchEncoding.of(rows.fields(names, is_batch), None)
    data = rows.fields(names, True, True)
    make_tensors(module, data, len(rows))
    return BatchEncoding.of(data, None)


def make_tensors(module: Any, fields: dict[str, Any], count: int) -> None:
    """Converts the fields of `count` rows, which are lists or matrices, to tensors of a package."""
    for name, value in fields.items():
        if type(value) is tuple:
            fields[name] = matrix_as_tensor(module, value[0], (count, value[1]))
        else:
            fields[name] = as_tensor(module, name, value)


def arranged(fields: Mapping[str, Sequence[Any]], layout: Layout) -> EncodedRows:
    """Truncates and pads rows of ids.

    Raises:
        ValueError: The fields of a row have different lengths.
    """
    return arrange_rows(
        fields["input_ids"],
        token_type_ids=fields.get("token_type_ids"),
        attention_mask=fields.get("attention_mask"),
        special_tokens_mask=fields.get("special_tokens_mask"),
        truncation=layout.truncation,
        padding=layout.padding,
    )


def padded(
    encoded: Any, layout: Layout, return_attention_mask: bool, tensor_type: str | None
) -> BatchEncoding:
    """Implements `Tokenizer.pad`."""
    if isinstance(encoded, (list, tuple)) and encoded and isinstance(encoded[0], Mapping):
        encoded = {
            name: [_field(row, number, name) for number, row in enumerate(encoded)]
            for name in encoded[0]
        }
    if not isinstance(encoded, Mapping) or "input_ids" not in encoded:
        given = list(encoded) if isinstance(encoded, Mapping) else type(encoded).__name__
        raise ValueError(
            "You should supply an encoding or a list of encodings to this method that includes "
            f"input_ids, but you provided {given}"
        )
    if tensor_type is None:
        tensor_type = _framework_of(encoded["input_ids"])
    data = {name: _plain(value) for name, value in encoded.items()}
    ids = data["input_ids"]
    if not ids:
        return BatchEncoding({**data, "attention_mask": []} if return_attention_mask else data)
    is_batch = isinstance(ids[0], (list, tuple))
    fields = {name: data[name] if is_batch else [data[name]] for name in _PER_ID if name in data}
    if any(len(values) != len(fields["input_ids"]) for values in fields.values()):
        raise ValueError("the fields of a batch must have a row each for every text")
    names = [name for name in data if name in _PER_ID]
    if return_attention_mask and "attention_mask" not in data:
        names.append("attention_mask")
    if not return_attention_mask and "attention_mask" in names:
        # Left unpadded, as in transformers.
        names.remove("attention_mask")
        fields.pop("attention_mask")
    made = result(arranged(fields, layout), tuple(names), None, is_batch)
    return BatchEncoding({**data, **made.data}, None, tensor_type)


def _field(row: Mapping[str, Any], number: int, name: str) -> Any:
    if name not in row:
        raise ValueError(f"row {number} has no {name!r}, which row 0 has")
    return row[name]


def _framework_of(ids: Any) -> str | None:
    if isinstance(ids, (list, tuple)):
        ids = ids[0] if ids else None
    module = type(ids).__module__.split(".")[0]
    return {"numpy": "np", "torch": "pt", "tensorflow": "tf"}.get(module)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value] if value and not _is_number(value[0]) else value
    checked(value)
    if hasattr(value, "numpy") and not hasattr(value, "tolist"):
        value = value.numpy()
    return value.tolist() if hasattr(value, "tolist") else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int)


def plain_ids(ids: Any) -> list[Any]:
    """Converts the argument of `Tokenizer.decode` to a list of ids, or to lists of ids."""
    if isinstance(ids, Mapping):
        ids = ids["input_ids"]
    if isinstance(ids, int):
        return [ids]
    if isinstance(ids, TokenBatch):
        return ids.to_lists()
    plain = _plain(ids)
    if not isinstance(plain, (list, tuple)):
        try:
            return [operator.index(plain)]
        except TypeError:
            plain = listed(plain)
    return [
        list(item) if isinstance(item, (list, tuple)) else operator.index(item) for item in plain
    ]
