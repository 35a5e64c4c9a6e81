"""`Rollout`: the ids of a conversation with a model, in which sampled ids are unchanged."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, takewhile, zip_longest
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex

from .._arguments import whole_number
from .._core import Pipeline, StreamPool, encode_segments
from ..common.values import listed
from .fields import FIELDS
from .segments import Segment, tokens, trusted, whole_text
from .template import ChatTemplate

__all__ = ["Drift", "Rollout", "TemplateNotStable", "not_stable"]

_Messages = Sequence[Mapping[str, Any]]
# Maximum number of characters of each text in an error message.
_SHOWN = 40


class TemplateNotStable(ValueError):
    """Raised if a template renders the earlier part of a conversation differently than before."""

    def __init__(self, message: int | None, offset: int, expected: str, found: str):
        where = "the text around the messages" if message is None else f"messages[{message}]"
        super().__init__(
            f"the template renders {where} in another way than before: at character {offset} there "
            f"was {expected!r} and is now {found!r}; Rollout.restart() gives the ids of a whole "
            "rendering"
        )
        #: Index of the message, or None for template text outside messages.
        self.message = message
        #: Offset of the first differing character.
        self.offset = offset
        #: Earlier text from that character.
        self.expected = expected
        #: New text from that character.
        self.found = found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.offset, self.expected, self.found)


class Drift(NamedTuple):
    """Ids that change when their text is decoded and encoded again."""

    #: Start and end index. The end is exclusive.
    start: int
    end: int
    #: The ids in that range.
    ids: list[int]
    #: Ids from encoding their text.
    encoded: list[int]


class _Part(NamedTuple):
    """Consecutive ids, which forks share."""

    ids: tuple[int, ...]
    is_sampled: bool
    logprobs: tuple[float, ...] | None


class Rollout:
    """The ids of a multi-turn conversation, for training on the ids that a model sampled.

    Sampled ids are unchanged; only the text after them is rendered and encoded. This requires that
    the template still renders the earlier part as before, which is checked each time. Untrusted
    text in messages stays untrusted, as in `render_template`.

    Args:
        template: A chat template, or a `ChatTemplate`.
        tokenizer: An `Encoding`, a `bpe_engine.hf.Tokenizer` or a `bpe_engine.Tokenizer`, whose
            special tokens are also variables of the template.
        messages: The conversation up to the first answer.
        tools: JSON schemas of functions.
        max_tokens: Maximum number of ids of the rollout. None for no limit.
        variables: Other variables of the template.

    Raises:
        Exception: Any error of `render_template` if the template rejects the conversation.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import Rollout
    >>> template = (
    ...     "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
    ...     "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
    ... )
    >>> enc = bpe_engine.get_encoding("qwen3")
    >>> rollout = Rollout(template, enc, [{"role": "user", "content": "1 + 1?"}])
    >>> rollout.sampled([17])  # "2", cut before the end of the turn
    True
    >>> rollout.append([{"role": "user", "content": "Sure?"}])
    True
    >>> enc.decode([id for id, bit in zip(rollout.ids, rollout.mask) if bit])
    '2'
    >>> print(rollout.text().split("1 + 1?")[1])
    <|im_end|>
    <|im_start|>assistant
    2<|im_end|>
    <|im_start|>user
    Sure?<|im_end|>
    <|im_start|>assistant
    <BLANKLINE>
    """

    def __init__(
        self,
        template: str | ChatTemplate,
        tokenizer: Pipeline,
        messages: _Messages,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        max_tokens: int | None = None,
        **variables: Any,
    ):
        self._template = template if isinstance(template, ChatTemplate) else ChatTemplate(template)
        self._engine = tokenizer
        self._tools = tools
        own = getattr(tokenizer, "special_tokens_map", {})
        self._variables = {**{name: trusted(text) for name, text in own.items()}, **variables}
        self._messages: list[Mapping[str, Any]] = listed(messages)
        if max_tokens is not None:
            max_tokens = whole_number("max_tokens", max_tokens)
        self._max_tokens = max_tokens
        StreamPool(tokenizer)  # Raises if an id may change the text before it.
        segments = self._rendered(self._messages)
        #: The text rendered before the latest sample.
        self._said = whole_text(segments)
        ids = tuple(encode_segments(tokenizer, segments, True).tolist())
        self._parts = [_Part(ids, False, None)]
        self._length = len(ids)
        self._parsed: Mapping[str, Any] | None = None
        self._is_finished = max_tokens is not None and self._length >= max_tokens

    def __repr__(self) -> str:
        return f"<Rollout of {self._length} ids, {len(self._messages)} messages>"

    def _rendered(self, messages: _Messages) -> list[Segment]:
        return self._template.render(
            messages,
            tools=self._tools,
            add_generation_prompt=True,
            tokenizer=self._engine,
            **self._variables,
        )

    # ---- Results ----

    @property
    def prompt_ids(self) -> list[int]:
        """The ids up to the first answer, as a new list."""
        return list(self._parts[0].ids)

    @property
    def ids(self) -> list[int]:
        """All ids as a new list: the model's next input."""
        return list(chain.from_iterable(part.ids for part in self._parts))

    def __len__(self) -> int:
        """Returns the number of ids."""
        return self._length

    @property
    def mask(self) -> list[int]:
        """1 for each sampled id, 0 for other ids, including an end token that `append` adds."""
        return [int(part.is_sampled) for part in self._parts for _ in part.ids]

    @property
    def logprobs(self) -> list[float | None]:
        """The log-probability of each sampled id, if given; None for other ids."""
        return [
            value
            for part in self._parts
            for value in (part.logprobs if part.logprobs is not None else (None,) * len(part.ids))
        ]

    @property
    def is_finished(self) -> bool:
        """Whether `max_tokens` ended the rollout."""
        return self._is_finished

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The conversation. Samples are assistant messages, parsed if the caller parsed them."""
        sample = self._sample()
        if not sample:
            return list(self._messages)
        return [*self._messages, self._message(self._split(sample)[0])]

    def text(self) -> str:
        """Returns the text of all ids. Incomplete characters become U+FFFD, as in `decode`."""
        return self._engine.decode_bytes(self.ids).decode("utf-8", "replace")

    def drift(self) -> list[Drift]:
        """Returns the ranges of ids that change when the decoded text is encoded again.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import Rollout
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> rollout = Rollout("{{ messages[0].content }}", gpt2, [{"content": "I say:"}])
        >>> rollout.sampled(gpt2.encode(" hel") + gpt2.encode("lo"))
        True
        >>> rollout.drift()
        [Drift(start=3, end=5, ids=[932, 5439], encoded=[23748])]
        """
        before = self.ids
        after = encode_segments(self._engine, [trusted(self.text())], True).tolist()
        sizes = [self._sizes(ids) for ids in (before, after)]
        found: list[Drift] = []
        first = second = 0
        while first < len(before) or second < len(after):
            start, other = first, second
            ahead = 0
            while True:
                if ahead <= 0 and first < len(before):
                    ahead, first = ahead + sizes[0][first], first + 1
                elif second < len(after):
                    ahead, second = ahead - sizes[1][second], second + 1
                else:
                    first, ahead = len(before), 0
                if ahead == 0:
                    break
            ids, encoded = before[start:first], after[other:second]
            if ids != encoded:
                found.append(Drift(start, first, ids, encoded))
        return found

    def _sizes(self, ids: Sequence[int]) -> list[int]:
        """Returns the number of bytes that each id contributes to the decoded text. The bytes of
        U+FFFD belong to the id that completes the replaced bytes."""
        found = [len(self._engine.decode_bytes((id,))) for id in ids]
        ends, raw, at = list(accumulate(found)), memoryview(self._engine.decode_bytes(ids)), 0
        while True:
            try:
                str(raw[at:], "utf-8")
                return found
            except UnicodeDecodeError as error:
                found[bisect_left(ends, at + error.end)] += 3 - (error.end - error.start)
                at += error.end

    # ---- Turns ----

    def sampled(
        self,
        ids: Iterable[SupportsIndex],
        logprobs: Iterable[SupportsFloat] | None = None,
        *,
        message: Mapping[str, Any] | None = None,
    ) -> bool:
        """Appends ids sampled from the model. Consecutive calls form one answer.

        If `max_tokens` leaves too little room, the ids that fit are kept, without an incomplete
        last character, and the rollout is finished.

        Args:
            ids: Ids with or without the token that ends the turn.
            logprobs: The log-probability of each id.
            message: The whole answer, parsed into a message with reasoning or tool calls, which
                must render to the sampled text. By default the sampled text is the content.

        Returns:
            Whether the rollout continues.

        Raises:
            ValueError: An id is not a token, the numbers of ids and of log-probabilities differ,
                or the rollout is finished.
        """
        self._check_open()
        segment = tokens(ids)
        encode_segments(self._engine, [segment], True)  # Raises if an id is not a token.
        new = segment.ids
        values = None if logprobs is None else tuple(float(value) for value in logprobs)
        if values is not None and len(values) != len(new):
            raise ValueError(f"there are {len(values)} logprobs for {len(new)} ids")
        if self._max_tokens is not None and self._length + len(new) >= self._max_tokens:
            self._is_finished = True
            if self._length + len(new) > self._max_tokens:
                new = self._whole(new[: self._max_tokens - self._length])
                values = None if values is None else values[: len(new)]
        if message is not None:
            self._parsed = message
        self._parts.append(_Part(new, True, values))
        self._length += len(new)
        return not self._is_finished

    def append(self, messages: _Messages) -> bool:
        """Appends messages after the answer, and the header of the next answer.

        If they do not fit into `max_tokens`, nothing is appended and the rollout is finished.

        Args:
            messages: Tool results or user messages.

        Returns:
            Whether the rollout continues.

        Raises:
            TemplateNotStable: The template renders the earlier part differently than before. The
                rollout is unchanged.
            ValueError: The model has given no answer yet, the rollout is finished, or the parsed
                message has more text than was sampled.
            Exception: Any error of `render_template`.
        """
        self._check_open()
        messages = listed(messages)
        sample = self._sample()
        if not sample:
            raise ValueError(
                "the model gave no answer yet; call sampled(ids) before append(messages)"
            )
        text, behind, message = self._joined(*self._split(sample), messages)
        ids = tuple(encode_segments(self._engine, behind, True).tolist())
        if self._max_tokens is not None and self._length + len(ids) > self._max_tokens:
            self._is_finished = True
            return False
        self._parts.append(_Part(ids, False, None))
        self._length += len(ids)
        self._messages += [message, *messages]
        self._said, self._parsed = text, None
        self._is_finished = self._length == self._max_tokens
        return not self._is_finished

    def fork(self) -> Rollout:
        """Returns a copy that shares its ids with this rollout."""
        other = Rollout.__new__(type(self))
        vars(other).update(vars(self))
        other._parts = list(self._parts)
        other._messages = list(self._messages)
        return other

    __copy__ = fork

    def restart(self, messages: _Messages = ()) -> Rollout:
        """Returns a rollout whose prompt is the whole conversation as the template renders it now.

        None of its ids count as sampled.

        Args:
            messages: Messages to append first.
        """
        return Rollout(
            self._template,
            self._engine,
            [*self.messages, *listed(messages)],
            tools=self._tools,
            max_tokens=self._max_tokens,
            **self._variables,
        )

    # ---- Samples ----

    def _check_open(self) -> None:
        if self._is_finished:
            raise ValueError(f"the rollout is finished: it may have {self._max_tokens} ids")

    def _sample(self) -> tuple[int, ...]:
        """Returns the ids of the last answer."""
        parts = list(takewhile(lambda part: part.is_sampled, reversed(self._parts)))
        return tuple(chain.from_iterable(part.ids for part in reversed(parts)))

    def _split(self, sample: tuple[int, ...]) -> tuple[str, str]:
        """Returns the text of an answer and its final special token."""
        last = self._engine.decode_bytes(sample[-1:]).decode("utf-8", "replace")
        if last in self._engine.special_tokens_set:
            return self._engine.decode_bytes(sample[:-1]).decode("utf-8", "replace"), last
        return self._engine.decode_bytes(sample).decode("utf-8", "replace"), ""

    def _message(self, body: str) -> Mapping[str, Any]:
        return self._parsed or {"role": "assistant", "content": body}

    def _joined(
        self, body: str, end: str, messages: _Messages
    ) -> tuple[str, list[Segment], Mapping[str, Any]]:
        """Renders the conversation with an answer made of the text `body` and the token `end`.

        Returns:
            The whole text, the segments after the answer, and the answer as passed to the template.

        Raises:
            TemplateNotStable: The earlier part or the answer now renders to different text.
            ValueError: The parsed message has more text than the answer.
        """
        history, said = self._messages, self._said
        expected = said + body + end
        message = self._message(body)
        segments = self._rendered([*history, message, *messages])
        text = whole_text(segments)
        if not text.startswith(expected) and self._parsed is None:
            # The prompt may end with the beginning of the content, such as <think>.
            start = _first(segments, len(history))
            if start is not None and start < len(said) and said[:start] == text[:start]:
                message = {"role": "assistant", "content": said[start:] + body}
                other = self._rendered([*history, message, *messages])
                if whole_text(other).startswith(expected):
                    segments, text = other, whole_text(other)
        if not text.startswith(expected):
            raise not_stable(segments, expected, text)
        behind = _behind(segments, len(expected))
        if self._parsed and (more := _rest(behind, len(history))):
            raise ValueError(
                f"the message of the answer says more than was sampled: {more[:_SHOWN]!r}; give "
                "sampled() the message that its ids say"
            )
        return text, behind, message

    def _whole(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the ids without a trailing incomplete character."""
        while ids:
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            decoder.decode(self._engine.decode_bytes(ids[-8:]))
            if not decoder.getstate()[0]:
                break
            ids = ids[:-1]
        return ids


