"""Compiles templates to Python: literals are trusted, and operators are those of `language`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators
from jinja2.utils import concat as jinja_concat

from .origin import Traced, trusted

__all__ = ["TracingGenerator"]

# Bytes that an expression makes, roughly, each time its block is entered.
_NODE = 16


class TracingGenerator(CodeGenerator):
    """Compiles templates: literal strings become trusted ones, operators those of `language`."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.constants: dict[str, Traced] = {}
        #: Whether output may be left in parts, which it may not where it is asked for again.
        self.splits_output = True
        self._guarded: set[int] = set()
        self._outputs: set[int] = set()
        # The targets of loops, by the id of their body, and the variables of those around.
        self._loops: dict[int, str] = {}
        self._turns = ["0"]

    def _constant(self, text: str) -> str:
        """Returns the name that the trusted `text` has in the module."""
        name = f"traced_{len(self.constants)}"
        self.constants[name] = trusted(text)
        return name

    # ---- Limits ----

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        """Compiles a block, such as the body of a loop or a macro."""
        target = self._loops.pop(id(nodes), None)
        nodes = list(nodes)
        if target is not None:
            # The text from here on may belong to a message.
            turn = f"turn_{len(self._turns)}"
            item = frame.symbols.ref(target)
            self.writeline(f"{turn} = traced_turn({item}, {self._turns[-1]})")
            self.writeline(f"yield {turn}")
            self._turns.append(turn)
        if not frame.soft_frame:
            # What a condition chooses counts with the block around it.
            self.writeline(f"traced_use({_NODE * (1 + sum(map(_count, nodes)))})")
        super().blockvisit(nodes, frame)
        if target is not None:
            self._turns.pop()

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        if id(node) in self._guarded:
            self._guarded.remove(id(node))
            self.write("traced_guarded(")
            super().visit(node, *args, **kwargs)
            self.write(")")
        else:
            super().visit(node, *args, **kwargs)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        if node.test is not None:
            # It is asked for items for which no block is entered.
            self._guarded.add(id(node.test))
        is_output = self.splits_output and frame.buffer is None and not node.recursive
        if is_output and isinstance(node.target, nodes.Name):
            self._loops[id(node.body)] = node.target.name
        super().visit_For(node, frame)
        if is_output:
            self.writeline(f"yield {self._turns[-1]}")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self._guarded.update(
            id(pair.key) for pair in node.items if not isinstance(pair.key, nodes.Const)
        )
        super().visit_Dict(node, frame)

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
        """Compiles an expression that is only looked up or compared."""
        if _is_literal(node):
            self.write(repr(node.as_const(frame.eval_ctx)))
        else:
            self.visit(node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if isinstance(node.arg, nodes.Slice):
            self.write("traced_counted(")
            super().visit_Getitem(node, frame)
            self.write(")")
            return
        self.write("environment.getitem(")
        self.visit(node.node, frame)
        self.write(", ")
        self._visit_plain(node.arg, frame)
        self.write(")")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        # Nothing that a template can call takes the variables of loops and blocks.
        frame = frame.copy()
        frame.loop_frame = frame.block_frame = False
        super().visit_Call(node, frame, forward_caller=forward_caller)

    # ---- Operators ----

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        first = node.ops[0].op
        if len(sides) == 2 and _is_quick(first, *sides):
            self.write("(")
            self._visit_plain(sides[0], frame)
            self.write(f" {operators[first]} ")
            self._visit_plain(sides[1], frame)
            self.write(")")
            return
        # `a < b < c` is `a < b and b < c`, but asks for b only once.
        self.write("(")
        left = ""
        for place, operand in enumerate(node.ops):
            self.write(f"{' and ' if place else ''}traced_{operand.op}({left}")
            if place == 0:
                self._visit_plain(node.expr, frame)
            self.write(", ")
            is_last = place == len(node.ops) - 1
            left = "" if is_last else self.temporary_identifier()
            self.write("" if is_last else f"({left} := ")
            self._visit_plain(operand.expr, frame)
            self.write(")" if is_last else "))")
        self.write(")")

    def _tuple(self, values: Sequence[nodes.Expr], frame: Frame) -> None:
        self.write("(")
        for value in values:
            self.visit(value, frame)
            self.write(", ")
        self.write(")")

    def visit_Add(self, node: nodes.BinExpr, frame: Frame) -> None:
        if id(node) in self._outputs:
            # Output need not be put together.
            self._outputs.remove(id(node))
            self._tuple(_summands(node), frame)
            return
        self.write("traced_add(")
        self._tuple(_summands(node), frame)
        self.write(")")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        if _escapes(frame):
            self._guarded.update(map(id, node.nodes))
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
            self._guarded.add(id(node))
            super()._output_child_pre(node, frame, finalize)
        elif self.splits_output and frame.buffer is None and isinstance(node, nodes.Add):
            self._outputs.add(id(node))
            self.write("(")
        else:
            self.write("traced_text(")


def _count(node: nodes.Node) -> int:
    return 1 + sum(1 for _ in node.find_all(nodes.Node))


def _is_quick(operator: str, left: nodes.Expr, right: nodes.Expr) -> bool:
    """Whether a literal keeps a comparison quick."""
    return _is_literal(right) or (operator not in ("in", "notin") and _is_literal(left))


def _is_literal(node: nodes.Node) -> bool:
    if isinstance(node, (nodes.List, nodes.Tuple)):
        return all(map(_is_literal, node.items))
    return isinstance(node, nodes.Const)


def _escapes(frame: Frame) -> bool:
    """Whether text may be escaped there, which Jinja does itself and which loses the origin."""
    return bool(frame.eval_ctx.autoescape or frame.eval_ctx.volatile)


def _summands(node: nodes.Expr) -> list[nodes.Expr]:
    """Returns a, b and c for ``a + b + c``."""
    if isinstance(node, nodes.Add):
        return [*_summands(node.left), node.right]
    return [node]
