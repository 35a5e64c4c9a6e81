"""Assistant masks for transformers' tokenizers whose templates lack ``{% generation %}``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..prompt.segments import Segment, trusted

__all__ = ["with_masks"]


def with_masks(original: Callable[..., Any], own: type) -> Callable[..., Any]:
    """Wraps `apply_chat_template` to return masks also for templates without tags.

    Args:
        original: The transformers method.
        own: The class of our tokenizers inside transformers'.
    """
    signature = inspect.signature(original)

    @functools.wraps(original)
    def apply_chat_template(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        given = bound.arguments
        if not given.get("return_assistant_tokens_mask") or not isinstance(self._tokenizer, own):
            return original(self, *args, **kwargs)
        from ..prompt.template import ChatTemplate

        template = ChatTemplate(
            self.get_chat_template(given.get("chat_template"), given.get("tools"))
        )
        is_usable = given.get("tokenize", True) and given.get("return_dict", True)
        if template.has_tags or not is_usable or given.get("continue_final_message"):
            return original(self, *args, **kwargs)
        return _masked(self, template, original, bound)

    return apply_chat_template


def _masked(self: Any, template: Any, original: Any, bound: inspect.BoundArguments) -> Any:
    given = bound.arguments
    tensors = given.get("return_tensors")
    given["return_assistant_tokens_mask"] = False
    output = original(*bound.args, **bound.kwargs)
    conversation = given["conversation"]
    is_batch = isinstance(conversation[0], (list, tuple)) or hasattr(conversation[0], "messages")
    rows = output["input_ids"]
    if not is_batch and not tensors:
        rows = [rows]
    masks = [
        _of_row(self, _segments(template, messages, given, self), [int(id) for id in row])
        for messages, row in zip(conversation if is_batch else [conversation], rows)
    ]
    output["assistant_masks"] = masks if is_batch or tensors else masks[0]
    if tensors:
        output.convert_to_tensors(tensor_type=tensors)
    return output


def _segments(template: Any, messages: Any, given: Mapping[str, Any], self: Any) -> list[Segment]:
    """Renders a conversation as transformers does, trusting every message."""
    messages = getattr(messages, "messages", messages)
    variables = {**self.special_tokens_map, **given.get("kwargs", {})}
    segments = template.render(
        [
            {key: value for key, value in message.items() if value is not None}
            for message in messages
        ],
        tools=_schemas(given.get("tools")),
        documents=given.get("documents"),
        add_generation_prompt=given.get("add_generation_prompt", False),
        **{
            name: trusted(value) if isinstance(value, str) else value
            for name, value in variables.items()
        },
    )
    return [
        segment if segment.kind == "special" else segment._replace(allowed_special=True)
        for segment in segments
    ]


def _schemas(tools: Sequence[Any] | None) -> list[Any] | None:
    from transformers.utils.chat_template_utils import get_json_schema

    if tools is None:
        return None
    return [tool if isinstance(tool, dict) else get_json_schema(tool) for tool in tools]


def _of_row(self: Any, segments: list[Segment], row: list[int]) -> list[int]:
    audit = self._tokenizer.audit_segments(segments)
    mask, ids = audit.mask(), audit.ids
    size = min(len(ids), len(row))
    at = len(row) - size if self.padding_side == "left" else 0
    first = len(ids) - size if self.truncation_side == "left" else 0
    if row[at : at + size] != ids[first : first + size]:
        raise ValueError(
            "a message holds the name of a special token across the boundary of two texts of the "
            "template, so that its mask is not known; use bpe_engine.Tokenizer"
        )
    result = [0] * len(row)
    result[at : at + size] = mask[first : first + size]
    return result
