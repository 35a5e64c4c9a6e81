"""Finds what the turns of a template's loops over messages read and write.

A turn reads its message, and from outside variables, attributes of namespaces and those of the
loop. What it only tests is known by the outcome: ``loop.index0 > ns.last`` stays false for an old
message although both sides change. A turn that finds the same values and outcomes writes the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from jinja2 import nodes
from jinja2.runtime import Undefined

from .origin import Scalar, Traced

__all__ = ["MISSING", "Plan", "Prevented", "TurnReader", "Unknown"]

#: Attributes of a loop as Python, by the index `i`, the length `n` and the `items`.
_LOOP = {
    "first": "(i == 0)",
    "index": "(i + 1)",
    "index0": "i",
    "last": "(i + 1 == n)",
    "length": "n",
    "nextitem": "(items[i + 1] if i + 1 < n else MISSING)",
    "previtem": "(items[i - 1] if i else MISSING)",
    "revindex": "(n - i)",
    "revindex0": "(n - i - 1)",
}
_NUMBERS = ("index", "index0", "length", "revindex", "revindex0")
_DICT_METHODS = frozenset(dir(dict))
_COMPARISONS = {"eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<="}
_ARITHMETIC = {nodes.Add: "+", nodes.Sub: "-", nodes.Mul: "*"}
_SCALARS = frozenset([int, float, bool, type(None)])
_TESTS = {
    "defined": "not is_missing({})",
    "mapping": "isinstance({}, dict)",
    "none": "is_none({})",
    "string": "isinstance({}, str)",
    "undefined": "is_missing({})",
}
#: Functions that give the same for the same, and change nothing.
_FUNCTIONS = frozenset(["dict", "namespace", "raise_exception", "range"])
#: Nodes whose parts are all that they read.
_COMPOSED = (
    *(nodes.Output, nodes.ExprStmt, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Slice),
    *(nodes.Concat, nodes.BinExpr, nodes.UnaryExpr, nodes.Compare, nodes.Operand, nodes.Keyword),
    *(nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Test, nodes.Scope, nodes.FilterBlock),
    *(nodes.If, nodes.CondExpr),
)
_NOTHING = (nodes.Const, nodes.TemplateData, nodes.Continue, nodes.Break)


class Prevented(Exception):  # noqa: N818 - it is returned, too
    """The reason for which turns cannot be known by what they read, and its line."""

    def __init__(self, line: int, reason: str):
        super().__init__(reason)
        self.line = line
        self.reason = reason


class _NoTest(Exception):  # noqa: N818
    """An expression that may call something, or depends on what the turn itself has set."""


class Unknown(Exception):  # noqa: N818
    """A value whose test cannot be computed beforehand."""


class _Fails(Exception):  # noqa: N818
    """The template would raise an error here."""


class _Missing:
    """The value of what is not defined, in tests."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"


#: The value of what is not defined, in tests.
MISSING = _Missing()
_FAILS = object()


