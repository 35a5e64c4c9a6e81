"""Answers the page's JSON requests with JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import __version__
from ..model import MODEL_TO_ENCODING
from ..prompt import FORMATS
from . import words
from .prompts import prompt
from .texts import MAX_ENCODINGS, piece_at, tokens_of
from .vocabularies import Vocabularies, Vocabulary

__all__ = ["Api"]

_Value = TypeVar("_Value")
_MOST_CHARACTERS = 1 << 18


class Api:
    """The functions that the page calls, by name.

    Args:
        sources: The encodings to show at first, as `Vocabularies.open` takes them.

    >>> answer = Api(["gpt2"]).call("steps", {"encoding": "gpt2", "text": "hi"})
    >>> answer["ids"], answer["reached"]
    ([5303], True)
    """

    def __init__(self, sources: Sequence[str] = ()):
        if len(sources) > MAX_ENCODINGS:
            raise ValueError(f"at most {MAX_ENCODINGS} encodings are shown, not {len(sources)}")
        self._vocabularies = Vocabularies()
        self._chosen = [self._vocabularies.open(source).name for source in sources]

    def call(self, name: str, request: Any) -> dict[str, Any]:
        """Answers a request.

        Raises:
            LookupError: No function has this name.
            ValueError: The request is malformed, or cannot be answered; the message says why.
        """
        functions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "start": self._start,
            "open": self._open,
            "tokens": self._tokens,
            "steps": self._steps,
            "prompt": self._prompt,
        }
        if name not in functions:
            raise LookupError(f"no function {name!r}; there are {', '.join(functions)}")
        if not isinstance(request, dict):
            raise ValueError(f"a request is an object, not {type(request).__name__}")
        try:
            return functions[name](request)
        except OSError as error:
            named = error.filename and error.strerror
            raise ValueError(
                f"{error.filename}: {error.strerror}" if named else str(error)
            ) from None
        except (TypeError, LookupError, RecursionError) as error:
            text = error.args[0] if isinstance(error, KeyError) else error
            raise ValueError(str(text) or type(error).__name__) from None

    def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "version": __version__,
            "encodings": self._vocabularies.names,
            "chosen": self._chosen,
            "models": sorted(MODEL_TO_ENCODING),
            "formats": list(FORMATS),
            "templates": self._vocabularies.templates,
        }

    def _open(self, request: dict[str, Any]) -> dict[str, Any]:
        vocabulary = self._vocabularies.open(_text(request, "source"))
        return {
            "name": vocabulary.name,
            "encodings": self._vocabularies.names,
            "templates": self._vocabularies.templates,
        }

    def _tokens(self, request: dict[str, Any]) -> dict[str, Any]:
        chosen = {name: self._vocabularies.get(name) for name in _field(request, "encodings", list)}
        text = _whole(_field(request, "text", str))
        return {"columns": tokens_of(text, chosen, _field(request, "special", bool))}

    def _steps(self, request: dict[str, Any]) -> dict[str, Any]:
        vocabulary = self._vocabulary(request)
        if "place" in request:
            text, special = _whole(_field(request, "text", str)), _field(request, "special", bool)
            return {"text": piece_at(vocabulary, text, _field(request, "place", int), special)}
        index = _field(request, "index", int) if "index" in request else 0
        return words.steps(vocabulary, _text(request, "text"), index)

    def _prompt(self, request: dict[str, Any]) -> dict[str, Any]:
        messages = _field(request, "messages", list)
        for message in messages:
            if not isinstance(message, dict):
                raise ValueError("each message is an object")
            _text(message, "role"), _text(message, "content"), _field(message, "trusted", bool)
            if "reasoning" in message:
                _text(message, "reasoning")
            if "tool_calls" in message:
                _field(message, "tool_calls", list)
        variables = _field(request, "variables", dict)
        for name in variables:
            _text(variables, name)
            if not name.isidentifier() or name in ("messages", "add_generation_prompt", "self"):
                raise ValueError(f"{name!r} is not the name of a variable")
        return prompt(
            self._vocabulary(request),
            messages,
            format=_text(request, "format") if "format" in request else None,
            template=_text(request, "template") if "template" in request else None,
            tools=_field(request, "tools", list) if "tools" in request else None,
            generation=_field(request, "generation", bool),
            variables=variables,
        )

    def _vocabulary(self, request: dict[str, Any]) -> Vocabulary:
        return self._vocabularies.get(_text(request, "encoding"))


def _field(request: dict[str, Any], name: str, kind: type[_Value]) -> _Value:
    value = request.get(name)
    if type(value) is not kind:
        found = "is missing" if value is None else f"is {type(value).__name__}"
        raise ValueError(f"the field {name!r} {found}, not {kind.__name__}")
    return value


def _text(request: dict[str, Any], name: str) -> str:
    value = _field(request, name, str)
    if len(value) > _MOST_CHARACTERS:
        raise ValueError(f"{name!r} has {len(value):,} characters, more than {_MOST_CHARACTERS:,}")
    return value


def _whole(text: str) -> str:
    """Returns a text with U+FFFD in place of lone surrogates, which browsers send."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
