"""The context manager that model adders use: transformers' own by name, arguments and files, for any `nn.Module`."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from pathlib import Path

import torch
from torch import nn

from twinlens.tracing.debug_tree import DebugTree
from twinlens.tracing.metadata import distributed_rank, model_info
from twinlens.tracing.record import RANK_FOLDER, RECORD_FILE, TENSOR_FILES, Info, TraceError
from twinlens.tracing.summary import write_summaries
from twinlens.tracing.taps import Taps
from twinlens.tracing.watch import eager_model, watch
from twinlens.tracing.writer import Progress, Recording, TraceWriter


@contextlib.contextmanager
def model_addition_debugger_context(
    model: nn.Module,
    debug_path: str | None = None,
    do_prune_layers: bool = True,
    use_repr: bool = True,
    *,
    packed: bool = False,
    stats_only: bool = False,
    only: Sequence[str] = (),
    max_bytes: int | None = None,
) -> Generator[nn.Module]:
    """Record the inputs and outputs of every module that a forward of `model` calls.

    Writes `<Class>_debug_tree_SUMMARY.json` and `<Class>_debug_tree_FULL_TENSORS.json` when a forward ends, also when
    it ends in an exception. Forwards run under `torch.no_grad()`, compiled code eagerly. On leaving, however that
    comes about, the model and torch's print options are as they were.

    Args:
        model: any module. debug_path: folder for the files, made if need be; the current one by default.
        do_prune_layers: leave all but the first and last of a run of layers out of the JSON. use_repr: tensors are
        text in `_FULL_TENSORS.json`; if false, each goes to a safetensors file of its own (key `data`)
            and the JSON names the file.
        packed: write Twinlens' own record instead, in place of one that the folder holds
            (`twinlens.tracing.record`): outputs of every module, sources, parameters, values in packed safetensors
            files. The two JSON files are made from it; `use_repr` has no say.
        stats_only: as `packed`, without values. only: as `packed`, with values for modules whose class or path
        matches one of these shell patterns, and what they
            call.
        max_bytes: as `packed`, with at most so many bytes of values.

    Yields:
        `model`.

    Raises:
        TraceError: the folder cannot be written, or the model is compiled and this torch cannot run it eagerly.
    """
    if packed or stats_only or only or max_bytes is not None:
        recording = Recording(stats_only=stats_only, only=tuple(only), max_bytes=max_bytes)
        info = model_info(eager_model(model), target="", recipe="", part="", seed=torch.initial_seed())
        with record(model, Path(debug_path or "."), info, recording, prune_layers=do_prune_layers):
            yield model
        return
    folder = made_folder(Path(debug_path or "."))
    if distributed_rank()[0] == 0:
        _remove_record(folder)
    root = type(eager_model(model)).__name__
    with watch(model, DebugTree(folder, root, prune_layers=do_prune_layers, use_repr=use_repr)):
        yield model


@contextlib.contextmanager
def record(
    model: nn.Module,
    folder: Path,
    info: Info,
    recording: Recording,
    *,
    prune_layers: bool = True,
    on_progress: Progress | None = None,
) -> Generator[None]:
    """Write the record of every forward of `model` to `folder`; under `torchrun`, each rank above 0 to one inside."""
    rank, _world_size = distributed_rank()
    own_folder = made_folder(folder / RANK_FOLDER.format(rank=rank) if rank else folder)
    original = eager_model(model)
    _remove_record(own_folder)
    writer = TraceWriter(own_folder, info, recording, on_progress)
    try:
        writer.describe(original)
        with watch(model, writer), Taps(writer):
            yield
    except (KeyboardInterrupt, SystemExit):
        writer.interrupt()
        raise
    finally:
        writer.close()
        write_summaries(own_folder, prune_layers=prune_layers)


def made_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(f"Unexpected or existing debug_path={folder}: no folder that can be written.") from error
    return folder


def _remove_record(folder: Path) -> None:
    """An earlier run's record would be read in place of what is written now."""
    for path in (folder / RECORD_FILE, *folder.glob(TENSOR_FILES)):
        path.unlink(missing_ok=True)
