"""Counts the tokens of pictures in OpenAI requests, by the published tile prices."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

__all__ = ["picture_tokens"]

#: Models, tokens per picture, and tokens per 512-pixel tile: the table "Tile-based image
#: tokenization" of OpenAI's guide "Images and vision". Names may end with a date; the table has no
#: other models.
_PRICES = tuple(
    (re.compile(rf"(?:{names})(?:-\d{{4}}-\d\d-\d\d)?"), base, tile)
    for names, base, tile in (
        ("gpt-4o-mini", 2833, 5667),
        (r"gpt-4o|chatgpt-4o-latest|gpt-4\.1|gpt-4\.5-preview", 85, 170),
        ("gpt-5|gpt-5-chat-latest", 70, 140),
        ("o1|o1-pro|o3", 75, 150),
        ("computer-use-preview", 65, 129),
    )
)
_TILE, _LONGEST, _SHORTEST = 512, 2048, 768
#: JPEG segments that contain the size.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
#: Maximum number of characters read from a data URL.
_MOST = 1 << 20


def picture_tokens(part: Mapping[str, Any], model: str) -> int | None:
    """Returns a picture's number of tokens, or None if its size or the price is unknown."""
    price = next(((base, tile) for name, base, tile in _PRICES if name.fullmatch(model)), None)
    given = part.get("image_url")
    image = given if isinstance(given, Mapping) else {"url": given, "detail": part.get("detail")}
    if price is None or given is None:
        return None
    if image.get("detail") == "low":
        return price[0]
    size = _size(image.get("url"))
    if size is None:
        return None
    width, height = size
    # Small pictures are not enlarged: OpenAI bills one tile for 128 by 64 pixels.
    scale = min(1.0, _LONGEST / max(width, height))
    scale *= min(1.0, _SHORTEST / (scale * min(width, height)))
    tiles = ceil(width * scale / _TILE) * ceil(height * scale / _TILE)
    return price[0] + price[1] * tiles


def _size(url: Any) -> tuple[int, int] | None:
    """Returns the width and height of a PNG, GIF or JPEG in a data URL."""
    if not isinstance(url, str) or not url.startswith("data:image/"):
        return None
    head, _, text = url[:_MOST].partition(";base64,")
    try:
        data = base64.b64decode(text[: len(text) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    size = (0, 0)
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    elif data.startswith((b"GIF87a", b"GIF89a")):
        size = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    elif data.startswith(b"\xff\xd8"):
        size = next(_frames(data), (0, 0))
    return size if min(size) > 0 else None


def _frames(data: bytes) -> Iterator[tuple[int, int]]:
    """Yields the width and height of each frame in a JPEG."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if kind == 0xFF:  # Skips a filler byte.
            at += 1
            continue
        if kind in _FRAMES:
            height, width = data[at + 5 : at + 7], data[at + 7 : at + 9]
            yield int.from_bytes(width, "big"), int.from_bytes(height, "big")
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
