"""Compiles templates to Python with trusted literals and the operators of `language`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators
from jinja2.utils import concat as jinja_concat

from .taint import Traced, trusted

__all__ = [
    "DICT_METHODS",
    "LOOP_ATTRIBUTES",
    "OUTPUT_PIECES",
    "OUTPUT_SUMMANDS",
    "TracingGenerator",
]

#: Tags of output tuples, for values whose text is concatenated and for summands to add first.
OUTPUT_PIECES, OUTPUT_SUMMANDS = object(), object()

# Approximate number of bytes that an expression produces per execution of its block.
_NODE = 16
#: Names after a dot that are not keys.
DICT_METHODS = frozenset(dir(dict))
#: String and dict methods that are called natively.
_NATIVE_METHODS = frozenset(
    ["endswith", "get", "items", "lstrip", "rstrip", "split", "startswith", "strip"]
)
#: Loop attributes that a template can read.
LOOP_ATTRIBUTES = frozenset(["first", "index", "index0", "last", "length", "revindex", "revindex0"])


class TracingGenerator(CodeGenerator):
    """A code generator with trusted string literals and the operators of `language`."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.constants: dict[str, Traced] = {}
        #: Whether output can remain in parts. False where the output is read again.
        self.splits_output = True
        # Functions applied to the results of expressions, by expression id.
        self._given_to: dict[int, str] = {}
        # Loop targets by the id of the body, and variables of the enclosing loops.
        self._loops: dict[int, str] = {}
        self._turns = ["0"]

    def _constant(self, text: str) -> str:
        """Returns the module-level name of the trusted `text`."""
        name = f"traced_{len(self.constants)}"
        self.constants[name] = trusted(text)
        return name

    # ---- Limits ----

    def write_commons(self) -> None:
        """Emits the start of the function for the template or for a block."""
        super().write_commons()
        self.writeline("traced_limits = traced_active.limits")
        self.writeline("traced_labels = traced_values.labels")
        for name in ("attribute", "item", "opened", "turn"):
            self.writeline(f"traced_{name} = traced_labels.{name}")

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        """Compiles a block, such as the body of a loop or a macro."""
        target = self._loops.pop(id(nodes), None)
        nodes = list(nodes)
        if target is not None:
            # The text after this call may belong to a message.
            turn = f"turn_{len(self._turns)}"
            item = frame.symbols.ref(target)
            self.writeline(f"{turn} = traced_turn({item}, {self._turns[-1]})")
            self.writeline(f"yield {turn}")
            self._turns.append(turn)
        if not frame.soft_frame:
            # As in `limits.use`. The branches of a condition count toward the enclosing block.
            cost = _cost_of(nodes)
            self.writeline(f"traced_limits.room -= {cost}")
            self.writeline("if traced_limits.room < traced_limits.next_look:")
            self.indent()
            self.writeline(f"traced_limits.check({cost})")
            self.outdent()
        super().blockvisit(nodes, frame)
        if target is not None:
            self._turns.pop()

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        function = self._given_to.pop(id(node), None)
        if function is not None:
            self.write(f"{function}(")
            super().visit(node, *args, **kwargs)
            self.write(")")
        else:
            super().visit(node, *args, **kwargs)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        if node.test is not None:
            # The filter reads the items without entering a block.
            self._given_to[id(node.test)] = "traced_guarded"
        is_unpacked = isinstance(node.target, nodes.Tuple)
        self._given_to[id(node.iter)] = "traced_each" if is_unpacked else "traced_opened"
        # A loop without output does not separate text, even inside a turn.
        is_output = self._is_output(frame) and not node.recursive
        is_output = is_output and (len(self._turns) == 1 or _writes(node))
        if is_output and isinstance(node.target, nodes.Name):
            self._loops[id(node.body)] = node.target.name
        super().visit_For(node, frame)
        if is_output:
            self.writeline(f"yield {self._turns[-1]}")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        for pair in node.items:
            if not isinstance(pair.key, nodes.Const):
                self._given_to[id(pair.key)] = "traced_guarded"
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
        """Compiles an expression used only in lookups or comparisons."""
        if _is_literal(node):
            self.write(repr(node.as_const(frame.eval_ctx)))
        else:
            self.visit(node, frame)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        name = node.attr
        if isinstance(node.node, nodes.Name) and node.node.name == "loop":
            if name in LOOP_ATTRIBUTES:
                loop = self.temporary_identifier()
                self.write(f"({loop}.{name} if type({loop} := ")
                self.visit(node.node, frame)
                self.write(f") is LoopContext else environment.getattr({loop}, {name!r}))")
                return
        if name in DICT_METHODS:
            super().visit_Getattr(node, frame)
            return
        self.write("traced_attribute(")
        self.visit(node.node, frame)
        self.write(f", {name!r})")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if isinstance(node.arg, nodes.Slice):
            self.write("traced_counted(")
            self._given_to[id(node.node)] = "traced_opened"
            super().visit_Getitem(node, frame)
            self.write(")")
            return
        self.write("traced_item(")
        self.visit(node.node, frame)
        self.write(", ")
        self._visit_plain(node.arg, frame)
        self.write(")")

    def visit_Assign(self, node: nodes.Assign, frame: Frame) -> None:
        if isinstance(node.target, nodes.Tuple):
            self._given_to[id(node.node)] = "traced_opened"
        super().visit_Assign(node, frame)

    def signature(self, node: Any, *args: Any, **kwargs: Any) -> None:
        for values in (node.dyn_args, node.dyn_kwargs):
            if values is not None:
                self._given_to[id(values)] = "traced_opened"
        super().signature(node, *args, **kwargs)

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        method = node.node
        has_more = node.kwargs or node.dyn_args or node.dyn_kwargs or forward_caller
        if isinstance(method, nodes.Getattr) and method.attr in _NATIVE_METHODS and not has_more:
            self.write("traced_method(traced_labels, traced_limits, context, ")
            self.visit(method.node, frame)
            self.write(f", {method.attr!r}, ")
            self._tuple(node.args, frame)
            self.write(")")
            return
        # No callable available to templates takes the variables of loops and blocks.
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
        literal = sides[0].value if isinstance(sides[0], nodes.Const) else None
        if len(sides) == 2 and first in ("in", "notin") and isinstance(literal, str):
            name, right = repr(literal), self.temporary_identifier()
            self.write(f"({name} {operators[first]} {right} if type({right} := ")
            self._visit_plain(sides[1], frame)
            self.write(f") is dict else traced_{first}({name}, {right}))")
            return
        # `a < b < c` is `a < b and b < c`, but evaluates b only once.
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
        self.write("traced_add(")
        self._tuple(_summands(node), frame)
        self.write(")")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        if _escapes(frame):
            self._given_to.update(dict.fromkeys(map(id, node.nodes), "traced_guarded"))
            super().visit_Concat(node, frame)
            return
        self.write("traced_join(")
        self._tuple(node.nodes, frame)
        self.write(")")

    # ---- Output ----

    def _is_output(self, frame: Frame) -> bool:
        """Returns whether the output goes to `collect_segments`, which accepts unjoined parts."""
        return self.splits_output and frame.buffer is None

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:
        if not self._is_output(frame) or _escapes(frame):
            super().visit_Output(node, frame)
            return
        finalize = self._make_finalize()
        parts: list[nodes.Expr | str] = []
        for child in node.nodes:
            try:
                const = self._output_child_to_const(child, frame, finalize)
            except nodes.Impossible:
                parts.append(child)
                continue
            if parts and isinstance(parts[-1], str):
                parts[-1] += const
            else:
                parts.append(const)
        self.writeline("yield ", node)
        self._visit_parts("traced_pieces", parts, frame)

    def _visit_parts(self, kind: str, parts: Sequence[nodes.Expr | str], frame: Frame) -> None:
        """Compiles output parts to a tuple that begins with their tag."""
        self.write(f"({kind}, ")
        for part in parts:
            if isinstance(part, str):
                self.write(self._constant(part))
            elif kind == "traced_pieces" and isinstance(part, nodes.Add):
                self._visit_parts("traced_summands", _summands(part), frame)
            elif kind == "traced_pieces" and isinstance(part, nodes.Concat):
                self._visit_parts(kind, part.nodes, frame)
            else:
                self.visit(part, frame)
            self.write(", ")
        self.write(")")

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if _escapes(frame) or not isinstance(node, (nodes.TemplateData, nodes.Const)):
            raise nodes.Impossible()
        return super()._output_child_to_const(node, frame, finalize)

    def _output_const_repr(self, group: Any) -> str:
        return self._constant(jinja_concat(group))

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if _escapes(frame):
            self._given_to[id(node)] = "traced_guarded"
            super()._output_child_pre(node, frame, finalize)
        else:
            self.write("traced_text(")


