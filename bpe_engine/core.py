"""`Encoding`: turns text into token ids and back."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    AbstractSet,
    Any,
    Callable,
    Collection,
    Literal,
    NoReturn,
    Sequence,
)

from . import _core
from ._arguments import (
    check_errors,
    check_pattern,
    copied_dict,
    copied_special_tokens,
    whole_number,
)
from ._core import disallowed_special_message
from ._tiktoken import CoreBPE
from .face import Face

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from . import Tokenizer, hf
    from .abilities.ragged import TokenBatch

__all__ = ["Encoding", "raise_disallowed_special_token"]


class Encoding(Face, _core.Encoding):
    """A vocabulary, a pattern and special tokens, which turn text into token ids and back.

    An encoding never changes, and any number of threads can use it at once. Long texts are
    encoded and decoded without holding the interpreter lock.

    >>> import bpe_engine
    >>> gpt2 = bpe_engine.get_encoding("gpt2")
    >>> gpt2.encode("hello world"), gpt2.count("hello world"), gpt2.decode([31373, 995])
    ([31373, 995], 2, 'hello world')
    """

    #: The tokenizer of the file from which the encoding was made.
    _file: hf.Tokenizer | None = None
    #: The ordinary tokens' ranks: made on first use, or the dict passed to the constructor.
    _mergeable_ranks: dict[bytes, int]
    _special_tokens_set: set[str]

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
        normalization: str | None = None,
    ):
        """Makes an encoding from a vocabulary, a pattern and special tokens.

        Args:
            name: The encoding's name. Encodings that differ should have different names.
            pat_str: The regular expression that cuts text into pieces. Tokens never cross a piece
                boundary; unmatched text is dropped.
            mergeable_ranks: Token bytes and their ids, which are also the order of merging:
                lowest first. Ids may have gaps.
            special_tokens: The names of special tokens and their ids.
            explicit_n_vocab: The expected number of ids. If given, ids must run from 0 to
                ``explicit_n_vocab - 1`` without a gap. None or 0 checks nothing.
            normalization: "NFC" to normalize text first, as the encodings of Qwen do, or None.

        Raises:
            TypeError: An argument has the wrong type; the message names it.
            ValueError: An id occurs twice, a special token's name is empty, contains a surrogate
                or has an id that is taken, the pattern does not compile, the ids do not match
                ``explicit_n_vocab``, or the normalization is not supported.

        >>> letters = Encoding(
        ...     "letters",
        ...     pat_str=r"\\S+|\\s+",
        ...     mergeable_ranks={b"a": 0, b"b": 1, b" ": 2, b"ab": 3},
        ...     special_tokens={"<|end|>": 4},
        ... )
        >>> letters.encode("ab ba")
        [3, 2, 1, 0]
        """
        check_pattern("pat_str", pat_str)
        # Copies isolate the encoding from later changes to the caller's dicts.
        mergeable_ranks = copied_dict("mergeable_ranks", mergeable_ranks)
        special_tokens = copied_special_tokens(special_tokens)
        self._init(
            name,
            CoreBPE(mergeable_ranks, special_tokens, pat_str, normalization),
            pat_str,
            special_tokens,
            normalization,
        )
        self._mergeable_ranks = mergeable_ranks
        if explicit_n_vocab:
            self._check_n_vocab(explicit_n_vocab)

    def _init(
        self,
        name: str,
        core_bpe: CoreBPE,
        pat_str: str,
        special_tokens: dict[str, int],
        normalization: str | None,
    ) -> None:
        self.name = name
        self._pat_str = pat_str
        self._special_tokens = special_tokens
        self._special_tokens_set = set(special_tokens)
        self._special_token_values = set(special_tokens.values())
        self._normalization = normalization
        self._core_bpe = core_bpe
        self.max_token_value: int = max(self._max_rank, *self._special_token_values, 0)

    @classmethod
    def _from_core(
        cls,
        name: str,
        core_bpe: CoreBPE,
        *,
        pat_str: str,
        special_tokens: dict[str, int],
        normalization: str | None = None,
    ) -> Encoding:
        """Wraps a native encoding made with the same pattern, special tokens and normalization."""
        self = cls.__new__(cls)
        self._init(name, core_bpe, pat_str, special_tokens, normalization)
        return self

    @classmethod
    def _of_ranks_of(cls, tokenizer: Any, name: str, *, any_flags: bool = False) -> Encoding:
        """Returns an encoding with the ids of a tokenizer file, over the same vocabulary. Its added
        tokens are the special tokens.

        Args:
            tokenizer: The file.
            name: The name of the encoding.
            any_flags: Treat all added tokens as special, and drop tokens that merging also makes
                under the same id: for programs that need only ranks, pattern and ids.

        Raises:
            UnsupportedTokenizer: The file has a feature that ranks cannot express; the message
                names it.
        """
        core = CoreBPE.__new__(CoreBPE)
        core._share_ranks(tokenizer, any_flags)
        made = cls._described(name, core)
        made._file = tokenizer
        return made

    @classmethod
    def _of_tekken(cls, contents: str, name: str, special_tokens: dict[str, int]) -> Encoding:
        """Reads Mistral's ``tekken.json``; `special_tokens` has the names and ids for files that do
        not list special tokens."""
        core = CoreBPE.__new__(CoreBPE)
        core._read_tekken(contents, special_tokens)
        return cls._described(name, core)

    @classmethod
    def _described(cls, name: str, core: CoreBPE) -> Encoding:
        """Wraps a native encoding, which supplies pattern, special tokens and normalization."""
        pattern, special, normalization = core._description()
        return cls._from_core(
            name, core, pat_str=pattern, special_tokens=special, normalization=normalization
        )

    @classmethod
    def _of_file(cls, tokenizer: Any, name: str) -> Encoding:
        """Returns a tokenizer file as an encoding, which has ranks if ranks give the same ids even
        when text is not searched for special tokens."""
        tokenizer = tokenizer.__copy__()
        added = tokenizer.get_added_tokens_decoder()
        if all(token.special and not token.content.isspace() for token in added.values()):
            try:
                return cls._of_ranks_of(tokenizer, name)
            except ValueError:
                pass
        made = cls.__new__(cls)
        core = CoreBPE.__new__(CoreBPE)
        core._share_file(tokenizer)
        made.name = name
        made._file = tokenizer
        made._special_tokens = {token.content: id for id, token in added.items()}
        made._special_tokens_set = set(made._special_tokens)
        made._special_token_values = set(added)
        made._core_bpe = core
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Computes an attribute on first use. Raises if it needs ranks and there are none.

            Replaces `functools.cached_property`, whose lock before Python 3.12 may be held by
            another thread during a fork and stays locked in the child.
            """
            if "_core_bpe" in self.__dict__:
                if name == "_mergeable_ranks":
                    self._mergeable_ranks = ranks = self._ranks_dict()
                    return ranks
                if name == "max_token_value" and self._file is not None:
                    self.max_token_value = top = max(self._file.get_vocab().values(), default=0)
                    return top
                if name in ("_pat_str", "_normalization"):
                    self._check_ranks()
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _unranked(self) -> hf.Tokenizer | None:
        """The tokenizer of a file without ranks; None if the encoding has ranks."""
        return None if "_pat_str" in vars(self) else self._file

    # ---- The other interfaces ----

    @property
    def hf(self) -> hf.Tokenizer:
        """A new `bpe_engine.hf.Tokenizer` over the same vocabulary, with the interface of
        `tokenizers`. Changes to the tokenizer do not affect the encoding.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").hf.encode("hello world").tokens
        ['hello', 'Ġworld']
        """
        return _make_hf(self) if self._file is None else self._file.__copy__()

    @property
    def transformers(self) -> Tokenizer:
        """A new `bpe_engine.Tokenizer` over the same vocabulary, with the interface of transformers.
        Changes to the tokenizer do not affect the encoding.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").transformers("hello world").input_ids
        [31373, 995]
        """
        return _make_transformers(self)

    def _check_n_vocab(self, explicit_n_vocab: int) -> None:
        explicit_n_vocab = whole_number("explicit_n_vocab", explicit_n_vocab)
        count = self._rank_count + len(self._special_tokens)
        if count != explicit_n_vocab:
            raise ValueError(
                f"explicit_n_vocab is {explicit_n_vocab}, but there are {count} tokens: "
                f"{self._rank_count} mergeable and {len(self._special_tokens)} special "
                "ones; correct it or leave it out"
            )
        if self.max_token_value != explicit_n_vocab - 1:
            raise ValueError(
                f"explicit_n_vocab is {explicit_n_vocab}, so the largest id should be "
                f"{explicit_n_vocab - 1}, but it is {self.max_token_value}; number the tokens "
                "without gaps, or leave explicit_n_vocab out"
            )

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r} {self.fingerprint[:12]}>"

    # ---- The engine ----

    @property
    def _core_bpe(self) -> CoreBPE:
        """The engine under tiktoken's name; can be assigned."""
        core: CoreBPE | None = self.__dict__.get("_core_bpe")
        if core is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute '_core_bpe'; has "
                f"{type(self).__name__}.__init__ been called?"
            )
        return core

    @_core_bpe.setter
    def _core_bpe(self, core: CoreBPE) -> None:
        # Objects that adopt this `__dict__` also get the engine.
        self.__dict__["_core_bpe"] = core
        self._share(core)

    def split(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | Collection[str] = (),
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> list[str]:
        """Returns the pieces of a text, each of which is encoded separately.

        Each allowed special token is a piece. Where the encoding normalizes text, the pieces are
        parts of the normalized text. A file without ranks splits as `bpe_engine.hf.Tokenizer.split`.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").split("It's 10 o'clock.")
        ['It', "'s", ' 10', ' o', "'", 'clock', '.']
        """
        special = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
        if (file := self._unranked) is None:
            return self._split(text, **special)
        self.count(text, **special)  # Raises for a disallowed name.
        return file.split(text, allowed_special=allowed_special)

    # ---- Batches ----

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """Encodes each text with `encode_ordinary`, on up to `num_threads` threads.

        An `encode_ordinary` that a subclass or an instance overrides is called instead.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_ordinary_batch(["hello world", "goodbye"])
        [[31373, 995], [11274, 16390]]
        """
        if self._overrides("encode_ordinary"):
            return _on_threads(self.encode_ordinary, text, num_threads)
        return self._encode_each(text, num_threads, allowed_special=(), disallowed_special=())

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[list[int]]:
        """Encodes each text with `encode`, on up to `num_threads` threads.

        Raises the error of the first text that fails. An `encode` that a subclass or an instance
        overrides is called instead.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_batch(["hello world", "goodbye"])
        [[31373, 995], [11274, 16390]]
        """
        if self._overrides("encode"):
            allowed = self.special_tokens_set if allowed_special == "all" else allowed_special
            if disallowed_special == "all":
                disallowed_special = self.special_tokens_set - allowed
            encode = functools.partial(
                self.encode,
                allowed_special=allowed,
                disallowed_special=frozenset(disallowed_special),
            )
            return _on_threads(encode, text, num_threads)
        return self._encode_each(
            text,
            num_threads,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )

    def _overrides(self, name: str) -> bool:
        return name in self.__dict__ or getattr(type(self), name, None) is not _NATIVE[name]

    @property
    def _label(self) -> str:
        return self.name

    @property
    def _special_ids(self) -> set[int]:
        return self._special_token_values

    def decode_batch(
        self,
        batch: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]] | TokenBatch,
        *,
        errors: str = "replace",
        num_threads: int = 8,
    ) -> list[str]:
        """Decodes each row of ids with `decode`, on up to `num_threads` threads.

        The rows of a `TokenBatch` are read without a copy.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_batch([[31373, 995], [11274, 16390]])
        ['hello world', 'goodbye']
        """
        check_errors(errors)
        if (ragged := _as_ragged(batch)) is not None:
            return self._decode_ragged(ragged.values, ragged.row_splits, errors, num_threads)
        return self._decode_batch(batch, errors, num_threads)

    def decode_bytes_batch(
        self,
        batch: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]] | TokenBatch,
        *,
        num_threads: int = 8,
    ) -> list[bytes]:
        """Decodes each row of ids with `decode_bytes`, on threads like `decode_batch`.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_bytes_batch([[31373, 995]])
        [b'hello world']
        """
        if (ragged := _as_ragged(batch)) is not None:
            return self._decode_ragged(ragged.values, ragged.row_splits, None, num_threads)
        return self._decode_batch(batch, None, num_threads)

    # ---- Vocabulary ----

    @property
    def pattern(self) -> str:
        """The regular expression that cuts text into pieces."""
        return self._pat_str

    @property
    def normalization(self) -> str | None:
        """The Unicode normalization form applied to text first: "NFC" or None.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("qwen").normalization
        'NFC'
        """
        return self._normalization

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The names and ids of the special tokens, read-only.

        >>> import bpe_engine
        >>> dict(bpe_engine.get_encoding("gpt2").special_tokens)
        {'<|endoftext|>': 50256}
        """
        return MappingProxyType(self._special_tokens)

    @property
    def mergeable_ranks(self) -> Mapping[bytes, int]:
        """The bytes and ids of all tokens except special tokens, read-only.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").mergeable_ranks[b" world"]
        995
        """
        return MappingProxyType(self._mergeable_ranks)

    @property
    def eot_token(self) -> int:
        """The id of ``<|endoftext|>``; raises KeyError if the encoding lacks it."""
        return self._special_tokens["<|endoftext|>"]

    @property
    def special_tokens_set(self) -> set[str]:
        """The names of the special tokens."""
        return self._special_tokens_set

    def is_special_token(self, token: int) -> bool:
        """Returns True if `token` is the id of a special token.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").is_special_token(50256)
        True
        """
        try:
            return operator.index(token) in self._special_token_values
        except TypeError:
            raise TypeError(f"a token id must be an int, not {type(token).__name__}") from None

    @property
    def n_vocab(self) -> int:
        """The largest id plus one: ``max_token_value + 1``."""
        return self.max_token_value + 1

    # ---- Private in tiktoken, but used by programs ----

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """Encodes as `encode_ordinary`, but splits with the package `regex`, for comparison."""
        import regex  # type: ignore[import-untyped,unused-ignore]

        pieces = regex.findall(self._pat_str, text)
        return [id for piece in pieces for id in self._encode_single_piece(piece)]

    # ---- Pickle and copy ----

    def __getstate__(self) -> object:
        # Encodings from the registry are pickled by name.
        if self is _named.get(self.name):
            return self.name
        if self._file is not None:
            return {"name": self.name, "file": self._file}
        state = {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }
        # tiktoken's `__setstate__` passes every item to `__init__`.
        return state | ({"normalization": self._normalization} if self._normalization else {})

    def __setstate__(self, value: Any) -> None:
        if isinstance(value, str):
            self.__dict__ = _get_encoding(value).__dict__
            return
        if "file" in value:
            self.__dict__ = self._of_file(value["file"], value["name"]).__dict__
            return
        ranks, special = value["mergeable_ranks"], value["special_tokens"]
        normalization = value.get("normalization")
        core_bpe = CoreBPE(ranks, special, value["pat_str"], normalization)
        self._init(value["name"], core_bpe, value["pat_str"], special, normalization)
        self._mergeable_ranks = ranks

    def __copy__(self) -> Encoding:
        return self

    def __deepcopy__(self, memo: object) -> Encoding:
        return self


# Methods whose native batch version is used unless they are overridden.
_NATIVE = {name: getattr(Encoding, name) for name in ("encode", "encode_ordinary")}


def _as_ragged(batch: object) -> TokenBatch | None:
    """Returns a `TokenBatch` or None, without importing the module of that class."""
    module = sys.modules.get(f"{__package__}.abilities.ragged")
    return batch if module is not None and isinstance(batch, module.TokenBatch) else None


def _on_threads(
    encode: Callable[[str], list[int]], texts: Iterable[str], num_threads: int
) -> list[list[int]]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(num_threads) as executor:
        return list(executor.map(encode, texts))


# The encodings made by name, and the function that returns an encoding by name.
_named: Mapping[str, Encoding] = {}
_get_encoding: Callable[[str], Encoding]


def name_encodings(named: Mapping[str, Encoding], get: Callable[[str], Encoding]) -> None:
    """Sets the registry in which pickles find encodings; called by `registry`."""
    global _named, _get_encoding
    _named, _get_encoding = named, get


# Constructors of an encoding's other interfaces.
_make_hf: Callable[[Encoding], hf.Tokenizer]
_make_transformers: Callable[[Encoding], Tokenizer]


def name_interfaces(
    to_hf: Callable[[Encoding], hf.Tokenizer], to_transformers: Callable[[Encoding], Tokenizer]
) -> None:
    """Sets the constructors of an encoding's other interfaces; called by the package, to avoid a
    circular import."""
    global _make_hf, _make_transformers
    _make_hf, _make_transformers = to_hf, to_transformers


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raises the ValueError for the name of a disallowed special token in a text."""
    raise ValueError(disallowed_special_message(token))
