"""The native module of `bpe_engine`, for internal use; `bpe_engine.Encoding` documents its methods."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from .prompt.segments import Origin, Segment

__all__ = [
    "AuditedIds",
    "ConversationState",
    "EncodedRows",
    "Healed",
    "HfEncoding",
    "Labels",
    "StreamPool",
    "StreamStop",
    "TokenBuffer",
    "TokenTable",
    "TokenTrie",
    "UnsupportedTokenizer",
    "NameCounter",
    "NameFinder",
    "Pipeline",
    "PrefixCache",
    "RowEncoder",
    "RowSource",
    "arrange_rows",
    "audit_segments",
    "audit_tokens",
    "call_method",
    "collect_segments",
    "cost_of_joining",
    "join_traced",
    "mark_answers",
    "size_of_plain",
    "copy_plain",
    "count_tokens",
    "disallowed_special_message",
    "hf_added_tokens",
    "hf_content_hash",
    "hf_component",
    "hf_decode",
    "hf_normalize",
    "hf_pre_tokenize",
    "hf_process",
    "encode_segments",
    "encode_segments_to_buffer",
    "learn_merges",
    "merge_bytes",
    "parse_rank_lines",
    "parse_ranks",
    "stable_prefix",
    "token_splits",
    "CountReader",
    "PieceCounts",
    "WordCounts",
    "merge_counts",
    "train_bpe",
    "work_done",
]

_Names = str | Iterable[str]
_Allowed = _Names | None
_Disallowed = _Names | None

@disjoint_base
class Pipeline:
    """The native base class of `Encoding`, `hf.Tokenizer` and `Tokenizer`, which name its methods.

    Offsets are in characters of the text as given.
    """

    # Of the subclasses.
    @property
    def special_tokens_set(self) -> AbstractSet[str]: ...

    # ---- Setting what a new object works with ----

    def _build(
        self,
        ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        pattern: str,
        normalization: str | None = None,
    ) -> None: ...
    def _build_of_files(
        self,
        files: Sequence[tuple[str, bytes]],
        special_tokens: dict[str, int],
        pattern: str,
        normalization: str | None = None,
    ) -> None: ...
    def _build_of_builtin(
        self,
        vocabulary: str,
        special_tokens: dict[str, int],
        pattern: str,
        normalization: str | None = None,
    ) -> None: ...
    def _read_json(self, json: str | bytes) -> None: ...
    def _read_sentencepiece(self, contents: bytes, version: str) -> None: ...
    def _share(self, other: Pipeline) -> None: ...
    def _share_encoding(self, other: Pipeline) -> bool: ...
    def _share_file(self, other: Pipeline) -> None: ...
    def _share_ranks(self, other: Pipeline, any_flags: bool = False) -> None: ...
    def _description(self) -> tuple[str, dict[str, int], str | None]: ...
    def _check_ranks(self) -> None: ...
    def _copy(self, other: Pipeline, special_tokens: dict[str, int] | None = None) -> None: ...

    # ---- Encoding ----

    def _encode_ordinary(self, text: str) -> list[int]:
        """Encodes a text without special tokens, as ``encode(text, disallowed_special=())``.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_ordinary("hello world")
        [31373, 995]
        """

    def _encode_ids(
        self,
        text: str,
        *,
        allowed_special: _Names | None = ...,
        disallowed_special: _Names | None = "all",
    ) -> list[int]:
        """Encodes a text.

        Special tokens control a model, and their names in untrusted text could do the same. So a
        special token's name in the text raises an error by default.

        Args:
            text: A str. Surrogate pairs are joined; lone surrogates become U+FFFD.
            allowed_special: The names that become special tokens: a set, or ``"all"``.
            disallowed_special: The names that raise an error: a collection of str, or ``"all"`` for
                every special token that is not allowed. Other names are ordinary text, so ``()``
                turns the check off.

        Raises:
            ValueError: The text contains a disallowed name.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.encode("hello world")
        [31373, 995]
        >>> gpt2.encode("<|endoftext|>", allowed_special={"<|endoftext|>"})
        [50256]
        >>> gpt2.encode("<|endoftext|>", disallowed_special=())
        [27, 91, 437, 1659, 5239, 91, 29]
        """

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
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

    def _encode_each(
        self,
        texts: Iterable[str],
        num_threads: int | None,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ) -> list[list[int]]: ...
    def _encode_ragged(
        self,
        parts: list[Any],
        num_threads: int | None,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ) -> tuple[TokenBuffer, bytearray]: ...
    def encode_with_offsets(
        self,
        text: str,
        *,
        unit: Literal["characters", "bytes"] = "characters",
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
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

    def _encode_with_origins(
        self,
        text: str,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    def _ids_in_buffer(
        self,
        text: str,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ) -> TokenBuffer: ...

    # ---- Counting, cutting, searching ----

    def count(
        self,
        text: str,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ) -> int:
        """Returns the number of tokens of a text, without making a list of them.

        A name that is not allowed is counted as ordinary text, unless `disallowed_special` asks for
        an error.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").count("hello world")
        2
        """

    def count_till_limit(
        self,
        text: str,
        limit: int,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ) -> int | None:
        """Returns the number of tokens of a text, or None if it is over `limit`.

        Stops as soon as the limit is passed, so a small limit on a huge text costs little. (A piece
        is merged as a whole, and text that is not normalized is normalized as a whole.)

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.count_till_limit("hello world", 2), gpt2.count_till_limit("hello world", 1)
        (2, None)
        """

    def truncate(
        self,
        text: str,
        max_tokens: int,
        *,
        side: Literal["right", "left"] = "right",
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
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

    def chunk(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
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

    def _chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int,
        *,
        allowed_special: _Names | None = None,
    ) -> list[tuple[int, int]]: ...
    @staticmethod
    def _chunk_sizes(max_tokens: int, overlap: int) -> tuple[int, int]: ...
    def find_special(self, text: str) -> list[tuple[str, int, int]]:
        """Returns ``(name, start, end)`` of each special token's name in a text, in characters.

        Of overlapping names, the leftmost counts; of those that start together, the longest.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").find_special("a<|endoftext|>")
        [('<|endoftext|>', 1, 14)]
        """

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

    # ---- Decoding ----

    def _decode_text(self, tokens: Sequence[int], errors: str = "replace") -> str:
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

    def _decode_single_token_bytes(self, token: int) -> bytes:
        """Returns the bytes of one token, special or not.

        Raises:
            KeyError: The id is not a token's.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_single_token_bytes(31373)
        b'hello'
        """

    def _decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """Returns the bytes of each token.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_tokens_bytes([31373, 995])
        [b'hello', b' world']
        """

    def decode_with_offsets(self, tokens: Iterable[int]) -> tuple[str, list[int]]:
        """Decodes ids to text, and returns the index of the character at which each token starts.

        A token that starts inside a character has the index of that character. Bytes that are
        not UTF-8 become U+FFFD, as in `decode`.

        Raises:
            KeyError: An id is not a token's.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").decode_with_offsets([31373, 995])
        ('hello world', [0, 5])
        """

    def _decode_with_starts(self, tokens: Iterable[int]) -> tuple[bytes, list[int]]: ...
    @property
    def _byte_runs(self) -> Literal["bytes", "whole"] | None: ...
    def _settled(self, tokens: Iterable[int]) -> int: ...
    def _decode_shown(self, tokens: Iterable[int], is_first: bool, start: int) -> bytes: ...
    def _decode_batch(
        self, batch: Iterable[Iterable[int]], errors: str, num_threads: int | None
    ) -> list[str]: ...
    def _decode_bytes_batch(
        self, batch: Iterable[Iterable[int]], num_threads: int | None
    ) -> list[bytes]: ...
    @overload
    def _decode_ragged(
        self, values: Any, row_splits: Any, errors: str, num_threads: int | None
    ) -> list[str]: ...
    @overload
    def _decode_ragged(
        self, values: Any, row_splits: Any, errors: None, num_threads: int | None
    ) -> list[bytes]: ...

    # ---- What only an encoding of ranks has ----

    def _encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
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

    def _encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Returns the id of one token, special or not, given as text or as bytes.

        Raises:
            KeyError: The token does not exist.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_single_token("hello")
        31373
        """

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]: ...
    def _encode_bytes(self, text: bytes) -> list[int]: ...
    def _split(
        self,
        text: str,
        *,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ) -> list[str]:
        """Returns the pieces of a text, which are encoded one by one.

        Each allowed special token is a piece. Where the encoding normalizes text, the pieces are
        those of the normalized text.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").split("It's 10 o'clock.")
        ['It', "'s", ' 10', ' o', "'", 'clock', '.']
        """

    def _token_byte_values(self) -> list[bytes]: ...
    def _ranks_dict(self) -> dict[bytes, int]: ...
    @property
    def _max_rank(self) -> int: ...
    @property
    def _rank_count(self) -> int: ...

    # ---- Caches, the fingerprint ----

    def clear_cache(self) -> None:
        """Empties the caches of pieces. Results do not depend on them."""

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

    @property
    def is_caching(self) -> bool:
        """True if pieces of text are cached; see `set_caching`."""

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

    @property
    def cache_size(self) -> int:
        """The size of one cache in bytes, a power of two; see `set_cache_size`."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint: a SHA-256, in hexadecimal, of all that decides the ids.

        Of an encoding: the pattern, ranks, special tokens and normalization. Of a tokenizer file:
        the model, the added tokens, the normalizer, the pre-tokenizer, the post-processor, truncation,
        padding and `encode_special_tokens`, as they are now. The name is not in it. Tokenizers that
        agree in these have the same fingerprint, however their files are written, on every machine and
        in every version.

        >>> import bpe_engine
        >>> gpt2, r50k = bpe_engine.get_encoding("gpt2"), bpe_engine.get_encoding("r50k_base")
        >>> gpt2.fingerprint == r50k.fingerprint, gpt2
        (True, <Encoding 'gpt2' bc98d100a6f5>)
        """

    # ---- Under the names of `tokenizers` ----

    _encodes_special_tokens: bool
    _keeps_out_control: bool
    def _decode_bytes(self, ids: Sequence[int], skip_special_tokens: bool) -> bytes: ...
    def _hf_to_str(self, pretty: bool = False) -> str: ...
    def _hf_encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> HfEncoding: ...
    def _hf_encode_batch(
        self,
        input: Iterable[Any],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
        *,
        num_threads: int | None = None,
    ) -> list[HfEncoding]: ...
    def _hf_encode_batch_fast(
        self,
        input: Iterable[Any],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
        *,
        num_threads: int | None = None,
    ) -> list[HfEncoding]: ...
    def _hf_post_process(
        self, encoding: HfEncoding, pair: HfEncoding | None = None, add_special_tokens: bool = True
    ) -> HfEncoding: ...
    def _hf_decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str: ...
    def _hf_decode_batch(
        self,
        sequences: Sequence[Sequence[int]],
        skip_special_tokens: bool = True,
        *,
        num_threads: int | None = None,
    ) -> list[str]: ...
    def _hf_token_to_id(self, token: str) -> int | None: ...
    def _hf_id_to_token(self, id: int) -> str | None: ...
    def _hf_get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]: ...
    def _hf_get_vocab_size(self, with_added_tokens: bool = True) -> int: ...
    def _hf_add_tokens(self, tokens: Iterable[Any]) -> int: ...
    def _hf_add_special_tokens(self, tokens: Iterable[Any]) -> int: ...
    def _hf_num_special_tokens_to_add(self, is_pair: bool) -> int: ...
    def _hf_enable_truncation(
        self,
        max_length: int,
        stride: int = 0,
        strategy: str = "longest_first",
        direction: str = "right",
    ) -> None: ...
    def _hf_no_truncation(self) -> None: ...
    @property
    def _hf_truncation(self) -> dict[str, Any] | None: ...
    def _hf_enable_padding(
        self,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None: ...
    def _hf_no_padding(self) -> None: ...
    @property
    def _hf_padding(self) -> dict[str, Any] | None: ...
    def _added_tokens(self) -> list[tuple[int, _AddedRow]]: ...
    def _component(self, name: str) -> str | None: ...
    def _set_component(self, name: str, json: str | None) -> None: ...
    def _ranks(self) -> tuple[dict[bytes, int], str | None]: ...
    def _set_scores(self, scores: list[float]) -> None: ...
    def _model_json(self, pretty: bool) -> str: ...
    def _model_fields(self) -> str: ...
    def _tokenize(self, text: str) -> list[tuple[int, str, tuple[int, int]]]: ...
    def _model_token_to_id(self, token: str) -> int | None: ...
    def _model_id_to_token(self, id: int) -> str | None: ...

@final
class TokenBuffer:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

# For bpe_engine._tables.
@final
class TokenTrie:
    """The tokens of a tokenizer in the order of their bytes."""

    def __new__(cls, source: Pipeline) -> TokenTrie: ...
    def words(self) -> int: ...
    def next_bytes(self, prefix: bytes) -> bytes: ...
    def tokens_with(self, prefix: bytes) -> list[int]: ...
    def fill_mask(self, rest: bytes, out: Any) -> None: ...

@final
class Healed:
    """A prompt that the next tokens complete."""

    def __new__(
        cls,
        source: Pipeline,
        given: str | bytes | Iterable[Any],
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> Healed: ...
    @staticmethod
    def of_rests(source: Pipeline, rests: Iterable[bytes]) -> Healed: ...
    def ids(self) -> list[int]: ...
    def rest(self) -> bytes: ...
    def rests(self) -> list[bytes]: ...
    def is_done(self) -> bool: ...
    def words(self) -> int: ...
    def ids_in_table(self) -> int: ...
    def fill_mask(self, out: Any) -> None: ...
    def advance(self, id: int) -> None: ...
    def fork(self) -> Healed: ...

@final
class TokenTable:
    """The bytes that each id adds to a text, in one buffer, and the kind of each id.

    ``table[id]`` is the bytes of an id, empty where there is not a token; ``len(table)`` is one more
    than the largest id. The table never changes.
    """

    def __new__(cls, source: Pipeline) -> TokenTable: ...
    def __len__(self) -> int: ...
    def __getitem__(self, id: int, /) -> bytes: ...
    def kind(self, id: int) -> Literal["ordinary", "special", "absent"]:
        """Returns the kind of an id: ``"ordinary"``, ``"special"`` for a token that decoding can skip,
        or ``"absent"``.

        Raises:
            IndexError: The id is negative, or the table ends before it.
        """
    def ids(self, kind: Literal["ordinary", "special", "absent"]) -> list[int]:
        """Returns the ids of one kind, in ascending order.

        Raises:
            ValueError: The kind is unknown.
        """
    @property
    def buffer(self) -> memoryview:
        """The bytes of all ids, one after the other."""
    @property
    def offsets(self) -> memoryview:
        """The start of each id in `buffer`, and the end of the last one, in 32-bit numbers."""
    @property
    def kinds(self) -> memoryview:
        """The kind of each id in a byte: 0 absent, 1 ordinary, 2 special."""

@final
class StreamStop:
    """The stop string that ended a stream."""

    @property
    def stop_index(self) -> int:
        """The index of the stop string in the list given to `StreamPool.open`. If several end at
        the same character, the longest one."""
    @property
    def id_index(self) -> int:
        """The index of the id that completed the stop string; the first id of the stream is 0."""

@final
class StreamPool:
    """Turns the ids of many requests into text as they arrive.

    A stream gives complete characters only. Its texts joined are what ``decode`` returns for all
    its ids: bytes that are not UTF-8 become U+FFFD, ids without a token are skipped by a tokenizer
    file and refused by an encoding. Any number of threads may use a pool. It keeps the ``str`` of
    each token that it has given out; each stream takes memory for its stop strings, and for the
    text that it holds back.
    """

    def __new__(cls, source: Pipeline) -> StreamPool: ...
    def open(
        self,
        prompt_ids: Any = None,
        *,
        stop: Iterable[str] | None = None,
        skip_special_tokens: bool = False,
        min_chars: int = 0,
    ) -> int:
        """Opens a stream.

        Args:
            prompt_ids: The ids before the first of the stream, a list or an array. Their text is
                not part of the stream. But a character that the prompt begins and the stream
                completes belongs to the stream; if the stream does not complete it, it is left
                out.
            stop: Strings that end the stream, at most 65,536 bytes together. The stream ends where
                one is complete first; its text ends before the longest that ends there. Text that
                may still become a stop string is held back.
            skip_special_tokens: Whether to leave special tokens out.
            min_chars: The fewest characters to give at once. Fewer wait for a later step, or for
                the end.

        Returns:
            The number of the stream, its slot. Numbers are not used again.

        Raises:
            TypeError, OverflowError, KeyError: An id is not one, as in ``decode``.
            TypeError, ValueError: A stop string is not a str, is empty or has a lone surrogate, or
                they are too long.
        """
    def step(self, slots: Any, ids: Any) -> tuple[list[str], list[StreamStop | None]]:
        """Takes the next ids of streams: one call for each step of a model.

        Args:
            slots: The numbers of the streams, a list or an array.
            ids: One id for each stream, in a list or an array; or a list of ids for each, in a list
                of lists or arrays, or an array of two dimensions.

        Returns:
            For each stream, the text that is certain now; and None, or the stop string that ended
            it. A stream that has ended ignores further ids and returns its stop string again.

        Raises:
            KeyError: A stream is not open, or an id is unknown to an encoding. Nothing is taken.
            TypeError, OverflowError: As in ``decode``. Nothing is taken.
            ValueError: There are not as many ids as streams. Nothing is taken.
        """
    def close(self, slot: int) -> str:
        """Closes a stream.

        Returns:
            The text that is left: what was held back, and U+FFFD for an incomplete character.

        Raises:
            KeyError: The stream is not open.
        """
    def __len__(self) -> int:
        """Returns the number of open streams."""

# For bpe_engine.tokenizer.
@final
class RowEncoder:
    def __new__(
        cls,
        tokenizer: Pipeline,
        *,
        is_pretokenized: bool,
        add_special_tokens: bool,
        truncation: object | None,
        padding: object | None,
        overflow: bool,
        num_threads: int | None,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> RowEncoder: ...
    @staticmethod
    def of_settings(
        tokenizer: Pipeline, add_special_tokens: bool, encode_special_tokens: bool
    ) -> RowEncoder: ...
    def is_current(self, tokenizer: Pipeline) -> bool: ...
    def encode(self, inputs: Iterable[Any], detailed: bool) -> EncodedRows: ...
    def answer(
        self,
        inputs: Iterable[Any],
        detailed: bool,
        names: tuple[str, ...],
        is_batch: bool,
        as_matrix: bool,
    ) -> tuple[dict[str, Any], RowSource, int, int]: ...

@final
class RowSource:
    def __call__(self) -> list[HfEncoding]: ...

def arrange_rows(
    input_ids: Iterable[Any],
    *,
    token_type_ids: Iterable[Any] | None,
    attention_mask: Iterable[Any] | None,
    special_tokens_mask: Iterable[Any] | None,
    truncation: object | None,
    padding: object | None,
) -> EncodedRows: ...

@final
class EncodedRows:
    def __len__(self) -> int: ...
    def longest(self) -> int: ...
    def fields(
        self, names: tuple[str, ...], is_batch: bool, as_matrix: bool = False
    ) -> dict[str, Any]: ...

# What bpe_engine.prompt needs.
def encode_segments(source: Pipeline, segments: Iterable[Any], is_joined: bool) -> list[int]: ...
def encode_segments_to_buffer(
    source: Pipeline, segments: Iterable[Any], is_joined: bool
) -> TokenBuffer: ...
def audit_segments(source: Pipeline, segments: Iterable[Any], is_joined: bool) -> AuditedIds: ...

@final
class AuditedIds:
    def __new__(cls, ids: list[int], origins: list[int]) -> AuditedIds: ...
    def __len__(self) -> int: ...
    def ids(self) -> list[int]: ...
    def segments(self) -> list[int]: ...
    def special(self) -> bytearray: ...
    def totals(self, part_of: list[int], parts: int) -> tuple[list[int], list[int]]: ...
    def mask(
        self,
        segments: list[Any],
        role: str,
        choices: tuple[bool, bool, bool, bool, bool, list[int] | None],
    ) -> list[int]: ...
    def mixed(self, segments: list[Any], role: str) -> list[int]: ...

def stable_prefix(
    source: Pipeline,
    text: str,
    allowed_special: _Allowed,
    disallowed_special: _Disallowed,
) -> tuple[list[int], int]: ...
def copy_plain(value: Any, other: Callable[[Any], Any]) -> tuple[Any, int]: ...
def join_traced(parts: tuple[str, ...], traced: type[str]) -> tuple[Any, int]: ...
def cost_of_joining(parts: tuple[str, ...], traced: type[str]) -> int: ...
def size_of_plain(value: Any) -> int | None: ...
def call_method(
    labels: Labels, limits: Any, context: Any, value: Any, name: str, args: tuple[Any, ...]
) -> Any: ...
def collect_segments(
    output: Iterator[Any],
    traced: type[str],
    kinds: tuple[object, object],
    texts: tuple[Callable[[Any], str], Callable[[tuple[Any, ...]], str]],
    segment: type[Segment],
    labels: Labels,
    has_tags: bool,
    limit: int,
) -> list[Segment] | None: ...
def mark_answers(
    segments: list[Segment], turns: list[int | None], headers: Sequence[tuple[str, list[str]]]
) -> list[Segment]: ...

@final
class Labels:
    def __new__(
        cls,
        traced: type[str],
        origin: type[Origin],
        scalars: dict[type, Callable[[Any], Any]],
        fields: dict[str, str],
        getattr: Callable[[Any, str], Any],
        getitem: Callable[[Any, Any], Any],
        call: Callable[..., Any],
    ) -> Labels: ...
    has_segments: bool
    def flags(self, segment: Segment) -> int: ...
    def note_messages(self, messages: list[dict[Any, Any]]) -> None: ...
    def note_data(self, name: str, values: list[Any]) -> None: ...
    def turn(self, value: Any, outer: int) -> int: ...
    def found(self, value: Any) -> tuple[int, Any]: ...
    def opened(self, value: Any) -> Any: ...
    def attribute(self, value: Any, name: str) -> Any: ...
    def item(self, value: Any, key: Any) -> Any: ...

@final
class NameFinder:
    def __new__(cls, source: Pipeline, names: list[str]) -> NameFinder: ...
    def is_current(self, source: Pipeline) -> bool: ...
    def find(self, text: str) -> list[tuple[str, int, int]]: ...

@final
class NameCounter:
    def __new__(cls, names: list[str]) -> NameCounter: ...
    def count(self, parts: list[Any]) -> list[tuple[str, int, int]]: ...

@final
class ConversationState:
    def __new__(
        cls,
        source: Pipeline,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> ConversationState: ...
    def fork(self) -> ConversationState: ...
    def update_text(self, text: str) -> tuple[int, list[int]]: ...
    def update_segments(self, segments: Iterable[Any]) -> tuple[int, list[int]]: ...
    def append_text(self, text: str) -> tuple[int, list[int]]: ...
    def append_segments(self, segments: list[Any]) -> tuple[int, list[int]]: ...
    def ids(self) -> list[int]: ...
    def ids_buffer(self) -> TokenBuffer: ...
    def __len__(self) -> int: ...
    def memory(self) -> int: ...

@final
class PrefixCache:
    def __new__(
        cls,
        source: Pipeline,
        max_memory: int,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> PrefixCache: ...
    def encode_text(self, text: str) -> list[int]: ...
    def encode_text_to_buffer(self, text: str) -> TokenBuffer: ...
    def encode_segments(self, segments: Iterable[Any]) -> list[int]: ...
    def encode_segments_to_buffer(self, segments: Iterable[Any]) -> TokenBuffer: ...
    def stats(self) -> tuple[int, int, int, int, int, int]: ...
    def clear(self) -> None: ...

def parse_ranks(contents: bytes, label: str) -> dict[bytes, int]: ...
def disallowed_special_message(token: str) -> str: ...
def work_done() -> int: ...

# For vocab_tools.
def learn_merges(
    ranks: dict[bytes, int],
    words: Sequence[tuple[bytes, int]],
    *,
    max_tokens: int | None = None,
    min_frequency: int | None = None,
    whole_characters: bool = False,
    count_repeats: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[
    list[tuple[bytes, bytes, str, int, int]],
    list[tuple[list[int], list[int], list[int], bool]],
]: ...
def merge_bytes(ranks: dict[bytes, int], pieces: Sequence[bytes]) -> list[list[int] | None]: ...
def token_splits(ranks: dict[bytes, int]) -> list[tuple[int, int] | None]: ...
def count_tokens(source: Pipeline, texts: list[str]) -> tuple[list[int], list[tuple[int, int]]]: ...
def parse_rank_lines(
    contents: bytes,
) -> tuple[list[tuple[bytes, int, int]], list[tuple[int, str]]]: ...
def audit_tokens(
    ranks: dict[bytes, int],
    pattern: str,
    special_tokens: Sequence[tuple[str, int]],
    *,
    nfc: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, Any]: ...

@final
class PieceCounts:
    def __new__(
        cls, pattern: str, *, special_tokens: Sequence[str] = ..., nfc: bool = False
    ) -> PieceCounts: ...
    def count(self, texts: Sequence[str]) -> int: ...
    def add(self, pieces: Sequence[bytes], counts: Sequence[int]) -> None: ...
    def memory(self) -> int: ...
    def training_memory(self) -> int: ...
    def totals(self) -> tuple[int, int, int, int]: ...
    def drop_rare(self, least: int) -> tuple[int, int]: ...
    def spill(self, path: str) -> None: ...
    def read(
        self, paths: Sequence[str], least: int = 1, most_memory: int | None = None
    ) -> tuple[int, int, bool]: ...

@final
class CountReader:
    def __new__(cls, paths: Sequence[str]) -> CountReader: ...
    def read(self, most: int) -> tuple[list[bytes], list[int]]: ...

def merge_counts(paths: Sequence[str], output: str) -> None: ...
def train_bpe(
    base: Sequence[bytes],
    corpora: Sequence[tuple[PieceCounts, int]],
    *,
    tokens: int,
    min_frequency: int = 2,
    tie_rule: str = "lowest-ids",
    max_token_bytes: int | None = None,
    max_token_words: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[list[bytes], list[tuple[int, int, int, int, int]], list[int]]: ...

@final
class WordCounts:
    def __new__(cls, tokenizer: Pipeline) -> WordCounts: ...
    def count(self, texts: Sequence[str], lines: str = "whole") -> int: ...
    def size(self) -> int: ...
    def add(self, words: Sequence[str], counts: Sequence[int]) -> None: ...
    def take_words(self) -> list[tuple[str, int]]: ...
    def train_bpe(
        self,
        vocab_size: int,
        *,
        min_frequency: int = 0,
        special_tokens: Sequence[str] = ...,
        limit_alphabet: int | None = None,
        character_coverage: float | None = None,
        initial_alphabet: Sequence[str] = ...,
        prefix: str = "",
        suffix: str = "",
        max_token_length: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> tuple[list[str], list[tuple[int, int]]]: ...
    def train_word_level(
        self, vocab_size: int, *, min_frequency: int = 0, special_tokens: Sequence[str] = ...
    ) -> list[str]: ...
    def train_unigram(
        self,
        vocab_size: int,
        *,
        special_tokens: int = 0,
        character_coverage: float | None = None,
        initial_alphabet: Sequence[str] = ...,
        shrinking_factor: float = 0.75,
        n_sub_iterations: int = 2,
        max_piece_length: int = 16,
        seed_size: int = 1_000_000,
        num_threads: int = 1,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[tuple[str, float]]: ...

class UnsupportedTokenizer(ValueError): ...

_AddedRow = tuple[str, bool, bool, bool, bool, bool]

@final
class HfEncoding:
    @property
    def ids(self) -> list[int]: ...
    @property
    def type_ids(self) -> list[int]: ...
    @property
    def attention_mask(self) -> list[int]: ...
    @property
    def special_tokens_mask(self) -> list[int]: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...
    @property
    def word_ids(self) -> list[int | None]: ...
    @property
    def words(self) -> list[int | None]: ...
    @property
    def sequence_ids(self) -> list[int | None]: ...
    @property
    def n_sequences(self) -> int: ...
    @property
    def overflowing(self) -> list[HfEncoding]: ...
    def __len__(self) -> int: ...
    def token_to_sequence(self, token_index: int) -> int | None: ...
    def token_to_chars(self, token_index: int) -> tuple[int, int] | None: ...
    def token_to_word(self, token_index: int) -> int | None: ...
    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None: ...
    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None: ...
    def word_to_tokens(
        self, word_index: int, sequence_index: int = 0
    ) -> tuple[int, int] | None: ...
    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None: ...
    def set_sequence_id(self, sequence_id: int) -> None: ...
    def pad(
        self,
        length: int,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None: ...
    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None: ...
    @staticmethod
    def merge(encodings: Sequence[HfEncoding], growing_offsets: bool = True) -> HfEncoding: ...

def hf_component(kind: str, json: str) -> str: ...
def hf_content_hash(content: str) -> int: ...
def hf_added_tokens(json: str, is_pair: bool) -> int: ...
def hf_normalize(json: str, text: str) -> str: ...
def hf_pre_tokenize(json: str, text: str) -> list[tuple[str, tuple[int, int]]]: ...
def hf_process(
    json: str, encoding: HfEncoding, pair: HfEncoding | None, add_special_tokens: bool
) -> HfEncoding: ...
def hf_decode(json: str, tokens: list[str]) -> str: ...
