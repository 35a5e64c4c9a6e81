"""Finds what the turns of a template's loops over messages read and write.

A turn reads its message, and from outside variables, attributes of namespaces and those of the
loop. What it only tests is known by the outcome: ``loop.index0 > ns.last`` stays false for an old
message although both sides change. A turn that finds the same values and outcomes writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jinja2 import nodes

from .outcomes import ARITHMETIC, Outcomes, Plan, Scope, is_loop

__all__ = ["Prevented", "TurnReader"]

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


class TurnReader:
    """Reads the loops of a template.

    Args:
        tree: The template.
        functions: The names of all functions that a template may call.
    """

    def __init__(self, tree: nodes.Template, functions: Iterable[str]):
        #: Names that are read other than for an attribute, a call or a test, and their first lines:
        #: their values may have other names, too.
        self.handed: dict[str, int] = dict(_handed(tree))
        macros = (node.name for node in tree.find_all(nodes.Macro))
        # What these do is known where they are called by their names.
        self._called = ("self", "caller", *macros, *(set(functions) - _FUNCTIONS))
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
        for name in self._called:
            if name in self.handed:
                raise Prevented(self.handed[name], f"{name} is handed over")
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
        self._outcomes = Outcomes(self.plan, reader.spaces, self._written)
        stored = frozenset(_stored(loop.body))
        self._find_writes(loop.body, stored, set())
        target = loop.target.name  # type: ignore[attr-defined]
        if target in stored:
            raise Prevented(loop.lineno, f"the loop sets its own variable {target}")
        self._walk_all(loop.body, Scope(stored, target, has_loop=True))
        read = sorted(self._read)
        self.plan.read = [(self.plan.place(name), attribute) for name, attribute in read]
        only = sorted(self._written - self._read)
        self.plan.only_written = [(self.plan.place(name), attribute) for name, attribute in only]
        self.plan.source = self._outcomes.source()
        spaces = {name for name, _ in (*self._read, *self._written)}
        spaces.update(self.plan.names[place] for place in self.plan.spaces)
        for name in sorted(spaces & reader.handed.keys()):
            raise Prevented(reader.handed[name], f"the namespace {name} is handed over")

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

    def _walk_all(self, parts: Iterable[nodes.Node | None], scope: Scope) -> None:
        for part in parts:
            if part is None:
                continue
            self._walk(part, scope)
            if isinstance(part, (nodes.Assign, nodes.AssignBlock)):
                # What is set here is never that from outside from here on.
                scope = scope.inner(_stored([part.target]))

    def _walk(self, node: nodes.Node, scope: Scope, is_test: bool = False) -> None:
        if isinstance(node, _NOTHING):
            return
        if isinstance(node, nodes.Name):
            if not (is_test and self.reader.is_list(node) and self._is_hoisted(node, scope, True)):
                self._name(node, scope)
        elif isinstance(node, (nodes.And, nodes.Or, nodes.Not)):
            # What asks for the message itself is asked again anyway, so parts of it say more.
            is_one = is_test and not isinstance(node, nodes.Not)
            if is_one and self._outcomes.note(node, scope, is_test, without_item=True):
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

    def _name(self, node: nodes.Name, scope: Scope) -> None:
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

    def _inner_loop(self, node: nodes.For, scope: Scope) -> None:
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

    def _is_scan(self, node: nodes.For, scope: Scope) -> bool:
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
            or not (is_loop(part.start.node, scope) and part.start.attr == "index")
        ):
            return False
        for each in only.body:
            is_flag = isinstance(each, nodes.Assign) and isinstance(each.target, nodes.NSRef)
            if not is_flag or not isinstance(each.node, nodes.Const):  # type: ignore[attr-defined]
                return False
            if each.target.name not in scope.bound:  # type: ignore[attr-defined]
                return False
        if not self._outcomes.note_later(only.test, items.node.name, target.name):
            return False
        self.plan.scan = node
        return True

    def _assignment(self, node: nodes.Assign | nodes.AssignBlock, scope: Scope) -> None:
        if isinstance(node, nodes.Assign):
            self._walk(node.node, scope)
        else:
            self._walk_all((*node.body, node.filter), scope)
        for name in _all([node.target]):
            if isinstance(name, nodes.NSRef) and name.name in scope.own:
                self._name(nodes.Name(name.name, "load", lineno=name.lineno), scope)

    def _call(self, node: nodes.Call, scope: Scope) -> None:
        function = node.node
        self._walk_all((*node.args, *node.kwargs, node.dyn_args, node.dyn_kwargs), scope)
        if isinstance(function, nodes.ExtensionAttribute):
            return
        if isinstance(function, nodes.Getattr):
            if is_loop(function.node, scope):
                raise Prevented(node.lineno, f"loop.{function.attr} is called")
            self._walk(function.node, scope)
            return
        name = function.name if isinstance(function, nodes.Name) else "a value"
        if name in scope.own and name != "caller":
            raise Prevented(node.lineno, f"{name} is called")
        if name in ("caller",):
            return
        if name in self.reader.macros:
            self.plan.macros.add(self.plan.place(name))
            if name not in self._known_macros:
                self._known_macros.add(name)
                macro = self.reader.macros[name]
                bound = frozenset(("caller", "kwargs", "varargs", *_stored(macro.args)))
                scope = Scope(frozenset(_stored(macro.body)), None, False, bound)
                self._walk_all((*macro.defaults, *macro.body), scope)
        elif name in _FUNCTIONS:
            self.plan.functions.add(self.plan.place(name))
        else:
            raise Prevented(node.lineno, f"{name} is called")

    def _composed(self, node: nodes.Node, scope: Scope) -> None:
        if isinstance(node, nodes.Getattr) and is_loop(node.node, scope):
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

    def _is_message(self, node: nodes.Node, scope: Scope) -> bool:
        """Whether it is another message, whose identity is noted."""
        is_item = isinstance(node, nodes.Getitem) and self.reader.is_list(node.node)
        is_neighbor = isinstance(node, nodes.Getattr) and is_loop(node.node, scope)
        return (is_item or is_neighbor) and self._outcomes.note(node, scope, is_test=False)

    def _reads_messages(self, node: nodes.Node, scope: Scope) -> bool:
        names = [
            part
            for part in (node, *node.find_all(nodes.Name))
            if isinstance(part, nodes.Name) and part.name not in scope.own
        ]
        return any(
            part.name in self.reader.lists or (part.name == "loop" and scope.has_loop)
            for part in names
        )

    def _is_hoisted(self, node: nodes.Node, scope: Scope, is_test: bool) -> bool:
        """Notes an expression that is known by its outcome."""
        if not isinstance(node, nodes.Expr):
            return False
        if not is_test:
            # Text has a place, too, so its message is compared.
            if isinstance(node, (nodes.Compare, nodes.Test, *ARITHMETIC)):
                if not self._reads_messages(node, scope):
                    return False
            elif isinstance(node, nodes.Filter):
                if node.name not in ("length", "count"):
                    return False
            elif isinstance(node, nodes.Getitem):
                if not self.reader.is_list(node.node):
                    return False
            elif not (isinstance(node, nodes.Getattr) and is_loop(node.node, scope)):
                return False
        return self._outcomes.note(node, scope, is_test)


def _is_call(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Call) and getattr(node.node, "name", None) == name


def _handed(tree: nodes.Template) -> Iterator[tuple[str, int]]:
    """Yields names that are read for what they hold, the first uses last."""
    found = []
    for node in tree.find_all(nodes.Node):
        known: nodes.Node | None = None
        if isinstance(node, (nodes.Getattr, nodes.Call, nodes.Test, nodes.Not)):
            known = node.node
        elif isinstance(node, (nodes.If, nodes.CondExpr)):
            known = node.test
        for part in node.iter_child_nodes():
            if isinstance(part, nodes.Name) and part.ctx == "load":
                if part is not known or part.name == "self":
                    found.append((part.name, part.lineno))
    return reversed(found)


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
