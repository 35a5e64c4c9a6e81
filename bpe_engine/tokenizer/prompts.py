"""Conversations to the inputs of a model: the chat templates of a `Tokenizer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import chat, rows
from .calls import Calls

__all__ = ["Prompts"]


class Prompts(Calls):
    """The part of a `Tokenizer` that renders conversations."""

    chat_template: Any

    def get_chat_template(self, chat_template: str | None = None, tools: Any = None) -> str:
        """The template for a conversation: `chat_template`, if it is one, that of this name, or the
        tokenizer's own. ValueError if there is none."""
        return chat.choose(self.chat_template, chat_template, tools)

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        padding: bool | str = False,
        truncation: bool | str = False,
        max_length: int | None = None,
        return_tensors: str | None = None,
        return_dict: bool = True,
        return_assistant_tokens_mask: bool = False,
        **variables: Any,
    ) -> Any:
        """The prompt of a conversation.

        It is rendered by `bpe_engine.prompt.render_template`: only what the template itself says
        can become a special token. Names of special tokens in messages, tools and documents are
        ordinary text. Where there are none, the ids are those of transformers.

        Args:
            conversation: Messages, or a list of conversations.
            tools: JSON schemas of functions.
            documents: Mappings for the template.
            chat_template: A template, or the name of one of the tokenizer's.
            add_generation_prompt: Whether the prompt ends with the beginning of an answer.
            continue_final_message: Whether the last message is left open; or the name of its part
                that is.
            tokenize: Whether ids are returned. Otherwise the text is.
            padding, truncation, max_length, return_tensors: As in a call.
            return_dict: Whether a `BatchEncoding` is returned. Otherwise the ids are.
            return_assistant_tokens_mask: ``assistant_masks``: 1 for ids inside ``{% generation %}``
                blocks.
            variables: More for the template, by name.

        Raises:
            ValueError: There is no template, or the arguments do not fit together.
            Exception: A ``TemplateError`` of jinja2: the template has errors, or refuses the
                conversation.
            ImportError: jinja2 is missing (the extra ``chat``).
        """
        if return_assistant_tokens_mask and not (return_dict and tokenize):
            raise ValueError(
                "`return_assistant_tokens_mask=True` requires `return_dict=True` and `tokenize=True`"
            )
        prompts, is_batch = chat.render(
            self.get_chat_template(chat_template, tools),
            conversation,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            variables={**self._trusted_tokens(), **variables},
        )
        if not tokenize:
            texts = ["".join(segment.text for segment in prompt) for prompt in prompts]
            return texts if is_batch else texts[0]
        strategies = self._strategies(padding, truncation, max_length, None, True)
        encoded = [
            self._backend.encode_segments(prompt, return_assistant_tokens_mask)
            for prompt in prompts
        ]
        fields = {"input_ids": [ids for ids, _ in encoded]}
        if return_assistant_tokens_mask:
            # Cut and filled up as the ids are; 0 is what type ids are filled up with.
            fields["token_type_ids"] = [mask for _, mask in encoded]
        made = rows.arranged(fields, self._layout(strategies, 0, None, None))
        names = [name for name in ("input_ids", "attention_mask") if name in self.model_input_names]
        output = rows.result(made, None, names, return_tensors, is_batch)
        types = rows.result(made, None, ["token_type_ids"], return_tensors, is_batch)
        if return_assistant_tokens_mask:
            output["assistant_masks"] = types["token_type_ids"]
        elif "token_type_ids" in self.model_input_names:
            output["token_type_ids"] = types["token_type_ids"]
        return output if return_dict else output["input_ids"]

    def _trusted_tokens(self) -> dict[str, Any]:
        from ..prompt.segments import trusted

        return {name: trusted(token) for name, token in self.special_tokens_map.items()}
