"""Preprocesses text like the BERT models on TF Hub, without tensorflow.

`BertPreprocessor` has the methods of those preprocessors (``bert_*_preprocess``), ``tokenize`` and
``bert_pack_inputs`` (https://www.tensorflow.org/hub/common_saved_model_apis/text). The ids come
from a tokenizer read from a ``vocab.txt`` or a ``tokenizer.json``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from .abilities.packing import pack_inputs
from .abilities.ragged import TokenBatch
from .hf.tokenizers import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["BertPreprocessor"]


class BertPreprocessor:
    """Turns texts into the inputs of a BERT encoder, with the methods of TF Hub's preprocessors.

    Names of special tokens in a text are ordinary text. The truncation and padding of the tokenizer's
    file have no effect.

    Args:
        tokenizer: The tokenizer, as from `hf.Tokenizer.from_wordpiece`. It is copied.
        start_token, end_token, pad_token, mask_token: The names of the special tokens.

    Raises:
        ValueError: The vocabulary lacks a special token.
        TypeError: The tokenizer is not a `hf.Tokenizer`.

    >>> from bpe_engine import hf
    >>> names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "to", "be", "##st"]
    >>> tokenizer = hf.Tokenizer(hf.WordPiece({name: id for id, name in enumerate(names)}))
    >>> tokenizer.pre_tokenizer = hf.pre_tokenizers.BertPreTokenizer()
    >>> bert = BertPreprocessor(tokenizer)
    >>> bert.tokenize(["to be", "best"]).to_lists()
    [[5, 6], [6, 7]]
    >>> inputs = bert.bert_pack_inputs([bert.tokenize(["to be"]), bert.tokenize(["best"])], 8)
    >>> inputs["input_word_ids"].tolist(), inputs["input_type_ids"].tolist()
    ([[2, 5, 6, 3, 6, 7, 3, 0]], [[0, 0, 0, 0, 1, 1, 1, 0]])
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        start_token: str = "[CLS]",
        end_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        mask_token: str = "[MASK]",
    ):
        if not issubclass(type(tokenizer), Tokenizer):
            raise TypeError(
                "a BertPreprocessor is made of a bpe_engine.hf.Tokenizer, not "
                f"{type(tokenizer).__name__}"
            )
        self._tokenizer = copy.copy(tokenizer)
        self._tokenizer.encode_special_tokens = True
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._start, self._end, self._pad, self._mask = (
            self._id(token) for token in (start_token, end_token, pad_token, mask_token)
        )

    def _id(self, token: str) -> int:
        id = self._tokenizer.token_to_id(token)
        if id is None:
            raise ValueError(f"the vocabulary has no token {token!r}; name the token that it has")
        return id

    def get_special_tokens_dict(self) -> dict[str, int]:
        """Returns the ids of special tokens and the size of the vocabulary, under the names of
        ``tokenize.get_special_tokens_dict`` on TF Hub."""
        return {
            "vocab_size": self._tokenizer.get_vocab_size(),
            "start_of_sequence_id": self._start,
            "end_of_segment_id": self._end,
            "padding_id": self._pad,
            "mask_id": self._mask,
        }

    def tokenize(self, texts: Iterable[str], *, num_threads: int | None = None) -> TokenBatch:
        """Returns the ids of texts, without special tokens around them.

        Args:
            texts: The texts, also as an Arrow column.
            num_threads: Maximum number of threads; None for one per core.

        Raises:
            TypeError: A text is not a ``str``.
        """
        return self._tokenizer.encode_batch_to_numpy(texts, num_threads=num_threads)

    def bert_pack_inputs(
        self,
        segments: Iterable[Any],
        seq_length: SupportsIndex = 128,
        *,
        truncator: Literal["round_robin", "waterfall"] = "round_robin",
    ) -> dict[str, npt.NDArray[np.int32]]:
        """Packs one or more segments into the inputs of the encoder.

        Args:
            segments: Results of `tokenize` for the first texts, the second texts, and so on.
            seq_length: The length of each row of the result.
            truncator: How to truncate rows that are too long: see `pack_inputs`.

        Returns:
            ``input_word_ids``, ``input_mask`` and ``input_type_ids``: ``int32[rows, seq_length]``
            each.

        Raises:
            ValueError, TypeError: As `pack_inputs` does.
        """
        return pack_inputs(
            segments,
            seq_length,
            start_id=self._start,
            end_id=self._end,
            pad_id=self._pad,
            truncator=truncator,
        )

    def __call__(
        self, texts: Iterable[str], seq_length: SupportsIndex = 128
    ) -> dict[str, npt.NDArray[np.int32]]:
        """Turns texts into inputs of the encoder: `tokenize`, then `bert_pack_inputs`."""
        return self.bert_pack_inputs([self.tokenize(texts)], seq_length)
