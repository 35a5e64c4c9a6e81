"""Jinja's sandbox with strings that keep their origin: what templates are compiled with."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import loopcontrols
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from .compiler import TracingGenerator
from .escaped import marked_safe
from .filters import guarded_tests, string_filters
from .formatting import check_format, formatted
from .language import (
    COMPARISONS,
    GenerationBlocks,
    TemplateDict,
    TemplateNamespace,
    add,
    bounded,
    compared,
    join,
    key,
    modulo,
    multiply,
    power,
    raise_exception,
    strftime_now,
    subtract,
)
from .limits import (
    SMALL,
    TemplateLimitError,
    charge,
    check_expanded,
    check_product,
    check_size,
    expanded,
    listed,
    sized,
    tick,
    ticking,
)
from .origin import LINES, Traced, check_split, concat, runs_of, text_of, traced

__all__ = ["TracingEnvironment"]

# Compiling takes long for more of Jinja's tokens. The longest published templates have some 5,000.
_MOST_TOKENS = 20_000
# Characters of source from which on the clock is looked at outside of loops as well.
_LONG_SOURCE = 1 << 15

# Methods of str that bring together, or take more room than, what they are called with.
_STRING_METHODS = frozenset(
    ["center", "expandtabs", "join", "ljust", "replace", "rjust", "translate", "zfill"]
)
_SPLITS = frozenset(["rsplit", "split", "splitlines"])
# Those that strip look for each character among those that they are called with.
_SEARCHES = frozenset(["lstrip", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "strip"])
_CODECS = frozenset(
    [codecs.lookup(name).name for name in ("utf-8", "ascii", "latin-1", "utf-16", "utf-32")]
)
# What a template may ask of values that are neither text nor containers.
_SCALAR_METHODS = frozenset(
    ["as_integer_ratio", "bit_count", "bit_length", "conjugate", "hex", "is_integer"]
    + ["real", "imag", "numerator", "denominator"]
)
_DICT_METHODS = frozenset(dir(dict))
_LOOP_ATTRIBUTES = frozenset(
    ["first", "index", "index0", "last", "length", "revindex", "revindex0"]
)


class TracingEnvironment(ImmutableSandboxedEnvironment):
    """The environment of transformers' chat templates, in which origins are kept."""

    concat = staticmethod(concat)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # A constant that is folded would be a plain str.
            extensions=[GenerationBlocks, loopcontrols],
        )
        self.filters.update(string_filters())
        self.tests.update(guarded_tests())
        self.globals.update(
            raise_exception=raise_exception,
            strftime_now=strftime_now,
            dict=TemplateDict(),
            namespace=TemplateNamespace,
        )
        # Random text of any length is of no use in a prompt.
        del self.globals["lipsum"]

    def compiled(self, source: str) -> jinja2.Template:
        """A template whose literal strings are trusted.

        Raises:
            TemplateLimitError: Python cannot compile it, or it has too much to compile.
        """
        if next(islice(self.lex(source), _MOST_TOKENS, None), None) is not None:
            raise TemplateLimitError(
                f"the template has more than {_MOST_TOKENS} words and signs of Jinja's language; "
                "simplify it, and hand over data as variables"
            )
        tree = self.parse(source)
        generator = TracingGenerator(self, None, None, optimized=False)
        generator.has_many_statements = len(source) > _LONG_SOURCE
        generator.splits_output = tree.find(nodes.Block) is None
        generator.visit(tree)
        try:
            code = compile(generator.stream.getvalue(), "<template>", "exec")  # type: ignore[attr-defined]
        except SyntaxError as error:
            raise TemplateLimitError(
                f"the template nests too deeply for Python, which says: {error.msg}; move inner "
                "loops, conditions or lists into macros or variables"
            ) from None
        namespace = {
            "environment": self,
            "__file__": "<template>",
            "traced_add": add,
            "traced_bounded": bounded,
            "traced_compared": compared,
            **{f"traced_{name}": compare for name, compare in COMPARISONS.items()},
            "traced_sub": subtract,
            "traced_key": key,
            "traced_sized": sized,
            "traced_mul": multiply,
            "traced_mod": modulo,
            "traced_pow": power,
            "traced_join": join,
            "traced_text": text_of,
            "traced_loop": ticking,
            "traced_tick": tick,
            **generator.constants,
        }
        exec(code, namespace)
        return self.template_class._from_namespace(self, namespace, dict(self.globals))

    # ---- What the sandbox allows ----

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict and attribute not in _DICT_METHODS:
            # The way that nearly every look-up goes; the answer is the one of the sandbox.
            try:
                return obj[attribute]
            except KeyError:
                return self.undefined(obj=obj, name=attribute)
        if type(obj) is str or type(obj) is Traced:
            return self._string_attribute(obj, attribute)
        if (type(obj) is LoopContext and attribute in _LOOP_ATTRIBUTES) or (
            type(obj) is TemplateNamespace and not attribute.startswith("_")
        ):
            # The answer is the one of the sandbox, again.
            try:
                return getattr(obj, attribute)
            except AttributeError:
                return self.undefined(obj=obj, name=attribute)
        if isinstance(obj, Markup):
            return self._markup_attribute(obj, attribute)
        if attribute == "decode" and isinstance(obj, bytes):
            return _closed(_coded, obj.decode)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(obj) is dict:
            try:
                return obj[key(argument)]
            except KeyError:
                if isinstance(argument, str) and argument not in _DICT_METHODS:
                    return self.undefined(obj=obj, name=argument)
                return super().getitem(obj, argument)
            except TypeError:
                return super().getitem(obj, argument)
        if isinstance(argument, str):
            if type(obj) in (str, Traced):
                return self._string_attribute(obj, str.__str__(argument))
            if isinstance(obj, Markup):
                return self._markup_attribute(obj, str.__str__(argument))
            if argument == "decode" and isinstance(obj, bytes):
                return _closed(_coded, obj.decode)
        return super().getitem(obj, key(argument))

    def _string_attribute(self, text: str, name: str) -> Any:
        if name.startswith("_"):
            return self.unsafe_undefined(text, name)
        if name in _STRING_METHODS:
            return getattr(traced(text, runs_of(text)), name)
        if name in ("format", "format_map"):
            return _closed(self._format, text, name == "format_map")
        if name in _SEARCHES:
            return _closed(_search, getattr(text, name))
        if name in _SPLITS and type(text) is str and len(text) > SMALL:
            return _closed(_split, getattr(text, name))
        if name == "encode":
            return _closed(_coded, text.encode)
        return super().getattr(text, name)

    def _markup_attribute(self, text: Markup, name: str) -> Any:
        """The methods of escaped text, which escape what they are given and then have the bounds of
        those of plain text."""
        method = super().getattr(marked_safe(text), name)
        if name in ("format", "format_map"):
            return _closed(_markup_format, text, method)
        if name == "join":
            return _closed(_markup_join, text)
        if name == "encode" or name in _SEARCHES:
            return _closed(_bounded, self._string_attribute(str(text), name), method)
        return method

    def _format(self, text: str, is_map: bool, *args: Any, **kwargs: Any) -> str:
        name = "format_map" if is_map else "format"
        native = super().getattr(str.__str__(text), name)
        values = args[0] if is_map and args else kwargs
        return formatted(text, () if is_map else args, values, lambda: str(native(*args, **kwargs)))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, (bytes, int, float)) and attr not in _SCALAR_METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: B902, N805
        tick()
        if not isinstance(__obj, Macro):
            _charge_call(__obj, (*args, *kwargs.values()) if kwargs else args)
        return sized(super().call(__context, __obj, *args, **kwargs))

    def call_filter(self, name: str, *args: Any, **kwargs: Any) -> Any:
        tick()
        return sized(super().call_filter(key(name), *args, **kwargs))

    def call_test(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return super().call_test(key(name), *args, **kwargs)


def _charge_call(function: Any, values: Sequence[Any]) -> None:
    """Bounds for a call: what it is given, and what it is a method of, it may have to walk over."""
    size = 0
    for value in values:
        if isinstance(value, str):
            size += len(value)
        else:
            check_expanded(value)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, str):
        size += len(owner)
    elif isinstance(owner, (list, tuple)) and values:
        # `count` and `index` compare with each item.
        size += min(len(owner) * expanded(values[0], {})[0], expanded(owner, {})[0])
    if size > SMALL:
        charge(size)


