"""The native module of `bpe_engine`, for internal use; `bpe_engine.Encoding` documents its methods."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, disjoint_base

from .prompt.segments import Origin, Segment

__all__ = [
    "AuditedIds",
    "ConversationState",
    "CoreBPE",
    "EncodedRows",
    "Encoding",
    "Engine",
    "Healed",
    "HfEncoding",
    "HfTokenizer",
    "Labels",
    "StreamPool",
    "StreamStop",
    "TokenBuffer",
    "TokenTable",
    "TokenTrie",
    "UnsupportedTokenizer",
    "NameCounter",
    "NameFinder",
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
    "strip_traced",
    "train_bpe",
    "work_done",
]

_Allowed = str | Iterable[str]
_Disallowed = str | Iterable[str] | None

@disjoint_base
class Engine:
    """The engine of every tokenizer class: an encoding, or the tokenizer of a file.

    `allowed_special` and `disallowed_special` are as in `bpe_engine.Encoding.encode`; a tokenizer
    of a file looks for all of its special tokens or for none, and always for other added tokens.
    Offsets are in characters of the text as given.
    """

    def encode(
        self, text: str, allowed_special: _Allowed, disallowed_special: _Disallowed = None
    ) -> list[int]: ...
    def encode_to_numpy(
        self,
        text: str,
        num_threads: int | None,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> npt.NDArray[np.uint32]: ...
    def encode_batch(
        self,
        texts: Iterable[str],
        num_threads: int | None,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> list[list[int]]: ...
    def encode_ragged(
        self,
        parts: list[Any],
        num_threads: int | None,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> tuple[TokenBuffer, bytearray]: ...
    def encode_with_offsets(
        self,
        text: str,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
        unit: Literal["characters", "bytes", "origins"] = "characters",
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    def count(
        self,
        text: str,
        limit: int | None,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> int: ...
    def truncate(
        self,
        text: str,
        max_tokens: int,
        from_left: bool,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> int: ...
    def chunk(
        self,
        text: str,
        max_tokens: int,
        overlap: int,
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> list[tuple[int, int]]: ...
    def find_special(self, text: str) -> list[tuple[str, int, int]]: ...
    def is_canonical(self, tokens: Sequence[int]) -> bool: ...
    def decode(self, tokens: Sequence[int], errors: str) -> str: ...
    def decode_bytes(self, tokens: Sequence[int]) -> bytes: ...
    def decode_single_token_bytes(self, token: int) -> bytes: ...
    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]: ...
    def decode_with_offsets(self, tokens: Iterable[int]) -> tuple[str, list[int]]: ...
    def decode_with_starts(self, tokens: Iterable[int]) -> tuple[bytes, list[int]]: ...
    @property
    def byte_runs(self) -> Literal["bytes", "whole"] | None: ...
    def settled(self, tokens: Iterable[int]) -> int: ...
    def decode_shown(self, tokens: Iterable[int], is_first: bool, start: int) -> bytes: ...
    def decode_batch(
        self, batch: Iterable[Iterable[int]], errors: str, num_threads: int | None
    ) -> list[str]: ...
    def decode_bytes_batch(
        self, batch: Iterable[Iterable[int]], num_threads: int | None
    ) -> list[bytes]: ...
    @overload
    def decode_ragged(
        self, values: Any, row_splits: Any, errors: str, num_threads: int | None
    ) -> list[str]: ...
    @overload
    def decode_ragged(
        self, values: Any, row_splits: Any, errors: None, num_threads: int | None
    ) -> list[bytes]: ...
    def fingerprint(self) -> str: ...
    def clear_cache(self) -> None: ...
    def set_caching(self, caching: bool) -> None: ...
    @property
    def is_caching(self) -> bool: ...
    def set_cache_size(self, bytes: int) -> None: ...
    @property
    def cache_size(self) -> int: ...

@final
class CoreBPE(Engine):
    def __new__(
        cls,
        encoder: dict[bytes, int],
        special_tokens_encoder: dict[str, int],
        pattern: str,
        normalization: str | None = None,
    ) -> CoreBPE: ...
    @staticmethod
    def from_rank_files(
        files: Sequence[tuple[str, bytes]],
        special_tokens_encoder: dict[str, int],
        pattern: str,
        normalization: str | None = None,
    ) -> CoreBPE: ...
    @staticmethod
    def builtin(
        vocabulary: str,
        special_tokens_encoder: dict[str, int],
        pattern: str,
        normalization: str | None = None,
    ) -> CoreBPE: ...
    @property
    def max_rank(self) -> int: ...
    @property
    def rank_count(self) -> int: ...
    def encode_ordinary(self, text: str) -> list[int]: ...
    def encode_to_tiktoken_buffer(
        self, text: str, allowed_special: _Allowed, disallowed_special: _Disallowed = None
    ) -> TokenBuffer: ...
    def encode_with_unstable(
        self, text: str, allowed_special: _Allowed, disallowed_special: _Disallowed = None
    ) -> tuple[list[int], list[list[int]]]: ...
    def encode_single_token(self, piece: str | bytes) -> int: ...
    def encode_single_piece(self, piece: str | bytes) -> list[int]: ...
    def _encode_bytes(self, bytes: bytes) -> list[int]: ...
    def split(
        self, text: str, allowed_special: _Allowed, disallowed_special: _Disallowed
    ) -> list[str]: ...
    def token_byte_values(self) -> list[bytes]: ...
    def mergeable_ranks(self) -> dict[bytes, int]: ...

@disjoint_base
class Encoding:
    """The native base class of `bpe_engine.Encoding`."""

    _core_bpe: CoreBPE

    def encode_ordinary(self, text: str) -> list[int]:
        """Encodes a text without special tokens, as ``encode(text, disallowed_special=())``.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").encode_ordinary("hello world")
        [31373, 995]
        """

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
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

@final
class TokenBuffer:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

# For bpe_engine._tables.
@final
class TokenTrie:
    """The tokens of a tokenizer in the order of their bytes."""

    def __new__(cls, source: Engine) -> TokenTrie: ...
    def words(self) -> int: ...
    def next_bytes(self, prefix: bytes) -> bytes: ...
    def tokens_with(self, prefix: bytes) -> list[int]: ...
    def fill_mask(self, rest: bytes, out: Any) -> None: ...

@final
class Healed:
    """A prompt that the next tokens complete."""

    def __new__(
        cls,
        source: Engine,
        given: str | bytes | Iterable[Any],
        allowed_special: _Allowed,
        disallowed_special: _Disallowed,
    ) -> Healed: ...
    @staticmethod
    def of_rests(source: Engine, rests: Iterable[bytes]) -> Healed: ...
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

    def __new__(cls, source: Engine) -> TokenTable: ...
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

    def __new__(cls, source: Engine) -> StreamPool: ...
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
        tokenizer: HfTokenizer,
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
        tokenizer: HfTokenizer, add_special_tokens: bool, encode_special_tokens: bool
    ) -> RowEncoder: ...
    def is_current(self, tokenizer: HfTokenizer) -> bool: ...
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
def encode_segments(source: Engine, segments: Iterable[Any], is_joined: bool) -> list[int]: ...
def encode_segments_to_buffer(
    source: Engine, segments: Iterable[Any], is_joined: bool
) -> TokenBuffer: ...
def audit_segments(source: Engine, segments: Iterable[Any], is_joined: bool) -> AuditedIds: ...

@final
class AuditedIds:
    def __new__(cls, ids: list[int], origins: list[int]) -> AuditedIds: ...
    def __len__(self) -> int: ...
    def ids(self) -> list[int]: ...
    def segments(self) -> list[int]: ...
    def special(self) -> bytearray: ...
    def mask(
        self,
        segments: list[Any],
        role: str,
        choices: tuple[bool, bool, bool, bool, bool, list[int] | None],
    ) -> list[int]: ...
    def mixed(self, segments: list[Any], role: str) -> list[int]: ...

def stable_prefix(
    source: Engine,
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
def strip_traced(
    text: str, characters: str | None, sides: tuple[bool, bool], traced: type[str]
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
    def __new__(cls, source: Engine, names: list[str]) -> NameFinder: ...
    def is_current(self, source: Engine) -> bool: ...
    def find(self, text: str) -> list[tuple[str, int, int]]: ...

@final
class NameCounter:
    def __new__(cls, names: list[str]) -> NameCounter: ...
    def count(self, parts: list[Any]) -> list[tuple[str, int, int]]: ...

@final
class ConversationState:
    def __new__(
        cls,
        source: Engine,
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
        source: Engine,
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
def count_tokens(source: Engine, texts: list[str]) -> tuple[list[int], list[tuple[int, int]]]: ...
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
    def __new__(cls, tokenizer: HfTokenizer) -> WordCounts: ...
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

@disjoint_base
class HfTokenizer:
    encode_special_tokens: bool
    _keeps_out_control: bool
    def __new__(
        cls,
        json: str | bytes | HfTokenizer | CoreBPE,
        special_tokens: dict[str, int] | None = None,
        sentencepiece: str | None = None,
    ) -> Self: ...
    @property
    def _allowed_by_default(self) -> _Allowed: ...
    @property
    def _native_engine(self) -> Engine: ...
    def _core_bpe(self) -> CoreBPE | None: ...
    @property
    def fingerprint(self) -> str: ...
    def _decode_bytes(self, ids: Sequence[int], skip_special_tokens: bool) -> bytes: ...
    def to_str(self, pretty: bool = False) -> str: ...
    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> HfEncoding: ...
    def encode_batch(
        self,
        input: Iterable[Any],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
        *,
        num_threads: int | None = None,
    ) -> list[HfEncoding]: ...
    def encode_batch_fast(
        self,
        input: Iterable[Any],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
        *,
        num_threads: int | None = None,
    ) -> list[HfEncoding]: ...
    def post_process(
        self, encoding: HfEncoding, pair: HfEncoding | None = None, add_special_tokens: bool = True
    ) -> HfEncoding: ...
    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str: ...
    def decode_batch(
        self,
        sequences: Sequence[Sequence[int]],
        skip_special_tokens: bool = True,
        *,
        num_threads: int | None = None,
    ) -> list[str]: ...
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, id: int) -> str | None: ...
    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]: ...
    def get_vocab_size(self, with_added_tokens: bool = True) -> int: ...
    def add_tokens(self, tokens: Iterable[Any]) -> int: ...
    def add_special_tokens(self, tokens: Iterable[Any]) -> int: ...
    def num_special_tokens_to_add(self, is_pair: bool) -> int: ...
    def enable_truncation(
        self,
        max_length: int,
        stride: int = 0,
        strategy: str = "longest_first",
        direction: str = "right",
    ) -> None: ...
    def no_truncation(self) -> None: ...
    @property
    def truncation(self) -> dict[str, Any] | None: ...
    def enable_padding(
        self,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None: ...
    def no_padding(self) -> None: ...
    @property
    def padding(self) -> dict[str, Any] | None: ...
    def _added_tokens(self) -> list[tuple[int, _AddedRow]]: ...
    def _component(self, name: str) -> str | None: ...
    def _set_component(self, name: str, json: str | None) -> None: ...
    def _ranks(self) -> tuple[dict[bytes, int], str | None]: ...
    def _as_ranks(self, any_flags: bool = False) -> CoreBPE: ...
    def _set_scores(self, scores: list[float]) -> None: ...
    def _model_json(self, pretty: bool) -> str: ...
    def _model_fields(self) -> str: ...
    def _tokenize(self, text: str) -> list[tuple[int, str, tuple[int, int]]]: ...
    def _model_token_to_id(self, token: str) -> int | None: ...
    def _model_id_to_token(self, id: int) -> str | None: ...

def hf_component(kind: str, json: str) -> str: ...
def hf_content_hash(content: str) -> int: ...
def hf_added_tokens(json: str, is_pair: bool) -> int: ...
def hf_normalize(json: str, text: str) -> str: ...
def hf_pre_tokenize(json: str, text: str) -> list[tuple[str, tuple[int, int]]]: ...
def hf_process(
    json: str, encoding: HfEncoding, pair: HfEncoding | None, add_special_tokens: bool
) -> HfEncoding: ...
def hf_decode(json: str, tokens: list[str]) -> str: ...
