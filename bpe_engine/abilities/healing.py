"""`TokenTrie` and `Healed`, which find the tokens compatible with the next bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import _core
from .._arguments import numpy_for

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Healed", "TokenTrie"]

#: Maximum number of prompt bytes in a `repr`.
_SHOWN = 60


class TokenTrie:
    """The tokens of a tokenizer, sorted by their bytes for search by prefix.

    The bytes come from the token table: the text that an id adds after other ids. Control tokens,
    the token for unknown text and ids without a token are never found.

    >>> import bpe_engine
    >>> trie = bpe_engine.TokenTrie(bpe_engine.get_encoding("gpt2"))
    >>> trie.next_bytes(b" worl"), trie.tokens_with(b" worl")
    (b'd', [995, 43249, 11621, 29081, 8688])
    """

    __slots__ = ("_native",)

    def __init__(self, tokenizer: _core.Pipeline):
        self._native = _core.TokenTrie(tokenizer)

    def __copy__(self) -> TokenTrie:
        return self

    def __deepcopy__(self, memo: Any) -> TokenTrie:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "cannot pickle a TokenTrie; pickle the tokenizer, and make another TokenTrie of it"
        )

    def next_bytes(self, prefix: bytes) -> bytes:
        """Returns the bytes that follow `prefix` in tokens that begin with it, in ascending order."""
        return self._native.next_bytes(prefix)

    def tokens_with(self, prefix: bytes) -> list[int]:
        """Returns the ids whose bytes begin with `prefix`, in the order of their bytes."""
        return self._native.tokens_with(prefix)

    @property
    def words(self) -> int:
        """The number of 32-bit words in a mask, which has a bit for each id of the token table."""
        return self._native.words()

    def mask(self, rest: bytes, out: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.int32]:
        """Returns a mask of the tokens compatible with the next bytes: prefixes of `rest` and
        tokens that begin with `rest`. Needs numpy.

        Args:
            rest: The next bytes; if empty, every ordinary token is compatible.
            out: An int32 array or other buffer of at least `words` words to write to; by default a
                new array.

        Returns:
            The array. Bit ``id % 32`` of word ``id // 32`` is set if the token may come next: the
            layout of the masks of xgrammar and llguidance.

        Raises:
            ValueError: `out` has too few words.
            BufferError: `out` has another type or byte order, or cannot be written.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> mask = bpe_engine.TokenTrie(gpt2).mask(b" worl")
        >>> [id for id in range(50_257) if mask[id // 32] >> (id % 32) & 1]
        [220, 266, 476, 995, 8688, 11621, 24486, 29081, 43249]
        """
        out = _room(self.words, out)
        self._native.fill_mask(rest, out)
        return out


class Healed:
    """A prompt that ends inside a word, for a model to continue. Made by `Encoding.heal`.

    Give the model `ids`. Restrict sampling to the tokens that `allowed` permits, and pass each
    sampled token to `advance`, until the prompt is `done`.

    >>> import bpe_engine
    >>> gpt2 = bpe_engine.get_encoding("gpt2")
    >>> healed = gpt2.heal("say hello wor")
    >>> gpt2.decode(healed.ids), healed.rest
    ('say hello', b' wor')
    >>> healed.advance(gpt2.encode(" w")[0])
    >>> healed.rest, healed.done
    (b'or', False)
    >>> healed.advance(gpt2.encode("orld")[0])
    >>> healed.rest, healed.done
    (b'', True)
    """

    __slots__ = ("_native",)

    def __init__(self, native: _core.Healed):
        self._native = native

    @classmethod
    def of_rests(cls, tokenizer: _core.Pipeline, rests: Iterable[bytes]) -> Healed:
        """Returns a prompt without ids whose next tokens must begin with one of `rests`, such as
        `Healed.rests` from another process.

        Args:
            tokenizer: A tokenizer of any class with the vocabulary of the prompt.
            rests: The alternative bytes.

        Raises:
            UnsupportedTokenizer, ValueError: As `TokenTable`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> healed = Healed.of_rests(gpt2, gpt2.heal("say hello wor").rests)
        >>> healed.ids, healed.rest
        ([], b' wor')
        """
        return cls(_core.Healed.of_rests(tokenizer, rests))

    @property
    def ids(self) -> list[int]:
        """The ids of the prompt that no continuation changes."""
        return self._native.ids()

    @property
    def rest(self) -> bytes:
        """The bytes that the next tokens must begin with, as in the token table. Later text may
        still change the last character; `allowed` covers that case."""
        return self._native.rest()

    @property
    def rests(self) -> list[bytes]:
        """Every byte string with which the next tokens may begin: `rest`, and variants with a
        different last character if later text may change that character, as a combining mark does
        under NFC. Empty once the prompt is done."""
        return self._native.rests()

    @property
    def done(self) -> bool:
        """True once the rest is consumed: any token may follow."""
        return self._native.is_done()

    @property
    def words(self) -> int:
        """The number of 32-bit words in a mask, which has a bit for each id of the token table."""
        return self._native.words()

    def allowed(self, out: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.int32]:
        """Returns a mask of the allowed next tokens, in the layout of `TokenTrie.mask`, without
        control tokens. Once the prompt is done, every bit is set.

        Args:
            out: As in `TokenTrie.mask`.

        Raises:
            ValueError, BufferError: As in `TokenTrie.mask`.
        """
        out = _room(self.words, out)
        self._native.fill_mask(out)
        return out

    def allowed_ids(self) -> npt.NDArray[np.int64]:
        """Returns the allowed next ids in ascending order; once the prompt is done, every id of the
        table."""
        np = numpy_for("heal", "encode")
        bits = np.unpackbits(self.allowed().astype("<i4").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[: self._native.ids_in_table()])  # type: ignore[no-any-return]

    def advance(self, id: int) -> None:
        """Consumes the next token. A finished prompt ignores tokens.

        Raises:
            ValueError: The token is not allowed next; the prompt is unchanged.
        """
        self._native.advance(id)

    def fork(self) -> Healed:
        """Returns a copy that advances independently, as for several samples of one prompt."""
        return Healed(self._native.fork())

    def __copy__(self) -> Healed:
        return self.fork()

    def __deepcopy__(self, memo: Any) -> Healed:
        return self.fork()

    def __reduce__(self) -> Any:
        raise TypeError(
            "cannot pickle a Healed; pickle its ids and its rests, and make another one of these with "
            "Healed.of_rests(tokenizer, rests)"
        )

    def __repr__(self) -> str:
        rest = self.rest
        more = f"... ({len(rest):,} bytes)" if len(rest) > _SHOWN else ""
        return f"<Healed: {len(self.ids)} ids, then {rest[:_SHOWN]!r}{more}>"


class Followed:
    """Tracks a prompt across calls whose ids mostly extend the previous call's ids."""

    def __init__(self, healed: Healed):
        self._start, self._state = healed, healed.fork()
        #: Ids that `self.state` has consumed.
        self.taken: list[int] = []

    def after(self, ids: list[int]) -> Healed:
        """Returns the prompt after these ids.

        Raises:
            ValueError: The prompt is not done, and an id is not allowed next.
        """
        if ids[: len(self.taken)] != self.taken:
            self._state, self.taken = self._start.fork(), []
        for id in ids[len(self.taken) :]:
            if self._state.done:
                break
            self._state.advance(id)
            self.taken.append(id)
        return self._state


def refused(healed: Healed, width: int) -> npt.NDArray[np.bool_]:
    """Returns a bool mask, True for each forbidden next id, for a row of `width` scores."""
    np = numpy_for("heal", "encode")
    words = np.zeros(max(healed.words, -(-width // 32)), np.int32)
    bits = np.unpackbits(healed.allowed(words).astype("<i4").view(np.uint8), bitorder="little")
    return bits[:width] == 0  # type: ignore[no-any-return]


def _room(words: int, out: Any) -> Any:
    if out is not None:
        return out
    np = numpy_for("heal", "encode")
    return np.zeros(words, dtype=np.int32)
