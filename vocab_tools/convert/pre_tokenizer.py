"""Translates between patterns and the pre-tokenizers of a ``tokenizer.json``."""

from __future__ import annotations

import re
from typing import Any

import bpe_engine
from bpe_engine import patterns

#: The ``ByteLevel`` component as JSON.
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}

#: Chinese and Japanese characters, from the second split of DeepSeek-V3.
_DEEPSEEK_CJK = r"\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff"

#: The three splits of DeepSeek-V3.
_DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]

#: These three splits as one pattern: each split also cuts the pieces of earlier splits, no match
#: continues from Chinese or Japanese into other text, a run of whitespace ends before such text and
#: before digits, and unmatched text is a piece.
DEEPSEEK_IN_ONE = (
    r"\p{N}{1,3}"
    r"|(?:(?=[CJK])[^\p{L}\p{P}\p{S}])?(?:(?=[CJK])[\p{L}\p{M}])+"
    r"|(?:(?=[CJK])[\p{P}\p{S}])+"
    r"|(?:(?=[CJK])[^\p{L}\p{M}\p{P}\p{S}](?!(?=[CJK])[\p{L}\p{M}]))+"
    r"""|[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    r"|(?:[^\r\n\p{L}\p{P}\p{S}\p{N}CJK])?(?:(?![CJK])[\p{L}\p{M}])+"
    r"| ?(?:(?![CJK])[\p{P}\p{S}])+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?=[\p{N}CJK])|\s+(?!\S)|\s+"
    r"|(?:[^\s\p{L}\p{M}\p{N}\p{P}\p{S}CJK](?!(?![CJK])[\p{L}\p{M}]))+"
).replace("CJK", _DEEPSEEK_CJK)

#: Single digits, then GPT-2's pattern, as in StarCoder, SmolLM and Command R.
DIGITS_IN_ONE = r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+"


def pattern_of(pre_tokenizer: Any) -> str | None:
    """Returns the pattern that cuts like a pre-tokenizer; None if no single pattern does.

    Args:
        pre_tokenizer: the JSON of the component.

    >>> pattern_of({"type": "ByteLevel", "add_prefix_space": False}) == patterns.R50K
    True
    """
    steps = _steps(pre_tokenizer)
    if not steps or any(step.get("add_prefix_space") for step in steps):
        return None
    *splits, last = steps
    if last.get("type") != "ByteLevel":
        return None
    if last.get("use_regex", True):
        if not splits:
            return patterns.R50K
        digits = splits == [{"type": "Digits", "individual_digits": True}]
        return DIGITS_IN_ONE if digits else None
    found = [_regex(split) for split in splits]
    if found == _DEEPSEEK:
        return DEEPSEEK_IN_ONE
    return found[0] if len(found) == 1 else None


def _steps(pre_tokenizer: Any) -> list[dict[str, Any]]:
    """Returns the steps of a pre-tokenizer, in order."""
    if not isinstance(pre_tokenizer, dict):
        return []
    if pre_tokenizer.get("type") != "Sequence":
        return [pre_tokenizer]
    return [step for part in pre_tokenizer["pretokenizers"] for step in _steps(part)]


def _regex(split: dict[str, Any]) -> str | None:
    """Returns the regular expression whose matches are a split's pieces; None for other splits."""
    pattern = split.get("pattern", {})
    isolated = split.get("behavior") == "Isolated" and not split.get("invert")
    matches = split.get("behavior") == "Removed" and split.get("invert")
    if split.get("type") != "Split" or "Regex" not in pattern or not (isolated or matches):
        return None
    return str(pattern["Regex"])


def pre_tokenizer_of(pattern: str) -> dict[str, Any]:
    """Returns the JSON of a pre-tokenizer that cuts like this pattern.

    >>> pre_tokenizer_of(patterns.R50K)["type"]
    'ByteLevel'
    """
    if pattern == patterns.R50K:
        return {**_BYTE_LEVEL, "use_regex": True}
    steps: list[dict[str, Any]]
    if pattern == DIGITS_IN_ONE:
        steps = [{"type": "Digits", "individual_digits": True}, {**_BYTE_LEVEL, "use_regex": True}]
        return {"type": "Sequence", "pretokenizers": steps}
    regexes = _DEEPSEEK if pattern == DEEPSEEK_IN_ONE else [without_possessive_counts(pattern)]
    # Patterns of encodings match all text; text that other patterns skip is part of no piece.
    known = pattern in _published() or pattern == DEEPSEEK_IN_ONE
    behavior, invert = ("Isolated", False) if known else ("Removed", True)
    steps = [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}
        for regex in regexes
    ]
    steps.append({**_BYTE_LEVEL, "use_regex": False})
    return {"type": "Sequence", "pretokenizers": steps}


def _published() -> set[str]:
    names = bpe_engine.list_encoding_names()
    return {bpe_engine.get_encoding(name).pattern for name in names}


#: The operand of a repetition: an escape with its braces, a set, or one character.
_ATOM = re.compile(r"\\[pPx]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]|[^\\\[]", re.DOTALL)
_COUNT = re.compile(r"\{\d*,?\d*\}\+")


def without_possessive_counts(pattern: str) -> str:
    r"""Rewrites a pattern for Oniguruma, which reads ``{1,3}+`` as a repetition of a repetition.

    >>> without_possessive_counts(r"\p{L}++|\p{N}{1,3}+|(?:ab){2}+")
    '\\p{L}++|(?>\\p{N}{1,3})|(?>(?:ab){2})'
    """
    parts: list[str] = []
    groups: list[int] = []
    at, start = 0, 0
    while at < len(pattern):
        if count := _COUNT.match(pattern, at):
            parts[start:] = ["(?>", *parts[start:], count[0][:-1], ")"]
            at = count.end()
            continue
        atom = _ATOM.match(pattern, at)
        text = atom[0] if atom else pattern[at]
        start = len(parts)
        if text == "(":
            groups.append(start)
        elif text == ")" and groups:
            start = groups.pop()
        parts.append(text)
        at += len(text)
    return "".join(parts)
