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

from ._arguments import (
    check_errors,
    check_pattern,
    copied_dict,
    copied_special_tokens,
    memory_size,
    numpy_for,
    truth,
    whole_number,
)
from ._core import CoreBPE, disallowed_special_message
from ._core import Encoding as NativeEncoding
from ._tables import TableMethods
from .prompt.conversation import Conversation, stable
from .prompt.methods import PromptMethods
from .stream import StreamDecoder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .chunks import ChunkSpan
    from .prompt.segments import Segment
    from .ragged import TokenBatch
    from .shown import ShownTokens

__all__ = ["Encoding", "raise_disallowed_special_token"]

# No text has more tokens, so a larger limit has no further effect.
_NO_LIMIT = sys.maxsize


class _LazyRanks:
    """Makes `Encoding._mergeable_ranks` on first use.

    Not a `functools.cached_property`: before Python 3.12 that has a lock, which another thread may
    hold when the process forks, and which then stays locked in the child.
    """

    def __get__(self, encoding: Encoding, owner: type[Encoding]) -> dict[bytes, int]:
        encoding._mergeable_ranks = ranks = encoding._core_bpe.mergeable_ranks()
        return ranks


class Encoding(PromptMethods, TableMethods, NativeEncoding):
    """A vocabulary, a pattern and special tokens: text to token ids and back.

    An encoding never changes, and any number of threads may use one at once. Long texts are
    encoded and decoded without holding the interpreter.
    """

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
            pat_str: The regular expression that cuts text into pieces. Tokens never cross the
                border of a piece; text that it does not match is dropped.
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
        # Copies: later changes to the caller's dicts must not show here.
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
        self.max_token_value: int = max(core_bpe.max_rank, *self._special_token_values, 0)

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
        """Wraps a native encoding that was made with the same pattern, special tokens and
        normalization."""
        self = cls.__new__(cls)
        self._init(name, core_bpe, pat_str, special_tokens, normalization)
        return self

    def _check_n_vocab(self, explicit_n_vocab: int) -> None:
        count = self._core_bpe.rank_count + len(self._special_tokens)
        if count != explicit_n_vocab:
            raise ValueError(
                f"explicit_n_vocab is {explicit_n_vocab}, but there are {count} tokens: "
                f"{self._core_bpe.rank_count} mergeable and {len(self._special_tokens)} special "
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

    # ---- Encoding (`encode` and `encode_ordinary` are native, in `NativeEncoding`) ----

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
        num_threads: int | None = 1,
    ) -> npt.NDArray[np.uint32]:
        """Returns the ids of a text as a numpy array of uint32, without making Python ints.

        Needs numpy. Errors are those of `encode`.

        Args:
            text, allowed_special, disallowed_special: As in `encode`.
            num_threads: How many threads may work on the text, or None for as many as the machine
                runs at once. Texts under some 128 KB, and patterns without a known safe place to
                cut, are left to one thread. The ids are the same.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.encode_to_numpy("hello world").tolist()
        [31373, 995]
        >>> len(gpt2.encode_to_numpy("hello world! " * 50_000, num_threads=2))
        150001
        """
        np = numpy_for("encode_to_numpy", "encode")
        if num_threads == 1:
            buffer = self._core_bpe.encode_to_tiktoken_buffer(
                text, allowed_special, disallowed_special
            )
        else:
            buffer = self._core_bpe.encode_to_buffer_on_threads(
                text, num_threads, allowed_special, disallowed_special
            )
        return np.frombuffer(buffer, dtype=np.uint32)  # type: ignore[no-any-return]

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """Returns `encode_ordinary` of each text, on up to `num_threads` threads.

        An `encode_ordinary` that a subclass or an instance overrides is called instead.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_ordinary_batch(["hello world", "goodbye"])
        [[31373, 995], [11274, 16390]]
        """
        if self._overrides("encode_ordinary"):
            return _on_threads(self.encode_ordinary, text, num_threads)
        return self._core_bpe.encode_batch(text, num_threads, set(), ())

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[list[int]]:
        """Returns `encode` of each text, on up to `num_threads` threads.

        Raises the error of the first text that has one. An `encode` that a subclass or an instance
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
        return self._core_bpe.encode_batch(text, num_threads, allowed_special, disallowed_special)

    def _overrides(self, name: str) -> bool:
        """True if a subclass or this instance overrides a method."""
        method = getattr(type(self), name, None)
        return name in self.__dict__ or method is not getattr(NativeEncoding, name)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = None,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> TokenBatch:
        """Returns `encode` of each text as rows of one numpy array. Needs numpy.

        Args:
            texts: A list of str; a numpy array of strings; or a column of strings from pyarrow,
                pandas, polars or another package that exports Arrow data. With the extra
                ``arrays``, text of the types ``string`` and ``large_string`` is read where it is,
                and no str is made of it; views and dictionaries are converted first.
            num_threads: How many threads may work on the batch, or None for as many as the machine
                runs at once. Small batches are left to fewer.
            allowed_special, disallowed_special: As in `encode`.

        Returns:
            A `TokenBatch`: ``values``, the ids of all texts (uint32), and ``row_splits``,
            ``len(texts) + 1`` places in it (int64). Its rows are the texts.

        Raises:
            TypeError: `texts` is neither a list nor a column of strings.
            ValueError: A row is null, a row of a column is not UTF-8, a column's buffers do not fit
                together, or a text holds a disallowed name.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> batch = gpt2.encode_batch_to_numpy(["hello world", "", "goodbye"])
        >>> batch.values.tolist(), batch.row_splits.tolist()
        ([31373, 995, 11274, 16390], [0, 2, 2, 4])
        """
        np = numpy_for("encode_batch_to_numpy", "encode_batch")
        from .columns import parts_of
        from .ragged import TokenBatch

        buffer, splits = self._core_bpe.encode_ragged(
            parts_of(texts), num_threads, allowed_special, disallowed_special
        )
        return TokenBatch._of(
            np.frombuffer(buffer, dtype=np.uint32), np.frombuffer(splits, dtype=np.int64)
        )

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """Returns the stable ids of an unfinished text, and the possible completions of its rest.

        The arguments and errors are those of `encode`.

        Returns:
            The ids of a prefix that stay the same whatever follows, and every sequence of ids that
            the rest of the text may become. Each sequence covers the rest and ends with the token
            that reaches or passes its end. Their order has no meaning.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> stable, completions = gpt2.encode_with_unstable("hello fan")
        >>> stable, gpt2.encode(" fantastic") in completions
        ([31373], True)
        """
        return self._core_bpe.encode_with_unstable(text, allowed_special, disallowed_special)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Returns the id of one token, special or not, given as text or as bytes.

        Raises:
            KeyError: The token does not exist.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_single_token("hello")
        31373
        """
        return self._core_bpe.encode_single_token(text_or_bytes)

    def encode_with_offsets(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Returns the ids of a text, and the span of characters that each comes from.

        The arguments and errors are those of `encode`.

        Returns:
            The ids, and for each a span ``(start, end)``, as in ``text[start:end]``. A token with
            only some bytes of a character has the whole character, so spans may overlap. Spans
            refer to the text as given, also where the encoding normalizes it.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_with_offsets("hello world")
        ([31373, 995], [(0, 5), (5, 11)])
        """
        return self._core_bpe.encode_with_offsets(text, allowed_special, disallowed_special)

    # ---- Prompts of trusted and untrusted parts (the others are in `PromptMethods`) ----

    @property
    def _native_engine(self) -> CoreBPE:
        return self._core_bpe

    def conversation(
        self,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> Conversation:
        """Returns a `bpe_engine.prompt.Conversation`, which encodes a growing prompt at the cost of
        its changes. The arguments are those of `encode`.

        >>> import bpe_engine
        >>> conversation = bpe_engine.get_encoding("gpt2").conversation()
        >>> conversation.update("hello world").ids
        [31373, 995]
        """
        return Conversation(self, allowed_special, disallowed_special)

    def stable_prefix(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> tuple[list[int], int]:
        """Returns the ids that are known to stay whatever follows a text, and how many of its
        characters they cover. The arguments and errors are those of `encode`.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").stable_prefix("hello world, how are y")
        ([31373, 995, 11, 703, 389], 20)
        """
        return stable(self, text, allowed_special, disallowed_special)

    # ---- Counting, cutting, searching ----

    def count(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> int:
        """Returns the number of tokens of a text, without making a list of them.

        Unlike `encode`, it raises on names of special tokens only if `disallowed_special` asks for
        it: a name that is not allowed is counted as ordinary text.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").count("hello world")
        2
        """
        return self._core_bpe.count(text, None, allowed_special, disallowed_special)

    def count_till_limit(
        self,
        text: str,
        limit: int,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> int | None:
        """Returns the number of tokens of a text, or None if it is over `limit`.

        Stops as soon as the limit is passed, so a small limit on a huge text costs little. (A piece
        is merged as a whole, and ``qwen`` normalizes text that is not NFC as a whole.)

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.count_till_limit("hello world", 2), gpt2.count_till_limit("hello world", 1)
        (2, None)
        """
        limit = min(whole_number("limit", limit), _NO_LIMIT)
        total = self._core_bpe.count(text, limit, allowed_special, disallowed_special)
        return total if total <= limit else None

    def split(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> list[str]:
        """Returns the pieces of a text, which are encoded one by one.

        Each allowed special token is a piece. Where the encoding normalizes text, the pieces are
        those of the normalized text.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").split("It's 10 o'clock.")
        ['It', "'s", ' 10', ' o', "'", 'clock', '.']
        """
        return self._core_bpe.split(text, allowed_special, disallowed_special)

    def show(
        self,
        text: str | Sequence[Segment | tuple[Any, ...]],
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
    ) -> ShownTokens:
        """Returns the tokens of a text for people: colored chips in a notebook.

        Hover over a chip for its id, bytes and place.

        Args:
            text: The text; or the segments of a prompt, as `encode_segments` takes them.
            allowed_special: As in `count`; segments have their own.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").show("It isn't 🦜!")
        It|·isn|'t|·🦜|‥|‥|!
        7 tokens, gpt2
        """
        from .shown import ShownTokens, place_tokens, shown_tokens

        if isinstance(text, str):
            ids, spans = self.encode_with_offsets(
                text, allowed_special=allowed_special, disallowed_special=()
            )
            tokens = self.decode_tokens_bytes(ids)
        else:
            ids = self.encode_segments(text)
            tokens = self.decode_tokens_bytes(ids)
            text, spans = place_tokens(tokens)
        special = self._special_token_values
        return ShownTokens(self.name, shown_tokens(text, ids, tokens, spans, special))

    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        side: Literal["right", "left"] = "right",
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> str:
        """Truncates text to at most `max_tokens` tokens.

        Keeps a prefix (suffix) that ends (begins) where a token of the text's own encoding ends
        and that encodes to at most `max_tokens` tokens. Text that fits is returned as it is.
        Characters, surrogate pairs, allowed special tokens and characters that normalization
        rewrites together are not cut apart; if the first (last) of them does not fit, nothing is
        kept. If no word or number ends in the 4,096 bytes before a suffix (as in a ruler or a very
        long word), it may begin inside a token of the text.

        Args:
            text: The text.
            max_tokens: The largest number of tokens of the result when it is encoded.
            side: The side that is cut off: ``"right"`` keeps a prefix, ``"left"`` a suffix.
            allowed_special, disallowed_special: As in `count`.

        Raises:
            ValueError: `max_tokens` is negative, or `side` is something else.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.truncate("one two three", 2), gpt2.truncate("one two three", 2, side="left")
        ('one two', ' two three')
        """
        max_tokens = min(whole_number("max_tokens", max_tokens), _NO_LIMIT)
        if side not in ("right", "left"):
            raise ValueError(f"side must be 'right' or 'left', not {side!r}")
        kept = self._core_bpe.truncate(
            text, max_tokens, side == "left", allowed_special, disallowed_special
        )
        return text[:kept] if side == "right" else text[len(text) - kept :]

    def chunk(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> list[str]:
        """Cuts text into chunks of at most `max_tokens` tokens each.

        Args:
            text: The text.
            max_tokens: The largest number of tokens of a chunk when it is encoded.
            overlap: The largest number of tokens at the end of a chunk that the next one repeats.
            allowed_special, disallowed_special: As in `count`. Allowed special tokens are not cut
                apart.

        Returns:
            Slices of the text that end where tokens of the text's own encoding end. Without
            overlap they are the text when they are joined; an empty text has none. Characters
            that share a token, or that normalization rewrites together, are cut apart only if
            they do not fit into one chunk.

        Raises:
            ValueError: `max_tokens` is not positive or too small for a character of the text, or
                `overlap` is negative or not smaller than `max_tokens`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.chunk("one two three four", 2)
        ['one two', ' three four']
        >>> gpt2.chunk("one two three four", 2, overlap=1)
        ['one two', ' two three', ' three four']
        """
        max_tokens, overlap = _chunk_sizes(max_tokens, overlap)
        spans = self._core_bpe.chunk(text, max_tokens, overlap, allowed_special, disallowed_special)
        return [text[start:end] for start, end in spans]

    def chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
    ) -> list[ChunkSpan]:
        """Cuts text into chunks of at most `max_tokens` tokens each, preferably between paragraphs.

        A chunk ends after the last paragraph that ends in its second half, or else after the last
        line or sentence there, or else after the last word, or else where `chunk` would cut.

        Args:
            text: The text.
            max_tokens: The largest number of tokens of a chunk when it is encoded.
            overlap: The largest number of tokens at the end of a chunk that the next one repeats,
                from the beginning of a sentence, or else of a word.
            allowed_special: As in `count`.

        Returns:
            The first character of each chunk, the one after its last, and its number of tokens.
            Without overlap, the chunks joined are the text.

        Raises:
            ValueError: As in `chunk`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> text = "One cat. Two cats.\\n\\nA dog is not a cat."
        >>> spans = gpt2.chunk_spans(text, 8)
        >>> spans[0]
        ChunkSpan(start=0, end=20, tokens=7)
        >>> [text[start:end] for start, end, _ in spans]
        ['One cat. Two cats.\\n\\n', 'A dog is not a cat.']
        """
        from .chunks import chunk_spans

        max_tokens, overlap = _chunk_sizes(max_tokens, overlap)
        return list(chunk_spans(self, text, max_tokens, overlap, allowed_special))

    def is_canonical(self, tokens: Sequence[int]) -> bool:
        """True if decoding and encoding these ids gives the same ids.

        Special tokens are encoded as special tokens, all else as ordinary text. Ids whose bytes
        are not UTF-8 are never canonical.

        Raises:
            KeyError: An id is not a token's.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.is_canonical([31373]), gpt2.is_canonical([258, 18798])
        (True, False)
        """
        return self._core_bpe.is_canonical(tokens)

    def find_special(self, text: str) -> list[tuple[str, int, int]]:
        """Returns ``(name, start, end)`` of each special token's name in a text, in characters.

        Of overlapping names, the leftmost counts; of those that start together, the longest.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").find_special("a<|endoftext|>")
        [('<|endoftext|>', 1, 14)]
        """
        return self._core_bpe.find_special(text)

    # ---- Decoding ----

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Decodes ids to bytes.

        Raises:
            KeyError: An id is not a token's.
            OverflowError: A number is outside the range of ids.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_bytes([31373, 995])
        b'hello world'
        """
        return self._core_bpe.decode_bytes(tokens)

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Decodes ids to text.

        Args:
            tokens: A list, tuple, numpy array or other sequence of ids.
            errors: How to treat bytes that are not UTF-8, as in ``bytes.decode``. By default they
                become U+FFFD, which loses information.

        Raises:
            KeyError: An id is not a token's.
            OverflowError: A number is outside the range of ids.
            UnicodeDecodeError: The bytes are not UTF-8, and `errors` is ``"strict"``.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode([31373, 995])
        'hello world'
        """
        check_errors(errors)
        return self._core_bpe.decode(tokens, errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Returns the bytes of one token, special or not.

        Raises:
            KeyError: The id is not a token's.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_single_token_bytes(31373)
        b'hello'
        """
        return self._core_bpe.decode_single_token_bytes(token)

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """Returns the bytes of each token.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_tokens_bytes([31373, 995])
        [b'hello', b' world']
        """
        return self._core_bpe.decode_tokens_bytes(tokens)

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """Decodes ids to text, and returns the index of the character at which each token starts.

        A token that starts inside a character has the index of that character. Bytes that are
        not UTF-8 become U+FFFD, as in `decode`.

        Raises:
            KeyError: An id is not a token's.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_with_offsets([31373, 995])
        ('hello world', [0, 5])
        """
        return self._core_bpe.decode_with_offsets(tokens)

    def decode_batch(
        self,
        batch: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]] | TokenBatch,
        *,
        errors: str = "replace",
        num_threads: int = 8,
    ) -> list[str]:
        """Returns `decode` of each row of ids, on up to `num_threads` threads.

        The rows of a `TokenBatch` are read without a copy.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_batch([[31373, 995], [11274, 16390]])
        ['hello world', 'goodbye']
        """
        check_errors(errors)
        if (ragged := _as_ragged(batch)) is not None:
            return self._core_bpe.decode_ragged(
                ragged.values, ragged.row_splits, errors, num_threads
            )
        return self._core_bpe.decode_batch(batch, errors, num_threads)

    def decode_bytes_batch(
        self,
        batch: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]] | TokenBatch,
        *,
        num_threads: int = 8,
    ) -> list[bytes]:
        """Returns `decode_bytes` of each row of ids, as `decode_batch` does.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_bytes_batch([[31373, 995]])
        [b'hello world']
        """
        if (ragged := _as_ragged(batch)) is not None:
            return self._core_bpe.decode_ragged(ragged.values, ragged.row_splits, None, num_threads)
        return self._core_bpe.decode_bytes_batch(batch, num_threads)

    def stream_decoder(
        self, errors: str = "replace", prompt: int | Sequence[int] = ()
    ) -> StreamDecoder:
        """Returns a `StreamDecoder`, for ids that arrive one by one.

        Args:
            errors: As in `decode`.
            prompt: The id or ids before the first of the stream. Their text is not part of the
                stream.

        >>> import bpe_engine
        >>> decoder = bpe_engine.get_encoding("gpt2").stream_decoder()
        >>> [decoder.push(id) for id in (162, 254, 117)], decoder.finish()
        (['', '', '根'], '')
        """
        return StreamDecoder(self, errors=errors, prompt=prompt)

    def clear_cache(self) -> None:
        """Empties the caches of pieces. Results do not depend on them."""
        self._core_bpe.clear_cache()

    def set_caching(self, caching: bool) -> None:
        """Turns the caches of pieces on or off, and empties them.

        They are on unless the environment variable ``BPE_ENGINE_CACHE`` is ``off`` when the
        encoding is made. Text that is cached takes less time, so one user could learn by timing
        whether another one sent the same words. Turn the caches off where that matters: results
        stay the same, and the memory is freed.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.set_caching(False)
        >>> gpt2.is_caching, gpt2.encode("hello world")
        (False, [31373, 995])
        >>> gpt2.set_caching(True)
        """
        self._core_bpe.set_caching(truth("caching", caching))

    @property
    def is_caching(self) -> bool:
        """True if pieces of text are cached; see `set_caching`."""
        return self._core_bpe.is_caching

    def set_cache_size(self, size: int) -> None:
        """Sets the size of each cache of pieces, and empties the caches.

        Each concurrent call uses its own cache, up to 16. The default of 8 MiB fits the cache of a
        processor; for texts of several MB with many different words (Chinese, many languages)
        that are encoded more than once, 64 MiB take less time. Results are the same with any size.
        The environment variable ``BPE_ENGINE_CACHE_SIZE`` sets the size when an encoding is made: a
        number of bytes, or of ``KiB``, ``MiB`` or ``GiB`` as in ``64 MiB``.

        Args:
            size: Bytes, from 65,536 (64 KiB) to 1,073,741,824 (1 GiB); rounded down to a power
                of two.

        Raises:
            ValueError: The size is too small or too large. To turn caches off, use `set_caching`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.set_cache_size(64 * 2**20)
        >>> gpt2.cache_size
        67108864
        >>> gpt2.set_cache_size(8 * 2**20)
        """
        self._core_bpe.set_cache_size(memory_size("size", size))

    @property
    def cache_size(self) -> int:
        """The size of one cache in bytes, a power of two; see `set_cache_size`."""
        return self._core_bpe.cache_size

    # ---- The vocabulary ----

    @property
    def pattern(self) -> str:
        """The regular expression that cuts text into pieces."""
        return self._pat_str

    @property
    def normalization(self) -> str | None:
        """The Unicode normalization form that text is brought into first: "NFC" or None.

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
        """The bytes and ids of all tokens but the special ones, read-only.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").mergeable_ranks[b" world"]
        995
        """
        return MappingProxyType(self._mergeable_ranks)

    def token_byte_values(self) -> list[bytes]:
        """Returns the bytes of all tokens but the special ones, sorted."""
        return self._core_bpe.token_byte_values()

    @property
    def fingerprint(self) -> str:
        """The encoding's fingerprint: a SHA-256, in hexadecimal, of all that decides its ids.

        Encodings with the same pattern, ranks, special tokens and normalization have the same one,
        on every machine and in every version. The name is not in it. Computed on first use.

        >>> import bpe_engine
        >>> gpt2, r50k = bpe_engine.get_encoding("gpt2"), bpe_engine.get_encoding("r50k_base")
        >>> gpt2.fingerprint == r50k.fingerprint, gpt2
        (True, <Encoding 'gpt2' bc98d100a6f5>)
        """
        return self._core_bpe.fingerprint()

    @property
    def eot_token(self) -> int:
        """The id of ``<|endoftext|>``; raises KeyError if the encoding lacks it."""
        return self._special_tokens["<|endoftext|>"]

    @property
    def special_tokens_set(self) -> set[str]:
        """The names of the special tokens."""
        return self._special_tokens_set

    def is_special_token(self, token: int) -> bool:
        """True if `token` is the id of a special token.

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
        """One more than the largest id: ``max_token_value + 1``."""
        return self.max_token_value + 1

    # An instance made from a dict has that dict under this name.
    _mergeable_ranks = _LazyRanks()

    # ---- Private in tiktoken, but used by programs ----

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """Encodes a text as one piece, without special tokens."""
        return self._core_bpe.encode_single_piece(text_or_bytes)

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """`encode_ordinary` with pieces from the package `regex`, for comparison."""
        import regex  # type: ignore[import-untyped,unused-ignore]

        pieces = regex.findall(self._pat_str, text)
        return [id for piece in pieces for id in self._core_bpe.encode_single_piece(piece)]

    def _encode_bytes(self, text: bytes) -> list[int]:
        """Encodes bytes that need not be UTF-8."""
        return self._core_bpe._encode_bytes(text)

    # ---- Pickle and copy ----

    def __getstate__(self) -> object:
        # Encodings from the registry are pickled as their names.
        if self is _named.get(self.name):
            return self.name
        state = {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }
        # tiktoken passes every item to its class.
        return state | ({"normalization": self._normalization} if self._normalization else {})

    def __setstate__(self, value: Any) -> None:
        if isinstance(value, str):
            self.__dict__ = _get_encoding(value).__dict__
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


