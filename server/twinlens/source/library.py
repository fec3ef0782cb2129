"""Find the library: the modeling files that a class is compared with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MODELS_OF_A_CHECKOUT = Path("src/transformers/models")

Origin = Literal["folder", "checkout", "installed"]


@dataclass(frozen=True, slots=True)
class Library:
    """Folders whose children are models, each with its `modeling_*.py` files."""

    roots: tuple[Path, ...]
    origin: Origin
    version: str | None

    @property
    def label(self) -> str:
        """What a person reads: `transformers 5.24.0`, or the folder."""
        name = "transformers" if self.origin != "folder" else ", ".join(str(root) for root in self.roots)
        return f"{name} {self.version}" if self.version else name


@dataclass(frozen=True, slots=True)
class ModelingFile:
    """One file of a library; `relative` is its path below the root, as in an index's identifiers."""

    path: Path
    relative: str
    model: str


def find_library(
    near: Sequence[Path] = (), installed_package: Path | None = None, folders: Sequence[Path] = ()
) -> Library | None:
    """The library to search: `folders` that the user names; else the transformers checkout that contains one of the
    paths in `near` or stands in it; else the installed package at `installed_package`. None where there is none.
    """
    if folders:
        roots = tuple(_models_folder(folder.expanduser().resolve()) for folder in folders)
        return Library(roots, "folder", next(filter(None, map(_version_above, roots)), None))
    for path in near:
        models = _checkout_models(path.resolve())
        if models is not None:
            return Library((models,), "checkout", _version_above(models))
    if installed_package is not None and (models := installed_package / "models").is_dir():
        return Library((models.resolve(),), "installed", _version_above(models))
    return None


def modeling_files(library: Library) -> tuple[ModelingFile, ...]:
    """Every PyTorch modeling file, by relative path; of two with one relative path the first root's."""
    return _files(library, "modeling_*.py")


def modular_files(library: Library) -> tuple[ModelingFile, ...]:
    """Every file that the library's converter turns into a modeling file, by relative path."""
    return _files(library, "modular_*.py")


def file_at(library: Library, path: Path) -> ModelingFile | None:
    """The modeling or modular file at `path`, which need not exist any more; None where the library has none there."""
    is_one = any(path.match(pattern) for pattern in ("modeling_*.py", "modular_*.py"))
    for place, root in enumerate(library.roots):
        if is_one and path.is_relative_to(root) and not _is_of_another_framework(path):
            relative = path.relative_to(root).as_posix()
            is_hidden = any((other / relative).is_file() for other in library.roots[:place])
            return None if is_hidden else ModelingFile(path, relative, model_of(path, root))
    return None


def _files(library: Library, pattern: str) -> tuple[ModelingFile, ...]:
    found: dict[str, ModelingFile] = {}
    for root in library.roots:
        for path in root.rglob(pattern):
            relative = path.relative_to(root).as_posix()
            if not _is_of_another_framework(path):
                found.setdefault(relative, ModelingFile(path, relative, model_of(path, root)))
    return tuple(found[relative] for relative in sorted(found))


def model_of(path: Path, root: Path | None = None) -> str:
    """The model that a file belongs to: its folder below `root`, else the `X` of `modeling_X.py`, else its stem."""
    if root is not None and len(parts := path.relative_to(root).parts) > 1:
        return parts[0]
    return file_stem(path)


def file_stem(path: Path) -> str:
    """The `X` of `modeling_X.py` or `modular_X.py`; another file's stem as it is."""
    return re.sub(r"^(modeling|modular)_(?=.)", "", path.stem)


def model_of_file(path: Path, library: Library | None) -> str:
    """The model of any file: by its place in the library where it lies in one, else by its name."""
    for root in library.roots if library else ():
        if path.is_relative_to(root):
            return model_of(path, root)
    return file_stem(path)


def _checkout_models(path: Path) -> Path | None:
    for folder in (path, *path.parents):
        models = folder / MODELS_OF_A_CHECKOUT
        if models.is_dir():
            return models
    return None


def _models_folder(folder: Path) -> Path:
    for inside in (MODELS_OF_A_CHECKOUT, Path("models")):
        if (folder / inside).is_dir() and any((folder / inside).glob("*/modeling_*.py")):
            return folder / inside
    return folder


def _version_above(models: Path) -> str | None:
    init = models.parent / "__init__.py"
    if not init.is_file():
        return None
    found = re.search(r"^__version__\s*=\s*[\"']([^\"']+)[\"']", init.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else None


def _is_of_another_framework(path: Path) -> bool:
    framework = re.match(r"modeling_(tf|flax)_", path.name)
    return framework is not None and not path.parent.name.startswith(framework[1])