def _closed(function: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """`functools.partial`, which would show a template what it calls."""
    return lambda *args, **kwargs: function(*first, *args, **kwargs)


def _bounded(checked: Callable[..., Any], method: Callable[..., Any], *args: Any) -> Any:
    """`method`, if `checked` does the same without an error of a bound."""
    checked(*args)
    return method(*args)


def _markup_join(text: Markup, parts: Any) -> Markup:
    parts = listed(parts)
    check_expanded(parts)
    check_size(len(text) * len(parts))
    return text.join(parts)


def _markup_format(text: Markup, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    check_format(text, (*args, *kwargs.values()))
    return method(*args, **kwargs)


def _split(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`split`, `rsplit` and `splitlines` of long texts."""
    own: str = method.__self__  # type: ignore[attr-defined]
    if method.__name__ == "splitlines":
        check_split(own, LINES)
    else:
        separator = kwargs.get("sep", args[0] if args else None)
        most = kwargs.get("maxsplit", args[1] if len(args) > 1 else -1)
        if isinstance(most, int) and isinstance(separator, (str, type(None))):
            check_split(own, separator, most)
    return method(*args, **kwargs)


def _search(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A method of str whose worst time is the product of the lengths."""
    own: str = method.__self__  # type: ignore[attr-defined]
    charge(len(own))
    for text in (*args, *kwargs.values()):
        if isinstance(text, str):
            check_product(len(own), len(text))
    return method(*args, **kwargs)


def _coded(method: Callable[..., Any], encoding: str = "utf-8", errors: str = "strict") -> Any:
    """`encode` or `decode`, without the codecs whose time is more than linear."""
    name = codecs.lookup(encoding).name
    if name not in _CODECS:
        raise SecurityError(f"a template may not use the codec {name!r}")
    return method(encoding, errors)
