"""`Encoding`: text to token ids and back."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterable, Mapping
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
from .prompt import encode as segment_encoding
from .prompt.conversation import Conversation, stable
from .stream import StreamDecoder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .prompt.encode import Audit, OnControl
    from .prompt.segments import Segment
    from .ragged import TokenBatch

__all__ = ["Encoding", "raise_disallowed_special_token"]

# No text has so many tokens, so that a larger limit means no more than this one.
_NO_LIMIT = sys.maxsize


class Encoding(NativeEncoding):
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
    ):
        """An encoding of your own.

        Args:
            name: What to call it. Encodings with other special tokens should have other names.
            pat_str: The regular expression that cuts text into pieces. Tokens never cross the
                border of a piece; text that it does not match is dropped.
            mergeable_ranks: Token bytes and their ids, which are also the order of merging:
                lowest first. Ids may have gaps.
            special_tokens: The names of special tokens and their ids.
            explicit_n_vocab: How many ids there should be. If given, ids must run from 0 to
                ``explicit_n_vocab - 1`` without a gap. 0 is the same as None: nothing is checked.

        Raises:
            TypeError: An argument has another type; the message names it.
            ValueError: An id comes twice, a special token's name is empty, holds a surrogate or
                its id is taken, the pattern does not compile, or ``explicit_n_vocab`` does not
                add up.

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
        # Copies: what the caller does to the dicts later must not show here.
        mergeable_ranks = copied_dict("mergeable_ranks", mergeable_ranks)
        special_tokens = copied_special_tokens(special_tokens)
        self._init(
            name,
            CoreBPE(mergeable_ranks, special_tokens, pat_str),
            pat_str,
            special_tokens,
            normalization=None,
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
        """An encoding around a native one that exists already, which must have been made with
        the same pattern, special tokens and normalization."""
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
        return f"<Encoding {self.name!r}>"

    # ---- Encoding (`encode` and `encode_ordinary` are native, in `NativeEncoding`) ----

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
        num_threads: int | None = 1,
    ) -> npt.NDArray[np.uint32]:
        """The ids of a text as a numpy array of uint32, without making Python ints. Needs numpy.

        Args:
            text, allowed_special, disallowed_special: As in `encode`, and so are the errors.
            num_threads: How many threads may work on the text, or None for as many as the machine
                runs at once. It pays from some 128 KB on; shorter texts, and texts and patterns
                for which no harmless place to cut is known, are left to one thread. The ids are
                the same.

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
        """`encode_ordinary` of each text, on up to `num_threads` threads.

        Where a subclass or an instance has an `encode_ordinary` of its own, that one is called.

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
        """`encode` of each text, on up to `num_threads` threads.

        An error in one text is raised; of several, that of the first text. Where a subclass or an
        instance has an `encode` of its own, that one is called.

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
        """Whether a subclass or this instance has a method of its own under this name."""
        method = getattr(type(self), name, None)
        return name in self.__dict__ or method is not getattr(NativeEncoding, name)

    def encode_batch_to_numpy(
        self,
        text: list[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """`encode` of each text, on up to `num_threads` threads, as two numpy arrays.

        The arguments and errors are those of `encode_batch`. Needs numpy.

        Returns:
            The ids of all texts one after the other (uint32), and ``len(text) + 1`` row splits
            (int64): the ids of text ``i`` are ``ids[row_splits[i]:row_splits[i + 1]]``.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> ids, row_splits = gpt2.encode_batch_to_numpy(["hello world", "", "goodbye"])
        >>> ids.tolist(), row_splits.tolist()
        ([31373, 995, 11274, 16390], [0, 2, 2, 4])
        """
        np = numpy_for("encode_batch_to_numpy", "encode_batch")
        buffer, splits = self._core_bpe.encode_batch_to_buffer(
            text, num_threads, allowed_special, disallowed_special
        )
        ids = np.frombuffer(buffer, dtype=np.uint32)
        return ids, np.frombuffer(splits, dtype=np.int64)

    def encode_batch_ragged(
        self,
        texts: Iterable[str],
        num_threads: int | None = None,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> TokenBatch:
        """`encode` of each text, as rows of one numpy array. Needs numpy.

        Args:
            texts: A list of str; a numpy array of strings; or a column of strings: of pyarrow
                (``string``, ``large_string``, chunked or not), pandas, polars or another package
                that gives out Arrow data. With the extra ``arrow``, the text of such a column is
                read where it is, and no str is made of it. Views and dictionaries are converted
                first.
            num_threads: How many threads may work on the batch, or None for as many as the machine
                runs at once. Small batches are left to fewer.
            allowed_special, disallowed_special: As in `encode`.

        Raises:
            TypeError: The texts are no list and no column of strings.
            ValueError: A row is null, a row of a column is not UTF-8, a column's buffers do not fit
                together, or a text holds a disallowed name.

        >>> import bpe_engine
        >>> batch = bpe_engine.get_encoding("gpt2").encode_batch_ragged(["hello world", "", "a"])
        >>> batch.values, batch.row_splits
        (array([31373,   995,    64], dtype=uint32), array([0, 2, 2, 3]))
        """
        from .columns import parts_of
        from .ragged import TokenBatch

        np = numpy_for("encode_batch_ragged", "encode_batch")
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
        """What a text that is still being written may become.

        The arguments and errors are those of `encode`.

        Returns:
            The ids that stay whatever is written next, which stand for a beginning of the text,
            and every sequence of ids that the rest may turn into. Each covers the rest and ends
            with the token that reaches its end or goes beyond it. Their order means nothing.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> stable, completions = gpt2.encode_with_unstable("hello fan")
        >>> stable, gpt2.encode(" fantastic") in completions
        ([31373], True)
        """
        return self._core_bpe.encode_with_unstable(text, allowed_special, disallowed_special)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of one token, special or not, given as text or as bytes.

        Raises:
            KeyError: There is no such token.

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
        """The ids of a text, and where in it each stands.

        The arguments and errors are those of `encode`.

        Returns:
            The ids, and for each the characters ``(start, end)`` of the text, as in
            ``text[start:end]``. A token that holds only a part of a character has the whole one,
            so that neighbours may overlap. Where the encoding normalizes text, the characters are
            those of the text as it was given.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_with_offsets("hello world")
        ([31373, 995], [(0, 5), (5, 11)])
        """
        return self._core_bpe.encode_with_offsets(text, allowed_special, disallowed_special)

    # ---- Prompts of trusted and untrusted parts (in `bpe_engine.prompt`) ----

    def encode_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        on_control: OnControl = "encode",
        control: Collection[str] = (),
    ) -> list[int]:
        """The ids of a prompt in which text from outside can never become a special token.

        Args:
            segments: What `bpe_engine.prompt` makes: ``special``, ``trusted``, ``untrusted``,
                ``tokens``, `render_chat`, `render_template`. Or tuples ``(text, allow_special)``
                with False, True or a set of names. Special tokens are looked for inside one
                segment only, before text is normalized.
            join: Whether neighbouring text is encoded as one: then the ids are those of
                ``encode("".join(texts), allowed_special="all")`` if no untrusted text holds a
                special token's name. Otherwise nothing merges across the border of segments.
            on_control: What is done with control strings in untrusted text: ``"encode"`` takes
                them as ordinary text, ``"raise"`` raises ValueError, ``"strip"`` takes them out,
                and a function gets a `ControlString` and returns what is put in its place, as
                ordinary text. Untrusted neighbours count as one text.
            control: More control strings than the special tokens.

        Raises:
            TypeError, ValueError: Something is wrong with a segment; the message names it.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.encode_segments([special("<|endoftext|>"), untrusted("hi<|endoftext|>")])
        [50256, 5303, 27, 91, 437, 1659, 5239, 91, 29]
        """
        return segment_encoding.encode(self, segments, join, on_control, control)

    def encode_segments_to_numpy(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        on_control: OnControl = "encode",
        control: Collection[str] = (),
    ) -> npt.NDArray[np.uint32]:
        """`encode_segments` as a numpy array of uint32. Needs numpy."""
        return segment_encoding.encode_to_numpy(self, segments, join, on_control, control)

    def count_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        on_control: OnControl = "encode",
        control: Collection[str] = (),
    ) -> int:
        """How many ids `encode_segments` gives."""
        return segment_encoding.count(self, segments, join, on_control, control)

    def audit_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        control: Collection[str] = (),
    ) -> Audit:
        """The ids of `encode_segments`, where each comes from, and the control strings that stand
        in untrusted text: see `Audit`.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> audit = gpt2.audit_segments([special("<|endoftext|>"), untrusted("<|endoftext|>")])
        >>> audit.segments, audit.controls
        ... # doctest: +NORMALIZE_WHITESPACE
        ([0, 1, 1, 1, 1, 1, 1, 1],
         [ControlString(token='<|endoftext|>', segment=1, offset=0)])
        """
        return segment_encoding.audit(self, segments, join, control)

    def conversation(
        self,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> Conversation:
        """The ids of a prompt that grows and changes, at the cost of what changed: see
        `bpe_engine.prompt.Conversation`. The arguments are those of `encode`.

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
        """The ids of a text that stay whatever follows it, as far as that is known, and how many
        characters of the text they stand for. The arguments and errors are those of `encode`.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").stable_prefix("hello world, how are y")
        ([31373, 995, 11, 703, 389], 20)
        """
        return stable(self, text, allowed_special, disallowed_special)

    # ---- Counting, cutting, looking ----

    def count(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> int:
        """How many tokens a text has, without making a list of them.

        Unlike `encode` it does not raise on the names of special tokens, unless
        `disallowed_special` asks for it: a name that is not allowed is counted as ordinary text.

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
        """How many tokens a text has, or None if they are more than `limit`.

        It stops as soon as that is known, so that a small limit on a huge text costs little. (A piece is
        merged as a whole, however long, and text that is not NFC is normalized as a whole for ``qwen``.)

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
        """The pieces that a text is cut into before tokens are looked for in each.

        Allowed special tokens are pieces of their own. Where the encoding normalizes text, the
        pieces are those of the normalized text.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").split("It's 10 o'clock.")
        ['It', "'s", ' 10', ' o', "'", 'clock', '.']
        """
        return self._core_bpe.split(text, allowed_special, disallowed_special)

    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        side: Literal["right", "left"] = "right",
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> str:
        """As much of a text as fits into a number of tokens.

        Args:
            text: The text.
            max_tokens: How many tokens the result may have when it is encoded.
            side: Where text is cut off: ``"right"`` returns the longest prefix that fits,
                ``"left"`` the longest suffix. Surrogate pairs are not cut apart. Among more than
                64 characters in which no word or number ends (a ruler, a very long word) it is
                cut where one character more would be too much, although a still longer part may
                fit. So it is where finding the longest takes much more work than encoding it, as in
                long runs of marks that normalization puts in another order.
            allowed_special, disallowed_special: As in `count`. The result may end inside the name
                of an allowed special token, which is ordinary text then.

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
        start, end = self._core_bpe.truncate(
            text, max_tokens, side == "left", allowed_special, disallowed_special
        )
        return text[start:end]

    def chunk(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = set(),  # noqa: B006
        disallowed_special: Literal["all"] | Collection[str] = (),
    ) -> list[str]:
        """A text in chunks that fit into a number of tokens.

        Args:
            text: The text.
            max_tokens: How many tokens each chunk may have when it is encoded.
            overlap: How many tokens at the end of a chunk the next one may begin with again.
            allowed_special, disallowed_special: As in `count`. No chunk is cut inside an allowed
                special token.

        Returns:
            Slices of the text, cut between characters, each as long as fits but for what
            `truncate` says of long stretches and of text that needs many tries; the longer such
            a text, the fewer. Without overlap they are the text when they are joined; of an
            empty text there are none.

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
        max_tokens = whole_number("max_tokens", max_tokens, at_least=1)
        overlap = whole_number("overlap", overlap)
        if overlap >= max_tokens:
            raise ValueError(
                f"overlap must be smaller than max_tokens, but is {overlap} of {max_tokens}"
            )
        max_tokens, overlap = min(max_tokens, _NO_LIMIT), min(overlap, _NO_LIMIT - 1)
        spans = self._core_bpe.chunk(text, max_tokens, overlap, allowed_special, disallowed_special)
        return [text[start:end] for start, end in spans]

    def is_canonical(self, tokens: Sequence[int]) -> bool:
        """Whether encoding the text of these ids gives these ids.

        Special tokens among them count as special tokens, everything else as ordinary text. Ids
        whose bytes are not UTF-8 are never canonical.

        Raises:
            KeyError: An id stands for no token.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.is_canonical([31373]), gpt2.is_canonical([258, 18798])
        (True, False)
        """
        return self._core_bpe.is_canonical(tokens)

    def find_special(self, text: str) -> list[tuple[str, int, int]]:
        """The names of special tokens in a text: ``(name, start, end)`` of each, in characters.

        Where names overlap, the leftmost counts, and of those that start together the longest.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").find_special("a<|endoftext|>")
        [('<|endoftext|>', 1, 14)]
        """
        return self._core_bpe.find_special(text)

    # ---- Decoding ----

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes that ids stand for.

        Raises:
            KeyError: An id stands for no token.
            OverflowError: A number cannot be an id.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_bytes([31373, 995])
        b'hello world'
        """
        return self._core_bpe.decode_bytes(tokens)

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """The text that ids stand for.

        Args:
            tokens: A list, tuple, numpy array or other sequence of ids.
            errors: What to do with bytes that are not UTF-8, as for ``bytes.decode``. By default
                they become U+FFFD, so that decoding may lose something.

        Raises:
            KeyError: An id stands for no token.
            OverflowError: A number cannot be an id.
            UnicodeDecodeError: With ``errors="strict"``, if the bytes are not UTF-8.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode([31373, 995])
        'hello world'
        """
        check_errors(errors)
        return self._core_bpe.decode(tokens, errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id, special or not.

        Raises:
            KeyError: The id stands for no token.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_single_token_bytes(31373)
        b'hello'
        """
        return self._core_bpe.decode_single_token_bytes(token)

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """The bytes of each id.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_tokens_bytes([31373, 995])
        [b'hello', b' world']
        """
        return self._core_bpe.decode_tokens_bytes(tokens)

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """The text that ids stand for, and the character at which each token starts.

        A token that starts inside a character has the index of that character. Bytes that are
        not UTF-8 become U+FFFD, as in `decode`.

        Raises:
            KeyError: An id stands for no token.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_with_offsets([31373, 995])
        ('hello world', [0, 5])
        """
        return self._core_bpe.decode_with_offsets(tokens)

    def decode_batch(
        self,
        batch: Sequence[Sequence[int]] | TokenBatch,
        *,
        errors: str = "replace",
        num_threads: int = 8,
    ) -> list[str]:
        """`decode` of each sequence of ids, on up to `num_threads` threads. A `TokenBatch` is read
        as it is.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_batch([[31373, 995], [11274, 16390]])
        ['hello world', 'goodbye']
        """
        check_errors(errors)
        if (ragged := _as_ragged(batch)) is not None:
            return self._core_bpe.decode_ragged(
                ragged.values, ragged.row_splits, errors, num_threads
            )
        return self._core_bpe.decode_batch(batch, errors, num_threads)  # type: ignore[arg-type]

    def decode_bytes_batch(
        self, batch: Sequence[Sequence[int]] | TokenBatch, *, num_threads: int = 8
    ) -> list[bytes]:
        """`decode_bytes` of each sequence of ids, on up to `num_threads` threads. A `TokenBatch` is
        read as it is.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_bytes_batch([[31373, 995]])
        [b'hello world']
        """
        if (ragged := _as_ragged(batch)) is not None:
            return self._core_bpe.decode_ragged(ragged.values, ragged.row_splits, None, num_threads)
        return self._core_bpe.decode_bytes_batch(batch, num_threads)  # type: ignore[arg-type]

    def stream_decoder(
        self, errors: str = "replace", prompt: int | Sequence[int] = ()
    ) -> StreamDecoder:
        """A decoder for ids that arrive one by one; see `StreamDecoder`.

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
        """Forgets what the engine remembers of texts it has seen. Results do not depend on it."""
        self._core_bpe.clear_cache()

    def set_caching(self, caching: bool) -> None:
        """Turns the memory for pieces of text on or off, and forgets what is in it.

        It is on to begin with, unless the environment variable ``BPE_ENGINE_CACHE`` is ``off``
        when the encoding is made. With it, text that was seen before takes less time, so that
        one user could find out by timing whether another one sent the same words. Turn it off
        where that matters: results stay the same, and the memory of the caches is given back.

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
        """Whether the engine remembers pieces of the texts it sees; see `set_caching`."""
        return self._core_bpe.is_caching

    def set_cache_size(self, size: int) -> None:
        """Sets how much memory the engine may take for pieces of text, and forgets what is in it.

        The size is that of one cache. Each call has one to itself, so there are as many as there
        were calls at the same time, 16 at most. The default of 8 MiB is what processors have near;
        for texts of several MB with many different words (Chinese, many languages) that are encoded
        more than once, 64 MiB take less time. Results are the same with any size. The
        environment variable ``BPE_ENGINE_CACHE_SIZE`` sets it when an encoding is made: a number of
        bytes, or one of ``KiB``, ``MiB`` or ``GiB`` as in ``64 MiB``.

        Args:
            size: Bytes, from 65,536 (64 KiB) to 1,073,741,824 (1 GiB); rounded down to a power
                of two.

        Raises:
            ValueError: The size is too small or too large. To have no cache, use `set_caching`.

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
        """The memory of one cache in bytes, a power of two; see `set_cache_size`."""
        return self._core_bpe.cache_size

    # ---- The vocabulary ----

    def token_byte_values(self) -> list[bytes]:
        """The bytes of every token that is no special token, sorted."""
        return self._core_bpe.token_byte_values()

    @property
    def eot_token(self) -> int:
        """The id of ``<|endoftext|>``. KeyError if the encoding has none."""
        return self._special_tokens["<|endoftext|>"]

    @functools.cached_property
    def special_tokens_set(self) -> set[str]:
        """The names of the special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether this is the id of a special token.

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

    @functools.cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        # An instance made from a dict has that dict here; this one is made when it is asked for.
        return self._core_bpe.mergeable_ranks()

    # ---- Private, but used by others ----

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """The ids of a text that is taken as one piece. No special tokens."""
        return self._core_bpe.encode_single_piece(text_or_bytes)

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """`encode_ordinary` with the pieces cut by the package `regex`. For comparison."""
        import regex  # type: ignore[import-untyped,unused-ignore]

        pieces = regex.findall(self._pat_str, text)
        return [id for piece in pieces for id in self._core_bpe.encode_single_piece(piece)]

    def _encode_bytes(self, text: bytes) -> list[int]:
        """The ids of bytes that need not be UTF-8."""
        return self._core_bpe._encode_bytes(text)

    # ---- Pickle and copy ----

    def __getstate__(self) -> object:
        # Encodings that the other side can get by name travel as their name.
        if self is _named.get(self.name):
            return self.name
        return {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
            "normalization": self._normalization,
        }

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


def _as_ragged(batch: object) -> TokenBatch | None:
    """The batch if it is a `TokenBatch`. Nobody has one who did not import its module."""
    module = sys.modules.get(f"{__package__}.ragged")
    return batch if module is not None and isinstance(batch, module.TokenBatch) else None


def _on_threads(
    encode: Callable[[str], list[int]], texts: Iterable[str], num_threads: int
) -> list[list[int]]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(num_threads) as executor:
        return list(executor.map(encode, texts))


# The encodings that have been made by name, and what gets one by name.
_named: Mapping[str, Encoding] = {}
_get_encoding: Callable[[str], Encoding]


def name_encodings(named: Mapping[str, Encoding], get: Callable[[str], Encoding]) -> None:
    """Says where pickles find encodings by name. `registry` does, when it is imported."""
    global _named, _get_encoding
    _named, _get_encoding = named, get


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raises the ValueError for the name of a special token that may not be in a text."""
    raise ValueError(disallowed_special_message(token))