def _chunk_sizes(max_tokens: int, overlap: int) -> tuple[int, int]:
    """Checks the sizes of chunks. Raises ValueError where they cannot be."""
    max_tokens = whole_number("max_tokens", max_tokens, at_least=1)
    overlap = whole_number("overlap", overlap)
    if overlap >= max_tokens:
        raise ValueError(
            f"overlap must be smaller than max_tokens, but is {overlap} of {max_tokens}"
        )
    return min(max_tokens, _NO_LIMIT), min(overlap, _NO_LIMIT - 1)


def _as_ragged(batch: object) -> TokenBatch | None:
    """Returns a `TokenBatch` or None, without importing the module of that class."""
    module = sys.modules.get(f"{__package__}.ragged")
    return batch if module is not None and isinstance(batch, module.TokenBatch) else None


def _on_threads(
    encode: Callable[[str], list[int]], texts: Iterable[str], num_threads: int
) -> list[list[int]]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(num_threads) as executor:
        return list(executor.map(encode, texts))


# The encodings made by name, and the function that gets one.
_named: Mapping[str, Encoding] = {}
_get_encoding: Callable[[str], Encoding]


def name_encodings(named: Mapping[str, Encoding], get: Callable[[str], Encoding]) -> None:
    """Sets where pickles find encodings by name; called by `registry`."""
    global _named, _get_encoding
    _named, _get_encoding = named, get


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raises the ValueError for a special token's name in a text where it is disallowed."""
    raise ValueError(disallowed_special_message(token))
