"""`Calling`: the call methods of a `Tokenizer`, which turn texts into model inputs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from .._core import RowEncoder
from ..common.tensors import framework
from ..common.values import listed
from ..face import Names
from . import rows
from .batch_encoding import BatchEncoding
from .decoding import Decoding
from .options import NO_LIMIT, Layout, Strategies, resolve
from .plan import MOST, Plan, layout_of

__all__ = ["Calling"]

_logger = logging.getLogger(__name__)

_Call = TypeVar("_Call", bound=Callable[..., Any])


def _planned(read: _Call) -> _Call:
    """Makes a call method from a method that reads keyword arguments into a plan. A tokenizer
    caches plans by the given arguments, because filling in defaults takes longer than encoding a
    few words. Type checkers and readers see the method as the call.
    """

    @functools.wraps(read)
    def __call__(
        self: Calling,
        text: Any = None,
        text_pair: Any = None,
        text_target: Any = None,
        text_pair_target: Any = None,
        **options: Any,
    ) -> BatchEncoding:
        if text is None and text_target is None:
            raise ValueError("You need to specify either `text` or `text_target`.")
        # Distinguishes equal numbers whose types differ.
        given = (*options.items(), *map(type, options.values())) if options else ()
        plans = self._plans
        try:
            plan = plans.get(given)
        except TypeError:  # A set of names is unhashable.
            plan = read(self, **options)
        else:
            if (
                plan is None
                or plan.input_names != self.model_input_names
                or not plan.encoder.is_current(self._engine)
            ):
                plan = cast(Plan, read(self, **options))
                if len(plans) >= MOST:
                    plans.clear()
                if plan.is_kept:
                    plans[given] = plan
        if text is None:
            return self._encode(text_target, text_pair_target, plan)
        result = self._encode(text, text_pair, plan)
        if text_target is not None:
            target = self._encode(text_target, text_pair_target, plan)
            result["labels"] = target["input_ids"]
        return result

    return cast(_Call, __call__)


class Calling(Decoding):
    """Encodes texts to rows of ids, and pads rows."""

    padding_side: str
    truncation_side: str
    model_max_length: int
    model_input_names: list[str]
    _warned: bool

    @_planned
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
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
        split_special_tokens: bool | None = None,
        num_threads: int | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Encodes a text, a pair of texts, or a batch of either, as inputs of a model.

        Args:
            text: A text or a list of texts; lists of words with `is_split_into_words`.
            text_pair: The second texts of pairs.
            text_target, text_pair_target: Texts whose ids are returned as ``"labels"``.
            add_special_tokens: Add special tokens around each text.
            padding: True or ``"longest"`` pads rows to the longest row, ``"max_length"`` to
                `max_length`.
            truncation: True or ``"longest_first"``, ``"only_first"`` or ``"only_second"`` truncates
                rows to `max_length`. By default, rows are truncated if `max_length` is given
                without `padding`.
            max_length: The length of rows; by default `model_max_length`.
            stride: The overlap, in tokens, of the rows of `return_overflowing_tokens`.
            is_split_into_words: Treat texts as lists of words.
            pad_to_multiple_of: Rounds the length of padded rows up to a multiple of this number.
            padding_side: The side for this call, instead of the tokenizer's.
            return_tensors: ``"np"``, ``"pt"`` or ``"tf"``; None for lists.
            return_token_type_ids, return_attention_mask: Return these fields; by default the fields
                in `model_input_names`.
            return_overflowing_tokens: Return truncated tokens as further rows; the field
                ``overflow_to_sample_mapping`` has the index of each row's text.
            return_special_tokens_mask: Return ``special_tokens_mask``: 1 for added tokens
                and padding.
            return_offsets_mapping: Return ``offset_mapping``: the character span of each token.
            return_length: Return ``length``: the number of ids of each row.
            allowed_special: The special tokens to look for in texts: ``"all"``, the default, or
                names. A tokenizer file supports only ``"all"`` and the empty set.
            disallowed_special: The names that raise an error, or ``"all"`` for every name that is
                not allowed.
            split_special_tokens: True means ``allowed_special=set()``.
            num_threads: Maximum number of threads for a batch; None for one per core.
            verbose: Warn about rows too long for the model.

        Returns:
            The fields, as lists or tensors: for a text ``input_ids`` is a row, for a batch a list
            of rows.

        Raises:
            ValueError: The arguments contradict each other, or a text contains a disallowed name.
            TypeError: A text is not a ``str``.
            ImportError: The package of the tensors is missing.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2"))
        >>> tokenizer("hello world").input_ids
        [31373, 995]
        >>> tokenizer(["hello world", "a<|endoftext|>"], allowed_special=set())["input_ids"]
        [[31373, 995], [64, 27, 91, 437, 1659, 5239, 91, 29]]
        """
        strategies = self._strategies(padding, truncation, max_length, pad_to_multiple_of, verbose)
        if split_special_tokens is None:
            split_special_tokens = self.split_special_tokens
        if allowed_special is None:
            allowed_special = set() if split_special_tokens else "all"
        layout = self._layout(strategies, stride, pad_to_multiple_of, padding_side)
        encoder = RowEncoder(
            self._engine,
            is_pretokenized=bool(is_split_into_words),
            add_special_tokens=bool(add_special_tokens),
            truncation=layout.truncation,
            padding=layout.padding,
            overflow=bool(return_overflowing_tokens),
            num_threads=num_threads,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )
        optional = {
            "token_type_ids": self._is_input("token_type_ids", return_token_type_ids),
            "attention_mask": self._is_input("attention_mask", return_attention_mask),
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
            "length": return_length,
            "overflow_to_sample_mapping": return_overflowing_tokens,
        }
        warns = verbose and strategies.max_length is None and self.model_max_length < NO_LIMIT
        plan = Plan(
            encoder,
            ("input_ids", *(name for name, is_wanted in optional.items() if is_wanted)),
            list(self.model_input_names),
            None if return_tensors is None else framework(return_tensors),
            bool(is_split_into_words),
            bool(return_offsets_mapping),
            bool(return_overflowing_tokens),
            self.model_max_length if warns else None,
            not strategies.warned,
        )
        return cast(BatchEncoding, plan)

    def _is_input(self, name: str, is_wanted: bool | None) -> bool:
        return name in self.model_input_names if is_wanted is None else is_wanted

    def _encode(self, text: Any, text_pair: Any, plan: Plan) -> BatchEncoding:
        if type(text) is str and text_pair is None and not plan.is_pretokenized:
            inputs, is_batch = [text], False
        else:
            inputs, is_batch = rows.inputs_of(text, text_pair, plan.is_pretokenized)
        module = plan.module
        fields, source, count, longest = plan.encoder.answer(
            inputs,
            plan.has_offsets,
            plan.names,
            is_batch or plan.has_overflow or module is not None,
            module is not None,
        )
        if plan.limit is not None:
            self._warn_if_too_long(longest, plan.limit)
        if module is not None:
            rows.make_tensors(module, fields, count)
        return BatchEncoding.of(fields, source)

    def _warn_if_too_long(self, longest: int, limit: int) -> None:
        if longest > limit and not self._warned:
            self._warned = True
            _logger.warning(
                "Token indices sequence length is longer than the specified maximum sequence length "
                "for this model (%d > %d). Running this sequence through the model will result in "
                "indexing errors",
                longest,
                limit,
            )

    def encode(self, text: Any, text_pair: Any = None, **kwargs: Any) -> list[int]:
        """Returns the ids of a text, as a tensor with `return_tensors`. Takes the arguments of a
        call."""
        ids: list[int] = self(text, text_pair, **kwargs)["input_ids"]
        return ids

    def encode_plus(self, text: Any, text_pair: Any = None, **kwargs: Any) -> BatchEncoding:
        """Calls the tokenizer."""
        return self(text, text_pair, **kwargs)

    def batch_encode_plus(self, batch: Sequence[Any], **kwargs: Any) -> BatchEncoding:
        """Calls the tokenizer with a list of texts, or of pairs."""
        return self(listed(batch), **kwargs)

    def tokenize(
        self, text: Any, pair: Any = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Returns the tokens of a text. Takes the arguments of a call."""
        made = self(text, pair, add_special_tokens=add_special_tokens, **kwargs)
        if self._encoding is None:
            # A file's token may include adjacent whitespace.
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
        """Pads the rows that a call returned.

        Args:
            encoded_inputs: The result of a call for one text or a batch, or a list of results.
                Fields that are not rows of ids do not change.
            padding, max_length, pad_to_multiple_of, padding_side: As in a call.
            return_attention_mask, return_tensors, verbose: As in a call.

        Raises:
            ValueError: The arguments contradict each other, or ``input_ids`` is missing.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> tokenizer = bpe_engine.Tokenizer(gpt2, pad_token="<|endoftext|>")
        >>> tokenizer.pad(tokenizer(["hello world", "hello"])).input_ids
        [[31373, 995], [31373, 50256]]
        """
        strategies = self._strategies(padding, None, max_length, pad_to_multiple_of, verbose)
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
        """Returns the number of special tokens that a call adds to a text, or to a pair."""
        return self._engine.num_special_tokens_to_add(pair)

    @property
    def max_len_single_sentence(self) -> int:
        """Maximum number of ids in a text that fits the model, without added tokens."""
        return self.model_max_length - self.num_special_tokens_to_add(False)

    @property
    def max_len_sentences_pair(self) -> int:
        """Maximum number of ids in a pair that fits the model, without added tokens."""
        return self.model_max_length - self.num_special_tokens_to_add(True)

    def get_special_tokens_mask(
        self,
        token_ids_0: Sequence[int],
        token_ids_1: Sequence[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """Returns 1 for each id of a special token, 0 for other ids.

        Args:
            token_ids_0: Ids with the special tokens that a call adds.
            token_ids_1: Must be None.
            already_has_special_tokens: Must be True. To get the mask of a text, call the tokenizer
                with ``return_special_tokens_mask=True``.

        Raises:
            ValueError: An argument has another value.
        """
        if token_ids_1 is not None or not already_has_special_tokens:
            raise ValueError(
                "the mask needs ids with special tokens: pass already_has_special_tokens="
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
    ) -> Layout:
        sides = self.truncation_side, padding_side or self.padding_side
        pads = strategies.padding != "do_not_pad"
        pad_token = (self.pad_token, self.pad_token_id) if pads else (None, None)
        return layout_of(strategies, stride, pad_to_multiple_of, sides, pad_token)

    @property
    def pad_token_type_id(self) -> int:
        """The padding value of ``token_type_ids``: 0."""
        return 0
