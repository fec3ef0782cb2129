"""Who inherits what: method resolution orders across files, and what each test class finds under each name.

The order is Python's own (C3). A mixin whose `__init_subclass__` sets every inherited test anew on each subclass is
followed too: a subclass then holds its own copy of each test, and in a diamond of bases that copy wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from twinlens.skips.effects import Effects
from twinlens.skips.facts import Class, Deleted, File, Function, Value
from twinlens.skips.modules import External, Found, Module, Modules
from twinlens.skips.notices import Notice
from twinlens.skips.variants import Expansion, expansion

BindingKind = Literal["function", "value", "variant", "expanded"]

_BARE_BASES = frozenset({"object", "abc.ABC", "typing.Generic", "typing.Protocol"})


@dataclass(slots=True, eq=False)
class Binding:
    """What one class binds to one name. Two bindings are the same only if they are the same object."""

    owner: TestClass
    name: str
    member: Function | Value
    kind: BindingKind
    expansion: Expansion | None = None
    runnable: bool = field(init=False)
    """Whether a runner that looks for callables under test names finds one here."""

    def __post_init__(self) -> None:
        self.runnable = _is_runnable(self)


@dataclass(slots=True, eq=False)
class TestClass:
    """A class statement with its bases resolved; `bindings` is what it, or what it inherits from, binds to a name."""

    module: Module
    facts: Class
    mro: tuple[TestClass, ...] = ()
    is_test_case: bool = False
    has_unseen_base: bool = False
    own: dict[str, Binding] = field(default_factory=dict)
    bindings: dict[str, Binding] = field(default_factory=dict)
    set_on_instance: frozenset[str] = frozenset()
    expanded: frozenset[str] = frozenset()
    """The names of tests that this class, or one that it inherits from, parameterises."""

    @property
    def key(self) -> str:
        """`path::Name`, as a test runner writes it."""
        return f"{self.module.path}::{self.facts.name}"

    def __repr__(self) -> str:
        return f"TestClass({self.key})"

    def inherits(self, other: TestClass) -> bool:
        """Whether another class is in this one's method resolution order, itself left out."""
        return other is not self and other in self.mro

    def after(self, owner: TestClass, name: str) -> Binding | None:
        """What `super().name` finds from a method that `owner` defines."""
        start = self.mro.index(owner) + 1 if owner in self.mro else len(self.mro)
        return next((cls.own[name] for cls in self.mro[start:] if name in cls.own), None)

    def is_collected(self) -> bool:
        """Whether pytest collects it: a `TestCase` or a `Test…` without `__init__`, and no `__test__ = False`."""
        switch = self.bindings.get("__test__")
        if switch is not None and isinstance(switch.member, Value) and switch.member.expression == "False":
            return False
        return self.is_test_case or (self.facts.name.startswith("Test") and "__init__" not in self.bindings)


