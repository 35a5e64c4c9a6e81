"""Makes charsmaps, the rules of `Precompiled` normalizers."""

from __future__ import annotations

import struct
from collections.abc import Mapping

#: A node's index, and the bytes on the path to the node.
Node = tuple[int, bytes]

#: The bit of a unit that marks a value below the unit.
HAS_LEAF = 1 << 8


def charsmap(rules: Mapping[str, str]) -> bytes:
    """Returns the charsmap that replaces keys with values."""
    blob, values = b"", {}
    for key, new in rules.items():
        values[key.encode()] = len(blob)
        blob += new.encode() + b"\0"
    trie = _double_array(values)
    return struct.pack(f"<I{len(trie)}I", 4 * len(trie), *trie) + blob


def _double_array(values: Mapping[bytes, int]) -> list[int]:
    """Returns the units of a double array: each node takes the lowest free base for its children.
    With a shared base, a path could reach the children of another node."""
    units = {0: 0}
    bases = set[int]()
    nodes: list[Node] = [(0, b"")]
    for place, start in nodes:
        longer = (key[len(start) :] for key in values if key.startswith(start))
        labels = sorted({key[0] if key else 0 for key in longer})
        base = 1
        while base in bases or any(base ^ label in units for label in labels):
            base += 1
        bases.add(base)
        units[place] |= (place ^ base) << 10 | (HAS_LEAF if start in values else 0)
        for label in labels:
            units[base ^ label] = label
            if label:
                nodes.append((base ^ label, start + bytes([label])))
        if start in values:
            units[base] = values[start] | 1 << 31
    return [units.get(place, 0) for place in range((max(units) | 255) + 1)]
