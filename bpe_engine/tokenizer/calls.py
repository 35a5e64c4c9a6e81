"""Text to the inputs of a model: the calls of a `Tokenizer`, and how rows are cut and filled up."""

from __future__ import annotations

import logging
import operator
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple

from .._core import EncodedRows
from . import rows
from .backend import Layout
from .batch_encoding import BatchEncoding
from .lookup import Lookup
from .options import LARGEST, NO_LIMIT, Strategies, resolve

__all__ = ["Calls", "checked_side"]

_logger = logging.getLogger(__name__)

_Names = Literal["all"] | Collection[str]


class _Call(NamedTuple):
    """What the arguments of a call come to."""

    layout: Layout
    is_pretokenized: bool
    add_special_tokens: bool
    allowed_special: _Names
    disallowed_special: _Names
    fields: list[str]
    return_tensors: str | None
    #: Whether a row that is longer than the model takes is worth a warning.
    warns: bool


class Calls(Lookup):
    """The part of a `Tokenizer` that makes rows of ids."""

    padding_side: str
    truncation_side: str
    model_max_length: int
    model_input_names: list[str]
    split_special_tokens: bool

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        text_target: Any = None,
        text_pair_target: Any = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | str = False,
        truncation: bool | str | None = None,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        allowed_special: _Names | None = None,
        disallowed_special: _Names = (),
        split_special_tokens: bool | None = None,
        num_threads: int | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """The inputs of a model for a text, a batch of texts, or pairs.

        Args:
            text: A text, or a list of texts; with `is_split_into_words` lists of words.
            text_pair: The second texts of pairs.
            text_target, text_pair_target: Texts whose ids are returned under ``"labels"``.
            add_special_tokens: Whether the tokens around a text are added.
            padding: True or ``"longest"``: rows are filled up to the longest; ``"max_length"``: to
                `max_length`.
            truncation: True or ``"longest_first"``, ``"only_first"``, ``"only_second"``: rows are
                cut to `max_length`. By default they are if `max_length` is given and `padding` is
                not.
            max_length: By default, `model_max_length`.
            stride: By how many tokens the parts overlap that `return_overflowing_tokens` gives.
            is_split_into_words: Texts are lists of words.
            pad_to_multiple_of: The length of filled up rows is a multiple of it.
            padding_side: As in the class, for this call.
            return_tensors: ``"np"``, ``"pt"`` or ``"tf"``; None for lists.
            return_token_type_ids, return_attention_mask: Whether there is such a field; by default
                as `model_input_names` says.
            return_overflowing_tokens: What is cut off becomes rows of its own;
                ``overflow_to_sample_mapping`` says which text each row is of.
            return_special_tokens_mask: ``special_tokens_mask``: 1 for added tokens and padding.
            return_offsets_mapping: ``offset_mapping``: the characters of each token.
            return_length: ``length``: how many ids each row has.
            allowed_special: The special tokens that are found in texts: ``"all"``, which is the
                default, or their names. A tokenizer file can look for all or none of them.
            disallowed_special: The names that raise an error, ``"all"`` for those that are not
                allowed.
            split_special_tokens: The same as ``allowed_special=set()``.
            num_threads: How many threads may work on a batch, or None for as many as the machine
                runs at once.

        Raises:
            ValueError: The arguments do not fit together, or a text holds a disallowed name.
            TypeError: A text is no ``str``.
            ImportError: The package of the tensors is missing.
        """
        if text is None and text_target is None:
            raise ValueError("You need to specify either `text` or `text_target`.")
        strategies = self._strategies(padding, truncation, max_length, pad_to_multiple_of, verbose)
        if split_special_tokens is None:
            split_special_tokens = self.split_special_tokens
        if allowed_special is None:
            allowed_special = set() if split_special_tokens else "all"
        optional = {
            "token_type_ids": self._is_input("token_type_ids", return_token_type_ids),
            "attention_mask": self._is_input("attention_mask", return_attention_mask),
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
            "length": return_length,
            "overflow_to_sample_mapping": return_overflowing_tokens,
        }
        call = _Call(
            self._layout(
                strategies,
                stride,
                pad_to_multiple_of,
                padding_side,
                return_overflowing_tokens,
                num_threads,
            ),
            is_split_into_words,
            add_special_tokens,
            allowed_special,
            disallowed_special,
            ["input_ids", *(name for name, is_wanted in optional.items() if is_wanted)],
            return_tensors,
            verbose and strategies.max_length is None,
        )
        if text is None:
            return self._encode(text_target, text_pair_target, call)
        result = self._encode(text, text_pair, call)
        if text_target is not None:
            target = self._encode(text_target, text_pair_target, call)
            result["labels"] = target["input_ids"]
        return result

    def _is_input(self, name: str, is_wanted: bool | None) -> bool:
        return name in self.model_input_names if is_wanted is None else is_wanted

    def _encode(self, text: Any, text_pair: Any, call: _Call) -> BatchEncoding:
        inputs, is_batch = rows.inputs_of(text, text_pair, call.is_pretokenized)

        def make(detailed: bool) -> EncodedRows:
            return self._backend.rows(
                inputs,
                call.layout,
                is_pretokenized=call.is_pretokenized,
                add_special_tokens=call.add_special_tokens,
                detailed=detailed,
                allowed_special=call.allowed_special,
                disallowed_special=call.disallowed_special,
            )

        made = make("offset_mapping" in call.fields)
        if call.warns:
            self._warn_if_too_long(made)
        return rows.result(
            made,
            lambda: make(True).encodings(),
            call.fields,
            call.return_tensors,
            is_batch or call.layout.overflow,
        )

    def encode(self, text: Any, text_pair: Any = None, **kwargs: Any) -> list[int]:
        """The ids of a text. The arguments are those of a call."""
        return list(self(text, text_pair, **kwargs)["input_ids"])

    def encode_plus(self, text: Any, text_pair: Any = None, **kwargs: Any) -> BatchEncoding:
        """The same as a call."""
        return self(text, text_pair, **kwargs)

    def batch_encode_plus(self, batch: Sequence[Any], **kwargs: Any) -> BatchEncoding:
        """The same as a call with a list of texts, or of pairs."""
        return self(list(batch), **kwargs)

    def tokenize(
        self, text: Any, pair: Any = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[Any]:
        """The tokens of a text. The arguments are those of a call."""
        made = self(text, pair, add_special_tokens=add_special_tokens, **kwargs)
        if self._backend.tokens_come_from_text:
            return made.tokens()
        return list(self.convert_ids_to_tokens(made["input_ids"]))

    def pad(
        self,
        encoded_inputs: Any,
        padding: bool | str = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Fills up rows that a call gave before.

        Args:
            encoded_inputs: What a call returned, for one text or for a batch; or a list of that.
                Fields that are no rows of ids stay as they are.
            padding, max_length, pad_to_multiple_of, padding_side: As in a call.
            return_attention_mask, return_tensors: As in a call.
        """
        strategies = self._strategies(padding, None, max_length, pad_to_multiple_of, verbose)
        # Nothing is cut here.
        strategies = strategies._replace(truncation="do_not_truncate")
        if return_attention_mask is None:
            return_attention_mask = "attention_mask" in self.model_input_names
        return rows.padded(
            encoded_inputs,
            self._layout(strategies, 0, pad_to_multiple_of, padding_side),
            return_attention_mask,
            return_tensors,
        )

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """How many tokens are added to a text, or to a pair."""
        return self._backend.num_added(pair)

    @property
    def max_len_single_sentence(self) -> int:
        """How many ids of a text the model takes beside the added tokens."""
        return self.model_max_length - self.num_special_tokens_to_add(False)

    @property
    def max_len_sentences_pair(self) -> int:
        """How many ids of a pair the model takes beside the added tokens."""
        return self.model_max_length - self.num_special_tokens_to_add(True)

    def get_special_tokens_mask(
        self,
        token_ids_0: Sequence[int],
        token_ids_1: Sequence[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """1 for each id of a special token, 0 for others.

        Args:
            token_ids_0: Ids with the tokens that a call adds.
            token_ids_1: Must be None.
            already_has_special_tokens: Must be True. (Of ids without them, a call gives the mask:
                ``return_special_tokens_mask``.)

        Raises:
            ValueError: Another argument is given.
        """
        if token_ids_1 is not None or not already_has_special_tokens:
            raise ValueError(
                "only of ids with special tokens is there a mask: pass already_has_special_tokens="
                "True, or call the tokenizer with return_special_tokens_mask=True"
            )
        special = set(self.all_special_ids)
        return [int(id in special) for id in token_ids_0]

    def _strategies(
        self, padding: Any, truncation: Any, max_length: Any, multiple: Any, verbose: bool
    ) -> Strategies:
        return resolve(
            padding,
            truncation,
            max_length,
            multiple,
            self.model_max_length,
            self.pad_token,
            verbose,
        )

    def _layout(
        self,
        strategies: Strategies,
        stride: int,
        pad_to_multiple_of: int | None,
        padding_side: str | None,
        overflow: bool = False,
        num_threads: int | None = None,
    ) -> Layout:
        cut = fill = None
        if strategies.truncation != "do_not_truncate" and strategies.max_length is not None:
            if operator.index(stride) < 0:
                raise ValueError(f"stride must be at least 0, but is {stride}")
            stride = min(operator.index(stride), LARGEST)
            side = checked_side("truncation_side", self.truncation_side)
            cut = (strategies.max_length, stride, strategies.truncation, side)
        if strategies.padding != "do_not_pad":
            side = checked_side("padding_side", padding_side or self.padding_side)
            length = strategies.max_length if strategies.padding == "max_length" else None
            pad_id = self.pad_token_id
            if pad_id is None:
                raise ValueError(f"the pad_token {self.pad_token!r} is no token; add it first")
            fill = (
                length,
                side,
                min(pad_to_multiple_of or 0, LARGEST) or None,
                pad_id,
                0,
                self.pad_token,
            )
        return Layout(cut, fill, overflow, num_threads)

    def _warn_if_too_long(self, rows: EncodedRows) -> None:
        if self.model_max_length >= NO_LIMIT:
            return
        longest = max(rows.lengths(), default=0)
        if longest > self.model_max_length and not self.__dict__.get("_warned"):
            object.__setattr__(self, "_warned", True)
            _logger.warning(
                "Token indices sequence length is longer than the specified maximum sequence length "
                "for this model (%d > %d). Running this sequence through the model will result in "
                "indexing errors",
                longest,
                self.model_max_length,
            )

    @property
    def pad_token_type_id(self) -> int:
        """What ``token_type_ids`` are filled up with."""
        return 0


def checked_side(name: str, side: str) -> str:
    if side not in ("left", "right"):
        raise ValueError(f'{name} must be "right" or "left", not {side!r}')
    return side