class Classes:
    """All classes of a checkout's test files, resolved on first use."""

    def __init__(self, modules: Modules, effects: Effects) -> None:
        self.modules = modules
        self.effects = effects
        self.notices: list[Notice] = []
        self._classes: dict[tuple[str, str], TestClass] = {}
        self._open: list[tuple[str, str]] = []

    def resolve(self, module: Module, facts: Class) -> TestClass:
        """A class with its bases, whatever file they stand in."""
        key = (module.path, facts.name)
        known = self._classes.get(key)
        if known is None:
            self._open.append(key)
            known = self._classes[key] = self._build(module, facts)
            self._open.pop()
        return known

    def named(self, module: Module, name: str) -> TestClass | None:
        """The class that a dotted name means in a module, if it is one of the checkout's."""
        match self.modules.find(module, name):
            case Found(module=home, definition=Class() as facts) if (home.path, facts.name) not in self._open:
                return self.resolve(home, facts)
        return None

    def take_up(self, path: str, file: File) -> None:
        """Put new facts in the place of a file's old ones, where each class binds the same names to the same kinds.

        Effect: the classes that were resolved before stand on the new facts, whoever holds them.
        """
        module = self.modules.replace(path, file)
        for (home, name), cls in self._classes.items():
            if home != path:
                continue
            cls.module, cls.facts = module, module.classes[name]
            members = {member.name: member for member in cls.facts.members if not isinstance(member, Deleted)}
            for binding in cls.own.values():
                if binding.owner is cls:
                    binding.member = members[binding.member.name]
                    if binding.expansion is not None and isinstance(binding.member, Function):
                        binding.expansion = expansion(binding.member, module, self.modules, self.effects)

    def collected(self, module: Module) -> Iterator[tuple[str, TestClass]]:
        """The classes that pytest collects from a file: its own, and those that it imports from other tests."""
        for name, facts in module.classes.items():
            cls = self.resolve(module, facts)
            if name not in module.file.deleted and cls.is_collected():
                yield name, cls
        for name, imported in module.imports.items():
            if name in module.classes or name in module.file.deleted or not imported.attribute:
                continue
            cls = self.named(module, name)
            if cls is not None and cls.is_test_case and cls.is_collected():
                yield name, cls

    def _build(self, module: Module, facts: Class) -> TestClass:
        cls = TestClass(module, facts)
        bases: list[TestClass] = []
        for text in facts.bases:
            name = text.partition("[")[0]
            base = self._base(cls, name)
            if base is not None:
                bases.append(base)
        cls.is_test_case = cls.is_test_case or any(base.is_test_case for base in bases)
        cls.has_unseen_base = cls.has_unseen_base or any(base.has_unseen_base for base in bases)
        cls.mro = (cls, *self._merged(cls, bases))
        cls.set_on_instance = frozenset(name for ancestor in cls.mro for name in ancestor.facts.set_on_instance)
        cls.own.update(self._own(cls))
        expanded = (name for name, binding in cls.own.items() if binding.kind == "expanded")
        cls.expanded = frozenset().union(expanded, *(base.expanded for base in bases))
        cls.bindings = {name: binding for ancestor in reversed(cls.mro) for name, binding in ancestor.own.items()}
        if any(ancestor.facts.copies_tests for ancestor in cls.mro[1:]):
            cls.own.update(
                (name, binding)
                for name, binding in cls.bindings.items()
                if name.startswith("test_") and name not in cls.own and binding.runnable
            )
        return cls

    def _base(self, cls: TestClass, name: str) -> TestClass | None:
        match self.modules.find(cls.module, name):
            case Found(module=home, definition=Class() as facts):
                if (home.path, facts.name) in self._open:
                    self._note(cls, f"the bases of {cls.facts.name} lead back to it; {name} is left out of them")
                    return None
                return self.resolve(home, facts)
            case External(name=full):
                if full.startswith("unittest.") and full.endswith("TestCase"):
                    cls.is_test_case = True
                elif full not in _BARE_BASES:
                    cls.has_unseen_base = True
                    cls.is_test_case = cls.is_test_case or full.rpartition(".")[2].startswith("TestCase")
            case Found():
                cls.has_unseen_base = True
            case None if name not in _BARE_BASES:
                cls.has_unseen_base = True
                self._note(cls, f"the base {name} of {cls.facts.name} is not found; what it would bring is left out")
        return None

    def _merged(self, cls: TestClass, bases: Sequence[TestClass]) -> list[TestClass]:
        merged: list[TestClass] = []
        queues = [list(queue) for queue in (*(base.mro for base in bases), bases) if queue]
        while queues:
            head = next((queue[0] for queue in queues if not any(queue[0] in other[1:] for other in queues)), None)
            if head is None:
                self._note(cls, f"Python can't order the bases of {cls.facts.name}; they are read left to right")
                return list(dict.fromkeys([*merged, *(ancestor for queue in queues for ancestor in queue)]))
            merged.append(head)
            queues = [rest for queue in queues if (rest := [item for item in queue if item is not head])]
        return merged

    def _own(self, cls: TestClass) -> Iterator[tuple[str, Binding]]:
        for member in cls.facts.members:
            if isinstance(member, Deleted):
                continue
            made = expansion(member, cls.module, self.modules, self.effects) if isinstance(member, Function) else None
            if made is None:
                kind: BindingKind = "function" if isinstance(member, Function) else "value"
                yield member.name, Binding(cls, member.name, member, kind)
                continue
            yield member.name, Binding(cls, member.name, member, "expanded", made)
            for variant in made.names:
                yield variant, Binding(cls, variant, member, "variant", made)

    def _note(self, cls: TestClass, text: str) -> None:
        self.notices.append(Notice(cls.module.path, cls.facts.line, text))


def variants_of(cls: TestClass, test: str) -> Mapping[str, Binding]:
    """The variants of a parameterised test that a class ends up with, whichever ancestor made them."""
    if test not in cls.expanded:
        return {}
    names: dict[str, None] = {}
    for ancestor in reversed(cls.mro):
        binding = ancestor.own.get(test)
        if binding is not None and binding.owner is ancestor and binding.expansion is not None:
            names |= dict.fromkeys(binding.expansion.names)
    return {name: cls.bindings[name] for name in names if name in cls.bindings}


def _is_runnable(binding: Binding) -> bool:
    if isinstance(binding.member, Value):
        return not _is_plainly_no_callable(binding.member.expression)
    if binding.kind == "expanded":
        return binding.expansion is not None and binding.expansion.phantom
    return binding.member.role != "property"


def _is_plainly_no_callable(expression: str) -> bool:
    return expression[:1] in "\"'([{0123456789-" or expression in ("None", "True", "False")
