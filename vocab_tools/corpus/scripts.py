"""The script that a piece of text is written in."""

from __future__ import annotations

import functools
import unicodedata

#: Names that people use for scripts, and the first word of the names of their characters.
ALIASES = {"han": "cjk", "chinese": "cjk", "hindi": "devanagari", "kanji": "cjk"}


@functools.lru_cache(maxsize=1 << 16)
def _character_script(character: str) -> str | None:
    category = unicodedata.category(character)
    if category[0] not in "LM":
        return None
    return unicodedata.name(character, "other").split(" ")[0].split("-")[0].lower()


def script_of(text: str) -> str:
    """The script of the first letter; "other" for text without letters.

    >>> script_of(" hello"), script_of("猫"), script_of("สวัสดี"), script_of("123")
    ('latin', 'cjk', 'thai', 'other')
    """
    for character in text:
        script = _character_script(character)
        if script is not None and script not in ("combining", "modifier"):
            return script
    return "other"


def scripts_of(text: str) -> set[str]:
    """The scripts of all its letters.

    >>> sorted(scripts_of("aя1"))
    ['cyrillic', 'latin']
    """
    found = {_character_script(character) for character in text}
    return {script for script in found if script and script not in ("combining", "modifier")}


def script_named(name: str) -> str:
    """A script by its usual name.

    >>> script_named("Han"), script_named("Thai")
    ('cjk', 'thai')
    """
    lowered = name.strip().lower()
    return ALIASES.get(lowered, lowered)
