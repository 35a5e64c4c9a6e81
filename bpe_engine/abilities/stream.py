"""`StreamDecoder`, which decodes ids that arrive one by one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .._core import Pipeline, whole_characters
from ..common.values import listed

__all__ = ["StreamDecoder"]


class StreamDecoder:
    """Decodes ids to text as they arrive, and holds back bytes until their character is complete.

    The joined pieces equal the text of all ids decoded at once, for any `errors` and any split of
    the ids into calls. A file with byte fallback decodes a run of byte tokens that is not UTF-8
    as U+FFFD for each byte, even bytes of valid characters: with ``errors="replace"`` such a run is
    held back until it ends.

    Pass the ids before the stream as `prompt`. Their text is not returned, except for a last
    character that the prompt begins and the stream completes.

    Args:
        tokenizer: An `Encoding`, a `bpe_engine.hf.Tokenizer` or a `bpe_engine.Tokenizer`, in its
            current state.
        errors: The handler for bytes that are not UTF-8, as in ``bytes.decode``. Your own handler,
            registered with `codecs.register_error`, sees only a part of the stream: it must use
            ``error.object[error.start:error.end]`` and resume at ``error.end``.
        prompt: The id or ids before the stream.
        skipped: Ids to drop.

    >>> import bpe_engine
    >>> decoder = bpe_engine.get_encoding("qwen").stream_decoder()
    >>> decoder.push(51461), decoder.push([117]), decoder.finish()
    (' ', '根', '')
    """

    def __init__(
        self,
        tokenizer: Pipeline,
        errors: str = "replace",
        prompt: int | Sequence[int] = (),
        skipped: Collection[int] = (),
    ):
        self._engine = tokenizer
        self._errors = errors
        self._skipped = skipped
        # Splits ids into runs decoded together, which decide how many U+FFFD replace invalid bytes.
        self._runs = self._engine._byte_runs if errors == "replace" else None
        # The first ids, until they decode to text, whose leading space the decoder may drop.
        self._first: list[int] | None = []
        # Ids whose text may change with later ids, and how many of them belong to the prompt.
        self._waiting: list[int] = []
        self._known = 0
        # Bytes of an incomplete character; true if the prompt began the character.
        self._pending, self._from_prompt = b"", False
        ids = self._listed(prompt)
        if self._runs is not None:
            parts = self._parts(ids)
            self._waiting = parts[-1][self._engine._settled(parts[-1]) :]
            self._known = len(self._waiting)
            self._first = None if any(parts) else []
        elif ids := self._shown(ids):
            self._first = None
            data = b"".join(self._engine.decode_tokens_bytes(ids))
            self._pending = data[self._whole(data)[1] :]
        self._from_prompt = bool(self._pending)

    def push(self, tokens: int | Sequence[int]) -> str:
        """Decodes the next id, or a sequence of ids.

        Returns:
            The complete text; "" while a character is incomplete.

        Raises:
            KeyError, OverflowError, TypeError: As in `Encoding.decode`; no id is consumed.
            UnicodeDecodeError: With ``errors="strict"``, if the bytes are not UTF-8.
        """
        return self._decode(self._bytes_of(tokens), final=False)

    def finish(self) -> str:
        """Ends the stream.

        Returns:
            "", or the result of `errors` for an incomplete last character. The decoder can be used
            again for another stream, which has no prompt.
        """
        data = b"" if self._runs is None else self._settled([], final=True)
        text = self._decode(data, final=True)
        self._first = []
        return text

    def _listed(self, tokens: int | Sequence[int]) -> list[int]:
        # numpy arrays have `__index__` and `__len__`, numpy integers only `__index__`.
        is_one = hasattr(tokens, "__index__") and not hasattr(tokens, "__len__")
        return [tokens] if is_one else listed(tokens)  # type: ignore[arg-type,list-item]

    def _shown(self, ids: list[int]) -> list[int]:
        return [id for id in ids if id not in self._skipped] if self._skipped else ids

    def _parts(self, ids: list[int]) -> list[list[int]]:
        """Returns the ids that are not skipped, in parts whose bytes are decoded independently."""
        if self._runs == "whole" or not self._skipped:
            return [self._shown(ids)]
        parts: list[list[int]] = [[]]
        for id in ids:
            if id in self._skipped:
                parts.append([])
            else:
                parts[-1].append(id)
        return parts

    def _bytes_of(self, tokens: int | Sequence[int]) -> bytes:
        ids = self._listed(tokens)
        if self._runs is not None:
            *ended, last = self._parts(ids)
            if ended:
                self._engine._settled(ids)  # Raises for an invalid id before any id is consumed.
            before = [self._settled(part, final=True) for part in ended]
            return b"".join([*before, self._settled(last, final=False)])
        ids = self._shown(ids)
        if self._first is None:
            return b"".join(self._engine.decode_tokens_bytes(ids))
        first = [*self._first, *ids]
        data = self._engine.decode_bytes(first)
        self._first = None if data else first
        return data

    def _settled(self, ids: list[int], final: bool) -> bytes:
        """Returns the bytes that later ids cannot change, and holds the other ids back."""
        if self._runs == "whole" and not final and not self._engine._settled(ids):
            self._waiting += ids
            return b""
        ids = [*self._waiting, *ids]
        count = len(ids) if final else self._engine._settled(ids)
        now = [*(self._first or ()), *ids[:count]]
        data = self._engine._decode_lossy(now, self._first is not None, self._known)
        if self._first is not None:
            self._first = None if data else now
        self._waiting, self._known = ids[count:], max(self._known - count, 0)
        return data

    def _decode(self, data: bytes, final: bool) -> str:
        data = self._pending + data
        start, end = self._whole(data)
        # The prompt's character is still incomplete.
        from_prompt = self._from_prompt and not end
        if final:
            end = 0 if from_prompt else len(data)
        text = data[start:end].decode("utf-8", self._errors)
        self._pending = b"" if final else data[end:]
        self._from_prompt = from_prompt and not final
        return text

    def _whole(self, data: bytes) -> tuple[int, int]:
        return whole_characters(data, self._from_prompt, self._errors == "surrogatepass")
