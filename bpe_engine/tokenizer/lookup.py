"""Ids to text, tokens and the vocabulary of a `Tokenizer`."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..hf.components import AddedToken
from . import rows
from .special import SpecialTokens, content_of, plain_token

if TYPE_CHECKING:
    from ..core import Encoding
    from ..hf.tokenizer import Tokenizer as FileTokenizer

__all__ = ["Lookup"]


class Lookup(SpecialTokens):
    """The half of a `Tokenizer` that looks things up."""

    errors: str

    # ---- Ids to text ----

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        errors: str | None = None,
    ) -> Any:
        """The text of ids, or of one id; of a batch of rows, a list of texts.

        Args:
            token_ids: An int, a list or array of ids, or several of them; a `TokenBatch`; or the
                result of a call.
            skip_special_tokens: Whether special tokens are left out.
            clean_up_tokenization_spaces: Of no effect: byte-level tokens hold their spaces.
            errors: As in the class, for this call.

        Raises:
            KeyError: An id stands for no token of an `Encoding`. (A tokenizer file has such ids
                left out.)
            UnicodeDecodeError: With ``errors="strict"``, if the bytes are not UTF-8.
        """
        ids = rows.plain_ids(token_ids)
        if ids and isinstance(ids[0], (list, tuple)):
            return [self._decode(row, skip_special_tokens, errors) for row in ids]
        return self._decode(ids, skip_special_tokens, errors)

    def batch_decode(
        self, sequences: Any, skip_special_tokens: bool = False, **kwargs: Any
    ) -> list[str]:
        """The text of each row of ids. The arguments are those of `decode`."""
        if isinstance(sequences, Mapping):
            sequences = sequences["input_ids"]
        return [self.decode(row, skip_special_tokens, **kwargs) for row in sequences]

    def _decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str | None) -> str:
        return self._backend.decode(ids, skip_special_tokens, errors or self.errors)

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """The token of an id, or a list of those of ids."""
        if hasattr(ids, "__index__") and not getattr(ids, "ndim", 0):
            return self._backend.id_to_token(operator.index(ids))
        skipped = set(self.all_special_ids) if skip_special_tokens else set()
        return [
            self._backend.id_to_token(id) for id in map(operator.index, ids) if id not in skipped
        ]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """The id of a token, or a list of those of tokens; that of `unk_token` for others."""
        if tokens is None:
            return None
        if isinstance(tokens, (str, bytes)):
            id = self._backend.token_to_id(tokens)
            return self.unk_token_id if id is None else id
        return [self.convert_tokens_to_ids(token) for token in tokens]

    def convert_tokens_to_string(self, tokens: Sequence[Any]) -> str:
        """The text of tokens."""
        return self._backend.to_string(tokens, self.errors)

    # ---- The vocabulary ----

    @property
    def backend(self) -> Encoding | FileTokenizer:
        """The `Encoding` or `bpe_engine.hf.Tokenizer` that finds ids."""
        return self._backend.source  # type: ignore[no-any-return]

    @property
    def is_fast(self) -> bool:
        """True: there are offsets."""
        return True

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, added ones left out."""
        return self._backend.size(False)

    def __len__(self) -> int:
        return self._backend.size(True)

    def __bool__(self) -> bool:
        return True

    def get_vocab(self) -> dict[Any, int]:
        """Tokens and ids, added ones among them."""
        return self._backend.vocab()

    @property
    def vocab(self) -> dict[Any, int]:
        """The same as `get_vocab`."""
        return self.get_vocab()

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by id."""
        return dict(sorted(self._backend.added_tokens().items()))

    @property
    def added_tokens_encoder(self) -> dict[str, int]:
        """The ids of the added tokens."""
        return {token.content: id for id, token in self.added_tokens_decoder.items()}

    def get_added_vocab(self) -> dict[str, int]:
        """The same as `added_tokens_encoder`."""
        return self.added_tokens_encoder

    def add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        """Adds tokens, each a ``str`` or an ``AddedToken``, or a list of them.

        Returns:
            How many are new. The embeddings of a model must be enlarged by as many.
        """
        listed = new_tokens if isinstance(new_tokens, (list, tuple)) else [new_tokens]
        tokens = []
        for token in listed:
            self._check_token("extra_special_tokens", content_of(token))
            tokens.append(plain_token(token, special_tokens))
        return self._backend.add_tokens(tokens) if tokens else 0
