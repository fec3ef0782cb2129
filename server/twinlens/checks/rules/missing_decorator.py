"""missing-decorator: a declaration that no forward follows."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.declarations import Declaration, declaration_of
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.modules import Class, FunctionNode
from twinlens.checks.subject import CAPTURE, Subject

CODE = "missing-decorator"


def _find(subject: Subject) -> Iterator[Finding]:
    if subject.is_modular:
        return
    for declaration in subject.declarations:
        users = subject.users(declaration)
        forwards = [(cls, forward) for cls in users if (forward := cls.method("forward")) is not None]
        if not forwards or not subject.ancestry(declaration.owner).complete:
            continue
        if any(subject.is_captured(cls) for cls in users) or _is_followed_from_outside(subject, declaration, users):
            continue
        names = ", ".join(cls.name for cls, _ in forwards)
        message = f"no forward that follows this declaration is decorated with @{CAPTURE}: {names}"
        span = Span.of(declaration.entries[0].key_node if declaration.entries else declaration.node)
        yield Finding(CODE, message, span, _fix(subject, forwards[0][1]) if len(forwards) == 1 else None)


def _fix(subject: Subject, forward: FunctionNode) -> Fix | None:
    """Decorate the one forward, where the file knows the decorator."""
    if subject.assembly.world.meaning(subject.module, CAPTURE) is None:
        return None
    place = Span(forward.lineno, forward.col_offset, forward.lineno, forward.col_offset)
    return Fix(f"Add @{CAPTURE}", (Edit(place, f"@{CAPTURE}\n{' ' * forward.col_offset}"),))


def _is_followed_from_outside(subject: Subject, declaration: Declaration, users: list[Class]) -> bool:
    """Whether a model of this file that captures one of the declared keys holds one of `users`."""
    for model in subject.module.classes.values():
        if not subject.is_captured(model):
            continue
        captured = _declaration_of(subject, model)
        shares = captured is None or set(captured.keys) & set(declaration.keys)
        if shares and any(cls in users for cls in _held(subject, model)):
            return True
    return False


def _declaration_of(subject: Subject, cls: Class) -> Declaration | None:
    return next(filter(None, map(declaration_of, subject.ancestry(cls).classes)), None)


def _held(subject: Subject, model: Class) -> set[Class]:
    """Every class of which `model` may hold an instance, at any depth."""
    found: set[Class] = set()
    waiting = [model]
    while waiting:
        for part in subject.assembly.parts(waiting.pop()):
            fresh = set(part.classes) - found
            found |= fresh
            waiting += fresh
    return found


CHECK = Check(
    CODE,
    "`_can_record_outputs` is declared, but no forward of a model that has it is decorated with `@capture_outputs`.",
    """
The declaration alone does nothing: the decorator resolves the flags, places the hooks and puts what they collect into
the output. Without it `output_hidden_states=True` is passed down to the layers and forgotten, and `return_dict=False`
still gives an output class.
""",
    """
from torch import nn
from transformers import PreTrainedModel


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layer = MyLayer()

    def forward(self, inputs, **kwargs): ...
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layer = MyLayer()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    _find,
)
