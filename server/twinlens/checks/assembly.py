"""Which modules a model is assembled from, as its source tells: their paths with `{i}`, and their classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from twinlens.checks.classes import Ancestry, ancestry
from twinlens.checks.modules import Class, External, Function, FunctionNode, Module, Value
from twinlens.checks.world import World
from twinlens.source.definitions import dotted_name

_LISTS = ("torch.nn.ModuleList", "torch.nn.Sequential")
_DICTS = ("torch.nn.ModuleDict",)
_BUILDERS = ("from_config", "_from_config", "from_pretrained")
_DEEPEST = 14


@dataclass(frozen=True, slots=True)
class Part:
    """What may stand at `path` below a module: one of `classes`, or, if `opaque`, what the source does not tell."""

    path: str
    classes: tuple[Class, ...]
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A class at its path below a model."""

    path: str
    cls: Class


@dataclass(frozen=True, eq=False)
class Assembly:
    """Reads assemblies; keeps those that it has read."""

    world: World
    _parts: dict[Class, tuple[Part, ...]] = field(default_factory=dict)
    _facts: dict[FunctionNode, _Facts] = field(default_factory=dict)
    _ancestries: dict[Class, Ancestry] = field(default_factory=dict)

    def ancestry(self, cls: Class) -> Ancestry:
        """`cls` and what it inherits from."""
        known = self._ancestries.get(cls)
        if known is None:
            known = self._ancestries[cls] = ancestry(self.world, cls)
        return known

    def facts(self, function: FunctionNode) -> _Facts:
        """What `function` assigns, appends and returns."""
        known = self._facts.get(function)
        if known is None:
            known = self._facts[function] = _facts(function)
        return known

    def parts(self, cls: Class) -> tuple[Part, ...]:
        """What the attributes of `cls`, own and inherited, may hold; of two assignments to one attribute, both."""
        known = self._parts.get(cls)
        if known is None:
            known = self._parts[cls] = tuple(self._read_parts(cls))
        return known

    def places(self, model: Class) -> Iterator[Place]:
        """Every class that may stand in `model`, the model itself first, down to models that declare for themselves."""
        yield from self._places(model, "", (), is_root=True)

    def _places(self, cls: Class, path: str, above: tuple[Class, ...], is_root: bool = False) -> Iterator[Place]:
        if cls in above or len(above) > _DEEPEST:
            return
        family = self.ancestry(cls)
        if not is_root and (family.is_model or not family.is_module):
            return
        yield Place(path, cls)
        for part in self.parts(cls):
            for child in part.classes:
                yield from self._places(child, f"{path}.{part.path}" if path else part.path, (*above, cls))

    def _read_parts(self, cls: Class) -> Iterator[Part]:
        seen: set[str] = set()
        for owner in self.ancestry(cls).classes:
            named: set[str] = set()
            for method in owner.methods():
                scope = _Scope(self, cls, owner.module, method)
                for attribute, value in self.facts(method).attributes:
                    if attribute not in seen:
                        named.add(attribute)
                        yield from _merged(attribute, scope.shapes(value))
            seen |= named


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where below an expression's value a module stands, and what it may be."""

    suffix: str
    classes: tuple[Class, ...] = ()
    opaque: bool = False


