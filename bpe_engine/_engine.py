"""`EngineMethods`: the abilities that every tokenizer class has."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, AbstractSet, Any, ClassVar, Literal, overload

from ._arguments import memory_size, numpy_for, truth, whole_number
from ._core import Engine, StreamPool, TokenTable
from .abilities.stream import StreamDecoder
from .prompt import encode
from .prompt.conversation import Conversation, stable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .abilities.chunks import ChunkSpan, EncodedChunk
    from .abilities.healing import Healed, TokenTrie
    from .abilities.ragged import TokenBatch
    from .abilities.shown import ShownTokens
    from .prompt.audit import Audit
    from .prompt.encode import OnControl
    from .prompt.segments import Segment

__all__ = ["EngineMethods"]

Names = Literal["all"] | Collection[str]

# No text has more tokens, so a larger limit has no further effect.
_NO_LIMIT = sys.maxsize


class EngineMethods:
    """Counts, cuts, shows, encodes and decodes for `Encoding`, `bpe_engine.hf.Tokenizer` and
    `bpe_engine.Tokenizer`.

    All is about what ``encode`` gives for a text before the post-processor of a tokenizer file: without
    the special tokens around it, and once if a template repeats the text; and without the truncation and
    padding of the file. Places are those in the text as given, also where a normalizer changes it.

    ``allowed_special`` has the names in a text that become special tokens: a collection of names,
    or ``"all"``. By default an `Encoding` allows none, and the other classes allow all; a tokenizer
    file can allow all or none. ``disallowed_special`` has the names that raise ValueError, or
    ``"all"`` that are not allowed. Other names are ordinary text. Added tokens of a file that are
    not special are always looked for.
    """

    __slots__ = ()

    #: For methods that give ids; those that count and cut disallow nothing.
    _disallowed_by_default: ClassVar[Names] = ()
    _errors: ClassVar[str] = "replace"

    if TYPE_CHECKING:

        @property
        def _allowed_by_default(self) -> Names: ...

        @property
        def _native_engine(self) -> Engine: ...

        @property
        def _label(self) -> str: ...

        @property
        def fingerprint(self) -> str: ...

        @property
        def special_tokens_set(self) -> AbstractSet[str]: ...

        @property
        def _special_ids(self) -> AbstractSet[int]: ...

    def _names(self, allowed: Names | None, disallowed: Names | None) -> tuple[Names, Names]:
        return (
            self._allowed_by_default if allowed is None else allowed,
            self._disallowed_by_default if disallowed is None else disallowed,
        )

    # ---- Ids of a text ----

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names | None = None,
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
        # A tuple of all arguments would take as long as a word.
        allowed, disallowed = self._names(allowed_special, disallowed_special)
        return self._native_engine.encode_to_numpy(text, num_threads, allowed, disallowed)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = None,
        allowed_special: Names | None = None,
        disallowed_special: Names | None = None,
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
        from .abilities.columns import parts_of
        from .abilities.ragged import TokenBatch

        names = self._names(allowed_special, disallowed_special)
        buffer, splits = self._native_engine.encode_ragged(parts_of(texts), num_threads, *names)
        return TokenBatch._of(
            np.frombuffer(buffer, dtype=np.uint32), np.frombuffer(splits, dtype=np.int64)
        )

    def encode_with_offsets(
        self,
        text: str,
        *,
        unit: Literal["characters", "bytes"] = "characters",
        allowed_special: Names | None = None,
        disallowed_special: Names | None = None,
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Returns the ids of a text, and the span of the text that each comes from.

        Args:
            text, allowed_special, disallowed_special: As in `encode`.
            unit: The unit of spans: ``"characters"``, or ``"bytes"`` of the text's UTF-8.

        Returns:
            The ids, and for each a span ``(start, end)``, as in ``text[start:end]``. A token with
            only some bytes of a character has the whole character, so spans may overlap. In bytes,
            it has exactly those bytes if the bytes of the tokens are the bytes of the text; it has
            whole characters where a tokenizer file normalizes the text or puts a space before it.
            Spans refer to the text as given, also where a normalizer changes it. Those of a
            SentencePiece ``.model`` are sentencepiece's own, in both units.

        Raises:
            ValueError: `unit` is something else, or an error of `encode`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.encode_with_offsets("hello world")
        ([31373, 995], [(0, 5), (5, 11)])
        >>> gpt2.encode_with_offsets("🦜"), gpt2.encode_with_offsets("🦜", unit="bytes")[1]
        (([8582, 99, 250], [(0, 1), (0, 1), (0, 1)]), [(0, 2), (2, 3), (3, 4)])
        """
        if unit not in ("characters", "bytes"):
            raise ValueError(f"unit must be 'characters' or 'bytes', not {unit!r}")
        names = self._names(allowed_special, disallowed_special)
        return self._native_engine.encode_with_offsets(text, *names, unit)

    def conversation(
        self,
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names | None = None,
    ) -> Conversation:
        """Returns a `bpe_engine.prompt.Conversation`, which encodes a growing prompt at the cost of
        its changes. The arguments are those of `encode`.

        >>> import bpe_engine
        >>> conversation = bpe_engine.get_encoding("gpt2").conversation()
        >>> conversation.update("hello world").ids
        [31373, 995]
        """
        return Conversation(self, *self._names(allowed_special, disallowed_special))

    def stable_prefix(
        self,
        text: str,
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names | None = None,
    ) -> tuple[list[int], int]:
        """Returns the ids that are known to stay whatever follows a text, and how many of its
        characters they cover. The arguments and errors are those of `encode`.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").stable_prefix("hello world, how are y")
        ([31373, 995, 11, 703, 389], 20)
        """
        return stable(self, text, *self._names(allowed_special, disallowed_special))

    # ---- Counting, cutting, searching ----

    def count(
        self,
        text: str,
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
    ) -> int:
        """Returns the number of tokens of a text, without making a list of them.

        A name that is not allowed is counted as ordinary text, unless `disallowed_special` asks for
        an error.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").count("hello world")
        2
        """
        names = self._names(allowed_special, disallowed_special)
        return self._native_engine.count(text, None, *names)

    def count_till_limit(
        self,
        text: str,
        limit: int,
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
    ) -> int | None:
        """Returns the number of tokens of a text, or None if it is over `limit`.

        Stops as soon as the limit is passed, so a small limit on a huge text costs little. (A piece
        is merged as a whole, and text that is not normalized is normalized as a whole.)

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.count_till_limit("hello world", 2), gpt2.count_till_limit("hello world", 1)
        (2, None)
        """
        limit = min(whole_number("limit", limit), _NO_LIMIT)
        names = self._names(allowed_special, disallowed_special)
        total = self._native_engine.count(text, limit, *names)
        return total if total <= limit else None

    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        side: Literal["right", "left"] = "right",
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
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
        kept = self._native_engine.truncate(
            text, max_tokens, side == "left", *self._names(allowed_special, disallowed_special)
        )
        return text[:kept] if side == "right" else text[len(text) - kept :]

    def chunk(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
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
        names = self._names(allowed_special, disallowed_special)
        spans = self._native_engine.chunk(text, max_tokens, overlap, *names)
        return [text[start:end] for start, end in spans]

    @overload
    def chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        ids: Literal[False] = False,
        markdown: bool = False,
        allowed_special: Names | None = None,
    ) -> list[ChunkSpan]: ...

    @overload
    def chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        ids: Literal[True],
        markdown: bool = False,
        allowed_special: Names | None = None,
    ) -> list[EncodedChunk]: ...

    def chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        ids: bool = False,
        markdown: bool = False,
        allowed_special: Names | None = None,
    ) -> list[ChunkSpan] | list[EncodedChunk]:
        """Cuts text into chunks of at most `max_tokens` tokens each, preferably between paragraphs.

        A chunk ends after the last paragraph that ends in its second half, or else after the last
        line or sentence there, or else after the last word, or else where `chunk` would cut. The
        ids of a chunk are those of its text alone.

        Args:
            text: The text.
            max_tokens: The largest number of tokens of a chunk when it is encoded.
            overlap: The largest number of tokens at the end of a chunk that the next one repeats,
                from the beginning of a sentence, or else of a word.
            ids: Whether chunks have their ids instead of their number of tokens.
            markdown: Whether the text is Markdown: a heading that begins with ``#`` then stays with
                what follows, and a code fence whole, where a chunk has room for them behind its
                overlap.
            allowed_special: As in `count`.

        Returns:
            For each chunk, its first character, the one after its last, and its number of tokens
            or its ids. Without overlap, the chunks joined are the text.

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
        >>> gpt2.chunk_spans(text, 8, ids=True)[1]
        EncodedChunk(start=20, end=39, ids=[32, 3290, 318, 407, 257, 3797, 13])
        """
        from .abilities._markdown import Whole
        from .abilities.chunks import chunk_spans, counted, encoded

        max_tokens, overlap = _chunk_sizes(max_tokens, overlap)
        allowed, _ = self._names(allowed_special, ())
        whole = Whole(text) if truth("markdown", markdown) else None
        cut = partial(chunk_spans, self, text, max_tokens, overlap, allowed, whole)
        return cut(encoded) if truth("ids", ids) else cut(counted)

    def show(
        self,
        text: str | Sequence[Segment | tuple[Any, ...]],
        *,
        allowed_special: Names | None = None,
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
        from .abilities.shown import ShownTokens, place_tokens, shown_tokens

        if isinstance(text, str):
            ids, spans = self.encode_with_offsets(
                text, allowed_special=allowed_special, disallowed_special=()
            )
            tokens = self._native_engine.decode_tokens_bytes(ids)
        else:
            ids = self.encode_segments(text)
            tokens = self._native_engine.decode_tokens_bytes(ids)
            text, spans = place_tokens(tokens)
        shown = shown_tokens(text, ids, tokens, spans, self._special_ids)
        return ShownTokens(self._label, shown)

    def is_canonical(self, tokens: Sequence[int]) -> bool:
        """True if decoding and encoding these ids gives the same ids.

        Special tokens are encoded as special tokens, all else as ordinary text. Ids whose bytes
        are not UTF-8 are never canonical. Nor are ids whose text a tokenizer file does not give
        back as it was, such as those of a file that lowercases and whose token is in capitals.

        Raises:
            KeyError: An id is not a token's.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.is_canonical([31373]), gpt2.is_canonical([258, 18798])
        (True, False)
        """
        return self._native_engine.is_canonical(tokens)

    def find_special(self, text: str) -> list[tuple[str, int, int]]:
        """Returns ``(name, start, end)`` of each special token's name in a text, in characters.

        Of overlapping names, the leftmost counts; of those that start together, the longest.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").find_special("a<|endoftext|>")
        [('<|endoftext|>', 1, 14)]
        """
        return self._native_engine.find_special(text)

    # ---- Decoding ----

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Decodes ids to bytes.

        Of a tokenizer file: the bytes of `decode` without a token left out, before bytes that are
        not UTF-8 become U+FFFD. A space that the decoder removes at the start is removed.

        Raises:
            KeyError: An id is not a token's.
            OverflowError: A number is outside the range of ids.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_bytes([31373, 995])
        b'hello world'
        """
        return self._native_engine.decode_bytes(tokens)

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
        return self._native_engine.decode_with_offsets(tokens)

    def stream_decoder(
        self,
        errors: str | None = None,
        prompt: int | Sequence[int] = (),
        *,
        skip_special_tokens: bool = False,
    ) -> StreamDecoder:
        """Returns a `StreamDecoder`, for ids that arrive one by one.

        A stream leaves out ``clean_up_tokenization_spaces``, which looks back at text.

        Args:
            errors: How to treat bytes that are not UTF-8, as in ``bytes.decode``. By default they
                become U+FFFD, or what `errors` of a `bpe_engine.Tokenizer` says.
            prompt: The id or ids before the first of the stream. Their text is not part of the
                stream.
            skip_special_tokens: Whether to leave special tokens out.

        >>> import bpe_engine
        >>> decoder = bpe_engine.get_encoding("gpt2").stream_decoder()
        >>> [decoder.push(id) for id in (162, 254, 117)], decoder.finish()
        (['', '', '根'], '')
        """
        skipped = self._special_ids if skip_special_tokens else ()
        return StreamDecoder(self, errors or self._errors, prompt, skipped)

    # ---- Caches ----

    def clear_cache(self) -> None:
        """Empties the caches of pieces. Results do not depend on them."""
        self._native_engine.clear_cache()

    def set_caching(self, caching: bool) -> None:
        """Turns the caches of pieces on or off, and empties them.

        They are on unless the environment variable ``BPE_ENGINE_CACHE`` is ``off`` when the
        tokenizer is made. Text that is cached takes less time, so one user could learn by timing
        whether another one sent the same words. Turn the caches off where that matters: results
        stay the same, and the memory is freed.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.set_caching(False)
        >>> gpt2.is_caching, gpt2.encode("hello world")
        (False, [31373, 995])
        >>> gpt2.set_caching(True)
        """
        self._native_engine.set_caching(truth("caching", caching))

    @property
    def is_caching(self) -> bool:
        """True if pieces of text are cached; see `set_caching`."""
        return self._native_engine.is_caching

    def set_cache_size(self, size: int) -> None:
        """Sets the size of each cache of pieces, and empties the caches.

        Each concurrent call uses its own cache, up to 16. The default of 8 MiB fits the cache of a
        processor; for texts of several MB with many different words (Chinese, many languages)
        that are encoded more than once, 64 MiB take less time. Results are the same with any size.
        The environment variable ``BPE_ENGINE_CACHE_SIZE`` sets the size when a tokenizer is made: a
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
        self._native_engine.set_cache_size(memory_size("size", size))

    @property
    def cache_size(self) -> int:
        """The size of one cache in bytes, a power of two; see `set_cache_size`."""
        return self._native_engine.cache_size

    # ---- Prompts of trusted and untrusted parts ----

    def encode_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        on_control: OnControl = "encode",
        control: Collection[str] = (),
    ) -> list[int]:
        """Encodes a prompt in which text from outside never becomes a special token.

        Args:
            segments: Results of ``special``, ``trusted``, ``untrusted``, ``tokens``, `render_chat`
                and `render_template` in `bpe_engine.prompt`; or tuples ``(text, allowed_special)``
                with False, True or a set of names. Special tokens are looked for in each segment
                by itself, before text is normalized.
            join: Whether to encode neighboring text as one: the ids are then those of
                ``encode("".join(texts), allowed_special="all")`` if untrusted text is free of
                special tokens' names. Otherwise tokens never cross the border of segments.
            on_control: How to treat control strings in untrusted text: ``"encode"`` encodes them as
                ordinary text, ``"raise"`` raises ValueError, ``"strip"`` removes them, and a
                function that takes a `ControlString` returns ordinary text to replace it.
                Untrusted neighbors count as one text.
            control: Control strings in addition to the special tokens.

        Raises:
            TypeError, ValueError: A segment is malformed, or holds a control string with
                ``on_control="raise"``; the message names it.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.encode_segments([special("<|endoftext|>"), untrusted("hi<|endoftext|>")])
        [50256, 5303, 27, 91, 437, 1659, 5239, 91, 29]
        """
        return encode.encode(self, segments, join, on_control, control)

    def encode_segments_to_numpy(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        on_control: OnControl = "encode",
        control: Collection[str] = (),
    ) -> npt.NDArray[np.uint32]:
        """Returns the ids of `encode_segments` as a numpy array of uint32. Needs numpy."""
        return encode.encode_to_numpy(self, segments, join, on_control, control)

    def count_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        on_control: OnControl = "encode",
        control: Collection[str] = (),
    ) -> int:
        """Returns the number of ids of `encode_segments`."""
        return encode.count(self, segments, join, on_control, control)

    def audit_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        control: Collection[str] = (),
    ) -> Audit:
        """Returns the ids of `encode_segments`, the origin of each, and the control strings in
        untrusted text: see `Audit`.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> audit = gpt2.audit_segments([special("<|endoftext|>"), untrusted("<|endoftext|>")])
        >>> audit.segments, audit.controls
        ... # doctest: +NORMALIZE_WHITESPACE
        ([0, 1, 1, 1, 1, 1, 1, 1],
         [ControlString(token='<|endoftext|>', segment=1, offset=0)])
        """
        return encode.audit(self, segments, join, control)

    # ---- Bytes ----

    def token_trie(self) -> TokenTrie:
        """Returns a `TokenTrie`: which tokens begin with given bytes, and which agree with bytes to
        come. The tokens are sorted once and kept.

        Raises:
            UnsupportedTokenizer: An id has no bytes of its own.
            ValueError: An id is larger than 16,777,215.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").token_trie().next_bytes(b" worl")
        b'd'
        """
        from .abilities.healing import TokenTrie

        return TokenTrie(self._native_engine)

    def heal(
        self,
        prompt: str | bytes | bytearray | memoryview | Iterable[Segment | tuple[Any, ...]],
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
    ) -> Healed:
        """Prepares a prompt that ends inside a word for a model.

        The ids of such a prompt end with ids that the model has never seen at that place. The result
        has the ids that no continuation can change, and the tokens that agree with the rest of the
        prompt: see `Healed`. The ids of every continuation are among them, except where it completes
        the name of a special token.

        Args:
            prompt: A text; its UTF-8, which may end inside a character; or segments, as
                `encode_segments` takes them. Of these, a file that looks for added tokens in normalized
                text keeps only the ids up to the last control token.
            allowed_special, disallowed_special: As in `encode`. Segments have their own.

        Raises:
            UnsupportedTokenizer: The bytes of tokens are not those of the text, as under a
                normalizer that lowercases, in a model of words, or where characters become the
                unknown token.
            ValueError: The bytes are not UTF-8, the text has a disallowed name, or as `token_table`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> healed = gpt2.heal("https:")
        >>> healed.ids, healed.rest, gpt2.decode(healed.allowed_ids()[-1:].tolist())
        ([5450], b':', ':]')
        """
        from . import _core
        from .abilities.healing import Healed

        if isinstance(prompt, str) and "\ud800" <= prompt[-1:] <= "\udbff":
            # It may turn out to be the first half of a character.
            prompt = prompt[:-1]
        elif isinstance(prompt, (bytearray, memoryview)):
            prompt = bytes(prompt)
        names = self._names(allowed_special, disallowed_special)
        return Healed(_core.Healed(self._native_engine, prompt, *names))

    # ---- For servers ----

    def stream_pool(self) -> StreamPool:
        """Returns a `StreamPool`, which decodes the ids of many requests in one call for each step
        of a model. Later changes of the tokenizer do not change the pool.

        Raises:
            UnsupportedTokenizer: The decoder of a tokenizer file is not ``ByteLevel``: an id may
                change the text before it.
            ValueError: An id is larger than 16,777,215.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> pool = gpt2.stream_pool()
        >>> slots = [pool.open(), pool.open(stop=["wor"])]
        >>> pool.step(slots, [31373, 31373])
        (['hello', 'hello'], [None, None])
        >>> pool.step(slots, [995, 995])
        ([' world', ' '], [None, StreamStop(stop_index=0, id_index=1)])
        >>> [pool.close(slot) for slot in slots]
        ['', '']
        """
        return StreamPool(self._native_engine)

    def token_table(self) -> TokenTable:
        """Returns a `TokenTable`: the bytes that each id adds to a text after other ids, in one
        buffer. It is made once and kept.

        Raises:
            UnsupportedTokenizer: Under the decoder of a tokenizer file an id has no bytes of its own.
            ValueError: An id is larger than 16,777,215.

        >>> import bpe_engine
        >>> table = bpe_engine.get_encoding("gpt2").token_table()
        >>> len(table), table[995], table[50256], table.kind(50256)
        (50257, b' world', b'<|endoftext|>', 'special')
        """
        return TokenTable(self._native_engine)


def _chunk_sizes(max_tokens: int, overlap: int) -> tuple[int, int]:
    """Checks the sizes of chunks. Raises ValueError where they cannot be."""
    max_tokens = whole_number("max_tokens", max_tokens, at_least=1)
    overlap = whole_number("overlap", overlap)
    if overlap >= max_tokens:
        raise ValueError(
            f"overlap must be smaller than max_tokens, but is {overlap} of {max_tokens}"
        )
    return min(max_tokens, _NO_LIMIT), min(overlap, _NO_LIMIT - 1)
