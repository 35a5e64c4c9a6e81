"""`PromptMethods`: the methods for prompts that all tokenizer classes share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, AbstractSet, Any

from .._core import Engine
from . import encode

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .audit import Audit
    from .encode import OnControl
    from .segments import Segment

__all__ = ["PromptMethods"]


class PromptMethods:
    """Encodes prompts for `Encoding`, `bpe_engine.hf.Tokenizer` and `bpe_engine.Tokenizer`.

    Special tokens around a text are not added. Untrusted text never becomes a special token of an
    encoding or an added token of a tokenizer file. Added tokens that strip white space also strip
    that of neighboring segments.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def _native_engine(self) -> Engine: ...

        @property
        def special_tokens_set(self) -> AbstractSet[str]: ...

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
