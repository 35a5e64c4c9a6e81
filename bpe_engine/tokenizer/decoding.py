"""`Decoding`: the methods of a `Tokenizer` that convert between ids, tokens and text."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from ..common.values import checked
from ..hf.models import BPE
from ..read import byte_level
from . import rows
from .token_names import TokenNames

__all__ = ["Decoding"]


class Decoding(TokenNames):
    """Converts between ids, tokens and text."""

    clean_up_tokenization_spaces: bool
    #: Word-end marker that the class turns into a space on decoding.
    _word_end: str | None

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        errors: str | None = None,
    ) -> Any:
        """Decodes ids to text.

        Args:
            token_ids: An int, a list or array of ids, a list of rows, a `TokenBatch`, or the result
                of a call.
            skip_special_tokens: Drop special tokens.
            clean_up_tokenization_spaces: Remove spaces before punctuation and in contractions; by
                default the tokenizer's setting. Ignored with BPE, whose tokens contain the spaces.
            errors: The handler for invalid UTF-8; by default the tokenizer's.

        Returns:
            The text; a list of texts for several rows.

        Raises:
            KeyError: An id has no token. (With a tokenizer file, such ids are dropped.)
            UnicodeDecodeError: The bytes are not UTF-8, and `errors` is ``"strict"``.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2"))
        >>> tokenizer.decode([31373, 995]), tokenizer.decode([[31373], [995]])
        ('hello world', ['hello', ' world'])
        """
        ids = rows.plain_ids(token_ids)
        wanted = clean_up_tokenization_spaces
        is_clean = self.clean_up_tokenization_spaces if wanted is None else wanted
        if ids and isinstance(ids[0], (list, tuple)):
            return [self._text(row, skip_special_tokens, is_clean, errors) for row in ids]
        return self._text(ids, skip_special_tokens, is_clean, errors)

    def batch_decode(
        self, sequences: Any, skip_special_tokens: bool = False, **kwargs: Any
    ) -> list[str]:
        """Decodes each row of ids to text. Takes the arguments of `decode`."""
        if isinstance(sequences, Mapping):
            sequences = sequences["input_ids"]
        return [self.decode(row, skip_special_tokens, **kwargs) for row in checked(sequences)]

    def _text(
        self, ids: Sequence[int], skip_special_tokens: bool, is_clean: bool, errors: str | None
    ) -> str:
        text = self._decode(ids, skip_special_tokens, errors)
        if self._word_end is not None:
            text = text.replace(self._word_end, " ").strip()
        if is_clean and type(self._engine.model) is not BPE:
            text = self.clean_up_tokenization(text)
        return text

    @staticmethod
    def clean_up_tokenization(text: str) -> str:
        """Removes spaces before punctuation and in contractions of a decoded text.

        >>> import bpe_engine
        >>> bpe_engine.Tokenizer.clean_up_tokenization("it 's here , is n't it ?")
        "it's here, isn't it?"
        """
        for end in (" .", " ?", " !", " ,"):
            text = text.replace(end, end[1:])
        text = text.replace(" ' ", "'")
        for end in (" n't", " 'm", " 's", " 've", " 're"):
            text = text.replace(end, end[1:])
        return text

    def _decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str | None) -> str:
        errors = errors or self.errors
        if errors == "replace":
            return self._engine.decode(ids, skip_special_tokens)
        return self._engine._decode_bytes(ids, skip_special_tokens).decode("utf-8", errors)

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Returns the token of an id, or a list of tokens for several ids."""
        if hasattr(ids, "__index__") and not getattr(ids, "ndim", 0):
            return self._id_to_token(operator.index(ids))
        skipped = set(self.all_special_ids) if skip_special_tokens else set()
        return [self._id_to_token(id) for id in map(operator.index, ids) if id not in skipped]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Returns the id of a token, or a list of ids. Unknown tokens have the id of `unk_token`."""
        if tokens is None:
            return None
        if isinstance(tokens, (str, bytes)):
            id = self._token_to_id(tokens)
            return self.unk_token_id if id is None else id
        return [self.convert_tokens_to_ids(token) for token in checked(tokens)]

    def convert_tokens_to_string(self, tokens: Sequence[Any]) -> str:
        """Returns the text of tokens."""
        checked(tokens)
        decoder = self._engine.decoder
        if self._encoding is None and self.errors == "replace":
            return " ".join(tokens) if decoder is None else decoder.decode(tokens)
        if decoder is None or decoder.type != "ByteLevel":
            kind = None if decoder is None else decoder.type
            raise ValueError(
                f"errors={self.errors!r} is for tokenizer files with the decoder ByteLevel, not "
                f"{kind}"
            )
        return b"".join(map(_token_bytes, tokens)).decode("utf-8", self.errors)


def _token_bytes(token: Any) -> bytes:
    if isinstance(token, bytes):
        return token
    if not isinstance(token, str):
        raise TypeError(f"a token is a str or bytes, not {type(token).__name__}")
    try:
        return byte_level.bytes_of(token)
    except KeyError:
        return token.encode()
