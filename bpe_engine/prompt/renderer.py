"""`Renderer`: what renders a conversation, to the same arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from .._core import Labels
from .encode import Engine
from .segments import Segment, special

__all__ = ["Compiled", "Renderer"]

# Variables whose values are names of special tokens.
_TOKEN_NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
# Bytes of a compiled template for each character.
_COMPILED = 32
_TOKEN_VARIABLES = frozenset(f"{name}_token" for name in _TOKEN_NAMES)


class Renderer(ABC):
    """A chat template, or a session with one."""

    def render(
        self,
        /,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        tokenizer: Engine | None = None,
        **variables: Any,
    ) -> list[Segment]:
        """See `render_template`."""
        if "self" in variables:
            raise ValueError(
                "a variable cannot be named 'self', which in a template is the template itself; "
                "give it another name"
            )
        for name in _TOKEN_VARIABLES & variables.keys():
            variables[name] = _as_special(name, variables[name], tokenizer)
        variables["add_generation_prompt"] = add_generation_prompt
        return self._render(messages, tools, documents, variables)

    @abstractmethod
    def _render(
        self, messages: Any, tools: Any, documents: Any, named: dict[str, Any]
    ) -> list[Segment]:
        """Renders a conversation with all other variables by name."""


class Compiled(Renderer):
    """A chat template, as a session needs it."""

    source: str

    @property
    def memory(self) -> int:
        """The bytes that it takes, roughly."""
        return _COMPILED * len(self.source)

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, Any]:
        """The functions of the template language."""

    @property
    @abstractmethod
    def reuses_turns(self) -> bool:
        """Whether turns of any loop can be reused."""

    @abstractmethod
    def new_labels(self) -> Labels:
        """Returns the origins of what a caller gives to one rendering: none so far."""

    @abstractmethod
    def rendered(
        self, values: dict[str, Any], labels: Labels, given: int, session: Any = None
    ) -> list[Segment]:
        """Renders plain values with so many characters."""


def _as_special(name: str, value: Any, tokenizer: Engine | None) -> Any:
    """Returns a variable that names a special token. Raises ValueError for a plain string that the
    tokenizer does not know."""
    if not isinstance(value, str) or not value:
        return value
    if tokenizer is not None and value in tokenizer.special_tokens_set:
        return special(value)
    known = "" if tokenizer is None else ", and is not a special token of the tokenizer"
    raise ValueError(
        f"{name} is the plain string {value!r}{known}: it would be text, not a token; pass "
        f"{name}=special({value!r}), with special from bpe_engine.prompt, or give the tokenizer "
        f"that knows it"
    )
