"""Scans a checkout: which common test runs in which test class of which model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
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
from twinlens.skips.retest import calls_to_tests, edited_tests, relocated, with_callers

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
    calls: frozenset[tuple[str, str]]
    """Which of its functions calls which test, by name."""
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

    Where only model test files changed, those and the ones that stand on them are decided anew. Where only tests of one
    common file changed, those tests are; the classes of the earlier scan are taken over then. Whatever else changed may
    matter to every class.
    """
    paths = before.scan.files
    with collector_paused():
        if any(path not in before.files for path in changed):
            again = _retested(before, files, *changed) if len(changed) == 1 else None
            return again or link(files, paths)
        linker = _Linker(files, paths)
        anew = {path: linker.file(path) for path in paths if path in changed or _stands_on(path, changed, before)}
        return linker.linked({**before.files, **anew})


def _retested(before: Linked, files: Files, path: str) -> Linked | None:
    """The scan after an edit that changed nothing but tests of a common file; `None` where it changed more."""
    modules, file = before.classes.modules, files.facts(path)
    module = modules.module(path) if path in COMMON_FILES else None
    if module is None or file is None:
        return None
    edit = edited_tests(module.file, file)
    if edit is None:
        return None
    lines_now = edit.lines
    common = [home.file for name in COMMON_FILES if (home := modules.module(name)) is not None]
    calls = frozenset().union(*(part.calls for part in before.files.values()), *map(calls_to_tests, [*common, file]))
    tests = with_callers(edit.tests, calls)
    if tests is None:
        return None
    before.classes.take_up(path, file)
    judge, known = Judge(before.classes), {}

    def decided_anew(cls: ModelClass) -> ModelClass:
        outcomes = {test: relocated(outcome, path, lines_now, known) for test, outcome in cls.outcomes.items()}
        mine = tests & outcomes.keys()
        home = modules.module(cls.path) if mine else None
        resolved = before.classes.named(home, cls.name) if home is not None else None
        if resolved is not None:
            outcomes |= judge.outcomes(resolved, mine)
        return replace(cls, outcomes=outcomes)

    parts = {
        name: replace(part, classes=tuple(decided_anew(cls) for cls in part.classes))
        for name, part in before.files.items()
    }
    lines = {(cls.name, member.name): member.line for cls in file.classes for member in cls.members}
    scan = replace(
        before.scan,
        tests={
            name: replace(test, line=lines[test.mixin, name]) if test.path == path else test
            for name, test in before.scan.tests.items()
        },
        classes=tuple(cls for name in before.scan.files for cls in parts[name].classes),
        counted={test: count for test, count in before.scan.counted.items() if test not in tests},
    )
    return Linked(scan, before.classes, parts)


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
            return LinkedFile((), frozenset(), frozenset(), frozenset(), ())
        told = len(self._classes.notices)
        collected = list(self._classes.collected(module))
        made = (self._model_class(path, name, cls) for name, cls in collected)
        return LinkedFile(
            classes=tuple(model_class for model_class in made if model_class is not None),
            reached=frozenset(ancestor.key for _, cls in collected for ancestor in cls.mro),
            stands_on=self._modules.imported_paths(module) & self._known - {path},
            calls=calls_to_tests(module.file),
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