def _first(segments: Sequence[Segment], message: int) -> int | None:
    """Returns the offset of the first character that comes from a message's content."""
    at = 0
    for segment in segments:
        origin = segment.origin
        if origin is not None and origin.message == message and origin.field == "content":
            return at
        at += len(segment.text)
    return None


def _rest(behind: Sequence[Segment], message: int) -> str:
    """Returns the first text of a message that remains in its turn."""
    for segment in behind:
        if segment.origin is None or segment.origin.message != message:
            break
        if segment.origin.field in FIELDS:
            return segment.text
    return ""


def _behind(segments: Sequence[Segment], at: int) -> list[Segment]:
    """Returns the segments from character `at` on."""
    result = []
    for segment in segments:
        if at < len(segment.text):
            result.append(segment._replace(text=segment.text[max(0, at) :]) if at > 0 else segment)
        at -= len(segment.text)
    return result


def not_stable(segments: Sequence[Segment], expected: str, text: str) -> TemplateNotStable:
    """Returns the error for a rendering that does not start with `expected`."""
    offset = next(
        place for place, (a, b) in enumerate(zip_longest(expected, text)) if a is None or a != b
    )
    at, message = 0, None
    for segment in segments:
        if segment.origin is not None and (at <= offset or message is None):
            message = segment.origin.message if segment.origin.message is not None else message
        at += len(segment.text)
        if at > offset:
            break
    shown = slice(offset, offset + _SHOWN)
    return TemplateNotStable(message, offset, expected[shown], text[shown])
