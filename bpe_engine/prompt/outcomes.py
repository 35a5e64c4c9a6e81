"""Computes beforehand what a turn of a template's loop tests: expressions become functions in Python.

An expression that may call something, or that depends on what the turn itself sets, does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from jinja2 import nodes
from jinja2.runtime import Undefined

from .origin import Scalar, Traced

__all__ = ["ARITHMETIC", "MISSING", "Outcomes", "Plan", "Scope", "Unknown", "is_loop"]

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
#: Operators that numbers are computed with.
ARITHMETIC: dict[type[nodes.BinExpr], str] = {nodes.Add: "+", nodes.Sub: "-", nodes.Mul: "*"}
_SCALARS = frozenset([int, float, bool, type(None)])
_TESTS = {
    "defined": "not is_missing({})",
    "mapping": "isinstance({}, dict)",
    "none": "is_none({})",
    "string": "isinstance({}, str)",
    "undefined": "is_missing({})",
}


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
    def tests(self) -> Callable[..., tuple[Any, Any, tuple[Any, ...], Any]]:
        """Prepares the tests of a rendering, by the values of the variables, the messages, their
        number, and a function that returns the numbers of messages. Returns a function that tests a
        turn, one that tests turns, and the outcomes that all turns have; None where each turn has
        the same. Last come values and lists: while the values, the place and the message of a turn are
        the same, and so are the neighbors of its place in the lists, its outcomes are, but for the last
        turn. None where that is not so."""
        room = dict(_HELPERS)
        exec(compile(self.source, "<turns>", "exec"), room)
        return room["prepared"]  # type: ignore[no-any-return]


class Scope:
    """The names that mean something of the turn itself."""

    def __init__(
        self,
        own: frozenset[str],
        item: str | None,
        has_loop: bool,
        bound: frozenset[str] = frozenset(),
    ):
        #: Names that the turn may set, and those that it has always set.
        self.own: frozenset[str] = own | bound
        self.bound = bound
        self.item = item
        #: Whether `loop` is the loop of the turns.
        self.has_loop = has_loop

    def inner(self, names: Iterable[str], is_loop: bool = False) -> Scope:
        """Returns the scope inside, where these names are others."""
        bound = self.bound.union(names, ("loop",) if is_loop else ())
        item = None if self.item in bound else self.item
        return Scope(self.own, item, self.has_loop and not is_loop, bound)


class Outcomes:
    """The expressions of one loop that are known by their outcome.

    Args:
        plan: What the turns of the loop read.
        spaces: Variables that hold namespaces.
        written: The attributes of these that the turns write.
    """

    def __init__(self, plan: Plan, spaces: set[str], written: set[tuple[str, str]]):
        self._plan = plan
        self._spaces = spaces
        self._written = written
        # Whether it is a test, its expression, and whether it differs between turns.
        self._tests: dict[tuple[bool, str], bool] = {}
        self._used: set[str] = set()
        # Expressions that are numbers, or raise.
        self._numbers = {_LOOP[name] for name in _NUMBERS}

    def note(
        self, node: nodes.Node, scope: Scope, is_test: bool, without_item: bool = False
    ) -> bool:
        """Notes an expression that is tested, or whose value counts. Returns false for one that cannot be
        computed beforehand, or, if that is asked for, one that needs the message of the turn."""
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

    def note_later(self, test: nodes.Node, items: str, target: str) -> bool:
        """Notes whether a message after that of the turn, called `target`, passes a test."""
        self._used = set()
        try:
            text = self._expression(test, Scope(frozenset(), target, False))
        except _NoTest:
            return False
        if self._used - {"item"}:
            return False
        place = self._plan.place(items)
        self._tests[True, f"later(v[{place}], lambda item: {text})(i + 1)"] = True
        return True

    def _expression(self, node: Any, scope: Scope) -> str:
        """Returns an expression as Python.

        Raises:
            _NoTest: It depends on what the turn itself sets, or may call something.
        """
        if isinstance(node, nodes.Const):
            return _literal(node.value)
        if isinstance(node, nodes.Name):
            if node.name == scope.item:
                self._used.add("item")
                return "item"
            if node.name in scope.own or node.name == "loop" or node.name in self._spaces:
                raise _NoTest
            self._used.add("outside")
            return f"v[{self._plan.place(node.name)}]"
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
        if type(node) in ARITHMETIC:
            left, right = map(self._numeric, inner)
            number = f"({left} {ARITHMETIC[type(node)]} {right})"
            if isinstance(node, nodes.Mul):
                number = f"number({number})"
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
        return text in self._numbers or (text.isdigit() and len(text) < 20)

    def _parts(self, node: Any) -> list[nodes.Node]:
        """Returns the parts of an expression that a test may have."""
        if isinstance(node, nodes.Getitem) and not isinstance(node.arg, nodes.Slice):
            return [node.node, node.arg]
        if isinstance(node, nodes.Compare):
            return [node.expr, *(operand.expr for operand in node.ops)]
        if isinstance(node, (nodes.And, nodes.Or)) or type(node) in ARITHMETIC:
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

    def _attribute(self, node: nodes.Getattr, scope: Scope) -> str:
        base = node.node
        if is_loop(base, scope):
            if node.attr not in _LOOP:
                raise _NoTest
            self._used.add("loop")
            return _LOOP[node.attr]
        if isinstance(base, nodes.Name) and base.name in self._spaces:
            if base.name in scope.own or (base.name, node.attr) in self._written:
                raise _NoTest
            self._used.add("outside")
            place = self._plan.place(base.name)
            self._plan.spaces.add(place)
            return f"field(v[{place}], {node.attr!r})"
        if node.attr in _DICT_METHODS:
            raise _NoTest
        return f"look({self._expression(base, scope)}, {node.attr!r})"

    def source(self) -> str:
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
        for part, name in sorted(shared.items(), key=lambda it: -len(it[0])):
            varying = [text.replace(part, name) for text in varying]
        used = set(re.findall(r"\bs\d+\b", " ".join(varying)))
        shared = {part: name for part, name in shared.items() if name in used}
        # Turns that are tested one by one look into few messages.
        lines += [
            f"    {name} = {part.replace('column(', 'Column(', 1)}" for part, name in shared.items()
        ]
        columns = [part for part in shared if part.startswith("column(")]
        lists = dict.fromkeys(part[len("column(") : part.rindex(", ")] for part in columns)
        whole = [shared[part] for part in columns]
        inputs = [name for part, name in shared.items() if part not in columns]
        if any(map(_OTHER.search, varying)):
            lists["items"] = None
        rest = [_STEADY.sub("", _OTHER.sub("", text)) for text in varying]
        steady = "None"
        if not any(map(_UNSTEADY.search, rest)):
            steady = f"([{', '.join(inputs)}], [{', '.join(lists)}])"
        each = ", ".join(f"lambda i, item: {text}" for text in varying)
        lines += [
            f"    each = [{each}]",
            "    def tested(i, item):",
            "        try:",
            f"            return ({''.join(f'{text}, ' for text in varying)})",
            "        except (TypeError, Fails, IndexError):",
            "            return tuple(tried(one, i, item) for one in each)",
            f"    fixed = [{', '.join(f'lambda: {text}' for text in fixed)}]",
            f"    def many(start, stop{''.join(f', {name}={name}' for name in whole)}):",
            *(f"        {name} = {name}.whole()" for name in whole),
            "        turns = zip(range(start, stop), items[start:stop])",
            f"        return [({''.join(f'{text}, ' for text in varying)}) for i, item in turns]",
            f"    both = {'tested, many' if each else 'None, None'}",
            f"    return *both, tuple(tried(one) for one in fixed), {steady}",
        ]
        return "\n".join(lines)


# ---- Tests at work ----


def _look(value: Any, key: Any) -> Any:
    kind = type(value)
    if kind is dict and type(key) is str:
        found = value.get(key, MISSING)
        if found is MISSING and key in _DICT_METHODS:
            raise Unknown
        return found
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


class _Column:
    """The values of messages under a key, as `_column` returns them."""

    __slots__ = ("_items", "_key", "_whole")

    def __init__(self, items: Any, key: str):
        if type(items) is not list:
            raise Unknown
        self._items: list[Any] = items
        self._key = key
        self._whole: list[Any] | None = None

    def whole(self) -> list[Any]:
        """Returns the list, which is made once: many turns are tested at once more than once."""
        if self._whole is None:
            self._whole = _column(self._items, self._key)
        return self._whole

    def __getitem__(self, place: int) -> Any:
        item = self._items[place]
        if type(item) is not dict:
            raise Unknown
        return item.get(self._key, MISSING)


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
    # Rendering refuses to multiply huge numbers.
    if type(value) is not int or value.bit_length() > 64:
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
    "Column": _Column,
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


# Keys of messages beside that of the turn, by the place in a list, and by the loop.
_BESIDE = re.compile(r"look\(look\((v\[\d+\]), \(i ([+-]) 1\)\), ('\w+')\)")
_NEIGHBOR = re.compile(r"look\(\(items\[i ([+-]) 1\] if (i|i \+ 1 < n) else MISSING\), ('\w+')\)")


# A message beside that of the turn; what a test may read of the loop to be steady, and what it may not.
_OTHER = re.compile(r"items\[i - 1\] if i else MISSING|items\[i \+ 1\] if i \+ 1 < n else MISSING")
_STEADY = re.compile(r"\(i \+ 1 == n\)|if i \+ 1 < n else fails\(\)|s\d+\[i [+-] 1\]")
_UNSTEADY = re.compile(r"\bn\b|\bitems\b|\bv\[|\bs\d+[(\[]")


def _literal(value: Any) -> str:
    """Returns a literal as Python, in which none of these finds code."""
    if not isinstance(value, str):
        return repr(value)
    return "'" + re.sub(r"\W", lambda found: f"\\U{ord(found[0]):08x}", value) + "'"


def _shared_parts(text: str) -> Iterator[str]:
    """Yields parts of a test that all turns have in common."""
    if text.startswith("(True if later("):
        yield text[len("(True if ") : text.rindex("(i + 1)")]
        return
    for found in re.finditer(r"column\((?:v\[\d+\]|items), '\w+'\)", text):
        yield found[0]
    for found in re.finditer(r"(?:field\(v\[\d+\], '\w+'\)|count\(v\[\d+\]\)|v\[\d+\])", text):
        yield found[0]


def is_loop(node: nodes.Node, scope: Scope) -> bool:
    """Whether it is the loop of the turns."""
    return isinstance(node, nodes.Name) and node.name == "loop" and scope.has_loop
