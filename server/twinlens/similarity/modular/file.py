"""The modular file: written anew, or extended in place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from twinlens.similarity.modular.dependencies import needed_by
from twinlens.similarity.modular.imports import import_from, with_imports
from twinlens.similarity.modular.parent import ModelingSource, NotInheritableError, Parent, Statement
from twinlens.similarity.modular.subclass import inherited_decorators, subclass
from twinlens.source.library import file_stem

_BLANK = cst.EmptyLine(indent=False)
_GENERATED = "automatically generated"


@dataclass(frozen=True, slots=True)
class ModularFile:
    """The file to write; `notes` are sentences that a person should read before relying on it."""

    path: Path
    text: str
    notes: tuple[str, ...] = ()


def inherit(
    modeling: str, path: Path, class_name: str, parent: Parent, modular: str | None, model: str | None = None
) -> ModularFile:
    """The modular file beside the modeling file at `path`, with `class_name` inheriting from `parent`.

    `modeling` and `modular` are the texts of the two files, `modular` None where there is none yet. A class of that
    name in it is replaced; everything else stays as it is. Raises `NotInheritableError`.
    """
    model = model or file_stem(path)
    child = ModelingSource.read(modeling, (model, file_stem(path)))
    ancestor = ModelingSource.read(parent.source, (parent.model, file_stem(Path(parent.relative))))
    target = path.with_name(f"modular_{file_stem(path)}.py")
    tree = _parse_modular(modular, target) if modular is not None else _new_file(child)
    ours, theirs = child.class_named(class_name), ancestor.class_named(parent.name)
    wanted = subclass(ours, child, theirs, ancestor)
    needed = needed_by(wanted, child, ancestor, parent, _bound_names(tree) - {class_name})
    tree = with_imports(tree, [*needed.imports, import_from(parent.module, needed.inherited)])
    order = list(_order(child.tree))
    for statement in (*needed.statements, wanted):
        tree = _placed(tree, statement, order)
    notes = [f"{place} takes over a decorator of {parent.name}." for place in inherited_decorators(ours, theirs)]
    return ModularFile(target, _with_exports(tree, child.tree, class_name).code, tuple(notes))


def _parse_modular(text: str, path: Path) -> cst.Module:
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise NotInheritableError(f"{path} does not parse at line {error.raw_line}; mend it first.") from error


def _new_file(child: ModelingSource) -> cst.Module:
    """An empty file under the licence of the modeling file."""
    header = [line for line in child.tree.header if line.comment is not None]
    licence = [] if any(_GENERATED in line.comment.value for line in header if line.comment) else header
    return cst.Module(body=[], header=licence)


def _bound_names(tree: cst.Module) -> set[str]:
    names = set(_order(tree))
    for statement in tree.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for part in statement.body:
                if isinstance(part, (cst.Import, cst.ImportFrom)) and not isinstance(part.names, cst.ImportStar):
                    names |= {a.evaluated_alias or a.evaluated_name.split(".")[0] for a in part.names}
    return names


def _order(tree: cst.Module) -> list[str]:
    """The names that the module's statements define, in order."""
    return [name for statement in tree.body if (name := _defined_name(statement)) is not None]


def _defined_name(statement: Statement) -> str | None:
    if isinstance(statement, (cst.ClassDef, cst.FunctionDef)):
        return statement.name.value
    if isinstance(statement, cst.SimpleStatementLine):
        match statement.body[0]:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name)), *_]):
                return name
            case cst.AnnAssign(target=cst.Name(value=name)):
                return name
    return None


def _placed(tree: cst.Module, statement: Statement, order: Sequence[str]) -> cst.Module:
    """`tree` with the statement in place of the one of its name, else where the modeling file's order has it."""
    name = _defined_name(statement)
    body = list(tree.body)
    present = [_defined_name(node) for node in body]
    if name in present:
        place = present.index(name)
        body[place] = statement.with_changes(leading_lines=body[place].leading_lines)
        return tree.with_changes(body=body)
    later = set(order[order.index(name) + 1 :]) | {"__all__"} if name in order else {"__all__"}
    place = next((place for place, found in enumerate(present) if found in later), len(body))
    body.insert(place, statement.with_changes(leading_lines=[_BLANK, _BLANK]))
    return tree.with_changes(body=body)


def _with_exports(tree: cst.Module, modeling: cst.Module, class_name: str) -> cst.Module:
    """The class in `__all__`, where the modeling file exports it."""
    if class_name not in _exports(modeling):
        return tree
    present = _exports(tree)
    if class_name in present:
        return tree
    wanted = [name for name in _exports(modeling) if name in {*present, class_name}]
    wanted += [name for name in present if name not in wanted]
    written = f"__all__ = [{', '.join(map(repr, wanted))}]".replace("'", '"')
    if len(written) > 119:
        written = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in wanted) + "]"
    statement = cst.parse_statement(written).with_changes(leading_lines=[_BLANK, _BLANK])
    body = [node for node in tree.body if _defined_name(node) != "__all__"]
    return tree.with_changes(body=[*body, statement])


def _exports(tree: cst.Module) -> list[str]:
    for statement in tree.body:
        if _defined_name(statement) == "__all__":
            return re.findall(r"[\"'](\w+)[\"']", tree.code_for_node(statement))
    return []
