"""`TableMethods`: the methods on the bytes of all ids, for servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import Engine, StreamPool, TokenTable

__all__ = ["TableMethods"]


class TableMethods:
    """Stream pools and token tables of `Encoding`, `bpe_engine.hf.Tokenizer` and
    `bpe_engine.Tokenizer`."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def _native_engine(self) -> Engine: ...

    def stream_pool(self) -> StreamPool:
        """Returns a `StreamPool`, which decodes the ids of many requests in one call for each step
        of a model. Later changes of the tokenizer do not change the pool.

        Raises:
            UnsupportedTokenizer: The decoder of a tokenizer file is not ``ByteLevel``: an id may
                change the text before it.
            ValueError: As `token_table`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> pool = gpt2.stream_pool()
        >>> slots = [pool.open(), pool.open(stop=["wor"])]
        >>> pool.step(slots, [31373, 31373])
        (['hello', 'hello'], [None, None])
        >>> pool.step(slots, [995, 995])
        ([' world', ' '], [None, StreamStop(stop_index=0, id_index=1)])
        >>> [pool.close(slot) for slot in slots]
        ['', '']
        """
        return StreamPool(self._native_engine)

    def token_table(self) -> TokenTable:
        """Returns a `TokenTable`: the bytes that each id adds to a text after other ids, in one
        buffer. It is made once and kept.

        Raises:
            UnsupportedTokenizer: Under the decoder of a tokenizer file an id has no bytes of its own.
            ValueError: An id is larger than 16,777,215.

        >>> import bpe_engine
        >>> table = bpe_engine.get_encoding("gpt2").token_table()
        >>> len(table), table[995], table[50256], table.kind(50256)
        (50257, b' world', b'<|endoftext|>', 'special')
        """
        return TokenTable(self._native_engine)
