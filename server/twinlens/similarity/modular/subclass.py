"""The subclass: the attributes and methods in which a class differs from its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from twinlens.similarity.modular.initialiser import shortened_initialiser, with_explicit_super_calls
from twinlens.similarity.modular.parent import ModelingSource, Statement
from twinlens.source.sanitise import PLACEHOLDER

_HARMLESS = {"extra_repr"}
"""Methods of the parent that may stay: they change no number."""

_REFUSAL = m.SimpleStatementLine(body=[m.Raise(exc=m.Call(func=m.Name("AttributeError")))])

_DOCSTRING = m.SimpleStatementLine(body=[m.Expr(value=m.SimpleString() | m.ConcatenatedString())])


def subclass(
    child: cst.ClassDef, child_source: ModelingSource, parent: cst.ClassDef, parent_source: ModelingSource
) -> cst.ClassDef:
    """`child` as a class whose one base is `parent`, with only what differs; `pass` where nothing does.

    A decorator that `parent` has and `child` has not is inherited: a modular file cannot take it away.
    """
    same_decorators = child_source.decorators(child) == parent_source.decorators(parent)
    body = _spaced(_Difference(child_source, parent_source).of(child, parent))
    return child.with_changes(
        bases=[cst.Arg(cst.Name(parent.name.value))],
        keywords=(),
        lpar=cst.LeftParen(),
        rpar=cst.RightParen(),
        decorators=() if same_decorators else child.decorators,
        body=cst.IndentedBlock(body or [cst.SimpleStatementLine([cst.Pass()])]),
        leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)],
        lines_after_decorators=(),
    )


@dataclass(frozen=True, slots=True)
class _Difference:
    child_source: ModelingSource
    parent_source: ModelingSource

    def of(self, child: cst.ClassDef, parent: cst.ClassDef) -> list[Statement]:
        return [*self._docstring(child, parent), *self._attributes(child, parent), *self._methods(child, parent)]

    def _docstring(self, child: cst.ClassDef, parent: cst.ClassDef) -> list[Statement]:
        ours, theirs = docstring(child), docstring(parent)
        if ours is None or (theirs is not None and self._equal(ours, theirs)):
            return []
        return [ours]

    def _attributes(self, child: cst.ClassDef, parent: cst.ClassDef) -> list[Statement]:
        ours, theirs = _attributes(child), _attributes(parent)
        changed = [node for name, node in ours.items() if name not in theirs or not self._equal(node, theirs[name])]
        dropped = [cst.parse_statement(f"{name} = AttributeError()") for name in theirs if name not in ours]
        return [*dropped, *changed]

    def _methods(self, child: cst.ClassDef, parent: cst.ClassDef) -> list[Statement]:
        ours, theirs = _methods(child), _methods(parent)
        changed: list[Statement] = []
        for name, node in ours.items():
            if name not in theirs:
                changed.append(with_explicit_super_calls(node, parent))
            elif not self._same_method(node, theirs[name]):
                changed.append(self._override(node, theirs[name], parent))
        unwanted = [node for name, node in theirs.items() if name not in ours and name not in _HARMLESS]
        return changed + [_deletion(node, child.name.value) for node in unwanted]

    def _override(self, ours: cst.FunctionDef, theirs: cst.FunctionDef, parent: cst.ClassDef) -> cst.FunctionDef:
        shorter = shortened_initialiser(ours, theirs, self.child_source, self.parent_source)
        return shorter or with_explicit_super_calls(ours, parent)

    def _same_method(self, ours: cst.FunctionDef, theirs: cst.FunctionDef) -> bool:
        """Whether both do the same: annotations count only where they name another class of the model, and a decorator
        of the parent's comes along.
        """
        if self.child_source.decorators(ours) not in ([], self.parent_source.decorators(theirs)):
            return False
        annotated, inherited = _own_annotations(ours, self.child_source), _own_annotations(theirs, self.parent_source)
        renamed = any(inherited.get(name, text) != text for name, text in annotated.items())
        return not renamed and self._equal(without_annotations(ours), without_annotations(theirs))

    def _equal(self, ours: cst.CSTNode, theirs: cst.CSTNode) -> bool:
        return self.child_source.sanitised(ours) == self.parent_source.sanitised(theirs)


def inherited_decorators(child: cst.ClassDef, parent: cst.ClassDef) -> list[str]:
    """Where `parent` has decorators that `child` takes over with it: the class itself, or `name()` of a method."""
    ours, theirs = _methods(child), _methods(parent)
    places = [f"{name}()" for name in ours if name in theirs and theirs[name].decorators and not ours[name].decorators]
    return (["the class"] if parent.decorators and not child.decorators else []) + places


def _own_annotations(method: cst.FunctionDef, source: ModelingSource) -> dict[str, str]:
    """Parameter to annotation, where that names a class of the model itself, such as its configuration."""
    parameters = (*method.params.posonly_params, *method.params.params, *method.params.kwonly_params)
    written = {p.name.value: source.sanitised(p.annotation.annotation) for p in parameters if p.annotation is not None}
    return {name: text for name, text in written.items() if PLACEHOLDER in text}


def without_annotations(method: cst.FunctionDef) -> cst.FunctionDef:
    return cst.ensure_type(method.visit(_WithoutAnnotations()), cst.FunctionDef)


class _WithoutAnnotations(cst.CSTTransformer):
    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        # Then `eps=1e-6` and `eps: float = 1e-6` read the same.
        return updated_node.with_changes(annotation=None, equal=cst.MaybeSentinel.DEFAULT)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return updated_node.with_changes(returns=None)


def docstring(node: cst.ClassDef | cst.FunctionDef) -> Statement | None:
    first = next(iter(node.body.body), None)
    return first if isinstance(first, cst.SimpleStatementLine) and m.matches(first, _DOCSTRING) else None


def _attributes(node: cst.ClassDef) -> dict[str, cst.SimpleStatementLine]:
    found: dict[str, cst.SimpleStatementLine] = {}
    for statement in node.body.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        match statement.body[0]:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name)), *_]):
                found[name] = statement
            case cst.AnnAssign(target=cst.Name(value=name)):
                found[name] = statement
    return found


def _methods(node: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    """By name; a property's setter and deleter apart from its getter."""
    found: dict[str, cst.FunctionDef] = {}
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef):
            accessor = next(
                (d.decorator.attr.value for d in statement.decorators if isinstance(d.decorator, cst.Attribute)), ""
            )
            suffix = f".{accessor}" if accessor in ("setter", "deleter") else ""
            found[statement.name.value + suffix] = statement
    return found


def _deletion(method: cst.FunctionDef, child: str) -> cst.FunctionDef:
    """How a modular file says that a method of the parent is not inherited.

    The converter looks for the signature on one line, under a blank line.
    """
    parameters = cst.Module(body=[]).code_for_node(method.params)
    written = parameters if "\n" not in parameters and len(parameters) < 80 else "self, *args, **kwargs"
    stub = cst.parse_statement(
        f'def {method.name.value}({written}):\n    raise AttributeError("Not needed for {child}")\n'
    )
    return cst.ensure_type(stub, cst.FunctionDef)


def _spaced(body: Sequence[Statement]) -> list[Statement]:
    """A blank line before each method but a first one; a first deletion has one, for the converter looks for it."""
    spaced: list[Statement] = []
    for place, node in enumerate(body):
        comments = [line for line in getattr(node, "leading_lines", ()) if line.comment is not None]
        apart = isinstance(node, cst.FunctionDef) and (place > 0 or m.matches(node.body.body[0], _REFUSAL))
        blank = [cst.EmptyLine(indent=False)] if apart else []
        spaced.append(node.with_changes(leading_lines=[*blank, *comments]))
    return spaced
