"""`Conversation`: a prompt that grows and changes, encoded where it changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, AbstractSet, Any, Literal, NamedTuple

from .._core import ConversationState, stable_prefix
from .segments import Segment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..core import Encoding

__all__ = ["Change", "Conversation", "stable"]


class Change(NamedTuple):
    """What an update did."""

    #: How many of the ids before stayed.
    kept: int
    #: All ids behind those.
    ids: list[int]


class Conversation:
    """The ids of a prompt that grows and changes. Made by `Encoding.conversation`.

    An update costs what changed, and the comparison with the text before. It may be used from any
    number of threads; of several updates at once, one is the last. It takes the memory of the
    text, 4 bytes for each id, 32 bytes for each KB of text, and 56 bytes for each special token;
    twice the text where the encoding normalizes. See `memory`.

    >>> import bpe_engine
    >>> conversation = bpe_engine.get_encoding("gpt2").conversation()
    >>> conversation.update("Hello")
    Change(kept=0, ids=[15496])
    >>> conversation.update("Hello there")
    Change(kept=1, ids=[612])
    >>> conversation.ids
    [15496, 612]
    """

    __slots__ = ("_encoding", "_state")

    def __init__(
        self,
        encoding: Encoding,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ):
        self._encoding = encoding
        self._state = ConversationState(encoding._core_bpe, allowed_special, disallowed_special)

    def update(self, prompt: str | Iterable[Segment | tuple[Any, ...]]) -> Change:
        """Makes this the prompt: a text, or segments.

        A text is encoded as by ``encode`` with the special tokens that were given to
        `Encoding.conversation`, segments as by ``encode_segments``.

        Raises:
            ValueError, TypeError: As `Encoding.encode` and `Encoding.encode_segments`. Then
                everything is as before.
        """
        if isinstance(prompt, str):
            return Change(*self._state.update_text(prompt))
        if isinstance(prompt, (bytes, dict)) or not isinstance(prompt, Iterable):
            raise TypeError(
                f"segments must be a list of segments, not {type(prompt).__name__}; a text must be "
                "a str"
            )
        return Change(*self._state.update_segments(prompt))

    @property
    def ids(self) -> list[int]:
        """All ids: a new list."""
        return self._state.ids()

    @property
    def ids_numpy(self) -> npt.NDArray[np.uint32]:
        """All ids: a new array."""
        import numpy as np

        return np.frombuffer(self._state.ids_buffer(), dtype=np.uint32)  # type: ignore[call-overload,no-any-return]

    def __len__(self) -> int:
        """How many ids there are."""
        return len(self._state)

    @property
    def memory(self) -> int:
        """How many bytes of memory it takes; what forks share is counted for each."""
        return self._state.memory()

    def fork(self) -> Conversation:
        """A conversation that is the same until one of the two changes."""
        fork = Conversation.__new__(Conversation)
        fork._encoding = self._encoding
        fork._state = self._state.fork()
        return fork

    __copy__ = fork

    def __deepcopy__(self, memo: object) -> Conversation:
        return self.fork()

    def __repr__(self) -> str:
        return f"<Conversation of {len(self)} ids, {self._encoding.name!r}>"


def stable(
    encoding: Encoding,
    text: str,
    allowed_special: Literal["all"] | AbstractSet[str],
    disallowed_special: Literal["all"] | Collection[str],
) -> tuple[list[int], int]:
    """See `Encoding.stable_prefix`."""
    core = encoding._core_bpe
    if text and isinstance(text, str) and "\ud800" <= text[-1] <= "\udbff":
        # It may turn out to be the first half of a character.
        text = text[:-1]
    return stable_prefix(core, text, allowed_special, disallowed_special)