def _merged(attribute: str, shapes: list[_Shape]) -> Iterator[Part]:
    for suffix in dict.fromkeys(shape.suffix for shape in shapes):
        alike = [shape for shape in shapes if shape.suffix == suffix]
        classes = tuple(dict.fromkeys(cls for shape in alike for cls in shape.classes))
        opaque = any(shape.opaque for shape in alike)
        if classes or opaque:
            yield Part(f"{attribute}{suffix}", classes, opaque)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a function assigns, appends and returns."""

    attributes: list[tuple[str, ast.expr]] = field(default_factory=list)
    locals: dict[str, list[ast.expr]] = field(default_factory=dict)
    returned: list[ast.expr] = field(default_factory=list)


def _facts(function: FunctionNode) -> _Facts:
    facts = _Facts()
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    facts.locals.setdefault(target.id, []).append(node.value)
                elif (attribute := _attribute_of_self(target)) is not None:
                    facts.attributes.append((attribute, node.value))
        elif isinstance(node, ast.Return) and node.value is not None:
            facts.returned.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            _read_call(node, node.func, facts)
    return facts


def _read_call(node: ast.Call, method: ast.Attribute, facts: _Facts) -> None:
    if method.attr == "append" and node.args:
        # However many are appended: they stand at `{i}`.
        appended = ast.ListComp(node.args[0], [])
        attribute = _attribute_of_self(method.value)
        if attribute is not None:
            facts.attributes.append((attribute, appended))
        elif isinstance(method.value, ast.Name):
            facts.locals.setdefault(method.value.id, []).append(appended)
    elif method.attr in ("add_module", "register_module") and dotted_name(method.value) == "self":
        facts.attributes.extend(_added(node))


def _added(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    if len(node.args) != 2:
        return
    name = node.args[0]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        yield name.value, node.args[1]
    elif isinstance(name, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "{i}" for part in name.values]
        yield "".join(map(str, parts)), node.args[1]


def _attribute_of_self(node: ast.expr) -> str | None:
    is_of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_of_self else None


@dataclass(frozen=True, eq=False)
class _Scope:
    """A function in which expressions are read: its local names, and the class whose `self` it has."""

    assembly: Assembly
    cls: Class | None
    module: Module
    function: FunctionNode
    depth: int = 0

    def shapes(self, node: ast.expr, depth: int = 0) -> list[_Shape]:
        """Where modules stand below the value of `node`."""
        if depth > _DEEPEST:
            return [_Shape("", opaque=True)]
        if isinstance(node, ast.IfExp):
            return self.shapes(node.body, depth + 1) + self.shapes(node.orelse, depth + 1)
        if isinstance(node, ast.BoolOp):
            return [shape for value in node.values for shape in self.shapes(value, depth + 1)]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [
                _Shape(f".{place}{shape.suffix}", shape.classes, shape.opaque)
                for place, element in enumerate(node.elts)
                for shape in self.shapes(element, depth + 1)
            ]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return _repeated(self.shapes(node.elt, depth + 1))
        if isinstance(node, ast.Dict):
            return self._dict_shapes(node, depth)
        if isinstance(node, ast.Starred):
            return self.shapes(node.value, depth + 1)
        if isinstance(node, ast.Name):
            return [shape for value in self._locals(node.id) for shape in self.shapes(value, depth + 1)]
        if isinstance(node, ast.Call):
            return self._call_shapes(node, depth)
        return []

    def _dict_shapes(self, node: ast.Dict, depth: int) -> list[_Shape]:
        found = []
        for key, value in zip(node.keys, node.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) else "{key}"
            found += [
                _Shape(f".{name}{shape.suffix}", shape.classes, shape.opaque) for shape in self.shapes(value, depth + 1)
            ]
        return found

    def _call_shapes(self, node: ast.Call, depth: int) -> list[_Shape]:
        name = dotted_name(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
        meaning = self.assembly.world.meaning(self.module, name) if name else None
        if isinstance(meaning, External):
            if meaning.dotted in _LISTS or meaning.dotted in _DICTS:
                return self._container_shapes(node, depth)
            if meaning.dotted.startswith(("torch.nn.", "builtins.", "math.", "torch.")):
                return []
        if isinstance(meaning, Function):
            scope = _Scope(self.assembly, None, meaning.module, meaning.node, self.depth + 1)
            return scope.returned() if self.depth < _DEEPEST else [_Shape("", opaque=True)]
        classes, opaque = self._called(node.func, depth)
        return [_Shape("", tuple(classes), opaque)] if classes or opaque else []

    def _container_shapes(self, node: ast.Call, depth: int) -> list[_Shape]:
        if len(node.args) == 1 and not isinstance(node.args[0], ast.Call):
            inner = self.shapes(node.args[0], depth + 1)
            # What is no list itself is a list that a local name or a call gives: its elements stand at `{i}`.
            return [shape if shape.suffix else _Shape(".{i}", shape.classes, shape.opaque) for shape in inner]
        return self.shapes(ast.List(list(node.args), ast.Load()), depth + 1)

    def returned(self) -> list[_Shape]:
        """Where modules stand below what the function returns."""
        return [shape for value in self.assembly.facts(self.function).returned for shape in self.shapes(value)]

    def _locals(self, name: str) -> list[ast.expr]:
        return self.assembly.facts(self.function).locals.get(name, [])

    def _called(self, func: ast.expr, depth: int) -> tuple[list[Class], bool]:
        """The classes that calling `func` may make, and whether it may make something else that is a module."""
        if depth > _DEEPEST:
            return [], True
        if isinstance(func, ast.Attribute) and func.attr in _BUILDERS:
            return self._called(func.value, depth + 1)
        if isinstance(func, ast.IfExp):
            first, second = self._called(func.body, depth + 1), self._called(func.orelse, depth + 1)
            return first[0] + second[0], first[1] or second[1]
        if isinstance(func, ast.Subscript):
            return self._of_table(func.value, depth)
        if (attribute := _attribute_of_self(func)) is not None:
            return self._of_self(attribute, depth)
        name = dotted_name(func) if isinstance(func, (ast.Name, ast.Attribute)) else ""
        if isinstance(func, ast.Name) and (values := self._locals(func.id)):
            results = [self._called(value, depth + 1) for value in values]
            return [cls for classes, _ in results for cls in classes], any(opaque for _, opaque in results)
        meaning = self.assembly.world.meaning(self.module, name) if name else None
        if isinstance(meaning, Class):
            return [meaning], False
        if isinstance(meaning, Value):
            return self._of_table(func, depth)
        if isinstance(meaning, External) and meaning.dotted.startswith(("torch.", "builtins.", "math.")):
            return [], False
        return [], True

    def _of_table(self, table: ast.expr, depth: int) -> tuple[list[Class], bool]:
        """The classes in a module-level mapping or sequence of classes."""
        name = dotted_name(table) if isinstance(table, (ast.Name, ast.Attribute)) else ""
        meaning = self.assembly.world.meaning(self.module, name) if name else None
        if not isinstance(meaning, Value) or not isinstance(meaning.node, (ast.Dict, ast.List, ast.Tuple)):
            return [], True
        entries = meaning.node.values if isinstance(meaning.node, ast.Dict) else meaning.node.elts
        scope = _Scope(self.assembly, None, meaning.module, self.function, self.depth + 1)
        results = [scope._called(entry, depth + 1) for entry in entries]
        return [cls for classes, _ in results for cls in classes], any(opaque for _, opaque in results)

    def _of_self(self, attribute: str, depth: int) -> tuple[list[Class], bool]:
        """What `self.<attribute>(...)` makes: by a method's return value, or by a class kept in the attribute."""
        if self.cls is None:
            return [], True
        family = self.assembly.ancestry(self.cls)
        method = family.method(attribute)
        if method is not None:
            owner, node = method
            if self.depth > _DEEPEST:
                return [], True
            shapes = _Scope(self.assembly, self.cls, owner.module, node, self.depth + 1).returned()
            return [cls for shape in shapes for cls in shape.classes], any(shape.opaque for shape in shapes)
        value = family.attribute(attribute)
        if value is not None:
            scope = _Scope(self.assembly, self.cls, value[0].module, self.function, self.depth + 1)
            return scope._called(value[1], depth + 1)
        return [], True


def _repeated(shapes: list[_Shape]) -> list[_Shape]:
    return [_Shape(f".{{i}}{shape.suffix}", shape.classes, shape.opaque) for shape in shapes]
