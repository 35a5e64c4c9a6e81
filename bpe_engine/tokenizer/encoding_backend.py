"""An `Encoding` by itself as what finds the ids of a `Tokenizer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import byte_level
from .._core import CoreBPE, EncodedRows, encode_rows
from ..builtin import BUILTIN
from ..core import Encoding
from ..hf.components import AddedToken
from ..prompt.segments import Segment
from ..registry import ENCODINGS
from .backend import Backend, Layout, Names, Token, template_of, token_bytes

__all__ = ["EncodingBackend", "with_special_tokens"]


class EncodingBackend(Backend):
    """An `Encoding` by itself."""

    def __init__(self, encoding: Encoding):
        self.encoding = encoding
        # The encoding before tokens were added.
        self._base = encoding
        self._template: str | None = None
        self._num_added = 0
        # Added tokens that decoding never leaves out.
        self._ordinary: frozenset[str] = frozenset()

    @property
    def source(self) -> Encoding:
        return self.encoding

    def rows(
        self,
        inputs: Sequence[Any],
        layout: Layout,
        *,
        is_pretokenized: bool,
        add_special_tokens: bool,
        detailed: bool,
        allowed_special: Names,
        disallowed_special: Names,
    ) -> EncodedRows:
        def encode(inputs: Sequence[Any]) -> EncodedRows:
            return encode_rows(
                self.encoding._core_bpe,
                inputs,
                is_pretokenized=is_pretokenized,
                add_special_tokens=add_special_tokens,
                truncation=layout.truncation,
                padding=layout.padding,
                detailed=detailed,
                overflow=layout.overflow,
                num_threads=layout.num_threads,
                post_processor=self._template,
                allowed_special=allowed_special,
                disallowed_special=disallowed_special,
            )

        try:
            return encode(inputs)
        except TypeError:
            repaired = _repaired(inputs)
            if repaired == inputs:
                raise
            if detailed:
                raise ValueError(
                    "a text holds surrogates, for which there are no offsets; repair it first: "
                    'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
                ) from None
            return encode(repaired)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str) -> str:
        if skip_special_tokens:
            skipped = self._skipped()
            ids = [id for id in ids if id not in skipped]
        return self.encoding.decode(ids, errors)

    def _skipped(self) -> set[int]:
        special = self.encoding._special_tokens
        return {id for name, id in special.items() if name not in self._ordinary}

    def to_string(self, tokens: Sequence[Any], errors: str) -> str:
        return b"".join(map(token_bytes, tokens)).decode("utf-8", errors)

    def token_to_id(self, token: Any) -> int | None:
        id = self.encoding._special_tokens.get(token)
        if id is not None or not isinstance(token, str):
            return id
        try:
            return self._rank(byte_level.bytes_of(token))
        except KeyError:
            return None

    def _rank(self, token: bytes) -> int | None:
        try:
            id = self.encoding._core_bpe.encode_single_token(token)
        except KeyError:
            return None
        return None if self.encoding.is_special_token(id) else id

    def id_to_token(self, id: int) -> Token | None:
        name = self._special_names().get(id)
        if name is not None:
            return name
        try:
            return self._written(self.encoding.decode_single_token_bytes(id))
        except (KeyError, OverflowError):
            return None

    def _special_names(self) -> dict[int, str]:
        return {id: name for name, id in self.encoding._special_tokens.items()}

    def _written(self, token: bytes) -> Token:
        return byte_level.text_of(token)

    def vocab(self) -> dict[Any, int]:
        ranks = self.encoding._mergeable_ranks.items()
        return {
            **{self._written(token): id for token, id in ranks},
            **self.encoding._special_tokens,
        }

    def size(self, with_added_tokens: bool) -> int:
        added = len(set(self.encoding._special_tokens.values())) if with_added_tokens else 0
        return self.encoding._core_bpe.rank_count + added

    def added_tokens(self) -> dict[int, AddedToken]:
        return {
            id: AddedToken(name, normalized=False, special=name not in self._ordinary)
            for id, name in sorted(self._special_names().items())
        }

    def add_tokens(self, tokens: Sequence[AddedToken]) -> int:
        special = dict(self.encoding._special_tokens)
        ordinary = set(self._ordinary)
        count = 0
        next_id = self.encoding.n_vocab
        for token in tokens:
            name = token.content
            self.check_token(token)
            if name not in special:
                if self._rank(name.encode()) is not None:
                    raise ValueError(
                        f"{name!r} is a token of the vocabulary already, so it cannot be added"
                    )
                special[name] = next_id
                next_id += 1
                count += 1
            ordinary.discard(name)
            if not token.special:
                ordinary.add(name)
        if count:
            self.encoding = with_special_tokens(self._base, special)
        self._ordinary = frozenset(ordinary)
        return count

    def check_token(self, token: AddedToken) -> None:
        for flag in ("single_word", "lstrip", "rstrip"):
            if getattr(token, flag):
                raise ValueError(
                    f"the token {token.content!r} asks for {flag}, which only a tokenizer.json can do"
                )

    def num_added(self, is_pair: bool) -> int:
        return self._num_added * (2 if is_pair else 1)

    def set_template(self, bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> None:
        self._num_added = (bos is not None) + (eos is not None)
        self._template = template_of(bos, eos) if self._num_added else None

    def encode_segments(
        self, segments: Sequence[Segment], with_mask: bool
    ) -> tuple[list[int], list[int]]:
        if not with_mask:
            return self.encoding.encode_segments(segments), []
        audit = self.encoding.audit_segments(segments)
        is_assistant = [bool(part.role == "assistant" and part.text) for part in segments]
        spans = audit._spans
        return audit.ids, [int(any(is_assistant[first : last + 1])) for first, last in spans]

    def copied(self) -> Backend:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # An encoding that has a name travels as its name, even if tokens were added.
        state = dict(self.__dict__)
        if self.encoding is not self._base:
            state["encoding"] = dict(self.encoding._special_tokens)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(state["encoding"], dict):
            self.encoding = with_special_tokens(self._base, state["encoding"])


def with_special_tokens(encoding: Encoding, special_tokens: dict[str, int]) -> Encoding:
    """The same encoding with other special tokens."""
    pattern, normalization = encoding._pat_str, encoding._normalization
    known = BUILTIN.get(encoding.name)
    if known is not None and ENCODINGS.get(encoding.name) is encoding:
        core = CoreBPE.builtin(known.vocabulary, special_tokens, pattern, normalization)
    else:
        core = CoreBPE(encoding._mergeable_ranks, special_tokens, pattern, normalization)
    return Encoding._from_core(
        f"{encoding.name}+",
        core,
        pat_str=pattern,
        special_tokens=special_tokens,
        normalization=normalization,
    )


def _repaired(value: Any) -> Any:
    """Texts, pairs and words with their surrogates repaired, as `Encoding.encode` does it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, (list, tuple)):
        return type(value)(_repaired(item) for item in value)
    return value
