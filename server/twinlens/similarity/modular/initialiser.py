"""How an override calls its parent in a modular file.

The converter replaces a statement `super().method(…)` by the body of the parent's method, then lets each assignment
that follows replace the parent's to the same target, drops what `del` names, and appends the rest; `post_init()` goes
last. A plain call of the grandparent is written `nn.Module.__init__(self)` instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from twinlens.similarity.modular.parent import ModelingSource, Statement

_MOST_THAT_MAY_DIFFER = 0.6


def shortened_initialiser(
    ours: cst.FunctionDef, theirs: cst.FunctionDef, child: ModelingSource, parent: ModelingSource
) -> cst.FunctionDef | None:
    """`ours` as `super().__init__(…)` and the statements that differ; None where that would not give `ours` back."""
    if ours.name.value != "__init__" or not _accepts(ours, theirs):
        return None
    our_body, their_body = _statements(ours), _statements(theirs)
    if not any(_is_super_call(node) for node in their_body):
        return None
    wanted = [child.sanitised(node) for node in our_body]
    inherited = [parent.sanitised(node) for node in their_body]
    added = [node for node, text in zip(our_body, wanted, strict=True) if text not in inherited]
    deleted = _deleted_targets(our_body, their_body, child, parent)
    if deleted is None or len(added) + len(deleted) > _MOST_THAT_MAY_DIFFER * len(wanted):
        return None
    if _converted(their_body, inherited, added, [child.sanitised(node) for node in added], deleted, parent) != wanted:
        return None
    call = cst.parse_statement(f"super().__init__({_arguments(theirs)})")
    deletions = [cst.parse_statement(f"del {target}") for target in deleted]
    docstring = [node for node in ours.body.body if isinstance(node, cst.SimpleStatementLine) and node not in our_body]
    return ours.with_changes(body=cst.IndentedBlock([*docstring, call, *deletions, *added]))


def with_explicit_super_calls(method: cst.FunctionDef, parent: cst.ClassDef) -> cst.FunctionDef:
    """`method` with `super().name(…)` written as a call of the parent's own base, so that it is not unrolled."""
    base = parent.bases[0].value if parent.bases else cst.Name("object")
    if isinstance(base, cst.Name) and base.value.endswith("PreTrainedModel"):
        # The converter knows this name for every model's own base class.
        base = cst.Name("PreTrainedModel")
    changed = method.visit(_ExplicitCalls(method.name.value, base))
    assert isinstance(changed, cst.FunctionDef)
    return changed


class _ExplicitCalls(cst.CSTTransformer):
    def __init__(self, method: str, base: cst.BaseExpression) -> None:
        self._call = m.Call(func=m.Attribute(value=m.Call(func=m.Name("super"), args=[]), attr=m.Name(method)))
        self._base = base

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if not m.matches(original_node, self._call):
            return updated_node
        function = cst.ensure_type(updated_node.func, cst.Attribute).with_changes(value=self._base)
        first = cst.Arg(cst.Name("self"), comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(func=function, args=[first, *updated_node.args])


def _statements(method: cst.FunctionDef) -> list[Statement]:
    docstring = m.SimpleStatementLine(body=[m.Expr(value=m.SimpleString())])
    return [node for node in method.body.body if isinstance(node, Statement) and not m.matches(node, docstring)]


def _is_super_call(node: Statement) -> bool:
    call = m.Call(func=m.Attribute(value=m.Call(func=m.Name("super")), attr=m.Name("__init__")))
    return m.matches(node, m.SimpleStatementLine(body=[m.Expr(value=call)]))


def _accepts(ours: cst.FunctionDef, theirs: cst.FunctionDef) -> bool:
    return set(_parameter_names(theirs)) <= set(_parameter_names(ours)) and _starred(theirs) == _starred(ours)


def _parameter_names(method: cst.FunctionDef) -> list[str]:
    parameters = method.params
    return [p.name.value for p in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)]


def _starred(method: cst.FunctionDef) -> tuple[str, str]:
    star, kwarg = method.params.star_arg, method.params.star_kwarg
    return (star.name.value if isinstance(star, cst.Param) else "", kwarg.name.value if kwarg else "")


def _arguments(theirs: cst.FunctionDef) -> str:
    positional = [p.name.value for p in (*theirs.params.posonly_params, *theirs.params.params)][1:]
    keywords = [f"{p.name.value}={p.name.value}" for p in theirs.params.kwonly_params]
    star, kwarg = _starred(theirs)
    rest = [f"*{star}"] if star else []
    return ", ".join([*positional, *rest, *keywords, *([f"**{kwarg}"] if kwarg else [])])


def _target(node: Statement, source: ModelingSource) -> str | None:
    if isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Assign):
        return source.tree.code_for_node(node.body[0].targets[0].target)
    return None


def _deleted_targets(
    ours: Sequence[Statement],
    theirs: Sequence[Statement],
    child: ModelingSource,
    parent: ModelingSource,
) -> list[str] | None:
    """The targets that the parent assigns and we do not; None where we lack a statement that is no assignment."""
    our_targets = {_target(node, child) for node in ours}
    our_texts = {child.sanitised(node) for node in ours}
    lacking = [node for node in theirs if parent.sanitised(node) not in our_texts]
    targets = [_target(node, parent) for node in lacking]
    if any(target is None for target in targets):
        return None
    return [target for target in targets if target is not None and target not in our_targets]


def _converted(
    theirs: Sequence[Statement],
    inherited: Sequence[str],
    added: Sequence[Statement],
    added_texts: Sequence[str],
    deleted: Sequence[str],
    parent: ModelingSource,
) -> list[str]:
    """The statements that the converter makes of `super().__init__(…)` and what follows it."""
    replacing = {
        target: text
        for node, text in zip(added, added_texts, strict=True)
        if (target := _target(node, parent)) is not None
    }
    body = [
        replacing.get(target, text) if (target := _target(node, parent)) is not None else text
        for node, text in zip(theirs, inherited, strict=True)
        if _target(node, parent) not in deleted
    ]
    body += [text for text in added_texts if text not in body]
    last = [text for text in body if "self.post_init(" in text]
    return [text for text in body if text not in last] + last
