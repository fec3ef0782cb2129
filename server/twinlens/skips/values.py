"""Evaluates the small expressions that test files are configured with: flags, conditions, reasons, lists of parameters.

Nothing is run. What cannot be known from source is `UNKNOWN`; inside a list it keeps its place, so that the length of
the list is known.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol


class _Unknown:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("an unknown value is neither true nor false")


UNKNOWN = _Unknown()
MISSING = object()

_MOST_ITEMS = 10_000
_AVAILABLE = re.compile(r"(?:^|\.)is_\w+_available$")
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}


class Scope(Protocol):
    """What names mean where an expression stands."""

    def name(self, name: str) -> Any:
        """The value of a plain name, or `UNKNOWN`."""
        ...

    def attribute(self, name: str) -> Any:
        """The value of an attribute of the test case, `UNKNOWN`, or `MISSING` where it has none."""
        ...

    @property
    def receiver(self) -> str:
        """What the code calls the test case: `self`, mostly."""
        ...


@lru_cache(maxsize=16_384)
def parse_expression(text: str) -> ast.expr | None:
    """The syntax tree of an expression, `None` where the text is a phrase and no code."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def evaluate(text: str, scope: Scope) -> Any:
    """The value of an expression, as far as source tells; `UNKNOWN` otherwise."""
    node = parse_expression(text)
    return UNKNOWN if node is None else Evaluation(scope).of(node)


def truth(text: str, scope: Scope) -> bool | None:
    """Whether a condition holds; `None` where that is not known before a run."""
    return as_bool(evaluate(text, scope))


def as_bool(value: Any) -> bool | None:
    """The truth of a value, `None` where it is not known."""
    return None if value is UNKNOWN or value is MISSING else bool(value)


