"""Scans a checkout: which common test runs in which test class of which model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
class Linked:
    """A scan together with the resolved classes behind it, for what asks further questions of them."""

    scan: Scan
    classes: Classes
    judge: Judge
    mixins: tuple[TestClass, ...]
    collected: Mapping[str, tuple[TestClass, ...]]
    """The collected test classes of each model test file."""


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


def link(files: Files, paths: Iterable[str]) -> Linked:
    """Decide every common test of every model class, from the facts of the files."""
    paths = tuple(paths)
    modules = Modules(files.facts)
    effects = Effects(modules)
    classes = Classes(modules, effects)
    judge = Judge(classes)
    mixins = tuple(_mixins(classes))
    tests = {test.name: test for mixin in mixins for test in _tests_of(mixin)}
    model_classes: list[ModelClass] = []
    collected: dict[str, tuple[TestClass, ...]] = {}
    notices: list[Notice] = []
    for path in paths:
        module = modules.module(path)
        if module is None:
            continue
        notices.extend(_parse_notice(path, module.file))
        named = tuple(classes.collected(module))
        collected[path] = tuple(cls for _, cls in named)
        model_classes.extend(
            made for name, cls in named if (made := _model_class(path, name, cls, mixins, tests, judge)) is not None
        )
    for path in COMMON_FILES:
        module = modules.module(path)
        if module is None:
            notices.append(Notice(path, 1, "is not in this checkout; its common tests are left out"))
        else:
            notices.extend(_parse_notice(path, module.file))
    found = Scan(
        root=files.root,
        models=tuple(sorted({model_of(path) for path in paths})),
        files=paths,
        tests=tests,
        classes=tuple(model_classes),
        notices=tuple(sorted({*notices, *classes.notices, *_shared_names(paths)})),
    )
    return Linked(found, classes, judge, mixins, collected)


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


def _model_class(
    path: str, name: str, cls: TestClass, mixins: tuple[TestClass, ...], tests: Mapping[str, CommonTest], judge: Judge
) -> ModelClass | None:
    inherited = {mixin.facts.name for mixin in mixins if cls.inherits(mixin)}
    if not inherited:
        return None
    outcomes = {
        test.name: outcome
        for test in tests.values()
        if test.mixin in inherited and (outcome := judge.outcome(cls, test.name)) is not None
    }
    lines = (cls.facts.line, cls.facts.end_line) if cls.module.path == path else (1, 1)
    return ModelClass(model_of(path), name, path, *lines, outcomes)


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
