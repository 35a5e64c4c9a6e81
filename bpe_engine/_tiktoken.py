"""Provides `CoreBPE`, the class of tiktoken's native module, under its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import _core
from ._core import Pipeline, TokenBuffer

__all__ = ["CoreBPE"]

_Names = str | Iterable[str] | None


class CoreBPE(_core.Encoding):
    """The interface of tiktoken's ``CoreBPE``: an encoding with special tokens by position.

    `Encoding._core_bpe` is an instance. The encoding and its `CoreBPE` share one engine.
    """

    def __init__(
        self,
        encoder: dict[bytes, int] | Sequence[tuple[str, bytes]] | str,
        special_tokens_encoder: dict[str, int],
        pattern: str,
        normalization: str | None = None,
    ) -> None:
        """Builds an encoding from ranks, special tokens ``{name: id}`` and the pattern that cuts text
        into pieces.

        Ranks are a dict ``{token bytes: id}``. This constructor also takes rank files, as a list of
        ``(label for messages, contents)``, or the name of a vocabulary inside the native module.
        """
        self._build(encoder, special_tokens_encoder, pattern, normalization)

    @classmethod
    def of_tokenizer(cls, tokenizer: Pipeline) -> CoreBPE | None:
        """Returns the encoding from which a tokenizer was made, with the tokens added since; None
        for a tokenizer read from a file."""
        made = cls.__new__(cls)
        return made if made._share_encoding(tokenizer) else None

    def encode(  # type: ignore[override]
        self, text: str, allowed_special: _Names, disallowed_special: _Names = None
    ) -> list[int]:
        """Like `Encoding.encode`, but disallows nothing by default."""
        return super().encode(
            text, allowed_special=allowed_special, disallowed_special=disallowed_special or ()
        )

    def encode_to_tiktoken_buffer(
        self, text: str, allowed_special: _Names, disallowed_special: _Names = None
    ) -> TokenBuffer:
        """Encodes like `encode`, and returns the ids as a buffer of 32-bit numbers."""
        return self._ids_in_buffer(
            text, allowed_special=allowed_special, disallowed_special=disallowed_special or ()
        )

    def encode_with_unstable(  # type: ignore[override]
        self, text: str, allowed_special: _Names, disallowed_special: _Names = None
    ) -> tuple[list[int], list[list[int]]]:
        """Like `Encoding.encode_with_unstable`, but disallows nothing by default."""
        return super().encode_with_unstable(
            text, allowed_special=allowed_special, disallowed_special=disallowed_special or ()
        )

    def encode_single_token(self, piece: str | bytes) -> int:
        """Same as `Encoding.encode_single_token`."""
        return super().encode_single_token(piece)

    def encode_single_piece(self, piece: str | bytes) -> list[int]:
        """Encodes a text as one piece, without special tokens."""
        return self._encode_single_piece(piece)

    def _encode_bytes(self, bytes: bytes) -> list[int]:
        return super()._encode_bytes(bytes)
