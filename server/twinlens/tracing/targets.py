"""What the user names to be traced, and importing it: `file.py::Name`, `module:Name`, or a recipe's name.

A file is imported as the module that it is of its package, so that its relative imports work: the package's parent is
put in front of `sys.path`. A file that uses relative imports beside no `__init__.py`, as Hub repositories have it, is
given its folder as a package.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import types
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from twinlens.tracing.errors import RAISED, UsageError, UserCodeError
from twinlens.tracing.folders import RECIPES_FOLDER


@dataclass(frozen=True, slots=True)
class Target:
    """`text` is what the user wrote; of `file`, `module` and none of both, `name` is an attribute."""

    text: str
    name: str
    file: Path | None = None
    module: str | None = None


def parse_target(text: str, folder: Path) -> Target:
    """The target that `text` names; files are relative to `folder`.

    Raises:
        UsageError: it is none, or the file does not exist.
    """
    if "::" in text:
        path, _, name = text.rpartition("::")
        file = (folder / path).resolve()
        if not file.is_file() or file.suffix != ".py":
            fault = "is no Python file" if path and file.exists() else "does not exist"
            raise UsageError(f"{path or text} {fault}; name a Python file, as in modeling_x.py::XModel.")
        _check_name(text, name)
        return Target(text, name, file=file)
    if ":" in text:
        module, _, name = text.rpartition(":")
        _check_name(text, name)
        return Target(text, name, module=module)
    if text.endswith(".py"):
        raise UsageError(f"{text} names a file and nothing in it; name a class or recipe too, as in {text}::XModel.")
    _check_name(text, text)
    return Target(text, text)


def _check_name(text: str, name: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(
            f"{text} is no target; write file.py::Class, module:Class, file.py::recipe or a recipe's name."
        )


def load_target(target: Target) -> Any:
    """Import the target's module and return what its name stands for.

    Raises:
        UsageError: there is no such module or name.
        UserCodeError: importing raised.
    """
    module = import_file(target.file) if target.file else _import_module(str(target.module))
    value: Any = module
    for part in target.name.split("."):
        scope, value = value, getattr(value, part, None)
        if value is None:
            where = target.file or f"module {target.module}"
            near = suggestion(part, [name for name in dir(scope) if not name.startswith("_")])
            raise UsageError(f"{where} has no {target.name}; {near or 'name a class or a recipe that it defines.'}")
    return value


def suggestion(name: str, known: Sequence[str]) -> str:
    """`did you mean …?`, where one of `known` is spelt nearly as `name` is, the first of them; else empty."""
    by_lower_case = {other.lower(): other for other in reversed(known)}
    near = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.7)
    return f"did you mean {by_lower_case[near[0]]}?" if near else ""


def _import_module(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"There is no module {name}; run in the folder or environment that has it.") from error
        raise UserCodeError(f"importing {name}") from error
    except RAISED as error:
        raise UserCodeError(f"importing {name}") from error


def import_file(file: Path) -> ModuleType:
    """The module of a Python file. Raises `UserCodeError` where importing does."""
    file = file.resolve()
    try:
        if file.parent.parts[-2:] == RECIPES_FOLDER.parts:
            _prefer(file.parents[2])
            return _import_by_path(file)
        root, name = _module_name(file)
        _prefer(root)
        module = importlib.import_module(name)
        if not _is_module_of(module, file):  # a module of this name from elsewhere was imported before
            module = _import_by_path(file)
    except RAISED as error:
        raise UserCodeError(f"importing {file.name}") from error
    return module


def _prefer(folder: Path) -> None:
    """Modules of `folder` can be imported, and come before others of their name."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _is_module_of(module: ModuleType, file: Path) -> bool:
    with suppress(OSError):
        return Path(getattr(module, "__file__", None) or "").samefile(file)
    return False


def _module_name(file: Path) -> tuple[Path, str]:
    """(the folder to import from, the dotted name of the file's module there)."""
    parts = [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__":
        parts.pop()
    if len(parts) == 1 and _has_relative_imports(file):
        package = _package_of_folder(folder)
        return folder, f"{package}.{parts[0]}"
    return folder, ".".join(parts)


def _has_relative_imports(file: Path) -> bool:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return False  # importing it will say what is wrong
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(tree))


def _package_of_folder(folder: Path) -> str:
    """Register `folder` as a package of its own name, made an identifier that no other module has."""
    name = f"{re.sub(r'[^0-9a-zA-Z_]', '_', folder.name)}_folder"
    package = sys.modules.get(name)
    if package is None:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def _import_by_path(file: Path) -> ModuleType:
    """Under a name that is this path's alone: a recipe file is often named as the model that it is for."""
    name = f"{file.stem}_{blake2b(str(file).encode(), digest_size=6).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None or specification.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