def _writes(node: nodes.Node) -> bool:
    """Returns whether a node contains nodes that may write output."""
    kinds = (nodes.Output, nodes.CallBlock, nodes.FilterBlock, nodes.Block, nodes.Include)
    return next(node.find_all(kinds), None) is not None


def _cost_of(body: Sequence[nodes.Node]) -> int:
    return _NODE * (1 + sum(1 for node in body for _ in (node, *node.find_all(nodes.Node))))


def _is_quick(operator: str, left: nodes.Expr, right: nodes.Expr) -> bool:
    """Returns whether a literal makes a comparison cheap."""
    return _is_literal(right) or (operator not in ("in", "notin") and _is_literal(left))


def _is_literal(node: nodes.Node) -> bool:
    if isinstance(node, (nodes.List, nodes.Tuple)):
        return all(map(_is_literal, node.items))
    return isinstance(node, nodes.Const)


def _escapes(frame: Frame) -> bool:
    """Returns whether text may be escaped here. Jinja's own escaping loses the origin."""
    return bool(frame.eval_ctx.autoescape or frame.eval_ctx.volatile)


def _summands(node: nodes.Expr) -> list[nodes.Expr]:
    """Returns the operands a, b and c of ``a + b + c``."""
    if isinstance(node, nodes.Add):
        return [*_summands(node.left), node.right]
    return [node]
