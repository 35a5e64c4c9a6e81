"""`Segment`: text and the special tokens that it may contain."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Literal, NamedTuple, SupportsIndex

from ..common.values import safe_repr

__all__ = ["Origin", "Segment", "special", "tokens", "trusted", "untrusted", "whole_text"]


class Origin(NamedTuple):
    """The origin of text in a rendered template."""

    #: The index of the message; for template text, of the message that the text surrounds.
    message: int | None
    #: The role of the message. None for text of the template, tools and documents.
    role: str | None
    #: "content", "reasoning", "tool_calls", "name", "role", or another key of the message; "tools",
    #: "documents", or "template".
    field: str
    #: Path from the message, the tools or the documents to the text, as keys and indices.
    path: tuple[str | int, ...] = ()
    #: Whether the template has ``{% generation %}`` tags.
    has_tags: bool = False
    #: For text of the template: whether the model writes it in the assistant's turn, after the
    #: generation prompt. Set only if the template has no tags.
    is_answer: bool = False

    def __str__(self) -> str:
        """Returns a readable path: ``messages[2].content``."""
        if self.field == "template":
            return "the template"
        name = self.field if self.message is None else f"messages[{self.message}]"
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return name + "".join(parts)


class Segment(NamedTuple):
    """A part of a prompt. Created by `special`, `trusted`, `untrusted` and `tokens`.

    A plain tuple of at least the first two items is also accepted as a segment.
    """

    text: str
    #: The special tokens to look for in `text`: False for none, True for all, or names.
    allowed_special: bool | frozenset[str]
    #: The speaker, for `Audit.mask`.
    role: str | None = None
    #: Origin for display.
    source: str | None = None
    kind: Literal["text", "special", "tokens"] = "text"
    #: The ids of the kind "tokens".
    ids: tuple[int, ...] = ()
    #: Origin of the text in a template.
    origin: Origin | None = None
    #: Offset of the first character in the original text. None if the template rewrote the text.
    start: int | None = None


def special(name: str, *, role: str | None = None, source: str | None = None) -> Segment:
    """Returns a segment of one special token, by name. Encoding raises for an unknown token.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import special
    >>> bpe_engine.get_encoding("gpt2").encode_segments([special("<|endoftext|>")])
    [50256]
    """
    return Segment(_text("special", name), frozenset((name,)), role, source, "special")


def trusted(text: str, *, role: str | None = None, source: str | None = None) -> Segment:
    """Returns a segment of trusted text, in which names of special tokens become special tokens.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import trusted
    >>> bpe_engine.get_encoding("gpt2").encode_segments([trusted("<|endoftext|>Hi")])
    [50256, 17250]
    """
    return Segment(_text("trusted", text), True, role, source)


def untrusted(text: str, *, role: str | None = None, source: str | None = None) -> Segment:
    """Returns a segment of untrusted text, no part of which ever becomes a special token.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import untrusted
    >>> bpe_engine.get_encoding("gpt2").encode_segments([untrusted("<|endoftext|>Hi")])
    [27, 91, 437, 1659, 5239, 91, 29, 17250]
    """
    return Segment(_text("untrusted", text), False, role, source)


def tokens(
    ids: Iterable[SupportsIndex], *, role: str | None = None, source: str | None = None
) -> Segment:
    """Returns a segment of ids, such as a model's output. Text is never merged with these ids.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import tokens, trusted
    >>> bpe_engine.get_encoding("gpt2").encode_segments([trusted("Hi"), tokens([0, 50256])])
    [17250, 0, 50256]
    """
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"tokens takes ids, not {type(ids).__name__}")
    numbers = []
    for place, id in enumerate(ids):
        try:
            numbers.append(operator.index(id))
        except TypeError:
            raise TypeError(
                f"tokens takes ids, each an int, but the one at index {place} is {safe_repr(id)}"
            ) from None
    return Segment("", False, role, source, "tokens", tuple(numbers))


def _text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name} takes a str, not {type(text).__name__}")
    return text


def whole_text(segments: Iterable[Segment]) -> str:
    """Returns the joined texts of segments."""
    return "".join(segment.text for segment in segments)
