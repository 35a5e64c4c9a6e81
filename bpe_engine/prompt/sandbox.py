"""The Jinja environment of chat templates: a sandbox whose strings keep their origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import loopcontrols
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing
from markupsafe import Markup

from .._core import call_method
from .compiler import (
    DICT_METHODS,
    LOOP_ATTRIBUTES,
    OUTPUT_PIECES,
    OUTPUT_SUMMANDS,
    TracingGenerator,
)
from .escaped import marked_safe
from .filters import counted_tests, string_filters
from .formatting import check_format, formatted
from .labels import each_opened, label_tests, opened, values
from .language import (
    COMPARISONS,
    OPERATORS,
    GenerationBlocks,
    TemplateDict,
    TemplateNamespace,
    add,
    counted,
    guarded,
    join,
    raise_exception,
    strftime_now,
)
from .limits import ITEM, STRING, TemplateLimitError, active, guard, size_of, use
from .taint import Traced, as_traced, concat, text_of

__all__ = ["TracingEnvironment"]

# Maximum number of Jinja tokens, which limits compile time. The longest published templates have
# about 5,000.
_MOST_TOKENS = 20_000
# Maximum number of digits in a template's number, as in Python's `int` of a text.
_MOST_DIGITS = 4300

# Methods of str whose result contains an argument or may be longer. `Traced` defines them.
_STRING_METHODS = frozenset(
    ["center", "expandtabs", "join", "ljust", "replace", "rjust", "translate", "zfill"]
)
# Methods of str that may compare each character with each character of an argument.
_SEARCHES = frozenset(["lstrip", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "strip"])
# Attributes of numbers that a template can read.
_SCALAR_METHODS = frozenset(
    ["as_integer_ratio", "bit_count", "bit_length", "conjugate", "hex", "is_integer"]
    + ["real", "imag", "numerator", "denominator"]
)


class TracingEnvironment(ImmutableSandboxedEnvironment):
    """The environment of transformers' chat templates, whose strings keep their origin."""

    concat: Any = staticmethod(concat)
    intercepted_binops: frozenset[str] = frozenset(OPERATORS)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # A folded constant would be a plain str.
            extensions=[GenerationBlocks, loopcontrols],
        )
        self.filters.update(string_filters())
        self.tests.update(counted_tests())
        self.tests.update(label_tests())
        self.binop_table.update(OPERATORS)
        self.globals.update(
            raise_exception=raise_exception,
            strftime_now=strftime_now,
            dict=TemplateDict(),
            namespace=TemplateNamespace,
        )
        # `lipsum` generates random text of any length.
        del self.globals["lipsum"]

    def compiled(self, source: str) -> jinja2.Template:
        """Compiles a template, whose literal strings are trusted.

        Raises:
            TemplateLimitError: The template is too large to compile.
            SyntaxError: The template is nested too deeply for Python.
        """
        for count, (line, kind, text) in enumerate(self.lex(source)):
            if count == _MOST_TOKENS:
                raise TemplateLimitError(
                    f"the template has more than {_MOST_TOKENS} words and signs of Jinja's language; "
                    "simplify it, and hand over data as variables"
                )
            if kind == "integer" and len(text) > _MOST_DIGITS:
                raise TemplateLimitError(
                    f"line {line} of the template has a number of {len(text)} digits, but may have "
                    f"{_MOST_DIGITS}; write it as a string"
                )
        tree = self.parse(source)
        generator = TracingGenerator(self, None, None, optimized=False)
        generator.splits_output = tree.find(nodes.Block) is None
        generator.visit(tree)
        code = compile(generator.stream.getvalue(), "<template>", "exec")  # type: ignore[attr-defined]
        namespace = {
            "environment": self,
            "__file__": "<template>",
            **{f"traced_{name}": compare for name, compare in COMPARISONS.items()},
            "traced_add": add,
            "traced_counted": counted,
            "traced_guarded": guarded,
            "traced_active": active,
            "traced_each": each_opened,
            "traced_join": join,
            "traced_method": call_method,
            "traced_pieces": OUTPUT_PIECES,
            "traced_summands": OUTPUT_SUMMANDS,
            "traced_text": text_of,
            "traced_values": values,
            **generator.constants,
        }
        exec(code, namespace)
        template = self.template_class._from_namespace(self, namespace, dict(self.globals))
        tags = (node.identifier for node in tree.find_all(nodes.ExtensionAttribute))
        vars(template)["has_tags"] = GenerationBlocks.identifier in tags
        return template

    # ---- What the sandbox allows ----

    def getattr(self, obj: Any, attribute: str) -> Any:
        obj = opened(obj)
        if type(obj) is dict and attribute not in DICT_METHODS:
            # The fast path of nearly every look-up, with the sandbox's result.
            value = obj.get(attribute, missing)
            return self.undefined(obj=obj, name=attribute) if value is missing else value
        if type(obj) is str or type(obj) is Traced:
            return self._string_attribute(obj, attribute)
        if (type(obj) is LoopContext and attribute in LOOP_ATTRIBUTES) or (
            type(obj) is TemplateNamespace and not attribute.startswith("_")
        ):
            # A second fast path with the sandbox's result.
            try:
                return getattr(obj, attribute)
            except AttributeError:
                return self.undefined(obj=obj, name=attribute)
        if isinstance(obj, Markup):
            return self._markup_attribute(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(argument) is not str and not isinstance(argument, (str, int)):
            # The key is hashed, and printed if missing.
            guard(argument)
        obj = opened(obj)
        if type(obj) is dict:
            try:
                return obj[argument]
            except (KeyError, TypeError):
                if isinstance(argument, str) and argument not in DICT_METHODS:
                    return self.undefined(obj=obj, name=argument)
        elif isinstance(argument, str) and isinstance(obj, str):
            return self.getattr(obj, str.__str__(argument))
        elif type(obj) is Traced and isinstance(argument, int):
            try:
                return obj[argument]
            except IndexError:
                return self.undefined(obj=str.__str__(obj), name=argument)  # type: ignore[arg-type]
        return super().getitem(obj, argument)

    def _string_attribute(self, text: str, name: str) -> Any:
        # `encode` is refused, because bytes would need separate limits.
        if name.startswith("_") or name == "encode":
            return self.unsafe_undefined(text, name)
        if name in _STRING_METHODS:
            return getattr(as_traced(text), name)
        if name in ("format", "format_map"):
            return _closed(self._format, text, name == "format_map")
        # A third fast path with the sandbox's result.
        try:
            return getattr(text, name)
        except AttributeError:
            # Error messages show the type of the string.
            return self.undefined(obj=str.__str__(text), name=name)

    def _markup_attribute(self, text: Markup, name: str) -> Any:
        """Returns a method of escaped text, which escapes its arguments."""
        method = super().getattr(marked_safe(text), name)
        if name in ("format", "format_map"):
            return _closed(_markup_format, text, method)
        return self.unsafe_undefined(text, name) if name == "encode" else method

    def _format(self, text: str, is_map: bool, *args: Any, **kwargs: Any) -> str:
        name = "format_map" if is_map else "format"
        native = super().getattr(str.__str__(text), name)
        values = args[0] if is_map and args else kwargs
        return formatted(text, () if is_map else args, values, lambda: str(native(*args, **kwargs)))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, (int, float)) and attr not in _SCALAR_METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: B902, N805
        # For macros and methods of str and dict, has the same result as the sandbox's check.
        if isinstance(__obj, Macro):
            use(ITEM * len(args))
            return __obj(__context.eval_ctx, *args, **kwargs)
        args = tuple(map(opened, args))
        if kwargs:
            kwargs = {name: opened(value) for name, value in kwargs.items()}
        own = getattr(__obj, "__self__", None)
        use(_cost(__obj, own, (*args, *kwargs.values())))
        if not isinstance(own, (str, dict)):
            return super().call(__context, __obj, *args, **kwargs)
        result = __obj(*args, **kwargs)
        if isinstance(result, list):
            use(STRING * len(result))
        return result


def _cost(function: Any, own: Any, values: tuple[Any, ...]) -> int:
    """Returns the cost of a call: its arguments, and the value whose method is called."""
    given = STRING + sum(map(size_of, values))
    if isinstance(own, str):
        if function.__name__ in _SEARCHES:
            given += len(own) * given // STRING
        elif function.__name__ == "striptags":
            given += len(own) * len(own) // 256
        return given + len(own)
    if values and isinstance(own, (list, tuple)):
        # `count` and `index` compare every item.
        return given + size_of(own)
    return given + ITEM * len(own) if isinstance(own, (list, tuple, dict)) else given


def _closed(function: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """Binds arguments like `functools.partial`, which would expose the function to templates."""
    return lambda *args, **kwargs: function(*first, *args, **kwargs)


def _markup_format(text: Markup, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    check_format(text, (*args, *kwargs.values()))
    return method(*args, **kwargs)
