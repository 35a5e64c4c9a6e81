"""`TokenNames`: the vocabulary of a `Tokenizer`, and the roles of special tokens."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from .._tiktoken import CoreBPE
from ..core import Encoding
from ..face import Face
from ..hf.components import AddedToken
from ..hf.tokenizers import Tokenizer as FileTokenizer
from .plan import Plan
from .special import SpecialTokens, content_of, plain_token

__all__ = ["TokenNames"]


class TokenNames(Face):
    """The vocabulary of a `Tokenizer`, and its special tokens as attributes."""

    #: The encoding without and with added tokens; None for a tokenizer file.
    _base: Encoding | None
    _encoding: Encoding | None
    _engine: FileTokenizer
    _special: SpecialTokens
    #: Plans of earlier calls; cleared when an attribute changes.
    _plans: dict[Any, Plan]
    errors: str
    split_special_tokens: bool

    # ---- Special tokens ----

    def __getattr__(self, name: str) -> Any:
        special: SpecialTokens | None = self.__dict__.get("_special")
        if special is not None:
            if name in special.roles:
                return special.roles[name]
            role = name.removesuffix("_id")
            if role != name and role in special.roles:
                token = special.roles[role]
                return None if token is None else self._engine.token_to_id(token)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            self._set(name, value)
        finally:
            # Cleared after the change, so that no thread keeps an outdated plan.
            self.__dict__["_plans"] = {}

    def _set(self, name: str, value: Any) -> None:
        special: SpecialTokens | None = self.__dict__.get("_special")
        role = name.removesuffix("_id")
        if special is None or role not in special.roles:
            super().__setattr__(name, value)
        elif role == name or value is None:
            special.set_role(role, value)
        else:
            token = self._id_to_token(value)
            if not isinstance(token, str):
                raise ValueError(f"{value} is not the id of a special token")
            special.set_role(role, token)

    @property
    def extra_special_tokens(self) -> list[str]:
        """The special tokens that have no role. Can be assigned."""
        return list(self._special.extra)

    @extra_special_tokens.setter
    def extra_special_tokens(self, tokens: Any) -> None:
        self._special.set_extra(tokens)

    @property
    def extra_special_tokens_ids(self) -> list[int | None]:
        """The ids of the special tokens that have no role."""
        return [self._engine.token_to_id(token) for token in self._special.extra]

    @property
    def SPECIAL_TOKENS_ATTRIBUTES(self) -> list[str]:
        """The names of the special tokens' attributes."""
        return list(self._special.roles)

    @property
    def special_tokens_map(self) -> dict[str, str]:
        """The special tokens that have a role, by the role's name."""
        return self._special.named()

    @property
    def all_special_tokens(self) -> list[str]:
        """Every special token once, tokens with a role first."""
        return self._special.all()

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of `all_special_tokens`."""
        ids = [self._engine.token_to_id(token) for token in self._special.all()]
        return [id for id in ids if id is not None]

    def add_special_tokens(
        self, special_tokens_dict: Mapping[str, Any], replace_extra_special_tokens: bool = True
    ) -> int:
        """Sets special tokens, and adds tokens that the vocabulary lacks.

        Args:
            special_tokens_dict: Tokens by the names of their attributes, such as ``{"pad_token":
                "<pad>"}``. A new name that ends with ``_token`` becomes an attribute. The key
                ``"extra_special_tokens"`` has a list of tokens, or a dict of names and tokens.
            replace_extra_special_tokens: Whether a list of extra tokens replaces the current list.

        Returns:
            The number of new tokens. The embeddings of a model need a new row for each.

        Raises:
            ValueError: A name cannot be the name of a special token.
            TypeError: A token is neither a ``str`` nor an ``AddedToken``.
        """
        try:
            return self._special.update(
                special_tokens_dict, replace_extra_special_tokens, self._add
            )
        finally:
            self._plans = {}

    def _check_token(self, name: str, token: str) -> None:
        """Raises ValueError if a token must not have a role; subclasses override this."""

    # ---- The vocabulary ----

    @property
    def backend(self) -> Encoding | FileTokenizer:
        """The `Encoding` or `bpe_engine.hf.Tokenizer` that encodes."""
        return self._engine if self._encoding is None else self._encoding

    @property
    def encoding(self) -> Encoding:
        """A snapshot of the tokenizer, with tiktoken's interface and the same vocabulary."""
        return self._engine.encoding if self._encoding is None else self._encoding

    @property
    def fingerprint(self) -> str:
        """A fingerprint of `backend` and the tokens added to each text. Arguments of calls and
        roles of tokens do not change the fingerprint.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> bpe_engine.Tokenizer(gpt2).fingerprint == gpt2.fingerprint
        True
        """
        engine = self._engine
        if self.split_special_tokens and not engine.encode_special_tokens:
            engine = copy.copy(engine)
            engine.encode_special_tokens = True
        return engine.fingerprint

    @property
    def is_fast(self) -> bool:
        """True, because tokens have offsets."""
        return True

    @property
    def vocab_size(self) -> int:
        """The number of tokens without added tokens."""
        return self._engine.get_vocab_size(False)

    def __len__(self) -> int:
        return self._engine.get_vocab_size(True)

    def __bool__(self) -> bool:
        return True

    def get_vocab(self) -> dict[Any, int]:
        """Returns tokens and ids, including added tokens."""
        return dict(self._engine.get_vocab(True))

    @property
    def vocab(self) -> dict[Any, int]:
        """Tokens and ids; see `get_vocab`."""
        return self.get_vocab()

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by id."""
        return self._engine.get_added_tokens_decoder()

    @property
    def added_tokens_encoder(self) -> dict[str, int]:
        """The ids of the added tokens."""
        return {row[0]: id for id, row in self._engine._added_tokens()}

    def get_added_vocab(self) -> dict[str, int]:
        """Returns `added_tokens_encoder`."""
        return self.added_tokens_encoder

    def add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        """Adds tokens to the vocabulary.

        Args:
            new_tokens: A ``str`` or an ``AddedToken``, or a list of them.
            special_tokens: Whether to add them as special tokens.

        Returns:
            The number of new tokens. The embeddings of a model need a new row for each.

        >>> import bpe_engine
        >>> tokenizer = bpe_engine.Tokenizer(bpe_engine.get_encoding("gpt2"))
        >>> tokenizer.add_tokens(["<tool>"]), tokenizer.encode("a<tool>")
        (1, [64, 50257])
        """
        listed = new_tokens if isinstance(new_tokens, (list, tuple)) else [new_tokens]
        tokens = []
        for token in listed:
            self._check_token("extra_special_tokens", content_of(token))
            tokens.append(plain_token(token, special_tokens))
        return self._add(tokens) if tokens else 0

    def _add(self, tokens: Sequence[AddedToken]) -> int:
        count = self._engine.add_tokens(tokens)
        core = CoreBPE.of_tokenizer(self._engine)
        if count and core is not None and self._base is not None:
            base = self._base
            self._encoding = Encoding._from_core(
                f"{base.name}+",
                core,
                pat_str=base.pattern,
                special_tokens={**base.special_tokens, **self.added_tokens_encoder},
                normalization=base.normalization,
            )
        return count

    def _token_to_id(self, token: Any) -> int | None:
        if isinstance(token, bytes):
            return None
        return self._engine.token_to_id(token)

    def _id_to_token(self, id: int) -> str | bytes | None:
        return self._engine.id_to_token(id) if 0 <= id < 2**32 else None

    # ---- Required by `Face` ----

    @property
    def _errors(self) -> str:  # type: ignore[override]
        return self.errors

    @property
    def _label(self) -> str:
        return self.backend._label

    @property
    def _special_ids(self) -> frozenset[int]:
        return self._engine._special_ids

    @property
    def _special_tokens_set(self) -> frozenset[str]:
        return self._engine._special_tokens_set

    @property
    def special_tokens_set(self) -> set[str]:
        """The names of the added tokens. Untrusted text never becomes an added token."""
        return self._engine.special_tokens_set
