"""`Conversation`, which encodes a growing prompt incrementally."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .._core import ConversationState, Pipeline
from .._core import stable_prefix as native_stable_prefix
from .segments import Segment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


__all__ = ["Change", "Conversation", "stable_prefix"]


class Change(NamedTuple):
    """The change that an update makes to the ids."""

    #: Number of previous ids kept.
    kept: int
    #: All ids after the kept ids.
    ids: list[int]


class Conversation:
    """The ids of a prompt that grows and changes.

    An update costs as much as its changes plus a comparison with the previous text. Any number of
    threads can use a conversation; of concurrent updates, the last wins. The memory (see `memory`)
    holds the text, twice if the encoding normalizes, and 4 bytes for each id, 32 bytes for each KB
    of text and 56 bytes for each special token.

    Args:
        tokenizer: A tokenizer of any class.
        allowed_special, disallowed_special: As in the tokenizer's `encode`, for texts.

    >>> import bpe_engine
    >>> conversation = Conversation(bpe_engine.get_encoding("gpt2"))
    >>> conversation.update("Hello")
    Change(kept=0, ids=[15496])
    >>> conversation.update("Hello there")
    Change(kept=1, ids=[612])
    >>> conversation.ids
    [15496, 612]
    """

    __slots__ = ("_engine", "_state")

    def __init__(
        self,
        tokenizer: Pipeline,
        allowed_special: Literal["all"] | Collection[str] | None = None,
        disallowed_special: Literal["all"] | Collection[str] | None = None,
    ):
        self._engine = tokenizer
        self._state = ConversationState(tokenizer, allowed_special, disallowed_special)

    def update(self, prompt: str | Iterable[Segment | tuple[Any, ...]]) -> Change:
        """Replaces the prompt.

        Args:
            prompt: Text, encoded like ``encode`` with the arguments of the class; or segments,
                encoded like ``encode_segments``.

        Returns:
            The number of ids kept, and all ids after them.

        Raises:
            ValueError, TypeError: As in `Encoding.encode` and `Encoding.encode_segments`. The
                prompt is unchanged.
        """
        if isinstance(prompt, str):
            return Change(*self._state.update_text(prompt))
        return Change(*self._state.update_segments(_segments(prompt)))

    def append(self, more: str | Iterable[Segment | tuple[Any, ...]]) -> Change:
        """Appends to the prompt. The result is the same as of `update` with the whole prompt, at
        the cost of the new text.

        This cost requires text that can be split (see `stable_prefix`). Otherwise the text after
        the last special token is encoded again. Three operations cost as much as the whole prompt:
        the first append after `fork`; the first text that normalization changes; and each append of
        segments if ids depend on segment boundaries, as in tokenizer files whose model produces
        added tokens from text, or that search for added tokens in normalized text.

        Args:
            more: Text if the prompt so far is text, otherwise segments.

        Returns:
            The number of ids kept, and all ids after them.

        Raises:
            ValueError, TypeError: As in `update`; or only one of `more` and the prompt so far is
                text. The prompt is unchanged.

        >>> import bpe_engine
        >>> conversation = Conversation(bpe_engine.get_encoding("gpt2"))
        >>> conversation.append("Hello")
        Change(kept=0, ids=[15496])
        >>> conversation.append(" there")
        Change(kept=1, ids=[612])
        """
        if isinstance(more, str):
            return Change(*self._state.append_text(more))
        return Change(*self._state.append_segments(list(_segments(more))))

    @property
    def ids(self) -> list[int]:
        """All ids as a new list."""
        return self._state.ids().tolist()

    @property
    def ids_numpy(self) -> npt.NDArray[np.uint32]:
        """All ids as a new numpy array of uint32."""
        import numpy as np

        return np.frombuffer(self._state.ids(), dtype=np.uint32)  # type: ignore[call-overload,no-any-return]

    def __len__(self) -> int:
        """Returns the number of ids."""
        return len(self._state)

    @property
    def memory(self) -> int:
        """Memory in bytes. Memory shared by forks counts for each fork."""
        return self._state.memory()

    def fork(self) -> Conversation:
        """Returns a copy that shares memory until either conversation changes."""
        fork = Conversation.__new__(Conversation)
        fork._engine = self._engine
        fork._state = self._state.fork()
        return fork

    __copy__ = fork

    def __deepcopy__(self, memo: object) -> Conversation:
        return self.fork()

    def __repr__(self) -> str:
        name = getattr(self._engine, "name", self._engine)
        return f"<Conversation of {len(self)} ids, {name!r}>"


def _segments(prompt: Any) -> Iterable[Any]:
    if isinstance(prompt, (bytes, dict)) or not isinstance(prompt, Iterable):
        raise TypeError(
            f"segments must be a list of segments, not {type(prompt).__name__}; a text must be a str"
        )
    return prompt


def stable_prefix(
    tokenizer: Pipeline,
    text: str,
    *,
    allowed_special: Literal["all"] | Collection[str] | None = None,
    disallowed_special: Literal["all"] | Collection[str] | None = None,
) -> tuple[list[int], int]:
    """Returns the ids of a text that no continuation changes, and the number of characters that
    they cover. Takes the arguments of the tokenizer's `encode` and raises the same errors.

    >>> import bpe_engine
    >>> stable_prefix(bpe_engine.get_encoding("gpt2"), "hello world, how are y")
    ([31373, 995, 11, 703, 389], 20)
    """
    if text and isinstance(text, str) and "\ud800" <= text[-1] <= "\udbff":
        # The last character may be the first half of a surrogate pair.
        text = text[:-1]
    return native_stable_prefix(tokenizer, text, allowed_special, disallowed_special)
