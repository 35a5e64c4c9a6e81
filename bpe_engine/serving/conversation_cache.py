"""`ConversationCache`: encodes the shared prefixes of a server's prompts once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .._arguments import whole_number
from .._core import Pipeline, PrefixCache, TokenBuffer
from ..common.values import listed
from ..prompt.segments import Segment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..face import Face

__all__ = ["CacheStats", "ConversationCache"]

_Names = Literal["all"] | Collection[str]
_Prompt = str | Iterable[Segment | tuple[Any, ...]]


class CacheStats(NamedTuple):
    """The counts and the size of a `ConversationCache`."""

    #: Number of encoded prompts.
    prompts: int
    #: Total number of ids in all prompts.
    tokens: int
    #: Number of ids taken from the cache.
    reused_tokens: int
    #: Number of text blocks in the cache.
    blocks: int
    #: Number of evicted blocks.
    evicted_blocks: int
    #: Memory of the blocks in bytes.
    memory: int
    #: Limit of `memory`.
    max_bytes: int


class ConversationCache:
    """Encodes prompts, each shared prefix once.

    For servers: each turn of a conversation sends the whole prompt again, and conversations share
    system prompts, tools and documents. Prompts need no session: a tree of text blocks finds the
    longest prefix shared with an earlier prompt, and only the rest is encoded. The ids are the same
    as of the whole prompt: blocks are compared in full, not only by hash.

    Blocks of about 1 KB end at stable boundaries of ids: after words for published patterns, else
    after special tokens. Text without a boundary is one block, reused only as a whole. The least
    recently used blocks are evicted first. Any number of threads can use a cache, and a forked
    process has a separate copy.

    Args:
        tokenizer: An `Encoding`, a `bpe_engine.hf.Tokenizer` or a `bpe_engine.Tokenizer`; later
            changes have no effect.
        max_bytes: Maximum memory of blocks in bytes: some 9 bytes per token of distinct text.
        allowed_special, disallowed_special: For texts, with the meaning and defaults of the
            tokenizer's `encode`.

    Raises:
        TypeError, ValueError: An argument is not as described.

    >>> import bpe_engine
    >>> from bpe_engine.serving import ConversationCache
    >>> cache = ConversationCache(bpe_engine.get_encoding("gpt2"), max_bytes=10_000_000)
    >>> turn = "The quick brown fox jumps over the lazy dog. " * 100
    >>> len(cache.encode(turn)), len(cache.encode(turn + "What does it do?"))
    (1001, 1005)
    >>> cache.stats().reused_tokens > 900
    True
    """

    __slots__ = ("__weakref__", "_cache", "_max_bytes", "_tokenizer")

    def __init__(
        self,
        tokenizer: Face,
        *,
        max_bytes: int = 1 << 30,
        allowed_special: _Names | None = None,
        disallowed_special: _Names | None = None,
    ):
        if not issubclass(type(tokenizer), Pipeline):
            raise TypeError(
                "tokenizer must be an Encoding, a bpe_engine.hf.Tokenizer or a "
                f"bpe_engine.Tokenizer, not {type(tokenizer).__name__}"
            )
        self._max_bytes = whole_number("max_bytes", max_bytes)
        self._tokenizer = tokenizer
        self._cache = PrefixCache(tokenizer, self._max_bytes, allowed_special, disallowed_special)

    def encode(self, prompt: _Prompt) -> list[int]:
        """Encodes a prompt.

        Args:
            prompt: A text, encoded as by the tokenizer's `encode`, without the tokens that a
                post-processor adds; or segments, encoded as by `encode_segments`.

        Returns:
            The ids of the whole prompt.

        Raises:
            ValueError, TypeError: As in `encode` and `encode_segments` of the tokenizer.
        """
        return self._encoded(prompt).tolist()

    def encode_to_numpy(self, prompt: _Prompt) -> npt.NDArray[np.uint32]:
        """Encodes a prompt to a new uint32 array, like `encode`. Needs numpy.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> from bpe_engine.serving import ConversationCache
        >>> cache = ConversationCache(bpe_engine.get_encoding("gpt2"))
        >>> cache.encode_to_numpy([special("<|endoftext|>"), untrusted("hello")]).tolist()
        [50256, 31373]
        """
        import numpy as np

        buffer: Any = self._encoded(prompt)
        return np.frombuffer(buffer, dtype=np.uint32)

    def _encoded(self, prompt: _Prompt) -> TokenBuffer:
        if isinstance(prompt, str):
            return self._cache.encode_text(prompt)
        return self._cache.encode_segments(_segments(prompt))

    def stats(self) -> CacheStats:
        """Returns the counts since the cache was made, and its present size."""
        return CacheStats(*self._cache.stats(), self._max_bytes)

    def clear(self) -> None:
        """Drops all blocks, but keeps the counts."""
        self._cache.clear()

    def __repr__(self) -> str:
        stats = self.stats()
        name = getattr(self._tokenizer, "name", type(self._tokenizer).__name__)
        return (
            f"<ConversationCache of {name!r}: {stats.blocks} blocks, "
            f"{stats.memory} of {stats.max_bytes} bytes>"
        )


def _segments(prompt: Any) -> list[Any]:
    if isinstance(prompt, (bytes, dict)) or not isinstance(prompt, Iterable):
        raise TypeError(
            f"a prompt must be a str or a list of segments, not {type(prompt).__name__}"
        )
    return prompt if isinstance(prompt, list) else listed(prompt)
