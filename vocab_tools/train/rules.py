"""Builds SentencePiece's normalization rules in the binary format of a ``.model``."""

from __future__ import annotations

import functools
import itertools
import os
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping

from bpe_engine.hf import normalizers

#: Names of rules, as in SentencePiece's option ``normalization_rule_name``.
RULES = ("nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf")

#: A character that rules neither change nor join to another character.
_BETWEEN = "\U000f0000"

_CONTROLS = [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]
_SPACES = [*b"\t\n\f\r", 0x61C, 0x1680, 0x200B, 0x200C, 0x200E, 0x200F, 0x2028, 0x2029, 0x2581]
_SPACES += [0xFEFF, 0xFFFD]

#: Rules for machine translation, applied before NFKC; they keep the fullwidth tilde.
_TRANSLATION = {
    **{chr(code): "" for code in _CONTROLS},
    **{chr(code): " " for code in _SPACES},
    "\uff5e": "\uff5e",
}


@functools.cache
def charsmap(name: str) -> bytes:
    """Returns the rules with this name as the charsmap of a ``Precompiled`` normalizer.

    SentencePiece replaces the longest text that has a rule. Characters added to Unicode after
    version 12 have no rule.

    >>> len(charsmap("nfkc")) > 100_000
    True
    """
    # The planes in which characters have decompositions or lower case forms.
    characters = [*map(chr, range(1, 0xD800)), *map(chr, range(0xE000, 0x30000))]
    composed = dict(zip(characters, _each(normalizers.NFKC(), characters)))
    rules = {text: made for text, made in composed.items() if text != made}
    rules |= {text: composed[whole] for text, whole in _spellings(characters)}
    if name.endswith("_cf"):
        rules = {text: "".join(map(_folded, made)) for text, made in (composed | rules).items()}
        rules = {text: made for text, made in rules.items() if text != made}
    if name.startswith("nmt_"):
        rules |= _TRANSLATION
    places: dict[str, int] = {}
    replacements = b""
    for made in sorted(set(rules.values())):
        places[made] = len(replacements)
        replacements += made.encode() + b"\0"
    trie = _double_array({text.encode(): places[made] for text, made in rules.items()})
    packed = struct.pack(f"<{len(trie) + 1}I", 4 * len(trie), *trie)
    return packed + replacements


def _folded(character: str) -> str:
    """Returns a character after simple case folding."""
    forms = (character.casefold(), character.lower(), character)
    return next(form for form in forms if len(form) == 1)


def _each(normalizer: normalizers.Normalizer, texts: Iterable[str]) -> list[str]:
    """Normalizes each of many short texts in one call."""
    return normalizer.normalize_str(_BETWEEN.join(texts)).split(_BETWEEN)


def _spellings(characters: list[str]) -> Iterable[tuple[str, str]]:
    """Yields each sequence of characters that NFKC composes into one character, and the result. Any
    character of a sequence may be a variant, such as a halfwidth form.
    """
    variants: dict[str, list[str]] = defaultdict(list)
    for one, parts in zip(characters, _each(normalizers.NFKD(), characters)):
        if len(parts) == 1:
            variants[parts].append(one)
    whole = _each(normalizers.NFD(), characters)
    for one, parts, again in zip(characters, whole, _each(normalizers.NFC(), whole)):
        if len(parts) > 1 and one == again:
            for row in itertools.product(*(variants.get(it, [it]) for it in parts)):
                yield "".join(row), one


def _double_array(rules: Mapping[bytes, int]) -> list[int]:
    """Returns a Darts trie: a unit for each byte of a rule, and a unit for each rule's value."""
    nodes, root = _nodes(rules)
    units = {0: 0}
    bases: dict[int, int] = {}
    # 0 is reserved, because a base of 0 would be the root itself.
    taken = {0}
    top = 1
    waiting = [(0, 0, root)]
    while waiting:
        at, label, number = waiting.pop()
        node = nodes[number]
        first = node[0][0]
        base = bases.get(number)
        if base is None:
            # Searches only recent holes, because a node rarely fits into earlier holes.
            place = max(1, top - 0x200)
            base = place ^ first
            while base in taken or any(base ^ child in units for child, _ in node):
                place += 1
                base = place ^ first
            bases[number] = base
            taken.add(base)
            top = max(top, *(base ^ child for child, _ in node))
            for child, target in node:
                units[base ^ child] = child or 1 << 31 | target
                if child:
                    waiting.append((base ^ child, child, target))
        units[at] = label | (first == 0) << 8 | (at ^ base) << 10
    # An unused unit has a label that no byte has, because a label of zero would match U+0000.
    return [units.get(place, 1 << 31) for place in range((top | 0xFF) + 1)]


_Node = tuple[tuple[int, int], ...]


def _nodes(rules: Mapping[bytes, int]) -> tuple[list[_Node], int]:
    """Returns the distinct nodes of the rules' trie, and the number of the root. A node maps each
    byte to the number of a child node, and a zero byte to a value."""
    numbers: dict[_Node, int] = {}
    # Children of each node on the path to the last rule.
    path: list[dict[int, int]] = [{}]
    before = b""
    for text, value in [*sorted(rules.items()), (b"", -1)]:
        shared = len(os.path.commonprefix([text, before]))
        while len(path) > shared + 1:
            node = tuple(sorted(path.pop().items()))
            path[-1][before[len(path) - 1]] = numbers.setdefault(node, len(numbers))
        path += [{} for _ in text[shared:]]
        before = text
        if text:
            path[-1][0] = value
    root = tuple(sorted(path[0].items()))
    return [*numbers, root], len(numbers)
