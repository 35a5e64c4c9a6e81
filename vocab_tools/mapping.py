"""Maps the ids of one vocabulary to ids of another vocabulary by the bytes of tokens."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bpe_engine
from bpe_engine.common.system import base_name

from .brief import Reported
from .text import plural, text_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bpe_engine import Encoding, Tokenizer
    from bpe_engine.abilities.ragged import TokenBatch
    from bpe_engine.hf import Tokenizer as HfTokenizer

    AnyTokenizer = Encoding | Tokenizer | HfTokenizer
    Ids = npt.NDArray[np.uint32]

#: Texts to put before a token, so that the token is in the middle of a text.
_BEFORE = ("\n", "a", ".")

#: Maximum length in bytes of a token to search for in bytes that are not text.
_LONGEST = 64


@dataclass(frozen=True, repr=False, eq=False)
class VocabularyMap(Reported):
    """A mapping from the ordinary tokens of a vocabulary ``a`` to ordinary tokens of a vocabulary
    ``b``."""

    name_a: str
    name_b: str
    #: Ids of ``a``, in ascending order.
    ids: Ids
    #: For each id of ``a``, the ids of ``b``: one token with the same bytes, or else the encoding
    #: in the middle of a text. A row is empty if ``b`` cannot encode the token: ``b`` lacks a token
    #: for a byte, or encodes the text to an unknown or a special token.
    rows: TokenBatch
    #: For each id of ``a``, True if ``b`` has a token with the same bytes.
    is_equal: npt.NDArray[np.bool_]
    #: Number of ordinary tokens of ``b``.
    size_b: int
    #: Bytes of each id, for both vocabularies.
    tokens_a: Sequence[bytes]
    tokens_b: Sequence[bytes]

    @property
    def equal(self) -> Ids:
        """Pairs of ids with the same bytes, as two columns, sorted by the id of ``a``."""
        import numpy as np

        rows = self.rows[self.is_equal.nonzero()[0].tolist()]
        return np.column_stack([self.ids[self.is_equal], rows.values])

    @property
    def decompositions(self) -> dict[int, list[int]]:
        """The ids of ``b`` that make up each token of ``a`` that ``b`` lacks."""
        others = (~self.is_equal).nonzero()[0].tolist()
        return dict(zip(self.ids[others].tolist(), self.rows[others].to_lists()))

    @property
    def overlap(self) -> float:
        """Share of the tokens in ``a`` that ``b`` also has."""
        return float(self.is_equal.mean()) if len(self.ids) else 0.0

    def weights(self) -> tuple[Ids, npt.NDArray[np.int64], Ids, npt.NDArray[np.float32]]:
        """Returns, for each token of ``a``, weights to average embedding rows of ``b``.

        Returns:
            The ids of ``a``, ascending; the row splits; and, in these rows, the ids of ``b`` and
            their weights, which sum to 1. A token that ``b`` cannot encode has an empty row.
        """
        import numpy as np

        counts = self.rows.lengths
        weights = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
        return self.ids, self.rows.row_splits, self.rows.values, weights

    def to_plain(self) -> dict[str, Any]:
        """Returns the map as plain types, for JSON."""
        return {
            "a": self.name_a,
            "b": self.name_b,
            "size_a": len(self.ids),
            "size_b": self.size_b,
            "equal": self.equal.tolist(),
            "decompositions": {str(id): row for id, row in self.decompositions.items()},
        }

    def conclusions(self) -> list[str]:
        """Returns the main figures in sentences."""
        both, lengths = int(self.is_equal.sum()), self.rows.lengths[~self.is_equal]
        spelled = int((lengths > 0).sum())
        found = [
            f"{both:,} of {len(self.ids):,} tokens of {self.name_a} ({self.overlap:.1%}) are "
            f"tokens of {self.name_b}."
        ]
        if spelled:
            mean = lengths.sum() / spelled
            found.append(
                f"{spelled:,} others become {mean:.2f} tokens of {self.name_b} on average."
            )
        if len(lengths) > spelled:
            found.append(f"{self.name_b} cannot spell {plural(len(lengths) - spelled, 'token')}.")
        return found


def map_vocabularies(
    a: AnyTokenizer | str | os.PathLike[str], b: AnyTokenizer | str | os.PathLike[str]
) -> VocabularyMap:
    """Maps the ids of one vocabulary to ids of another vocabulary by the bytes of tokens.

    Draft models with a different vocabulary need this map, as does moving embeddings.

    Args:
        a, b: tokenizers of any class; or names, files or folders for
            :func:`bpe_engine.open_tokenizer`.

    Returns:
        The ids of ``b`` for every token of ``a``. If several ids of ``b`` have the same bytes, such
        as a letter and its byte token, the id to which text encodes is used, or else the lowest id.
        Bytes that are not UTF-8 are cut from the left into the longest tokens, of at most 64 bytes
        each.

    Raises:
        TypeError: ``a`` or ``b`` is not a tokenizer.
        UnsupportedTokenizer: the ids of a tokenizer have no bytes.
        ImportError: numpy is missing.
        OSError, ValueError: a file cannot be read, or is malformed.

    >>> import vocab_tools
    >>> map = vocab_tools.map_vocabularies("gpt2", "o200k_base")
    >>> len(map.equal), len(map.decompositions), f"{map.overlap:.2f}"
    (42873, 7383, '0.85')
    """
    import numpy as np

    from bpe_engine.abilities.ragged import TokenBatch

    one, other = (_opened(it) for it in (a, b))
    (tokens_a, ids_a), (tokens_b, ids_b) = _tokens(one), _tokens(other)
    own, known = _ids_by_bytes(one, tokens_a, ids_a), _ids_by_bytes(other, tokens_b, ids_b)
    same = {id: known[token] for token, id in own.items() if token in known}
    others = [id for id in ids_a if id not in same]
    made = _decomposed(other, [tokens_a[id] for id in others], tokens_b, known)
    ordinary = set(ids_b)
    rows = {id: row if ordinary.issuperset(row) else [] for id, row in zip(others, made)}
    return VocabularyMap(
        _name(a, one),
        _name(b, other),
        np.array(ids_a, np.uint32),
        TokenBatch.from_lists([rows[id] if id in rows else [same[id]] for id in ids_a]),
        np.array([id in same for id in ids_a], bool),
        len(ids_b),
        tokens_a,
        tokens_b,
    )


def _opened(tokenizer: AnyTokenizer | str | os.PathLike[str]) -> Any:
    if isinstance(tokenizer, (str, os.PathLike)):
        from bpe_engine import open_tokenizer

        return open_tokenizer(tokenizer)
    if not hasattr(tokenizer, "decode_bytes"):
        kind = type(tokenizer).__name__
        raise TypeError(f"a and b must be tokenizers, or their names, files or folders, not {kind}")
    return tokenizer


def _name(given: AnyTokenizer | str | os.PathLike[str], opened: Any) -> str:
    """Returns the name of a tokenizer for reports: its file, its name or its class."""
    if isinstance(given, (str, os.PathLike)):
        return base_name(given)
    return str(getattr(opened, "name", type(opened).__name__))


def _tokens(tokenizer: Any) -> tuple[list[bytes], list[int]]:
    """Returns the bytes of each id, and the ids of the ordinary tokens that have bytes."""
    table = bpe_engine.TokenTable(tokenizer)
    offsets, buffer = table.offsets.tolist(), bytes(table.buffer)
    tokens = [buffer[start:end] for start, end in zip(offsets, offsets[1:])]
    return tokens, [id for id in table.ids("ordinary") if tokens[id]]


def _ids_by_bytes(tokenizer: Any, tokens: list[bytes], ids: list[int]) -> dict[bytes, int]:
    """Maps each token's bytes to an id: of several ids, the encoded id, or else the lowest."""
    known = {tokens[id]: id for id in reversed(ids)}
    if len(known) == len(ids):
        return known
    counts = Counter(tokens[id] for id in ids)
    repeated = [token for token, count in counts.items() if count > 1]
    ordinary = set(ids)
    for token, made in zip(repeated, _decomposed(tokenizer, repeated, tokens, known)):
        if len(made) == 1 and made[0] in ordinary and tokens[made[0]] == token:
            known[token] = made[0]
    return known


