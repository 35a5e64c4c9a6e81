"""Prompts of trusted and untrusted parts, for tokenizer files.

`Encoding.encode_segments` is the same for encodings.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .._core import encode_rows
from ..hf.tokenizer import Tokenizer as FileTokenizer
from ..prompt.segments import Segment

__all__ = ["Placed", "assistant_mask", "encode_segments", "without_added_tokens"]


class Placed(NamedTuple):
    """An id, and the characters of the prompt that it stands for."""

    id: int
    start: int
    end: int


def encode_segments(
    tokenizer: FileTokenizer, segments: Sequence[Segment], bare: Callable[[], FileTokenizer]
) -> list[Placed]:
    """The ids of a prompt, in which no added token comes from untrusted text.

    As long as untrusted text holds no added token, they are those of the whole text. Otherwise the
    added tokens of each trusted segment are found by themselves, and what stands between them is
    ordinary text.

    Args:
        tokenizer: The tokenizer.
        segments: Texts; ids are not taken.
        bare: Gives the tokenizer without its added tokens.

    Raises:
        ValueError: The model itself makes an added token of ordinary text.
    """
    added = {id: token.content for id, token in tokenizer.get_added_tokens_decoder().items()}
    text = "".join(segment.text for segment in segments)
    whole = _encoded(tokenizer, text)
    spans = list(_trusted_spans(segments))
    starts = [span.start for span in spans]
    if all(_is_inside(text, token, spans, starts) for token in whole if token.id in added):
        return whole
    return _encoded_apart(tokenizer, segments, added, bare())


def _encoded(tokenizer: FileTokenizer, text: str) -> list[Placed]:
    rows = encode_rows(
        tokenizer,
        [text],
        is_pretokenized=False,
        add_special_tokens=False,
        truncation=None,
        padding=None,
        detailed=True,
        overflow=False,
        num_threads=1,
    )
    return [Placed(id, *span) for id, span in zip(rows.lists("input_ids")[0], rows.offsets()[0])]


class _Trusted(NamedTuple):
    """A trusted segment: its characters, and the special tokens that it allows."""

    start: int
    end: int
    allowed: bool | frozenset[str]


def _trusted_spans(segments: Sequence[Segment]) -> Iterator[_Trusted]:
    position = 0
    for segment in segments:
        end = position + len(segment.text)
        if segment.allow_special and segment.text:
            yield _Trusted(position, end, segment.allow_special)
        position = end


def _is_inside(text: str, token: Placed, spans: Sequence[_Trusted], starts: Sequence[int]) -> bool:
    """Whether the name of an added token stands in one trusted segment that allows it. The
    white space around it that some added tokens take along may be anybody's."""
    found = text[token.start : token.end]
    name = found.strip() or found
    start = token.start + found.index(name)
    place = bisect_right(starts, start) - 1
    if place < 0 or spans[place].end < start + len(name):
        return False
    return _allows(spans[place].allowed, name)


def _allows(allowed: bool | frozenset[str], name: str) -> bool:
    return allowed if isinstance(allowed, bool) else name in allowed


def _encoded_apart(
    tokenizer: FileTokenizer,
    segments: Sequence[Segment],
    added: dict[int, str],
    bare: FileTokenizer,
) -> list[Placed]:
    placed: list[Placed] = []
    ordinary, begin, position = "", 0, 0

    def close() -> None:
        for id, start, end in _encoded(bare, ordinary):
            if id in added:
                raise ValueError(
                    f"the model makes the added token {added[id]!r} of ordinary text, so that it "
                    "cannot be kept out of untrusted text; take it out of the text first"
                )
            placed.append(Placed(id, begin + start, begin + end))

    for segment in segments:
        allowed = segment.allow_special
        tokens = _encoded(tokenizer, segment.text) if allowed else []
        at = 0
        for id, start, end in tokens:
            if id not in added or not _allows(allowed, added[id]):
                continue
            ordinary += segment.text[at:start]
            if ordinary:
                close()
            placed.append(Placed(id, position + start, position + end))
            ordinary, at = "", end
            begin = position + end
        ordinary += segment.text[at:]
        position += len(segment.text)
    if ordinary:
        close()
    return placed


def without_added_tokens(tokenizer: FileTokenizer) -> FileTokenizer:
    """The same tokenizer with nothing but its model, which takes all text as ordinary."""
    file = json.loads(tokenizer.to_str())
    file.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    return FileTokenizer(json.dumps(file))


def assistant_mask(placed: Sequence[Placed], segments: Sequence[Segment]) -> list[int]:
    """1 for each id from the first to the last that stands for a character of one of the
    assistant's messages."""
    mask = [0] * len(placed)
    # Both ascend, since tokens are in the order of the text.
    starts, ends = [token.start for token in placed], [token.end for token in placed]
    for first, last in _assistant_spans(segments):
        begin, end = bisect_right(ends, first), bisect_left(starts, last)
        mask[begin:end] = [1] * (end - begin)
    return mask


def _assistant_spans(segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """Where neighbouring segments of the assistant's begin and end, in characters."""
    spans: list[tuple[int, int]] = []
    position = 0
    for segment in segments:
        end = position + len(segment.text)
        if segment.role == "assistant" and segment.text:
            if spans and spans[-1][1] == position:
                spans[-1] = spans[-1][0], end
            else:
                spans.append((position, end))
        position = end
    return spans
