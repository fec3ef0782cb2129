"""Paths that mean something on another machine."""

from __future__ import annotations

from pathlib import Path


def shared_path(file: Path, qualified_name: str, root: Path) -> str:
    """`file` of an installed package from the package on, else relative to `root`, else from the package on that
    `qualified_name`, the dotted name of something in it, begins with."""
    installed = [place for place, part in enumerate(file.parts) if part in ("site-packages", "dist-packages")]
    if installed:
        return Path(*file.parts[installed[-1] + 1 :]).as_posix()
    if file.is_relative_to(root):
        return file.relative_to(root).as_posix()
    names = qualified_name.split(".")
    modules = [Path(*names[:count]).with_suffix(".py") for count in range(len(names), 0, -1)]
    return next((path.as_posix() for path in modules if file.parts[-len(path.parts) :] == path.parts), file.name)
