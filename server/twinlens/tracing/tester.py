"""The model tester of a library's own tests: its small config and inputs, for the class that it tests.

`tests/models/<model>/test_modeling_<model>.py` beside the library holds test classes whose `setUp` makes a
`model_tester`; `prepare_config_and_inputs_for_common()` of it gives `(config, inputs)`.
"""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from twinlens.tracing.errors import RAISED, UserCodeError
from twinlens.tracing.recipes import Prepared, seed_everything
from twinlens.tracing.targets import import_file


def tester_file(file: Path) -> Path | None:
    """The test file for the modeling file `file`, if there is one."""
    models = {file.stem.removeprefix("modeling_"), file.parent.name}
    for folder in file.parents:
        for model in sorted(models):
            found = folder / "tests" / "models" / model / f"test_modeling_{model}.py"
            if found.is_file():
                return found
    return None


def prepare_tested(cls: type[nn.Module], file: Path, seed: int) -> Prepared | None:
    """The first model that the tests in `file` make, and that is a `cls` or has one inside; None if there is none.

    Raises:
        UserCodeError: importing the tests, their `setUp` or the tester raised.
    """
    module = import_file(file)
    for case in _cases(module):
        classes = list(getattr(case, "all_model_classes", None) or ())
        for tested in sorted(classes, key=lambda candidate: candidate.__name__ != cls.__name__):
            prepared = _prepared(case, tested, file, seed)
            if any(type(part).__name__ == cls.__name__ for part in prepared.model.modules()):
                return prepared
    return None


def _cases(module: Any) -> Iterator[Any]:
    """The test cases of `module` that have a model tester, set up."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == module.__name__:
            case: Any = value("setUp")
            try:
                case.setUp()
            except unittest.SkipTest:
                continue
            except RAISED as error:
                raise UserCodeError(f"setting up {value.__name__}") from error
            if hasattr(getattr(case, "model_tester", None), "prepare_config_and_inputs_for_common"):
                yield case


def _prepared(case: Any, tested: type[nn.Module], file: Path, seed: int) -> Prepared:
    seed_everything(seed)
    try:
        config, inputs = case.model_tester.prepare_config_and_inputs_for_common()
        adapt = getattr(case, "_prepare_for_class", None)
        if adapt is not None:
            inputs = adapt(inputs, tested)
        seed_everything(seed)
        model = tested(config).eval()
    except RAISED as error:
        raise UserCodeError(f"preparing {tested.__name__} as {file.name} does") from error
    return Prepared(model, (), dict(inputs), f"model tester of {file.name}", seed)
