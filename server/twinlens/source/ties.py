"""What one library file says of where its definitions come from: bases of another model, `# Copied from` comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from twinlens.source.definitions import dotted_name, parse

TieKind = Literal["inherits", "copied"]

_MODELS_PACKAGE = ("transformers", "models")
_COPIED_FROM = re.compile(r"#.*?\bCopied from\s+`?(?P<path>[A-Za-z_][\w.]*\.[A-Za-z_]\w*)")
_COMMENT_LINE = re.compile(r"\s*#")


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a module of the library; `module` is its path below the models folder, as in `llama/modeling_llama`."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Tie:
    """`child`, a definition of the file at hand, inherits from or was copied from `parent`."""

    child: str
    parent: Reference
    kind: TieKind


@dataclass(frozen=True, slots=True)
class FileTies:
    """The ties of one file, and the names that it imports from other modules of the library, by their local name."""

    ties: tuple[Tie, ...] = ()
    imports: tuple[tuple[str, Reference], ...] = ()


NO_TIES = FileTies()


def is_modular(file: str) -> bool:
    """Whether `file` is a modular file: one that the library's converter turns into modeling files."""
    return file.rsplit("/", 1)[-1].startswith("modular_")


def read_ties(text: str, file: str) -> FileTies:
    """The ties of the Python source `text`; `file` is its path below the models folder, as in `llama/modular_llama.py`.

    A base or a copy counts where it names a definition of another file. Bases are followed through the file's imports
    and aliases; what an import leads to in the other file is `Lineage`'s to find out. Raises `SyntaxError`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return ties_of(parse(text), text.split("\n"), file)


def ties_of(tree: ast.Module, lines: Sequence[str], file: str) -> FileTies:
    """`read_ties` of a text that is parsed already; `lines` are the text's."""
    imports = dict(_imports(tree, file))
    inherited = (
        Tie(node.name, reference, "inherits")
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if (reference := _follow(dotted_name(base), imports)) is not None
    )
    copied = (
        Tie(node.name, reference, "copied")
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
        if (reference := _copied_from(node, lines)) is not None
    )
    ties = tuple(dict.fromkeys((*inherited, *copied)))
    return FileTies(ties, tuple((name, reference) for name, reference in imports.items() if reference.name))


def _imports(tree: ast.Module, file: str) -> Iterator[tuple[str, Reference]]:
    """Local name → what it stands for; a reference with an empty name is a module."""
    package = file.split("/")[:-1]
    known: dict[str, Reference] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            module = _library_module(node, package)
            for alias in node.names if module is not None else ():
                known[alias.asname or alias.name] = Reference(str(module), alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                module = _below_models(alias.name.split("."))
                if module is not None:
                    known[alias.asname or alias.name] = Reference(module, "")
        elif isinstance(node, ast.Assign) and (reference := _follow(dotted_name(node.value), known)) is not None:
            known |= {target.id: reference for target in node.targets if isinstance(target, ast.Name)}
    yield from known.items()


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            yield from _statements(node.body)
            yield from _statements(node.orelse)


def _library_module(node: ast.ImportFrom, package: Sequence[str]) -> str | None:
    named = (node.module or "").split(".") if node.module else []
    if node.level == 0:
        return _below_models(named)
    home = [*_MODELS_PACKAGE, *package]
    return _below_models([*home[: len(home) - node.level + 1], *named]) if node.level <= len(home) else None


def _below_models(parts: Sequence[str]) -> str | None:
    inside = tuple(parts[:2]) == _MODELS_PACKAGE and len(parts) > len(_MODELS_PACKAGE)
    return "/".join(parts[2:]) if inside else None


def _follow(name: str, imports: dict[str, Reference]) -> Reference | None:
    """What `name` or `module.name` stands for, if the file imported it from the library."""
    if name in imports and imports[name].name:
        return imports[name]
    owner, _, attribute = name.rpartition(".")
    if owner in imports:
        found = imports[owner]
        return Reference("/".join(filter(None, (found.module, found.name))), attribute)
    return None


def _copied_from(node: ast.ClassDef | ast.FunctionDef, lines: Sequence[str]) -> Reference | None:
    """The origin in the comment lines above the definition, or above one of its decorators."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    for line in (*_comments_above(first, lines), *lines[first - 1 : node.lineno]):
        found = _COPIED_FROM.search(line)
        if found and (reference := copied_reference(found["path"])) is not None:
            return reference
    return None


def _comments_above(line: int, lines: Sequence[str]) -> Iterable[str]:
    above = line - 2
    while above >= 0 and _COMMENT_LINE.match(lines[above]):
        yield lines[above]
        above -= 1


def copied_reference(path: str) -> Reference | None:
    """The definition behind the dotted path of a `# Copied from` comment; None for a method's or a foreign path."""
    parts = path.split(".")
    if "models" not in parts[:2] or len(parts) < 3:
        return None
    *module, name = parts[parts.index("models") + 1 :]
    ends_in_a_module = bool(module) and not module[-1][:1].isupper()
    return Reference("/".join(module), name) if ends_in_a_module else None
