"""Finds the text that a chat template itself writes around the messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Names that are control tokens in every model that uses them.
_CONTROL = re.compile(
    r"<\|[^\s<>|]{1,64}\|?>|<[^\s<>|]{1,64}\|>|<｜[^\s<>]{1,64}｜>|〈\|[^\s〈〉]{1,64}\|〉"
    r"|</?(?:s|bos|eos|pad|unk|mask)>|</?\w+_of_\w+>"
)

#: Names that are control tokens in some models, and ordinary text in others.
_TAG = re.compile(r"</?[A-Za-z][\w:.-]{0,63}>|\[/?[A-Z][A-Z_]{2,63}\]")

#: The tag `{% generation %}`, which plain jinja2 rejects.
_GENERATION = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")


@dataclass(frozen=True)
class Written:
    """The text that a template itself writes, as far as probe conversations show."""

    #: Rendered prompts; at least one prompt unless there is an error.
    prompts: list[str]
    #: Runs of the template's own text.
    parts: list[str]
    #: Template text after the last assistant message; None if the prompt lacks that message.
    turn_end: str | None
    #: Why no conversation was rendered.
    error: str | None = None

    @property
    def controls(self) -> list[str]:
        """The distinct control tokens that the template writes."""
        return list(dict.fromkeys(_found(_CONTROL, self.parts)))

    @property
    def tags(self) -> list[str]:
        """The distinct tags that the template writes and that may be ordinary text."""
        controls = set(self.controls)
        found = dict.fromkeys(_found(_TAG, self.parts))
        return [tag for tag in found if tag not in controls]


def _found(pattern: re.Pattern[str], texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from pattern.findall(text)


def has_generation_tags(template: str) -> bool:
    """Returns True if a template marks the assistant's text."""
    return bool(_GENERATION.search(template))


def written_by(template: str, tokens: Mapping[str, str]) -> Written:
    """Renders the probe conversations, and returns the template's own text.

    Args:
        template: the template.
        tokens: the special tokens by variable, such as ``bos_token``.

    Raises ImportError if jinja2 is not installed.
    """
    from bpe_engine.prompt import render_template, special
    from bpe_engine.prompt.samples import ANSWER, ASKS, RESULT, SYSTEM, THOUGHT, TOOL, USER

    # Templates may reject all conversations except the first two.
    conversations: list[tuple[list[Any], dict[str, Any]]] = [
        ([USER], {"add_generation_prompt": True}),
        ([USER, ANSWER], {}),
        ([SYSTEM, USER, ANSWER, USER], {}),
        ([USER, THOUGHT], {"enable_thinking": True}),
        ([USER], {"add_generation_prompt": True, "tools": [TOOL]}),
        ([USER, ASKS, RESULT, ANSWER], {"tools": [TOOL]}),
    ]
    answer = ANSWER["content"]
    variables = {name: special(token) for name, token in tokens.items()}
    prompts, parts, turn_end, error = [], [], None, None
    for messages, options in conversations:
        try:
            segments = render_template(template, messages, **{**variables, **options})
        except Exception as failed:  # Rendering may raise any exception.
            error = error or f"{type(failed).__name__}: {failed}"
            continue
        prompts.append("".join(segment.text for segment in segments))
        own = [_own_text(segment) for segment in segments]
        parts += "".join("\0" if text is None else text for text in own).split("\0")
        if messages[-1] is ANSWER and turn_end is None and answer in prompts[-1]:
            turn_end = prompts[-1].rpartition(answer)[2]
    parts += _literals(template)
    found = list(dict.fromkeys(part for part in parts if part))
    return Written(prompts, found, turn_end, None if prompts else error)


def _own_text(segment: Any) -> str | None:
    """Returns the text of a segment that the template wrote; None for the caller's text."""
    is_own = segment.kind == "special" or segment.allowed_special is True
    return segment.text if is_own else None


def _literals(template: str) -> list[str]:
    """Returns the text and the string literals that a template may write in any branch.

    Omits string literals in comparisons and arguments, which the template only searches for.
    """
    import jinja2
    from jinja2 import nodes

    environment = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"])
    try:
        tree = environment.parse(_GENERATION.sub("", template))
    except jinja2.TemplateError:
        return []
    found: list[str] = []

    def walk(node: nodes.Node) -> None:
        if isinstance(node, (nodes.Compare, nodes.Call, nodes.Filter, nodes.Test)):
            return
        if isinstance(node, nodes.TemplateData):
            found.append(node.data)
        elif isinstance(node, nodes.Const) and isinstance(node.value, str):
            found.append(node.value)
        for child in node.iter_child_nodes():
            walk(child)

    for output in tree.find_all((nodes.Output, nodes.Assign)):
        walk(output)
    return found