class Evaluation:
    """One walk over one expression; `locals` holds what comprehensions bind."""

    __slots__ = ("locals", "scope")

    def __init__(self, scope: Scope, bound: Mapping[str, Any] | None = None) -> None:
        self.scope = scope
        self.locals = bound or {}

    def of(self, node: ast.expr) -> Any:
        """The value of an expression's syntax tree."""
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        return UNKNOWN if handler is None else handler(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self.locals[node.id] if node.id in self.locals else self.scope.name(node.id)

    def _attribute(self, node: ast.Attribute) -> Any:
        if self._is_receiver(node.value):
            value = self.scope.attribute(node.attr)
            return UNKNOWN if value is MISSING else value
        return UNKNOWN

    def _is_receiver(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return bool(name) and name == self.scope.receiver and name not in self.locals
            case ast.Attribute(value=inner, attr="__class__") | ast.Call(func=ast.Name(id="type"), args=[inner]):
                return self._is_receiver(inner)
        return False

    def _items(self, nodes: Iterable[ast.expr]) -> Any:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = _listed(self.of(node.value))
                if inner is UNKNOWN:
                    return UNKNOWN
                items.extend(inner)
            else:
                items.append(self.of(node))
        return items

    def _list(self, node: ast.List) -> Any:
        return self._items(node.elts)

    def _tuple(self, node: ast.Tuple) -> Any:
        items = self._items(node.elts)
        return items if items is UNKNOWN else tuple(items)

    _set = _list

    def _dict(self, node: ast.Dict) -> Any:
        keys = [UNKNOWN if key is None else self.of(key) for key in node.keys]
        if any(key is UNKNOWN or not isinstance(key, str | int | float | bool | None) for key in keys):
            return UNKNOWN
        return dict(zip(keys, map(self.of, node.values), strict=True))

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        text = ""
        for part in node.values:
            value = self._part(part)
            if not isinstance(value, str | int | float | None):
                return UNKNOWN
            text += str(value)
        return text

    def _part(self, part: ast.expr) -> Any:
        match part:
            case ast.Constant(value=value):
                return value
            case ast.FormattedValue(value=inner, format_spec=None, conversion=-1):
                return self.of(inner)
        return UNKNOWN

    def _ifexp(self, node: ast.IfExp) -> Any:
        test = as_bool(self.of(node.test))
        return UNKNOWN if test is None else self.of(node.body if test else node.orelse)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            known = as_bool(value)
            return UNKNOWN if known is None else not known
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        return UNKNOWN

    def _boolop(self, node: ast.BoolOp) -> Any:
        decides = isinstance(node.op, ast.Or)
        values = [self.of(value) for value in node.values]
        truths = [as_bool(value) for value in values]
        if decides in truths:
            return values[truths.index(decides)]
        return UNKNOWN if None in truths else values[-1]

    def _compare(self, node: ast.Compare) -> Any:
        left = self.of(node.left)
        for comparison, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.of(right_node)
            if _holds_unknown(left) or _holds_unknown(right):
                return UNKNOWN
            try:
                if not _COMPARISONS[type(comparison)](left, right):
                    return False
            except TypeError:
                return UNKNOWN
            left = right
        return True

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.of(node.left), self.of(node.right)
        if not isinstance(node.op, ast.Add) or left is UNKNOWN or type(left) is not type(right):
            return UNKNOWN
        return left + right if isinstance(left, str | int | float | list | tuple) else UNKNOWN

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
        bound = self._bindings(node.generators, self.locals)
        return bound if bound is UNKNOWN else [Evaluation(self.scope, names).of(node.elt) for names in bound]

    _generatorexp = _setcomp = _listcomp

    def _bindings(self, generators: list[ast.comprehension], outer: Mapping[str, Any]) -> Any:
        """The names that each turn of a comprehension binds, or `UNKNOWN`."""
        bound: list[Mapping[str, Any]] = [outer]
        for generator in generators:
            wider: list[Mapping[str, Any]] = []
            for names in bound:
                items = _listed(Evaluation(self.scope, names).of(generator.iter))
                if items is UNKNOWN or len(items) * len(bound) > _MOST_ITEMS:
                    return UNKNOWN
                for item in items:
                    inner = {**names, **_unpacked(generator.target, item)}
                    kept = [as_bool(Evaluation(self.scope, inner).of(condition)) for condition in generator.ifs]
                    if None in kept:
                        return UNKNOWN
                    if all(kept):
                        wider.append(inner)
            bound = wider
        return bound

    def _call(self, node: ast.Call) -> Any:
        name = ast.unparse(node.func)
        if _AVAILABLE.search(name) and not node.args:
            return True
        if name in ("getattr", "hasattr") and len(node.args) >= 2 and self._is_receiver(node.args[0]):
            return self._looked_up(name, node)
        known = _CALLS.get(name.rpartition(".")[2])
        if known is None:
            return UNKNOWN
        arguments = [self.of(argument) for argument in node.args]
        if any(argument is UNKNOWN for argument in arguments):
            return UNKNOWN
        try:
            return known(*arguments, **{k.arg: self.of(k.value) for k in node.keywords if k.arg})
        except (TypeError, ValueError):
            return UNKNOWN

    def _looked_up(self, function: str, node: ast.Call) -> Any:
        attribute = self.of(node.args[1])
        if not isinstance(attribute, str):
            return UNKNOWN
        value = self.scope.attribute(attribute)
        if function == "hasattr":
            return value is not MISSING
        if value is not MISSING:
            return value
        return self.of(node.args[2]) if len(node.args) > 2 else UNKNOWN


def _product(*pools: Iterable[Any], repeat: int = 1) -> list[Any]:
    items = list(itertools.islice(itertools.product(*pools, repeat=repeat), _MOST_ITEMS + 1))
    if len(items) > _MOST_ITEMS:
        raise ValueError("too many combinations to list")
    return items


def _range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > _MOST_ITEMS:
        raise ValueError("too many numbers to list")
    return list(numbers)


_CALLS: Mapping[str, Callable[..., Any]] = {
    "bool": bool,
    "enumerate": lambda items, start=0: list(enumerate(items, start)),
    "int": int,
    "len": len,
    "list": lambda items=(): list(items),
    "parse_flag_from_env": lambda _variable, default=False: default,
    "param": lambda *values, **_named: tuple(values),
    "product": _product,
    "range": _range,
    "sorted": lambda items: sorted(items),
    "str": str,
    "tuple": lambda items=(): tuple(items),
    "zip": lambda *pools: list(zip(*pools, strict=False)),
}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple | dict | str) else UNKNOWN


def _holds_unknown(value: Any) -> bool:
    return value is UNKNOWN or (isinstance(value, list | tuple) and any(map(_holds_unknown, value)))


def _unpacked(target: ast.expr, item: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    if isinstance(target, ast.Tuple | ast.List):
        fits = isinstance(item, list | tuple) and len(item) == len(target.elts)
        unpacked: dict[str, Any] = {}
        for element, value in zip(target.elts, item if fits else [UNKNOWN] * len(target.elts), strict=True):
            unpacked |= _unpacked(element, value)
        return unpacked
    return {}
