"""Selects the words that can become tokens: single pieces that are not tokens yet."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from bpe_engine.common.values import safe_repr

from ..notes import Note
from ..patterns import Pattern, leaves_out_marks
from ..text import plural, quoted, quoted_list, shorten

#: Maximum length in characters of the list of pieces in a warning.
MOST_PIECES = 200


@dataclass
class Candidates:
    """Words that can become tokens, and words that cannot; all in NFC."""

    #: The frequency of each word to learn.
    words: dict[str, int]
    #: Words that the pre-tokenizer splits, with their pieces.
    refused: dict[str, list[str]]
    #: Words that are tokens of the base, with their ids.
    skipped: dict[str, int]


def sort_words(
    words: Mapping[str, int],
    ranks: Mapping[bytes, int],
    pattern: Pattern,
    notes: list[Note],
) -> Candidates:
    """Sorts words into candidates and others, and notes why the others cannot be learned.

    Raises ValueError if a word is not text, or a frequency is not a positive integer.
    """
    splitter = pattern.splitter()
    found = Candidates({}, {}, {})
    for word, frequency in words.items():
        _check_word(word, frequency)
        word = unicodedata.normalize("NFC", word)
        pieces = splitter.split(word)
        if pieces != [word]:
            if word not in found.refused:
                cut = shorten(quoted_list(pieces), MOST_PIECES)
                text = f"{_named(word)} would be pre-tokenized to {cut}; it cannot become a token"
                notes.append(Note("split", text))
            found.refused[word] = pieces
        elif word.encode() in ranks:
            number = ranks[word.encode()]
            if word not in found.skipped:
                text = f"{_named(word)} is already a token, with id {number}; skipped"
                notes.append(Note("already a token", text))
            found.skipped[word] = number
        else:
            found.words[word] = found.words.get(word, 0) + frequency
    _note_marks(found.refused, pattern, notes)
    return found


def _named(word: str) -> str:
    """Returns a word for use in a sentence; quotes a word that starts or ends with spaces."""
    return shorten(word if word == word.strip() else quoted(word))


def _check_word(word: object, frequency: object) -> None:
    if not isinstance(word, str) or not word:
        raise ValueError(f"{safe_repr(word)} is not a word; words are text, and not empty")
    if isinstance(frequency, bool) or not isinstance(frequency, int):
        raise ValueError(
            f"the frequency of {safe_repr(word)} is {safe_repr(frequency)}; it must be an integer"
        )
    if frequency < 1 or frequency.bit_length() > 63:
        raise ValueError(
            f"the frequency of {safe_repr(word)} is {frequency}; it must be from 1 to 2**63 - 1"
        )
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{safe_repr(word)} has a lone surrogate, and is not text") from error


def _note_marks(refused: Mapping[str, list[str]], pattern: Pattern, notes: list[Note]) -> None:
    """Adds notes on why words of Hindi, Thai and similar languages are rejected, with a remedy."""
    marked = [word for word in refused if any(unicodedata.category(c)[0] == "M" for c in word)]
    if not marked or not leaves_out_marks(pattern):
        return
    pieces = [piece for word in marked[:20] for piece in refused[word]]
    parts = [piece for piece in pieces if len(piece) > 1 and piece[0].isalpha()]
    listed = ", ".join(quoted(part) for part in list(dict.fromkeys(parts))[:4])
    help_pieces = f", or list pieces, which do become tokens: {listed}" if listed else ""
    text = (
        f"{plural(len(marked), 'word')} with combining marks (vowel signs of Hindi or Thai, accents "
        f"without a precomposed letter) cannot become one token, such as {shorten(marked[0])}: "
        f"the letters of the pattern {shorten(pattern.label)}, \\p{{L}}+, leave marks out, and a "
        f"piece ends before each. Use a pattern that keeps them together, such as "
        f"o200k_base's, if the model is trained with it{help_pieces}"
    )
    notes.append(Note("marks", text))
