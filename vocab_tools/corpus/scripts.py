"""Finds the script in which a text is written."""

from __future__ import annotations

import functools
import unicodedata

from bpe_engine.common.suggest import did_you_mean

#: Maps common names of scripts to the first word in the Unicode names of their characters.
ALIASES = {"han": "cjk", "chinese": "cjk", "hindi": "devanagari", "kanji": "cjk"}

#: Words that begin Unicode names of letters but do not name a script.
NO_SCRIPTS = frozenset(
    "combining modifier mathematical micro feminine masculine double fullwidth halfwidth script "
    "black kelvin angstrom ohm vertical superscript subscript alef bet gimel dalet caron euler "
    "ideographic information masu planck roman turned variation vedic".split()
)


@functools.lru_cache(maxsize=1 << 16)
def _character_script(character: str) -> str | None:
    if unicodedata.category(character)[0] not in "LM":
        return None
    script = unicodedata.name(character, "").split(" ")[0].split("-")[0].lower()
    return None if script in NO_SCRIPTS else script or None


def script_of(text: str) -> str:
    """Returns the script of the first letter; "other" for text without letters.

    >>> script_of(" hello"), script_of("猫"), script_of("สวัสดี"), script_of("123")
    ('latin', 'cjk', 'thai', 'other')
    """
    for character in text:
        script = _character_script(character)
        if script is not None:
            return script
    return "other"


def scripts_of(text: str) -> set[str]:
    """Returns the scripts of all letters in a text.

    >>> sorted(scripts_of("aя1"))
    ['cyrillic', 'latin']
    """
    found = {_character_script(character) for character in text}
    return {script for script in found if script is not None}


def script_named(name: str) -> str:
    """Returns the script with a common name; "other" is the script of text without letters.

    Raises ValueError for an unknown script.

    >>> script_named("Han"), script_named("Thai")
    ('cjk', 'thai')
    """
    script = ALIASES.get(name.strip().lower(), name.strip().lower())
    known = _known_scripts()
    if script != "other" and script not in known:
        raise ValueError(f"unknown script {name.strip()!r}.{did_you_mean(script, known)}")
    return script


@functools.cache
def _known_scripts() -> frozenset[str]:
    """Returns the scripts of all letters in the Basic Multilingual Plane."""
    return frozenset(scripts_of("".join(map(chr, range(0xD800)))))
