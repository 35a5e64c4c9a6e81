"""What finds the ids of a `Tokenizer`: a tokenizer file, or an `Encoding` by itself.

Both give tokens as byte-level vocabularies write them, and leave truncation, the tokens that are
added around a text, and padding to the same native code.
"""

from __future__ import annotations

import copy
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import byte_level
from .._core import CoreBPE, EncodedRows, disallowed_special_message, encode_rows
from ..builtin import BUILTIN
from ..core import Encoding
from ..hf.components import AddedToken, Component
from ..hf.tokenizer import Tokenizer as FileTokenizer
from ..prompt.segments import Segment
from ..registry import ENCODINGS
from .segments import assistant_mask, encode_segments, without_added_tokens

__all__ = [
    "Backend",
    "EncodingBackend",
    "FileBackend",
    "Layout",
    "backend_of",
    "with_special_tokens",
]

Token = str | bytes
_Names = str | Collection[str]


@dataclass(frozen=True)
class Layout:
    """How rows are cut and filled up, as `encode_rows` takes it."""

    truncation: tuple[int, int, str, str] | None = None
    padding: tuple[int | None, str, int | None, int, int, str] | None = None
    overflow: bool = False
    num_threads: int | None = None


@dataclass(frozen=True)
class Defaults:
    """What a tokenizer file says of padding and truncation."""

    pad_token: str | None = None
    padding_side: str = "right"
    truncation_side: str = "right"


