"""Lend a pure Python package of the server's to an interpreter that lacks it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def folder_of(package: str) -> str | None:
    """Where this interpreter has `package`; None where it has none."""
    found = importlib.util.find_spec(package)
    return str(Path(found.origin).parent) if found and found.origin else None


def borrow(folder: Path) -> None:
    """Import the package in `folder` under its own name, unless this interpreter has it itself.

    Only this one package is lent: the folder around it may hold others, built for another Python.
    """
    name = folder.name
    if importlib.util.find_spec(name) is not None:
        return
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} holds no package")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
