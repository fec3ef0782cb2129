"""The library that a command searches: the one that is named, else one that is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinlens.cli.errors import UserError

if TYPE_CHECKING:
    from twinlens.source.library import Library


def library_near(near: Sequence[Path], folders: Sequence[Path]) -> Library | None:
    """That of `folders`, if any; else a checkout around the paths `near` or the current folder; else the installed one.

    Raises `UserError` where one of `folders` holds no models.
    """
    from importlib.util import find_spec

    from twinlens.source.library import find_library

    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder; name a folder of models with --library")
        if next(folder.rglob("modeling_*.py"), None) is None:
            raise UserError(f"{folder} holds no modeling_*.py file; name a folder of models with --library")
    installed = find_spec("transformers")
    package = Path(installed.origin).parent if installed and installed.origin else None
    return find_library([*near, Path.cwd()], package, folders)
