"""What a recorder of a declaration records: which modules of which models, and what of their output."""

from __future__ import annotations

from dataclasses import dataclass

from twinlens.checks.assembly import Place
from twinlens.checks.declarations import Declaration, Entry
from twinlens.checks.finding import Span
from twinlens.checks.modules import Class
from twinlens.checks.subject import Subject
from twinlens.source.definitions import dotted_name

ALSO_ASKED_BY_ATTENTIONS = ("cross_attentions", "mask_decoder_attentions")


@dataclass(frozen=True, slots=True)
class ModelPaths:
    """The paths at which a model's modules are recorded, `{i}` for a place in a list."""

    model: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one recorder records. `models` are those of the file that are captured and follow the declaration."""

    entry: Entry
    span: Span
    models: tuple[ModelPaths, ...]

    @property
    def flag(self) -> str:
        """The argument that asks for it."""
        return "output_attentions" if self.entry.key in ALSO_ASKED_BY_ATTENTIONS else f"output_{self.entry.key}"


def recorded_at(subject: Subject, line: int, column: int) -> Recorded | None:
    """The recorder at a place of the text (line from 1, column in UTF-8 bytes), or that of the key there."""
    for declaration in subject.declarations:
        for entry in declaration.entries:
            for span in (Span.of(entry.node), Span.of(entry.key_node)):
                if (span.line, span.column) <= (line, column) <= (span.end_line, span.end_column):
                    return _recorded(subject, declaration, entry, span)
    return None


def _recorded(subject: Subject, declaration: Declaration, entry: Entry, span: Span) -> Recorded:
    captured = [cls for cls in subject.users(declaration) if subject.is_captured(cls)]
    models = [ModelPaths(model.name, tuple(_paths(subject, entry, model))) for model in captured]
    return Recorded(entry, span, tuple(models))


def _paths(subject: Subject, entry: Entry, model: Class) -> list[str]:
    targets = {subject.assembly.world.meaning(subject.module, dotted_name(target) or "?") for target in entry.targets}
    return list(
        dict.fromkeys(
            place.path or "the model itself"
            for place in subject.assembly.places(model)
            if _is_meant(subject, entry, targets, place)
        )
    )


def _is_meant(subject: Subject, entry: Entry, targets: set, place: Place) -> bool:
    family = subject.ancestry(place.cls).classes
    name = entry.class_name
    is_of_class = any(cls in targets for cls in family) or (
        name is not None and (any(cls.name == name for cls in family) or f".{place.path}".endswith(f".{name}"))
    )
    return is_of_class and (entry.layer_name is None or f".{entry.layer_name.strip('.')}." in f".{place.path}.")
