"""Plans the embedding rows of new tokens: each row is the mean of the rows of the token's parts.

Four sizes are often confused: the number of *ranks*, the number of *special tokens*, the *largest
id plus one* (ids have gaps), and the number of *rows* of the table (often padded). A plan states
each size, and has a row for every id up to the new maximum. Qwen's sizes:

| size                                         | number  |
| -------------------------------------------- | ------- |
| ranks                                        | 151,643 |
| ranks and the 208 special tokens             | 151,851 |
| rows of the table, small models (128 x 1187) | 151,936 |
| rows of the table, large models (256 x 594)  | 152,064 |
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bpe_engine import Encoding, open_tokenizer, vocabulary
from bpe_engine.common.atomic_write import write_at_once
from bpe_engine.hf import UnsupportedTokenizer

from ..arguments import checked_path, checked_special_tokens
from ..bases import Base, open_base
from ..brief import in_notebook
from ..patterns import named_pattern
from ..ranks import RankSource, as_sources, check_special_tokens, free_ranges, load_ranks
from ..text import plural, quoted, show


class EmbeddingPlan(dict[int, list[int]]):
    """A dict from each new id to the base ids that make it up, with additional attributes."""

    #: Sizes of the vocabulary before and after the extension; see :func:`embedding_plan`.
    sizes: dict[str, int]
    #: Unused ids between the base's maximum and the new maximum, as ranges of first and last id.
    gaps: list[tuple[int, int]]
    #: Ids of the base's tokens, whose rows are trained.
    base_ids: list[int]
    #: Bytes of the new tokens and their parts, by id; {} in a plan that was read from a file.
    tokens: dict[int, bytes]

    def __repr__(self) -> str:
        return f"<EmbeddingPlan of {plural(len(self), 'new id')}>"

    def _repr_html_(self) -> str | None:
        """Returns the report on the plan as HTML, for notebooks."""
        return in_notebook(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result of :meth:`dump` to a file, replacing an existing file."""
        write_at_once(checked_path(path), self.dump())

    def dump(self) -> bytes:
        """Returns the plan as JSON for :func:`read_plan`, with ids of the base as ranges."""
        contents = {
            "sizes": self.sizes,
            "gaps": self.gaps,
            "base_ids": _ranges(self.base_ids),
            "made_of": {str(number): parts for number, parts in self.items()},
        }
        return (json.dumps(contents, separators=(",", ":")) + "\n").encode()


def read_plan(path: str | os.PathLike[str]) -> EmbeddingPlan:
    """Reads a plan that :meth:`EmbeddingPlan.save` or ``vocab-tools convert --plan`` wrote.

    Raises:
        ValueError: the file is not an embedding plan.
        OSError: the file cannot be read.

    >>> import tempfile
    >>> plan = embedding_plan({bytes([byte]): byte for byte in range(256)}, {b"ab": 260})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan.save(f"{folder}/plan.json")
    ...     again = read_plan(f"{folder}/plan.json")
    >>> again == plan, again.gaps == plan.gaps, again.base_ids == plan.base_ids
    (True, True, True)
    """
    contents = Path(checked_path(path)).read_bytes()
    try:
        found = json.loads(contents)
        plan = EmbeddingPlan({int(number): parts for number, parts in found["made_of"].items()})
        plan.sizes = found["sizes"]
        plan.gaps = [(first, last) for first, last in found["gaps"]]
        plan.tokens = {}
        plan.base_ids = [
            number for first, last in found["base_ids"] for number in range(first, last + 1)
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not an embedding plan: {error!r}") from error
    return plan


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Returns numbers as ranges of first and last number."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def embedding_plan(
    base: RankSource | Base,
    extra: RankSource | Sequence[RankSource] = (),
    *,
    added_tokens: Mapping[str, int] | None = None,
    descriptions: Mapping[str, str] | None = None,
    special_tokens: Mapping[str, int] | str | None = None,
) -> EmbeddingPlan:
    """Plans the row of every new id: finds the base ids whose tokens make up the new token.

    Args:
        base: a rank file, ranks, or an encoding; any tokenizer if only added tokens are new.
        extra: the new tokens: a rank file, ranks, or a list of files and ranks.
        added_tokens: names and ids of new tokens without merges: control tokens and added tokens.
            Tokens of the base are ignored, so you can pass all tokens of a new ``tokenizer.json``
            (:func:`vocab_tools.read_special_tokens`).
        descriptions: texts by the names of added tokens. The row of an added token is made from the
            ids of its description, or else of its name.
        special_tokens: names and ids, or the name of an encoding; by default the special tokens of
            ``base``, if ``base`` is an encoding, or of the published ranks at its start.

    Returns:
        A mapping from new ids to base ids, in ascending order of ids. ``sizes`` has ``base_ranks``,
        ``extra_ranks``, ``special_tokens``, ``base_max_id_plus_one`` and ``max_id_plus_one``
        (special tokens included), and ``rows``, the number of rows of the table. ``gaps`` has the
        unused ids between the two maxima, as ranges of first and last id; these also get rows.

    Raises:
        ValueError: neither ``extra`` nor ``added_tokens`` is given; a token has two ids, or an id
            two tokens; a byte of a new token is not a base token; an id is not from 0 to
            2**32 - 2; a description is empty, or describes a token that is not added.
        TypeError: ``extra`` is not a source of ranks.

    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> plan = embedding_plan({**base, b"ab": 256}, {b"abc": 260})
    >>> dict(plan), plan.gaps, plan.sizes["rows"]
    ({260: [256, 99]}, [(257, 259)], 261)
    >>> plan = embedding_plan(base, added_tokens={"<go>": 256}, descriptions={"<go>": "on"})
    >>> dict(plan)
    {256: [111, 110]}
    """
    extras = as_sources(extra)
    if not extras and added_tokens is None:
        raise ValueError(
            "there are no new tokens: give a file of them as extra, or the names and ids of control "
            "tokens as added_tokens, as read_special_tokens reads both of a new tokenizer.json"
        )
    ranks, specials, encode = _opened(base, special_tokens, bool(extras))
    check_special_tokens(specials)
    both = load_ranks(ranks, *extras)
    taken = {number: name for name, number in specials.items()}
    new = {token: number for token, number in both.items() if token not in ranks}
    for token, number in new.items():
        if number in taken:
            raise ValueError(
                f"the id {number} of {token!r} is taken by the special token {taken[number]}"
            )
    made_of = vocabulary.merge_bytes(dict(ranks), list(new)) if new else []
    added = checked_special_tokens(added_tokens or {})
    known = {name: specials.get(name, ranks.get(name.encode())) for name in added}
    added = {name: number for name, number in added.items() if known[name] != number}
    check_special_tokens(added)
    ids = {number: show(token) for token, number in both.items()} | {
        number: quoted(name) for name, number in specials.items()
    }
    for name, number in added.items():
        if number in ids:
            raise ValueError(f"the id {number} of {name!r} is taken by {ids[number]}")
        ids[number] = quoted(name)
    texts = texts_of(added, descriptions or {})
    rows = [encode(text) for text in texts.values()]
    spelled = {name.encode(): number for name, number in added.items()}
    return plan_of(ranks, {**new, **spelled}, [*made_of, *rows], list(specials.values()))