class Backend(ABC):
    """Finds ids and tokens."""

    #: Whether the token of an id may be written otherwise in a text, as one that takes white space
    #: along.
    tokens_come_from_text = False

    def defaults(self) -> Defaults:
        """What holds where nothing else was asked for."""
        return Defaults()

    @property
    @abstractmethod
    def source(self) -> Any:
        """The object that the backend stands on."""

    @abstractmethod
    def rows(
        self,
        inputs: Sequence[Any],
        layout: Layout,
        *,
        is_pretokenized: bool,
        add_special_tokens: bool,
        detailed: bool,
        allowed_special: _Names,
        disallowed_special: _Names,
    ) -> EncodedRows:
        """The rows of texts, pairs of texts, or lists of words."""

    @abstractmethod
    def decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str) -> str:
        """The text of ids."""

    @abstractmethod
    def to_string(self, tokens: Sequence[Any], errors: str) -> str:
        """The text of tokens."""

    @abstractmethod
    def token_to_id(self, token: Any) -> int | None:
        """The id of a token; None if there is none."""

    @abstractmethod
    def id_to_token(self, id: int) -> Token | None:
        """The token of an id; None if there is none."""

    @abstractmethod
    def vocab(self) -> dict[Any, int]:
        """Tokens and ids, added ones among them."""

    @abstractmethod
    def size(self, with_added_tokens: bool) -> int:
        """How many tokens there are."""

    @abstractmethod
    def added_tokens(self) -> dict[int, AddedToken]:
        """The tokens beside those of the model, by id."""

    @abstractmethod
    def add_tokens(self, tokens: Sequence[AddedToken]) -> int:
        """Adds tokens; returns how many are new."""

    @abstractmethod
    def num_added(self, is_pair: bool) -> int:
        """How many tokens are added to a text or a pair."""

    @abstractmethod
    def set_template(self, bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> None:
        """Has these tokens added before and behind every text."""

    @abstractmethod
    def encode_segments(
        self, segments: Sequence[Segment], with_mask: bool
    ) -> tuple[list[int], list[int]]:
        """The ids of a prompt, and if asked for 1 for each that comes from the assistant."""

    @abstractmethod
    def copied(self) -> Backend:
        """Another one, which can be changed by itself."""


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
        allowed_special: _Names,
        disallowed_special: _Names,
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
        return b"".join(map(_token_bytes, tokens)).decode("utf-8", errors)

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
            for flag in ("single_word", "lstrip", "rstrip"):
                if getattr(token, flag):
                    raise ValueError(
                        f"the token {name!r} asks for {flag}, which only a tokenizer.json can do"
                    )
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

    def num_added(self, is_pair: bool) -> int:
        return self._num_added * (2 if is_pair else 1)

    def set_template(self, bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> None:
        self._num_added = (bos is not None) + (eos is not None)
        self._template = _template(bos, eos) if self._num_added else None

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


class FileBackend(Backend):
    """A tokenizer file: a `bpe_engine.hf.Tokenizer`."""

    tokens_come_from_text = True

    def __init__(self, tokenizer: FileTokenizer):
        self.tokenizer = tokenizer
        # Made when it is first needed.
        self._bare: FileTokenizer | None = None

    @property
    def source(self) -> FileTokenizer:
        return self.tokenizer

    def defaults(self) -> Defaults:
        padding, truncation = self.tokenizer.padding, self.tokenizer.truncation
        return Defaults(
            padding["pad_token"] if padding else None,
            padding["direction"] if padding else "right",
            truncation["direction"] if truncation else "right",
        )

    def rows(
        self,
        inputs: Sequence[Any],
        layout: Layout,
        *,
        is_pretokenized: bool,
        add_special_tokens: bool,
        detailed: bool,
        allowed_special: _Names,
        disallowed_special: _Names,
    ) -> EncodedRows:
        return encode_rows(
            self.tokenizer,
            inputs,
            is_pretokenized=is_pretokenized,
            add_special_tokens=add_special_tokens,
            truncation=layout.truncation,
            padding=layout.padding,
            detailed=detailed,
            overflow=layout.overflow,
            num_threads=layout.num_threads,
            encode_special_tokens=self._refuses(inputs, allowed_special, disallowed_special),
        )

    def _refuses(self, inputs: Iterable[Any], allowed: _Names, disallowed: _Names) -> bool:
        """Whether no special token may be found in texts.

        Raises:
            ValueError: Only some may, or a text holds a disallowed name.
        """
        if isinstance(allowed, str) and allowed == "all" and not disallowed:
            return False
        special = {token.content for token in self.added_tokens().values() if token.special}
        found = special if isinstance(allowed, str) else special & set(allowed)
        if isinstance(disallowed, str):
            disallowed = special - found
        if disallowed:
            _refuse_names(inputs, disallowed)
        if found and found != special:
            raise ValueError(
                "a tokenizer.json looks for all of its special tokens or for none; pass "
                'allowed_special="all" or set(), not some of them'
            )
        return not found and bool(special)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str) -> str:
        if errors == "replace":
            return self.tokenizer.decode(ids, skip_special_tokens)
        added = self.added_tokens()
        skipped = {id for id, token in added.items() if token.special and skip_special_tokens}
        tokens = [self.tokenizer.id_to_token(id) for id in ids if id not in skipped]
        return self.to_string([token for token in tokens if token is not None], errors)

    def to_string(self, tokens: Sequence[Any], errors: str) -> str:
        decoder = self.tokenizer.decoder
        if errors == "replace":
            return " ".join(tokens) if decoder is None else decoder.decode(tokens)
        if decoder is None or decoder.type != "ByteLevel":
            kind = None if decoder is None else decoder.type
            raise ValueError(
                f"errors={errors!r} is for tokenizer files with the decoder ByteLevel, not {kind}"
            )
        return b"".join(map(_token_bytes, tokens)).decode("utf-8", errors)

    def token_to_id(self, token: Any) -> int | None:
        return self.tokenizer.token_to_id(token)

    def id_to_token(self, id: int) -> Token | None:
        return self.tokenizer.id_to_token(id)

    def vocab(self) -> dict[Any, int]:
        return dict(self.tokenizer.get_vocab(True))

    def size(self, with_added_tokens: bool) -> int:
        return self.tokenizer.get_vocab_size(with_added_tokens)

    def added_tokens(self) -> dict[int, AddedToken]:
        return self.tokenizer.get_added_tokens_decoder()

    def add_tokens(self, tokens: Sequence[AddedToken]) -> int:
        return self.tokenizer.add_tokens(tokens)

    def num_added(self, is_pair: bool) -> int:
        return self.tokenizer.num_special_tokens_to_add(is_pair)

    def set_template(self, bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> None:
        self.tokenizer.post_processor = Component("post_processor", _template(bos, eos))

    def encode_segments(
        self, segments: Sequence[Segment], with_mask: bool
    ) -> tuple[list[int], list[int]]:
        placed = encode_segments(self.tokenizer, segments, self._without_added_tokens)
        ids = [token.id for token in placed]
        return ids, assistant_mask(placed, segments) if with_mask else []

    def _without_added_tokens(self) -> FileTokenizer:
        if self._bare is None:
            self._bare = without_added_tokens(self.tokenizer)
        return self._bare

    def copied(self) -> Backend:
        return FileBackend(copy.copy(self.tokenizer))


def backend_of(source: Any) -> Backend:
    """The backend around an `Encoding` or a `bpe_engine.hf.Tokenizer`, which stay as they are."""
    if isinstance(source, Encoding):
        return EncodingBackend(source)
    if isinstance(source, FileTokenizer):
        return FileBackend(copy.copy(source))
    hint = f'; get it first: bpe_engine.get_encoding("{source}")' if isinstance(source, str) else ""
    raise TypeError(
        "a Tokenizer stands on an Encoding or on a bpe_engine.hf.Tokenizer, not "
        f"{type(source).__name__}{hint}"
    )


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


def _template(bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> str:
    """The JSON of a post-processor that adds these tokens to every text."""

    def around(sequence: str, type_id: int) -> list[dict[str, Any]]:
        pieces: list[dict[str, Any]] = [{"Sequence": {"id": sequence, "type_id": type_id}}]
        if bos:
            pieces.insert(0, {"SpecialToken": {"id": bos[0], "type_id": type_id}})
        if eos:
            pieces.append({"SpecialToken": {"id": eos[0], "type_id": type_id}})
        return pieces

    tokens = {
        name: {"id": name, "ids": [id], "tokens": [name]} for name, id in filter(None, (bos, eos))
    }
    return json.dumps(
        {
            "type": "TemplateProcessing",
            "single": around("A", 0),
            "pair": around("A", 0) + around("B", 1),
            "special_tokens": tokens,
        }
    )


def _token_bytes(token: Any) -> bytes:
    """The bytes that a token stands for; of one that is not byte-level, its text."""
    if isinstance(token, bytes):
        return token
    if not isinstance(token, str):
        raise TypeError(f"a token is a str or bytes, not {type(token).__name__}")
    try:
        return byte_level.bytes_of(token)
    except KeyError:
        return token.encode()


def _repaired(value: Any) -> Any:
    """Texts, pairs and words with their surrogates repaired, as `Encoding.encode` does it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, (list, tuple)):
        return type(value)(_repaired(item) for item in value)
    return value


def _refuse_names(inputs: Iterable[Any], names: Iterable[str]) -> None:
    """Raises ValueError if a text holds one of the names."""
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))

    def look(value: Any) -> None:
        if isinstance(value, str):
            if found := pattern.search(value):
                raise ValueError(disallowed_special_message(found[0]))
        elif isinstance(value, (list, tuple)):
            for item in value:
                look(item)

    for value in inputs:
        look(value)
