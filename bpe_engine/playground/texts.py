"""`Texts`: texts while they are edited; each edit encodes only the changed text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from ..prompt import Conversation
from .vocabularies import Vocabularies, Vocabulary

__all__ = ["MAX_ENCODINGS", "MAX_TEXT", "Texts", "piece_at"]

#: Encodings side by side.
MAX_ENCODINGS = 4
#: The longest text, in UTF-16 code units, as browsers count.
MAX_TEXT = 1 << 23
_MOST_TEXTS = 8
# Ids compared at once.
_BLOCK = 1 << 12


class _Column:
    """The tokens of a text under one encoding, as the page last received them."""

    def __init__(self, vocabulary: Vocabulary, special: bool):
        self.vocabulary = vocabulary
        self.conversation: Conversation = Conversation(
            vocabulary.tokenizer, allowed_special="all" if special else set(), disallowed_special=()
        )
        self.version = 0
        self.ids: list[int] = []
        self._known: set[int] = set()

    def update(self, text: str, version: int, has: int) -> dict[str, Any]:
        """Encodes the text; returns the difference to version `has`, which the page has."""
        before = self.ids if has == self.version else []
        if has != self.version:
            self._known.clear()
        kept, after = self.conversation.update(text)
        if not before:
            after, kept = self.conversation.ids, 0
        tail = _common_end(before[kept:], after)
        new = after[: len(after) - tail]
        # A copy, because the conversation keeps none.
        self.ids = [*before[:kept], *after]
        self.version = version
        vocabulary = self.vocabulary
        unknown = set(new) - self._known
        self._known |= unknown
        return {
            "kept": kept,
            "ids": new,
            "tail": tail,
            "pieces": {
                id: [vocabulary.bytes_of(id).hex(), vocabulary.is_special(id)] for id in unknown
            },
            # False where the tokenizer normalizes the text or drops some of it: places differ then.
            "exact": vocabulary.joined(self.ids) == text.encode(),
        }


def _common_end(one: list[int], other: list[int]) -> int:
    """Returns how many ids at the end are the same."""
    most, same = min(len(one), len(other)), 0
    for block in (_BLOCK, 64, 1):
        while same + block <= most:
            ends = (len(ids) - same for ids in (one, other))
            first, second = (ids[end - block : end] for ids, end in zip((one, other), ends))
            if first != second:
                break
            same += block
    return same


class _Text:
    """A text in UTF-16, in which browsers count, and its columns."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.version = 0
        self.units = b""
        self.columns: dict[tuple[str, bool], _Column] = {}

    @property
    def text(self) -> str:
        """The text; lone surrogates are U+FFFD, as everywhere in this package."""
        return self.units.decode("utf-16-le", "replace")


class Texts:
    """The texts of the open pages. The ones not used for longest are forgotten first."""

    def __init__(self, vocabularies: Vocabularies):
        self._vocabularies = vocabularies
        self._texts: OrderedDict[str, _Text] = OrderedDict()
        self._lock = threading.Lock()

    def _get(self, name: str) -> _Text:
        with self._lock:
            text = self._texts.setdefault(name, _Text())
            self._texts.move_to_end(name)
            while len(self._texts) > _MOST_TEXTS:
                self._texts.popitem(last=False)
            return text

    def update(
        self, name: str, edit: dict[str, Any], encodings: dict[str, int], special: bool
    ) -> dict[str, Any]:
        """Edits a text and encodes it.

        Args:
            name: Chosen by the page.
            edit: ``base``, the version that it changes, 0 for an empty text; ``start`` and
                ``removed``, in UTF-16 code units; and ``text``, which is put there.
            encodings: For each encoding, the version of the tokens that the page has, or 0.
            special: Whether the names of special tokens become special tokens.

        Returns:
            The new ``version``, and in ``columns`` for each encoding ``kept`` ids of the start,
            new ``ids`` and ``tail`` ids of the end; ``pieces``, the bytes in hexadecimal of ids not
            sent before, and whether they are special. ``{"stale": True}`` if the base is another
            version than the last: the page then sends the whole text.
        """
        if not 1 <= len(encodings) <= MAX_ENCODINGS:
            raise ValueError(f"choose 1 to {MAX_ENCODINGS} encodings, not {len(encodings)}")
        vocabularies = {key: self._vocabularies.get(key) for key in encodings}
        state = self._get(name)
        with state.lock:
            if edit["base"] not in (0, state.version):
                return {"stale": True}
            units = state.units if edit["base"] else b""
            start, end = 2 * edit["start"], 2 * (edit["start"] + edit["removed"])
            if not 0 <= start <= end <= len(units):
                raise ValueError(f"the edit of {start // 2} to {end // 2} is outside of the text")
            added = edit["text"].encode("utf-16-le", "surrogatepass")
            units = units[:start] + added + units[end:]
            if len(units) > 2 * MAX_TEXT:
                raise ValueError(
                    f"the text has {len(units) // 2:,} characters, and the playground shows at most "
                    f"{MAX_TEXT:,}; use `bpe-engine count` or `show` for longer ones"
                )
            state.units = units
            state.version += 1
            text = state.text
            columns = {}
            for key, has in encodings.items():
                if (key, special) not in state.columns:
                    state.columns[key, special] = _Column(vocabularies[key], special)
                column = state.columns[key, special]
                columns[key] = column.update(text, state.version, has)
            for key_and_special in list(state.columns):
                if key_and_special not in {(key, special) for key in encodings}:
                    del state.columns[key_and_special]
            return {"version": state.version, "columns": columns}

    def text(self, name: str) -> str:
        """Returns the text of a page. Raises ValueError if it was forgotten."""
        with self._lock:
            if name not in self._texts:
                raise ValueError("the text was forgotten; reload the page")
            return self._texts[name].text


def piece_at(vocabulary: Vocabulary, text: str, place: int, special: bool) -> str:
    """Returns the piece with the byte `place` of all tokens' bytes, or "" after the last."""
    allowed = set(vocabulary.tokenizer.special_tokens_set) if special else set()
    position = 0
    for piece in vocabulary.tokenizer.split(text, allowed_special=allowed):
        position += len(piece.encode())
        if position > place:
            return piece
    return ""