def _decomposed(
    tokenizer: Any, tokens: list[bytes], table: list[bytes], known: dict[bytes, int]
) -> list[list[int]]:
    """Returns the ids of each token as ``tokenizer`` encodes it in the middle of a text."""
    texts = {place: text for place, token in enumerate(tokens) if (text := text_of(token))}
    rows: list[list[int]] = [
        [] if place in texts else _longest_match(token, known) for place, token in enumerate(tokens)
    ]
    [first] = _encoded(tokenizer, ["a"])
    # If the tokenizer puts a space before a text, tries other text in front; the last try has none.
    for before in (*_BEFORE, "") if first and table[first[0]].startswith(b" ") else ("",):
        [start] = _encoded(tokenizer, [before])
        found = _encoded(tokenizer, [before + text for text in texts.values()])
        for place, ids in zip(list(texts), found):
            if not before or (ids[: len(start)] == start and any(table[id] for id in start)):
                rows[place] = ids[len(start) if before else 0 :]
                del texts[place]
    return rows


def _encoded(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    batch = tokenizer.encode_batch_to_numpy(texts, disallowed_special=())
    found: list[list[int]] = batch.to_lists()
    return found


def _longest_match(token: bytes, known: dict[bytes, int]) -> list[int]:
    """Cuts bytes from the left into the longest tokens; returns [] if a byte has no token."""
    ids, start = [], 0
    while start < len(token):
        ends = range(min(len(token), start + _LONGEST), start, -1)
        end = next((end for end in ends if token[start:end] in known), None)
        if end is None:
            return []
        ids.append(known[token[start:end]])
        start = end
    return ids