def texts_of(names: Iterable[str], descriptions: Mapping[str, str]) -> dict[str, str]:
    """Returns the text whose tokens make up each added token. Raises ValueError if a description is
    empty, or describes a token that is not added."""
    names = list(names)
    if unknown := [name for name in descriptions if name not in names]:
        raise ValueError(f"{unknown[0]!r} has a description, and is not a token that is added")
    texts = {name: descriptions.get(name, name) for name in names}
    if empty := [name for name, text in texts.items() if not text]:
        raise ValueError(f"the description of {empty[0]!r} is empty; leave it out to take the name")
    return texts


def plan_of(
    ranks: Mapping[bytes, int],
    new: Mapping[bytes, int],
    made_of: Sequence[list[int] | None],
    special_ids: Sequence[int],
) -> EmbeddingPlan:
    """Returns the plan, given the parts of each new token.

    Raises ValueError for a new token with a byte that is not a token of the base.
    """
    plan = EmbeddingPlan()
    for (token, number), parts in sorted(zip(new.items(), made_of), key=lambda row: row[0][1]):
        if parts is None:
            # A new token of one byte suggests that ``extra`` is a whole vocabulary.
            way = "is it the other way round? The base comes first" if len(token) == 1 else ""
            raise ValueError(
                f"{token!r} has a byte that is not a token of the base, so nothing defines what its "
                f"row is made of; {way or 'add the single byte to the base'}"
            )
        if not parts:
            raise ValueError(
                f"{token!r} becomes no id of the base; give a description of the token"
            )
        plan[number] = parts
    base_size = max([*ranks.values(), *special_ids]) + 1
    size = max([base_size, *(number + 1 for number in plan)])
    plan.gaps = free_ranges(plan, base_size, size)
    plan.base_ids = list(ranks.values())
    parts_of_new = {number for parts in plan.values() for number in parts}
    plan.tokens = {number: token for token, number in ranks.items() if number in parts_of_new}
    plan.tokens.update((number, token) for token, number in new.items())
    plan.sizes = {
        "base_ranks": len(ranks),
        "extra_ranks": len(plan),
        "special_tokens": len(special_ids),
        "base_max_id_plus_one": base_size,
        "max_id_plus_one": size,
        "rows": size,
    }
    return plan


def _opened(
    base: RankSource | Base, special_tokens: Mapping[str, int] | str | None, needs_ranks: bool
) -> tuple[dict[bytes, int], Mapping[str, int], Callable[[str], list[int]]]:
    """Returns the base's tokens, its special tokens, and a function that encodes text."""
    try:
        found = open_base(base)
    except UnsupportedTokenizer:
        if needs_ranks or isinstance(base, (Base, Mapping)):
            raise
    else:
        encoding = found.pattern.encoding(found.ranks, {})
        return found.ranks, _special_tokens(found, special_tokens), encoding.encode_ordinary
    tokenizer = base if isinstance(base, Encoding) else open_tokenizer(base)
    model = tokenizer.hf.get_vocab(with_added_tokens=False)
    added = {name: number for name, number in tokenizer.hf.get_vocab().items() if name not in model}
    tokens = {name.encode(): number for name, number in model.items() if name}
    return tokens, added, tokenizer.encode_ordinary


def _special_tokens(
    found: Base, special_tokens: Mapping[str, int] | str | None
) -> Mapping[str, int]:
    if isinstance(special_tokens, str):
        return named_pattern(special_tokens).without_taken_specials(found.ranks).special_tokens
    if special_tokens is not None:
        return checked_special_tokens(special_tokens)
    return {} if found.name is None else found.special_tokens
