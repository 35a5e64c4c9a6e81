"""Jinja's sandbox with strings that keep their origin: what templates are compiled with."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import loopcontrols
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import concat as jinja_concat
from markupsafe import Markup

from .filters import guarded_tests, string_filters
from .formatting import check_format, formatted
from .language import (
    COMPARISONS,
    GenerationBlocks,
    TemplateDict,
    TemplateNamespace,
    add,
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
from .origin import LINES, Traced, check_split, concat, runs_of, text_of, traced, trusted

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
        """The methods of escaped text are Markup's own, with the bounds of those of plain text."""
        method = super().getattr(text, name)
        if name in ("format", "format_map"):
            return _closed(_markup_format, text, method)
        if name == "join":
            return _closed(_markup_join, text)
        if name == "encode" or name in _STRING_METHODS | _SEARCHES | _SPLITS:
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

    def call_filter(self, *args: Any, **kwargs: Any) -> Any:
        tick()
        return sized(super().call_filter(*args, **kwargs))


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


class TracingGenerator(CodeGenerator):
    """Compiles templates: literal strings become trusted ones, operators those of this module."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.constants: dict[str, Traced] = {}
        #: Whether what is output may be left in parts: not where it is asked for again.
        self.splits_output = True
        #: Whether even a template without loops may take long.
        self.has_many_statements = False
        self._iterables: set[int] = set()
        self._outputs: set[int] = set()

    def _constant(self, text: str) -> str:
        """The name under which the module has the trusted `text`."""
        name = f"traced_{len(self.constants)}"
        self.constants[name] = trusted(text)
        return name

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        if id(node) in self._iterables:
            self._iterables.remove(id(node))
            self.write("traced_loop(")
            super().visit(node, *args, **kwargs)
            self.write(")")
        else:
            super().visit(node, *args, **kwargs)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        self._iterables.add(id(node.iter))
        super().visit_For(node, frame)

    def visit_If(self, node: nodes.If, frame: Frame) -> None:
        if self.has_many_statements:
            self.writeline("traced_tick()")
        super().visit_If(node, frame)

    # ---- Literals ----

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, str):
            self.write(self._constant(node.value))
        else:
            super().visit_Const(node, frame)

    def visit_TemplateData(self, node: nodes.TemplateData, frame: Frame) -> None:
        if _escapes(frame):
            super().visit_TemplateData(node, frame)
        else:
            self.write(self._constant(node.data))

    def _visit_plain(self, node: nodes.Expr, frame: Frame) -> None:
        """For a literal that is only looked up or compared."""
        if isinstance(node, nodes.Const):
            super().visit_Const(node, frame)
        else:
            self.visit(node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if isinstance(node.arg, nodes.Slice):
            self.write("traced_sized(")
            super().visit_Getitem(node, frame)
            self.write(")")
            return
        self.write("environment.getitem(")
        self.visit(node.node, frame)
        self.write(", ")
        self._visit_plain(node.arg, frame)
        self.write(")")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        op = node.ops[0].op
        if len(sides) == 2 and not (
            op not in ("in", "notin") and any(isinstance(side, nodes.Const) for side in sides)
        ):
            self._compare(f"traced_{op}", sides, frame)
            return
        # To compare with a literal takes no time.
        is_harmless = len(sides) == 2
        self.write("(")
        for place, side in enumerate(sides):
            self.write(f" {_OPERATORS[node.ops[place - 1].op]} " if place else "")
            self.write("" if is_harmless else "traced_compared(")
            self._visit_plain(side, frame)
            self.write("" if is_harmless else ")")
        self.write(")")

    def _compare(self, function: str, sides: list[nodes.Expr], frame: Frame) -> None:
        self.write(f"{function}(")
        for side in sides:
            self._visit_plain(side, frame)
            self.write(", ")
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self.write("{")
        for pair in node.items:
            if isinstance(pair.key, nodes.Const):
                self.visit(pair.key, frame)
            else:
                self.write("traced_key(")
                self.visit(pair.key, frame)
                self.write(")")
            self.write(": ")
            self.visit(pair.value, frame)
            self.write(", ")
        self.write("}")

    def visit_Filter(self, node: nodes.Filter, frame: Frame) -> None:
        self.write("traced_sized(")
        super().visit_Filter(node, frame)
        self.write(")")

    # ---- Operators ----

    def _tuple(self, values: Sequence[nodes.Expr], frame: Frame) -> None:
        self.write("(")
        for value in values:
            self.visit(value, frame)
            self.write(", ")
        self.write(")")

    def _call(self, function: str, node: nodes.BinExpr, frame: Frame) -> None:
        self.write(f"{function}(")
        self.visit(node.left, frame)
        self.write(", ")
        self.visit(node.right, frame)
        self.write(")")

    def visit_Add(self, node: nodes.BinExpr, frame: Frame) -> None:
        if id(node) in self._outputs:
            # What is only output need not be put together.
            self._outputs.remove(id(node))
            self._tuple(_summands(node), frame)
            return
        self.write("traced_add(")
        self._tuple(_summands(node), frame)
        self.write(")")

    def visit_Mul(self, node: nodes.BinExpr, frame: Frame) -> None:
        self._call("traced_mul", node, frame)

    def visit_Mod(self, node: nodes.BinExpr, frame: Frame) -> None:
        self._call("traced_mod", node, frame)

    def visit_Sub(self, node: nodes.BinExpr, frame: Frame) -> None:
        self._call("traced_sub", node, frame)

    def visit_Pow(self, node: nodes.BinExpr, frame: Frame) -> None:
        self._call("traced_pow", node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        if _escapes(frame):
            super().visit_Concat(node, frame)
            return
        self.write("traced_join(")
        self._tuple(node.nodes, frame)
        self.write(")")

    # ---- Output ----

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if _escapes(frame) or not isinstance(node, (nodes.TemplateData, nodes.Const)):
            raise nodes.Impossible()
        return super()._output_child_to_const(node, frame, finalize)

    def _output_const_repr(self, group: Any) -> str:
        return self._constant(jinja_concat(group))

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if _escapes(frame):
            super()._output_child_pre(node, frame, finalize)
        elif self.splits_output and frame.buffer is None and isinstance(node, nodes.Add):
            self._outputs.add(id(node))
            self.write("(")
        else:
            self.write("traced_text(")


_OPERATORS = {
    "eq": "==",
    "ne": "!=",
    "gt": ">",
    "gteq": ">=",
    "lt": "<",
    "lteq": "<=",
    "in": "in",
    "notin": "not in",
}


def _escapes(frame: Frame) -> bool:
    """Whether text may be escaped there, which is Jinja's own affair and loses the origin."""
    return bool(frame.eval_ctx.autoescape or frame.eval_ctx.volatile)


def _summands(node: nodes.Expr) -> list[nodes.Expr]:
    """a, b and c of ``a + b + c``."""
    if isinstance(node, nodes.Add):
        return [*_summands(node.left), node.right]
    return [node]
