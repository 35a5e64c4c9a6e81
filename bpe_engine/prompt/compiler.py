"""Templates into Python: literals are trusted, and operators those of `language`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.utils import concat as jinja_concat

from .origin import Traced, trusted

__all__ = ["TracingGenerator"]


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
        self._escaped: set[int] = set()
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
        elif id(node) in self._escaped:
            self._escaped.remove(id(node))
            self.write("traced_bounded(")
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
            self._escaped.update(map(id, node.nodes))
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
            self._escaped.add(id(node))
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
