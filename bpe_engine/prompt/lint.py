"""`stable_prefix_check`: checks whether a chat template suits multi-turn training."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import TemplateError

from .encode import encode
from .fields import FIELDS, spoken
from .rollout import TemplateNotStable, not_stable
from .samples import (
    ANSWER,
    ASKS,
    ASKS_THOUGHT,
    BOS,
    CALL,
    EOS,
    MORE,
    REFUSALS,
    RESULT,
    SYSTEM,
    THOUGHT,
    TOOL,
    USER,
    control_tokens_of,
)
from .segments import Segment, special, whole_text
from .template import ChatTemplate, chat_template

if TYPE_CHECKING:
    from .._core import Pipeline

__all__ = ["Sample", "TemplateReport", "stable_prefix_check"]


class Sample:
    """A template together with the variables that it needs to render a plain user question.

    Args:
        template: Chat template or its source.
        tokenizer: The tokenizer of the model.
        variables: Other variables of the template. Missing variables that the template reads are
            "[]".

    Raises:
        ValueError: The template rejects a plain question, or is too large.
        jinja2.TemplateError: The template has errors.
    """

    def __init__(
        self,
        template: str | ChatTemplate,
        tokenizer: Pipeline | None,
        variables: Mapping[str, Any],
    ):
        self.template: ChatTemplate = chat_template(template)
        self._tokenizer = tokenizer
        self._given = {"bos_token": special(BOS), "eos_token": special(EOS), **variables}
        self._needs_tools = False
        #: The rendered user question.
        self.plain: list[Segment] = self._first()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> list[Segment]:
        """Renders a conversation, as `ChatTemplate.render` does."""
        return self.template.render(
            messages,
            tools=[TOOL] if tools is None and self._needs_tools else tools,
            add_generation_prompt=add_generation_prompt,
            tokenizer=self._tokenizer,
            **{**self._given, **variables},
        )

    def _first(self) -> list[Segment]:
        while True:
            try:
                return self.render([USER])
            except REFUSALS as error:
                missing = re.fullmatch(r"'(\w+)' is undefined", str(error))
                if missing and missing[1] not in self._given:
                    self._given[missing[1]] = "[]"
                elif not self._needs_tools:
                    self._needs_tools = True
                else:
                    raise ValueError(
                        f"the template refuses a question of the user: {error}"
                    ) from error


class _Kind(NamedTuple):
    """A way to continue a conversation."""

    answer: dict[str, Any]
    more: list[dict[str, Any]]
    has_tools: bool = False
    #: True if templates may reject the continuation.
    is_optional: bool = False

    @property
    def reasoning(self) -> str:
        return str(self.answer.get("reasoning_content", ""))


_KINDS: dict[str, _Kind] = {
    "user": _Kind(ANSWER, [MORE]),
    "user, with tools": _Kind(ANSWER, [MORE], True, True),
    "tool": _Kind(ASKS, [RESULT], True, True),
    "tools": _Kind(ASKS, [RESULT, RESULT], True, True),
    "system": _Kind(ANSWER, [SYSTEM, MORE], False, True),
    "reasoning, user": _Kind(THOUGHT, [MORE]),
    "reasoning, tool": _Kind(ASKS_THOUGHT, [RESULT], True, True),
}
_REFUSED = "the template refuses it"


@dataclass(frozen=True)
class TemplateReport:
    """The result of `stable_prefix_check`."""

    #: Change of the earlier part for each kind of continuation. None if the earlier part is
    #: unchanged.
    continuations: Mapping[str, str | None]
    #: Whether the template has ``{% generation %}`` tags.
    has_tags: bool
    #: Whether the template itself writes the begin-of-text token, which ``add_special_tokens=True``
    #: would then double.
    writes_bos: bool
    #: Control tokens written by the template that are not special tokens of the tokenizer. None
    #: without a tokenizer.
    unknown: tuple[str, ...] | None
    #: Roles and fields of messages that are missing from the prompt.
    dropped: tuple[str, ...] = field(default=())
    #: Control tokens of the tokenizer that the template writes in positions where the tokenizer
    #: does not find them, with the number of positions. None without a tokenizer.
    lost: tuple[str, ...] | None = None
    #: Form of call arguments accepted by the template.
    arguments: str = "no calls in the prompt"

    @property
    def verdict(self) -> str:
        """ "stable", "stable without reasoning" or "not stable".

        A system message in the middle of a conversation is ignored.
        """
        broken = [
            kind
            for kind, what in self.continuations.items()
            if what not in (None, _REFUSED) and kind != "system"
        ]
        if not broken:
            return "stable"
        if all(_KINDS[kind].reasoning for kind in broken):
            return "stable without reasoning"
        return "not stable"

    @property
    def is_clean(self) -> bool:
        """Whether the template is stable and the tokenizer finds all its control tokens."""
        return self.verdict == "stable" and not self.unknown and not self.lost

    def __str__(self) -> str:
        """Returns the report as human-readable lines."""
        lines = [f"{self.verdict}"]
        for kind, what in self.continuations.items():
            lines.append(f"  {kind}: {what or 'the earlier part stays'}")
        tags = "yes" if self.has_tags else "no (masks come from the origins of text)"
        lines.append(f"generation tags: {tags}")
        bos = "yes: encode with add_special_tokens=False" if self.writes_bos else "no"
        lines.append(f"writes the token that begins a text: {bos}")
        if self.unknown is not None:
            lines.append(f"control tokens unknown to the tokenizer: {_listed(self.unknown)}")
        if self.lost is not None:
            lines.append(f"control tokens that the tokenizer does not find: {_listed(self.lost)}")
        lines.append(f"arguments of calls: {self.arguments}")
        lines.append(f"not in the prompt: {_listed(self.dropped)}")
        return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def stable_prefix_check(
    template: str | ChatTemplate, tokenizer: Pipeline | None = None, **variables: Any
) -> TemplateReport:
    """Checks whether a template keeps the earlier part of a conversation as it grows.

    Conversations are continued as in `Rollout`: with a user question, tool results or a system
    message, each after an answer with and without reasoning.

    Args:
        template: A chat template.
        tokenizer: Tokenizer of the model, whose special tokens are compared with the template's.
        variables: Other variables of the template. Missing variables that the template reads are
            "[]".

    Raises:
        ValueError: The template rejects a plain conversation, or is too large.
        jinja2.TemplateError: The template has errors.

    >>> from bpe_engine.prompt import stable_prefix_check
    >>> keeps = "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
    >>> stable_prefix_check(keeps + "{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}").verdict
    'stable'
    """
    sample = Sample(template, tokenizer, variables)

    def render(messages: Any, has_tools: bool = False, prompt: bool = True) -> list[Segment]:
        tools = [TOOL] if has_tools else None
        return sample.render(messages, tools=tools, add_generation_prompt=prompt)

    continuations: dict[str, str | None] = {}
    written = set(control_tokens_of(sample.plain))
    prompts = [sample.plain]
    for name, kind in _KINDS.items():
        try:
            prompts.append(_continued(render, kind))
            written.update(control_tokens_of(prompts[-1]))
            continuations[name] = None
        except TemplateNotStable as error:
            continuations[name] = _change(error)
        except _Dropped:
            continuations[name] = "the reasoning of the answer is dropped"
        except (TemplateError, TypeError, ValueError) as error:
            continuations[name] = _REFUSED if kind.is_optional else f"{_REFUSED}: {error}"
    bos = {BOS, *_texts(variables.get("bos_token"))}
    unknown = None
    if tokenizer is not None:
        bos |= set(_texts(getattr(tokenizer, "special_tokens_map", {}).get("bos_token")))
        known = tokenizer.special_tokens_set
        unknown = tuple(name for name in sorted(written - {BOS, EOS}) if name not in known)
    begins = whole_text(sample.plain).startswith((*bos, *_BEGINNINGS))
    template = sample.template
    lost = None if tokenizer is None else lost_tokens(tokenizer, prompts)
    return TemplateReport(
        *(continuations, template.has_tags, begins, unknown, _dropped(render), lost),
        _arguments(render),
    )


def lost_tokens(tokenizer: Pipeline, prompts: Iterable[Sequence[Segment]]) -> tuple[str, ...]:
    """Returns the special tokens that a template writes in positions where the tokenizer does not
    find them.

    A tokenizer may find a name only at the start of a text or next to spaces.
    """
    written: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for segments in prompts:
        names = [name for name in control_tokens_of(segments) if _is_known(name, tokenizer)]
        known = [
            part._replace(kind="text", allowed_special=True)
            if part.kind == "special" and part.text not in tokenizer.special_tokens_set
            else part
            for part in segments
        ]
        counts: Counter[int] = Counter(encode(tokenizer, known))
        for name, count in Counter(names).items():
            own: Any = encode(tokenizer, [special(name)])
            written[name] += count
            found[name] += min(count, max(map(counts.__getitem__, own)))
    return tuple(
        f"{name} (other tokens in {count - found[name]} of {count} places)"
        for name, count in sorted(written.items())
        if found[name] < count
    )


def _is_known(name: str, tokenizer: Pipeline) -> bool:
    return name not in (BOS, EOS) and name in tokenizer.special_tokens_set


def _arguments(render: Any) -> str:
    """Returns the form of call arguments accepted by a template, or the reason for rejecting
    calls."""
    word, forms, refusals, is_rendered = "sea", {}, [], False
    for form, arguments in (("dict", {"word": word}), ("str", json.dumps({"word": word}))):
        call = {**CALL, "function": {**CALL["function"], "arguments": arguments}}
        for content in ("", "Pear asks.", None):
            try:
                asks = {**ASKS, "content": content, "tool_calls": [call]}
                text = whole_text(render([USER, asks, RESULT], True, False))
            except REFUSALS as error:
                refusals.append(error)
                continue
            is_rendered = True
            if word in text:
                where = "" if content is not None else ", in messages whose content is null"
                forms[form] = where, '\\"word\\"' in text
                break
    if not forms:
        return "no calls in the prompt" if is_rendered else f"refused: {refusals[0]}"
    (where, _), *_ = forms.values()
    if "dict" not in forms:
        return f"as JSON in a string{where}; a dict is refused"
    if "str" not in forms:
        return f"as a dict{where}; a string is refused"
    if forms["str"][1]:
        return f"as a dict{where}; JSON in a string is escaped once more"
    return f"as a dict, or as JSON in a string{where}"


class _Dropped(Exception):  # noqa: N818 - no error of a caller
    """Raised if the template omits the reasoning."""


_BEGINNINGS = ("<|begin_of_text|>", "<bos>", "<|startoftext|>", "<｜begin▁of▁sentence｜>")


def _texts(value: Any) -> tuple[str, ...]:
    text = getattr(value, "text", value)
    return (text,) if isinstance(text, str) else ()


def _change(error: TemplateNotStable) -> str:
    """Returns a human-readable description of the change to the earlier part."""
    who = "text outside of messages"
    if error.message is not None:
        who = ("the question", "the answer")[error.message] if error.message < 2 else "the end"
    return f"{who} changes from {error.expected!r} to {error.found!r}"


def _continued(render: Any, kind: _Kind) -> list[Segment]:
    """Returns a conversation continued after an answer.

    Raises:
        TemplateNotStable: The part before the answer, or the token that ends it, changes.
        _Dropped: The template does not show the reasoning.
    """
    said = whole_text(render([USER], kind.has_tools))
    first: Exception | None = None
    for answer in (kind.answer, _written_out(kind.answer, said)):
        segments: list[Segment] = render([USER, answer, *kind.more], kind.has_tools)
        text = whole_text(segments)
        try:
            if not text.startswith(said):
                raise not_stable(segments, said, text)
            if kind.reasoning not in text:
                raise _Dropped
            ends = [
                _end(each, 1) for each in (render([USER, answer], kind.has_tools, False), segments)
            ]
            if ends[0] and ends[1] and ends[0] != ends[1]:
                at = text.index(ends[1], len(said))
                raise TemplateNotStable(1, at, ends[0], ends[1])
            return segments
        except (TemplateNotStable, _Dropped) as error:
            first = first or error
    assert first is not None
    raise first


def _written_out(answer: dict[str, Any], said: str) -> dict[str, Any]:
    """Returns an answer whose content includes the reasoning as written by the model."""
    reasoning = answer.get("reasoning_content", "")
    if not reasoning and not said.rstrip().endswith("<think>"):
        return answer
    content = f"<think>\n{reasoning}\n</think>\n\n{answer['content']}"
    kept = {key: value for key, value in answer.items() if key != "reasoning_content"}
    return {**kept, "content": content}


def _end(segments: Sequence[Segment], message: int) -> str:
    """Returns the first control token after a message's text, within its turn."""
    places = [
        place
        for place, segment in enumerate(segments)
        if segment.origin is not None
        and segment.origin.message == message
        and segment.origin.field in FIELDS
    ]
    for segment in segments[places[-1] + 1 :] if places else ():
        if segment.origin is None or segment.origin.message != message:
            break
        for name in control_tokens_of([segment]):
            return name
    return ""


def _dropped(render: Any) -> tuple[str, ...]:
    """Returns the roles and fields of messages that the template omits."""
    found: list[str] = []
    conversations: list[tuple[list[dict[str, Any]], bool]] = [
        ([SYSTEM, USER, THOUGHT, MORE, THOUGHT], False),
        ([SYSTEM, USER, {**ASKS, "content": "Pear asks."}, RESULT, ANSWER], True),
        ([USER, THOUGHT, MORE, THOUGHT], False),
        ([USER, ANSWER, SYSTEM, MORE], False),
        ([USER, ASKS, RESULT], True),
    ]
    for messages, has_tools in conversations:
        try:
            segments = render(messages, has_tools, False)
        except (TemplateError, TypeError, ValueError):
            continue
        shown = {
            (segment.origin.message, segment.origin.field)
            for segment in segments
            if segment.origin is not None
        }
        for index, message in enumerate(messages):
            for part in {part: None for part, _, text in spoken(message) if text}:
                is_last = index == len(messages) - 1
                what = f"{'' if is_last else 'earlier '}{part} of {message['role']}"
                if (index, part) not in shown and what not in found:
                    found.append(what)
    return tuple(found)
