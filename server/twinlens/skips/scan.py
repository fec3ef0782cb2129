"""Scans a checkout: which common test runs in which test class of which model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from twinlens.skips.classes import Classes, TestClass
from twinlens.skips.collector import collector_paused
from twinlens.skips.effects import Effects
from twinlens.skips.facts import File, Function
from twinlens.skips.files import Files
from twinlens.skips.judge import Judge
from twinlens.skips.modules import Modules
from twinlens.skips.notices import Notice, ScanError
from twinlens.skips.results import COMMON_FILES, MODELS_FOLDER, CommonTest, ModelClass, Scan, model_of

Progress = Callable[[int, int], None]
"""Told how many files of how many have been read."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkedFile:
    """One model test file's part of a scan."""

    classes: tuple[ModelClass, ...]
    reached: frozenset[str]
    """The keys of its collected classes and of all that they inherit from."""
    stands_on: frozenset[str]
    """The other model test files that it imports from."""
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """A scan with what it was made of: `relink` takes up an edit, the lints ask further questions of the classes."""

    scan: Scan
    classes: Classes
    files: Mapping[str, LinkedFile]


def scan(files: Files, progress: Progress | None = None) -> Linked:
    """Scan a checkout. Raises `ScanError` where it has no model tests; whatever else is amiss becomes a notice."""
    paths = files.model_tests(MODELS_FOLDER)
    if not paths:
        raise ScanError(
            f"{files.root} has no {MODELS_FOLDER}/**/test_modeling_*.py; "
            "run from the root of a transformers checkout, or name it with --root"
        )
    with collector_paused():
        for index, path in enumerate(paths, 1):
            files.facts(path)
            if progress is not None:
                progress(index, len(paths))
    return link(files, paths)


def link(files: Files, paths: Collection[str]) -> Linked:
    """Decide every common test of every model class, from the facts of the files."""
    with collector_paused():
        linker = _Linker(files, paths)
        return linker.linked({path: linker.file(path) for path in paths})


def relink(before: Linked, files: Files, changed: Collection[str]) -> Linked:
    """The scan after the facts of some files changed.

    Where only model test files changed, those and the ones that stand on them are decided anew. Whatever else changed
    may matter to every class.
    """
    paths = before.scan.files
    if any(path not in before.files for path in changed):
        return link(files, paths)
    with collector_paused():
        linker = _Linker(files, paths)
        anew = {path: linker.file(path) for path in paths if path in changed or _stands_on(path, changed, before)}
        return linker.linked({**before.files, **anew})


def _stands_on(path: str, changed: Collection[str], linked: Linked) -> bool:
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        below = linked.files[waiting.pop()].stands_on - seen
        if not below.isdisjoint(changed):
            return True
        seen |= below
        waiting.extend(below)
    return False


class _Linker:
    """Resolves and decides the classes of test files, one after another, over the same common mixins."""

    def __init__(self, files: Files, paths: Collection[str]) -> None:
        self._files = files
        self._paths = tuple(paths)
        self._known = frozenset(paths)
        self._modules = Modules(files.facts)
        self._classes = Classes(self._modules, Effects(self._modules))
        self._judge = Judge(self._classes)
        self._mixins = tuple(_mixins(self._classes))
        self._tests = {test.name: test for mixin in self._mixins for test in _tests_of(mixin)}
        self._common_notices = tuple(self._of_common_files())

    def file(self, path: str) -> LinkedFile:
        """One model test file, decided."""
        module = self._modules.module(path)
        if module is None:
            return LinkedFile((), frozenset(), frozenset(), ())
        told = len(self._classes.notices)
        collected = list(self._classes.collected(module))
        made = (self._model_class(path, name, cls) for name, cls in collected)
        return LinkedFile(
            classes=tuple(model_class for model_class in made if model_class is not None),
            reached=frozenset(ancestor.key for _, cls in collected for ancestor in cls.mro),
            stands_on=self._modules.imported_paths(module) & self._known - {path},
            notices=(*_parse_notice(path, module.file), *self._classes.notices[told:]),
        )

    def linked(self, files: Mapping[str, LinkedFile]) -> Linked:
        """The whole scan, from the parts of all files."""
        notices = {notice for file in files.values() for notice in file.notices}
        found = Scan(
            root=self._files.root,
            models=tuple(sorted({model_of(path) for path in self._paths})),
            files=self._paths,
            tests=self._tests,
            classes=tuple(cls for path in self._paths for cls in files[path].classes),
            notices=tuple(sorted({*notices, *self._common_notices, *_shared_names(self._paths)})),
        )
        return Linked(found, self._classes, files)

    def _model_class(self, path: str, name: str, cls: TestClass) -> ModelClass | None:
        inherited = {mixin.facts.name for mixin in self._mixins if cls.inherits(mixin)}
        if not inherited:
            return None
        tests = (test.name for test in self._tests.values() if test.mixin in inherited)
        outcomes = self._judge.outcomes(cls, tests)
        lines = (cls.facts.line, cls.facts.end_line) if cls.module.path == path else (1, 1)
        return ModelClass(model_of(path), name, path, *lines, outcomes)

    def _of_common_files(self) -> Iterator[Notice]:
        for path in COMMON_FILES:
            module = self._modules.module(path)
            if module is None:
                yield Notice(path, 1, "is not in this checkout; its common tests are left out")
            else:
                yield from _parse_notice(path, module.file)
        yield from self._classes.notices


def _mixins(classes: Classes) -> Iterator[TestClass]:
    for path in COMMON_FILES:
        module = classes.modules.module(path)
        for facts in module.file.classes if module is not None else ():
            cls = classes.resolve(module, facts) if module is not None else None
            if cls is not None and not cls.is_collected() and any(True for _ in _tests_of(cls)):
                yield cls


def _tests_of(mixin: TestClass) -> Iterator[CommonTest]:
    for name, binding in mixin.own.items():
        member = binding.member
        if not name.startswith("test_") or binding.owner is not mixin or binding.kind == "variant":
            continue
        if isinstance(member, Function) and member.role == "method":
            path = mixin.module.path
            yield CommonTest(name, COMMON_FILES[path], path, member.line, mixin.facts.name)


def _parse_notice(path: str, file: File) -> list[Notice]:
    if not file.error:
        return []
    return [Notice(path, file.error_line, f"does not parse ({file.error}); it is left out until it does")]


def _shared_names(paths: Iterable[str]) -> Iterator[Notice]:
    folders: dict[str, str] = {}
    for path in paths:
        folder = PurePosixPath(path).parent.as_posix()
        first = folders.setdefault(model_of(path), folder)
        if first != folder:
            model = model_of(path)
            yield Notice(path, 1, f"{folder} and {first} both stand for the model {model}; they are counted as one")