class Plan:
    """The reads of the turns of one loop from outside, and their writes there."""

    def __init__(self) -> None:
        #: The variables from outside, by the places of their values.
        self.names: list[str] = []
        #: The places of those whose values count, of functions, macros and namespaces.
        self.values: set[int] = set()
        self.functions: set[int] = set()
        self.macros: set[int] = set()
        self.spaces: set[int] = set()
        #: Attributes of namespaces that are read, and that are only written.
        self.read: list[tuple[int, str]] = []
        self.only_written: list[tuple[int, str]] = []
        #: A loop in each turn that only asks whether a message after it passes a test, and what
        #: it costs for each.
        self.scan: nodes.For | None = None
        self.scan_cost = 0
        self.source = ""

    def place(self, name: str) -> int:
        """Returns the place of the value of a variable."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    @cached_property
    def tests(self) -> Callable[..., tuple[Any, Any, tuple[Any, ...]]]:
        """Prepares the tests of a rendering, by the values of the variables, the messages, their
        number, and a function that returns the numbers of messages. Returns a function that tests a
        turn, one that tests turns, and the outcomes that all turns have; None where each turn has
        the same."""
        room = dict(_HELPERS)
        exec(compile(self.source, "<turns>", "exec"), room)
        return room["prepared"]  # type: ignore[no-any-return]


class _Scope:
    """The names that mean something of the turn itself."""

    def __init__(
        self,
        own: frozenset[str],
        item: str | None,
        has_loop: bool,
        bound: frozenset[str] = frozenset(),
    ):
        #: Names that the turn may set, and those that it has always set.
        self.own = own | bound
        self.bound = bound
        self.item = item
        #: Whether `loop` is the loop of the turns.
        self.has_loop = has_loop

    def inner(self, names: Iterable[str], is_loop: bool = False) -> _Scope:
        """Returns the scope inside, where these names are others."""
        bound = self.bound.union(names, ("loop",) if is_loop else ())
        item = None if self.item in bound else self.item
        return _Scope(self.own, item, self.has_loop and not is_loop, bound)


class TurnReader:
    """Reads the loops of a template."""

    def __init__(self, tree: nodes.Template):
        self.macros: dict[str, nodes.Macro] = {}
        self.spaces: set[str] = set()
        #: Variables that hold the messages, or some of them.
        self.lists: set[str] = {"messages"}
        stores: dict[str, int] = {}
        for node in _outer(tree.body):
            if isinstance(node, nodes.Macro):
                self.macros[node.name] = node
                stores[node.name] = stores.get(node.name, 0) + 1
            elif isinstance(node, nodes.Assign):
                for name in _stored([node]):
                    is_space = _is_call(node.node, "namespace") and type(node.target) is nodes.Name
                    if is_space:
                        self.spaces.add(name)
                    stores[name] = stores.get(name, 0) + (1 if not is_space else 1 << 16)
                    if type(node.target) is nodes.Name and self.is_list(node.node):
                        self.lists.add(name)
            else:
                for name in _stored([node]):
                    stores[name] = stores.get(name, 0) + 1
        # Names that have more than one meaning do not count.
        self.macros = {name: macro for name, macro in self.macros.items() if stores[name] == 1}
        self.spaces = {name for name in self.spaces if stores[name] % (1 << 16) == 0}

    def is_list(self, node: nodes.Node | None) -> bool:
        """Whether an expression is a list of messages."""
        if isinstance(node, nodes.Name):
            return node.name in self.lists
        if isinstance(node, nodes.Getitem):
            return isinstance(node.arg, nodes.Slice) and self.is_list(node.node)
        if isinstance(node, nodes.CondExpr):
            return self.is_list(node.expr1) or self.is_list(node.expr2)
        if isinstance(node, nodes.Filter):
            kept = ("list", "rejectattr", "reverse", "selectattr")
            return node.name in kept and self.is_list(node.node)
        return False

    def plan(self, loop: nodes.For) -> Plan:
        """Returns what the turns of a loop read and write.

        Raises:
            Prevented: It cannot be known.
        """
        if loop.test is not None or loop.recursive or not isinstance(loop.target, nodes.Name):
            raise Prevented(loop.lineno, "the loop is filtered, recursive or takes items apart")
        if loop.else_:
            raise Prevented(loop.lineno, "the loop has an else")
        return _Reading(self, loop).plan


class _Reading:
    """Reads one loop."""

    def __init__(self, reader: TurnReader, loop: nodes.For):
        self.reader = reader
        self.loop = loop
        self.plan = Plan()
        self._written: set[tuple[str, str]] = set()
        self._read: set[tuple[str, str]] = set()
        self._known_macros: set[str] = set()
        # Whether it is a test, its expression, and whether it differs between turns.
        self._tests: dict[tuple[bool, str], bool] = {}
        self._used: set[str] = set()
        # Expressions that are numbers, or raise.
        self._numbers = {_LOOP[name] for name in _NUMBERS}
        stored = frozenset(_stored(loop.body))
        self._find_writes(loop.body, stored, set())
        target = loop.target.name  # type: ignore[attr-defined]
        if target in stored:
            raise Prevented(loop.lineno, f"the loop sets its own variable {target}")
        self._walk_all(loop.body, _Scope(stored, target, has_loop=True))
        read = sorted(self._read)
        self.plan.read = [(self.plan.place(name), attribute) for name, attribute in read]
        only = sorted(self._written - self._read)
        self.plan.only_written = [(self.plan.place(name), attribute) for name, attribute in only]
        self.plan.source = self._source_of_tests()

    # ---- What is written ----

    def _find_writes(
        self, body: Sequence[nodes.Node], own: frozenset[str], known: set[str]
    ) -> None:
        """Notes the attributes of namespaces that are written, also by macros."""
        for node in _all(body):
            if isinstance(node, nodes.NSRef) and node.name not in own:
                if node.name not in self.reader.spaces:
                    raise Prevented(node.lineno, f"{node.name} may be any namespace")
                self._written.add((node.name, node.attr))
            if isinstance(node, nodes.Macro):
                raise Prevented(node.lineno, "a macro is defined in the loop")
            if isinstance(node, nodes.Name) and node.name in self.reader.macros:
                if node.name not in known and node.name not in own:
                    known.add(node.name)
                    macro = self.reader.macros[node.name]
                    own = frozenset(_stored([*macro.args, *macro.body]))
                    self._find_writes(macro.body, own, known)

    # ---- What is read ----

    def _walk_all(self, parts: Iterable[nodes.Node | None], scope: _Scope) -> None:
        for part in parts:
            if part is None:
                continue
            self._walk(part, scope)
            if isinstance(part, (nodes.Assign, nodes.AssignBlock)):
                # What is set here is never that from outside from here on.
                scope = scope.inner(_stored([part.target]))

    def _walk(self, node: nodes.Node, scope: _Scope, is_test: bool = False) -> None:
        if isinstance(node, _NOTHING):
            return
        if isinstance(node, nodes.Name):
            if not (is_test and self.reader.is_list(node) and self._is_hoisted(node, scope, True)):
                self._name(node, scope)
        elif isinstance(node, (nodes.And, nodes.Or, nodes.Not)):
            # What asks for the message itself is asked again anyway, so parts of it say more.
            is_one = is_test and not isinstance(node, nodes.Not)
            if is_one and self._note_test(node, scope, is_test, without_item=True):
                return
            is_test = is_test or isinstance(node, nodes.Not)
            for part in node.iter_child_nodes():
                self._walk(part, scope, is_test)
        elif isinstance(node, nodes.CondExpr):
            self._walk(node.test, scope, is_test=True)
            self._walk(node.expr1, scope, is_test)
            if node.expr2 is not None:
                self._walk(node.expr2, scope, is_test)
        elif isinstance(node, nodes.If):
            self._walk(node.test, scope, is_test=True)
            for body in (node.body, node.elif_, node.else_):
                self._walk_all(body, scope)
        elif isinstance(node, nodes.For):
            self._inner_loop(node, scope)
        elif isinstance(node, (nodes.Assign, nodes.AssignBlock)):
            self._assignment(node, scope)
        elif isinstance(node, nodes.With):
            self._walk_all(node.values, scope)
            self._walk_all(node.body, scope.inner(_stored(node.targets)))
        elif isinstance(node, nodes.CallBlock):
            self._walk(node.call, scope)
            self._walk_all((*node.defaults, *node.body), scope.inner(a.name for a in node.args))
        elif isinstance(node, nodes.Call):
            self._call(node, scope)
        elif self._is_hoisted(node, scope, is_test):
            return
        elif isinstance(node, _COMPOSED):
            self._composed(node, scope)
        else:
            raise Prevented(node.lineno, f"the loop has {type(node).__name__.lower()}")

    def _name(self, node: nodes.Name, scope: _Scope) -> None:
        name = node.name
        if name == scope.item or name in scope.bound:
            return
        if name == "loop" and scope.has_loop:
            raise Prevented(node.lineno, "the loop is handed over")
        if name in scope.own:
            # Where it is not set, it is that from outside.
            self.plan.values.add(self.plan.place(name))
            return
        if name in self.reader.spaces:
            raise Prevented(node.lineno, f"the namespace {name} is handed over")
        if name in self.reader.lists:
            raise Prevented(node.lineno, f"the turns depend on all of {name}")
        self.plan.values.add(self.plan.place(name))

    def _inner_loop(self, node: nodes.For, scope: _Scope) -> None:
        if node.recursive:
            raise Prevented(node.lineno, "a loop is recursive")
        if self._is_scan(node, scope):
            return
        self._walk(node.iter, scope)
        targets = _stored([node.target])
        inner = scope.inner(targets, is_loop=True)
        if node.test is not None:
            self._walk(node.test, inner, is_test=True)
        self._walk_all(node.body, inner)
        self._walk_all(node.else_, scope)

    def _is_scan(self, node: nodes.For, scope: _Scope) -> bool:
        """Notes a loop over the later messages that sets own flags if any of them passes a test."""
        items, target = node.iter, node.target
        if (
            not (isinstance(items, nodes.Getitem) and isinstance(items.arg, nodes.Slice))
            or not (isinstance(items.node, nodes.Name) and self.loop.iter == items.node)
            or not (isinstance(target, nodes.Name) and len(node.body) == 1)
            or node.test is not None
            or node.else_
            or self.plan.scan is not None
        ):
            return False
        (only,), part = node.body, items.arg
        if (
            not isinstance(only, nodes.If)
            or only.elif_
            or only.else_
            or part.stop is not None
            or part.step is not None
            or not isinstance(part.start, nodes.Getattr)
            or not (_is_loop(part.start.node, scope) and part.start.attr == "index")
        ):
            return False
        for each in only.body:
            is_flag = isinstance(each, nodes.Assign) and isinstance(each.target, nodes.NSRef)
            if not is_flag or not isinstance(each.node, nodes.Const):  # type: ignore[attr-defined]
                return False
            if each.target.name not in scope.bound:  # type: ignore[attr-defined]
                return False
        self._used = set()
        try:
            text = self._expression(only.test, _Scope(frozenset(), target.name, False))
        except _NoTest:
            return False
        if self._used - {"item"}:
            return False
        place = self.plan.place(items.node.name)
        self.plan.scan = node
        self._tests[True, f"later(v[{place}], lambda item: {text})(i + 1)"] = True
        return True

    def _assignment(self, node: nodes.Assign | nodes.AssignBlock, scope: _Scope) -> None:
        if isinstance(node, nodes.Assign):
            self._walk(node.node, scope)
        else:
            self._walk_all((*node.body, node.filter), scope)
        for name in _all([node.target]):
            if isinstance(name, nodes.NSRef) and name.name in scope.own:
                self._name(nodes.Name(name.name, "load", lineno=name.lineno), scope)

    def _call(self, node: nodes.Call, scope: _Scope) -> None:
        function = node.node
        self._walk_all((*node.args, *node.kwargs, node.dyn_args, node.dyn_kwargs), scope)
        if isinstance(function, nodes.ExtensionAttribute):
            return
        if isinstance(function, nodes.Getattr):
            if _is_loop(function.node, scope):
                raise Prevented(node.lineno, f"loop.{function.attr} is called")
            self._walk(function.node, scope)
            return
        if not isinstance(function, nodes.Name) or function.name in scope.own:
            self._walk(function, scope)
            return
        name = function.name
        if name in ("caller",):
            return
        if name in self.reader.macros:
            self.plan.macros.add(self.plan.place(name))
            if name not in self._known_macros:
                self._known_macros.add(name)
                macro = self.reader.macros[name]
                bound = frozenset(("caller", "kwargs", "varargs", *_stored(macro.args)))
                scope = _Scope(frozenset(_stored(macro.body)), None, False, bound)
                self._walk_all((*macro.defaults, *macro.body), scope)
        elif name in _FUNCTIONS:
            self.plan.functions.add(self.plan.place(name))
        else:
            raise Prevented(node.lineno, f"{name} is called")

    def _composed(self, node: nodes.Node, scope: _Scope) -> None:
        if isinstance(node, nodes.Getattr) and _is_loop(node.node, scope):
            raise Prevented(node.lineno, f"loop.{node.attr} is read")
        if isinstance(node, (nodes.Getattr, nodes.Getitem)) and isinstance(node.node, nodes.Name):
            name = node.node.name
            if name in self.reader.spaces and name not in scope.own:
                if isinstance(node, nodes.Getitem):
                    raise Prevented(node.lineno, f"items of the namespace {name} are read")
                self.plan.spaces.add(self.plan.place(name))
                self._read.add((name, node.attr))
                return
        if isinstance(node, nodes.Filter):
            names = [
                node.name,
                *(part.value for part in node.args if isinstance(part, nodes.Const)),
            ]
            if "random" in names or (
                node.name in ("map", "select", "selectattr", "reject", "rejectattr")
                and not all(isinstance(part, nodes.Const) for part in node.args)
            ):
                raise Prevented(node.lineno, f"the filter {node.name} may do anything")
        is_base = isinstance(node, (nodes.Getattr, nodes.Getitem))
        for part in node.iter_child_nodes():
            # A part of a message is compared with the message itself.
            if not (is_base and part is node.node and self._is_message(part, scope)):  # type: ignore[attr-defined]
                self._walk(part, scope)

    def _is_message(self, node: nodes.Node, scope: _Scope) -> bool:
        """Whether it is another message, whose identity is noted."""
        is_item = isinstance(node, nodes.Getitem) and self.reader.is_list(node.node)
        is_neighbor = isinstance(node, nodes.Getattr) and _is_loop(node.node, scope)
        return (is_item or is_neighbor) and self._note_test(node, scope, is_test=False)

    def _reads_messages(self, node: nodes.Node, scope: _Scope) -> bool:
        names = [
            part
            for part in (node, *node.find_all(nodes.Name))
            if isinstance(part, nodes.Name) and part.name not in scope.own
        ]
        return any(
            part.name in self.reader.lists or (part.name == "loop" and scope.has_loop)
            for part in names
        )

    # ---- Tests ----

    def _is_hoisted(self, node: nodes.Node, scope: _Scope, is_test: bool) -> bool:
        """Notes an expression that is known by its outcome."""
        if not isinstance(node, nodes.Expr):
            return False
        if not is_test:
            # Text has a place, too, so its message is compared.
            if isinstance(node, (nodes.Compare, nodes.Test, *_ARITHMETIC)):
                if not self._reads_messages(node, scope):
                    return False
            elif isinstance(node, nodes.Filter):
                if node.name not in ("length", "count"):
                    return False
            elif isinstance(node, nodes.Getitem):
                if not self.reader.is_list(node.node):
                    return False
            elif not (isinstance(node, nodes.Getattr) and _is_loop(node.node, scope)):
                return False
        return self._note_test(node, scope, is_test)

    def _note_test(
        self, node: nodes.Node, scope: _Scope, is_test: bool, without_item: bool = False
    ) -> bool:
        self._used = set()
        try:
            text = self._expression(node, scope)
        except _NoTest:
            return False
        if without_item and "item" in self._used:
            return False
        if self._used & {"loop", "outside"}:
            self._tests[is_test, text] = bool(self._used & {"loop", "item"})
        return True

    def _expression(self, node: Any, scope: _Scope) -> str:
        """Returns an expression as Python.

        Raises:
            _NoTest: It depends on what the turn itself sets, or may call something.
        """
        if isinstance(node, nodes.Const):
            return repr(node.value)
        if isinstance(node, nodes.Name):
            if node.name == scope.item:
                self._used.add("item")
                return "item"
            if node.name in scope.own or node.name == "loop" or node.name in self.reader.spaces:
                raise _NoTest
            self._used.add("outside")
            return f"v[{self.plan.place(node.name)}]"
        if isinstance(node, nodes.Getattr):
            return self._attribute(node, scope)
        inner = [self._expression(part, scope) for part in self._parts(node)]
        if isinstance(node, nodes.Getitem):
            if isinstance(node.arg, nodes.Const) and node.arg.value in _DICT_METHODS:
                raise _NoTest
            return f"look({inner[0]}, {inner[1]})"
        if isinstance(node, nodes.Compare):
            return self._comparison(node, inner)
        if isinstance(node, (nodes.And, nodes.Or)):
            return f"({inner[0]} {'and' if isinstance(node, nodes.And) else 'or'} {inner[1]})"
        if isinstance(node, nodes.Not):
            return f"(not {inner[0]})"
        if isinstance(node, nodes.Neg):
            return f"(-{self._numeric(inner[0])})"
        if type(node) in _ARITHMETIC:
            left, right = map(self._numeric, inner)
            number = f"({left} {_ARITHMETIC[type(node)]} {right})"
            self._numbers.add(number)
            return number
        if isinstance(node, nodes.Test):
            return f"({_TESTS[node.name].format(inner[0])})"
        self._numbers.add(f"count({inner[0]})")
        return f"count({inner[0]})"

    def _comparison(self, node: nodes.Compare, sides: list[str]) -> str:
        """Returns a comparison that costs nothing, whatever the sides are."""
        if len(sides) > 2:
            raise _NoTest
        operator = node.ops[0].op
        if operator in _COMPARISONS:
            has_literal = isinstance(node.expr, nodes.Const) or isinstance(
                node.ops[0].expr, nodes.Const
            )
            if not has_literal and not any(map(self._is_number, sides)):
                sides[0] = f"scalar({sides[0]}, {sides[1]})"
            return f"({sides[0]} {_COMPARISONS[operator]} {sides[1]})"
        if not isinstance(node.expr, nodes.Const) or not isinstance(node.expr.value, str):
            raise _NoTest
        return f"({'not ' if operator == 'notin' else ''}holds({sides[0]}, {sides[1]}))"

    def _numeric(self, text: str) -> str:
        """Returns an expression that is a number, or raises."""
        return text if self._is_number(text) else f"number({text})"

    def _is_number(self, text: str) -> bool:
        return text in self._numbers or text.isdigit()

    def _parts(self, node: Any) -> list[nodes.Node]:
        """Returns the parts of an expression that a test may have."""
        if isinstance(node, nodes.Getitem) and not isinstance(node.arg, nodes.Slice):
            return [node.node, node.arg]
        if isinstance(node, nodes.Compare):
            return [node.expr, *(operand.expr for operand in node.ops)]
        if isinstance(node, (nodes.And, nodes.Or)) or type(node) in _ARITHMETIC:
            return [node.left, node.right]
        if isinstance(node, (nodes.Not, nodes.Neg)):
            return [node.node]
        is_plain = isinstance(node, (nodes.Filter, nodes.Test)) and not (
            node.args or node.kwargs or node.dyn_args or node.dyn_kwargs
        )
        known = ("length", "count") if isinstance(node, nodes.Filter) else _TESTS
        if is_plain and node.node is not None and node.name in known:
            return [node.node]
        raise _NoTest

    def _attribute(self, node: nodes.Getattr, scope: _Scope) -> str:
        base = node.node
        if _is_loop(base, scope):
            if node.attr not in _LOOP:
                raise _NoTest
            self._used.add("loop")
            return _LOOP[node.attr]
        if isinstance(base, nodes.Name) and base.name in self.reader.spaces:
            if base.name in scope.own or (base.name, node.attr) in self._written:
                raise _NoTest
            self._used.add("outside")
            place = self.plan.place(base.name)
            self.plan.spaces.add(place)
            return f"field(v[{place}], {node.attr!r})"
        if node.attr in _DICT_METHODS:
            raise _NoTest
        return f"look({self._expression(base, scope)}, {node.attr!r})"

    def _source_of_tests(self) -> str:
        """Returns a function that prepares the tests of a loop: it returns a function that tests a
        turn, and the outcomes that all turns have."""
        fixed: list[str] = []
        varying: list[str] = []
        for (is_test, text), is_varying in self._tests.items():
            if is_test:
                text = f"(True if {text} else False)"
            elif text not in self._numbers:
                text = f"token({text}, number_of)"
            text = _NEIGHBOR.sub(r"(column(items, \3)[i \1 1] if \2 else fails())", text)
            text = _BESIDE.sub(r"column(\1, \3)[i \2 1]", text)
            (varying if is_varying else fixed).append(text)
        shared: dict[str, str] = {}
        for text in varying:
            for part in _shared_parts(text):
                shared.setdefault(part, f"s{len(shared)}")
        lines = ["def prepared(v, items, n, number_of):"]
        lines += [f"    {name} = {part}" for part, name in shared.items()]
        for part, name in sorted(shared.items(), key=lambda it: -len(it[0])):
            varying = [text.replace(part, name) for text in varying]
        each = ", ".join(f"lambda i, item: {text}" for text in varying)
        lines += [
            f"    each = [{each}]",
            "    def tested(i, item):",
            "        try:",
            f"            return ({''.join(f'{text}, ' for text in varying)})",
            "        except (TypeError, Fails, IndexError):",
            "            return tuple(tried(one, i, item) for one in each)",
            f"    fixed = [{', '.join(f'lambda: {text}' for text in fixed)}]",
            "    def many(start, stop):",
            "        turns = zip(range(start, stop), items[start:stop])",
            f"        return [({''.join(f'{text}, ' for text in varying)}) for i, item in turns]",
            f"    both = {'tested, many' if each else 'None, None'}",
            "    return *both, tuple(tried(one) for one in fixed)",
        ]
        return "\n".join(lines)


# ---- Tests at work ----


def _look(value: Any, key: Any) -> Any:
    kind = type(value)
    if kind is dict and type(key) is str:
        return value.get(key, MISSING)
    if kind is list and type(key) is int:
        try:
            return value[key]
        except IndexError:
            return MISSING
    if value is MISSING:
        raise _Fails
    raise Unknown


def _column(items: Any, key: str) -> list[Any]:
    """Returns what messages have under a key, as `_look` finds it."""
    if type(items) is not list or any(type(item) is not dict for item in items):
        raise Unknown
    return [item.get(key, MISSING) for item in items]


def _fails() -> Any:
    raise _Fails


def _field(space: Any, name: str) -> Any:
    try:
        return getattr(space, name)
    except AttributeError:
        return MISSING


def _holds(left: Any, right: Any) -> bool:
    if type(right) is not dict:
        raise Unknown
    return left in right


class _later:  # noqa: N801 - used as a function is
    """Tells whether any message from a place on passes a test."""

    __slots__ = ("_last",)

    def __init__(self, items: list[Any], test: Callable[[Any], Any]):
        # All are tested: the template would raise the errors of all.
        passed = [place for place, item in enumerate(items) if test(item)]
        self._last = passed[-1] if passed else -1

    def __call__(self, start: int) -> bool:
        return start <= self._last


def _scalar(left: Any, right: Any) -> Any:
    """Returns `left`, which is compared with `right`, if that costs nothing."""
    if type(left) in _SCALARS or type(right) in _SCALARS:
        return left
    raise Unknown


def _number(value: Any) -> int:
    if type(value) is not int:
        raise Unknown
    return value


def _count(value: Any) -> int:
    if value is MISSING:
        return 0
    if type(value) not in (dict, list, str, tuple, Traced):
        raise Unknown
    return len(value)


def _is_missing(value: Any) -> bool:
    return value is MISSING or isinstance(value, Undefined)


def _is_none(value: Any) -> bool:
    return (value.plain if isinstance(value, Scalar) else value) is None


def _token(value: Any, number_of: Callable[[Any, int], int]) -> Any:
    """Returns a key to compare a value by: a number itself, or the identity of a message."""
    if type(value) is int or value is None or value is MISSING:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is dict and number_of(value, 0):
        return (id(value),)
    raise Unknown


def _tried(test: Callable[..., Any], *args: Any) -> Any:
    try:
        return test(*args)
    except (TypeError, _Fails, IndexError):
        return _FAILS


_HELPERS: dict[str, Any] = {
    "MISSING": MISSING,
    "Fails": _Fails,
    "column": _column,
    "fails": _fails,
    "count": _count,
    "field": _field,
    "holds": _holds,
    "is_missing": _is_missing,
    "is_none": _is_none,
    "later": _later,
    "look": _look,
    "number": _number,
    "scalar": _scalar,
    "token": _token,
    "tried": _tried,
}


# ---- Templates ----


# Keys of messages beside that of the turn, by the place in a list, and by the loop.
_BESIDE = re.compile(r"look\(look\((v\[\d+\]), \(i ([+-]) 1\)\), ('\w+')\)")
_NEIGHBOR = re.compile(r"look\(\(items\[i ([+-]) 1\] if (i|i \+ 1 < n) else MISSING\), ('\w+')\)")


def _shared_parts(text: str) -> Iterator[str]:
    """Yields parts of a test that all turns have in common."""
    if text.startswith("(True if later("):
        yield text[len("(True if ") : text.rindex("(i + 1)")]
        return
    for found in re.finditer(r"column\((?:v\[\d+\]|items), '\w+'\)", text):
        yield found[0]
    for found in re.finditer(r"(?:field\(v\[\d+\], '\w+'\)|count\(v\[\d+\]\))", text):
        yield found[0]


def _is_loop(node: nodes.Node, scope: _Scope) -> bool:
    return isinstance(node, nodes.Name) and node.name == "loop" and scope.has_loop


def _is_call(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Call) and getattr(node.node, "name", None) == name


def _all(parts: Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    for part in parts:
        yield part
        yield from part.find_all(nodes.Node)


def _stored(parts: Iterable[nodes.Node]) -> Iterator[str]:
    """Yields the names that are set."""
    for node in _all(parts):
        if isinstance(node, nodes.Name) and node.ctx in ("store", "param"):
            yield node.name


def _outer(body: Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    """Yields what is set outside of loops and macros, and loops, macros and others."""
    for node in body:
        if isinstance(node, nodes.If):
            yield from _outer((*node.body, *node.elif_, *node.else_))
        elif isinstance(node, (nodes.Assign, nodes.Macro)):
            yield node
        elif isinstance(node, (nodes.AssignBlock, nodes.Import, nodes.FromImport, nodes.Include)):
            yield node
