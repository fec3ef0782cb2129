"""Inputs for one forward, made from its signature and the model's config: several guesses, the fullest first."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from twinlens.tracing.arguments import BATCH, DECODER_LENGTH, Maker
from twinlens.tracing.config_facts import Facts

_MOST_COMBINATIONS = 12
_IDS = ("input_ids", "decoder_input_ids", "qformer_input_ids")
_TOKENS_OF: Mapping[str, tuple[str, ...]] = {
    "image": ("image_token_id", "image_token_index", "image_patch_id", "media_token_index"),
    "audio": ("audio_token_id", "audio_token_index"),
}


def guesses(model: nn.Module, config: Any) -> Iterator[dict[str, Any]]:
    """Keyword arguments for `model`'s forward; the first with which it runs is the one to take.

    Raises nothing: arguments that are required and that nobody knows are left out, and the forward will say so.
    """
    forward = type(model).forward
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    named = [
        p for p in parameters if p.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    ]
    names = [parameter.name for parameter in named]
    required = [parameter.name for parameter in named if parameter.default is inspect.Parameter.empty]
    maker = Maker(model, Facts(config))
    for chosen in _choices(model, names, required):
        yield from _combinations(maker, chosen)
        if "input_ids" in chosen and ("pixel_values" in chosen or "input_features" in chosen):
            yield from _with_placeholders(maker, chosen)
    if "use_cache" in names:  # caches of unusual models ask for a kind of layer that a small one may not have
        for chosen in _choices(model, names, required):
            yield from ({**arguments, "use_cache": False} for arguments in _combinations(maker, chosen))


def _choices(model: nn.Module, names: Sequence[str], required: Sequence[str]) -> Iterator[list[str]]:
    """Sets of arguments to give, the fullest first, none twice."""
    main = getattr(model, "main_input_name", "input_ids")
    mains = [name for name in ([main] if isinstance(main, str) else main) if name in names]
    decoder = [name for name in ("decoder_input_ids",) if name in names]
    grid = [name for name in ("image_grid_thw", "grid_thw") if name in names]
    seen: set[frozenset[str]] = set()
    fuller = [
        [*mains, "input_ids", "pixel_values", *grid, *decoder],
        [*mains, "input_ids", "pixel_values", *decoder],
        [*mains, "input_ids", "input_features", *decoder],
        [*mains, "input_ids", "bbox", "visual_feats", "visual_pos"],
        [*mains, "input_ids", "bbox", "pixel_values", *decoder],
        [*mains, *decoder],
        mains,
        ["states", "actions", "rewards", "returns_to_go", "timesteps"],
        ["input_ids", *decoder],
        ["pixel_values"],
        ["pixel_values_videos"],
        ["input_values"],
        [*mains, "input_ids", "input_values"],
        ["inputs_embeds"],
        ["input_ids", "encoder_hidden_states"],
        [],
    ]
    sets = [dict.fromkeys([*required, *(name for name in wanted if name in names)]) for wanted in fuller]
    for chosen in sorted(sets, key=len, reverse=True):
        if chosen and frozenset(chosen) not in seen:
            seen.add(frozenset(chosen))
            yield list(chosen)


def _combinations(maker: Maker, chosen: Sequence[str]) -> Iterator[dict[str, Any]]:
    known = {name: maker.candidates(name) for name in chosen}
    known = {name: candidates for name, candidates in known.items() if candidates}
    for values in itertools.islice(itertools.product(*known.values()), _MOST_COMBINATIONS):
        yield dict(zip(known, values, strict=True))


def _with_placeholders(maker: Maker, chosen: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Token ids in which as many stand for the image or sound as the model makes features of it."""
    for kind, names, getters in (
        ("image", ("pixel_values",), ("get_image_features",)),
        ("audio", ("input_features",), ("get_audio_features", "get_audio_embeddings")),
    ):
        token = maker.facts.integer(*_TOKENS_OF[kind], default=-1)
        getter = next((getattr(maker.model, name) for name in getters if hasattr(maker.model, name)), None)
        if token < 0 or getter is None or names[0] not in chosen:
            continue
        for arguments in _combinations(maker, [name for name in chosen if name not in _IDS]):
            count = _feature_count(getter, arguments)
            if count:
                batch = BATCH if count % BATCH == 0 and arguments[names[0]].shape[0] == BATCH else 1
                text = maker.ids(DECODER_LENGTH, batch)[0]
                marks = torch.full((batch, count // batch), token)
                yield {**arguments, "input_ids": torch.cat((text[:, :2], marks, text[:, 2:]), 1)}


def _feature_count(getter: Callable[..., Any], arguments: Mapping[str, Any]) -> int:
    """How many features the model makes of its image or sound; 0 where the arguments don't fit."""
    accepted = inspect.signature(getter).parameters
    given = {name: value for name, value in arguments.items() if name in accepted}
    try:
        with torch.no_grad():
            features = getter(**given)
    except Exception:  # noqa: BLE001  # a guess that does not fit; the next one is tried
        return 0
    features = (
        getattr(features, "pooler_output", None) if not isinstance(features, (torch.Tensor, list, tuple)) else features
    )
    if isinstance(features, (list, tuple)):
        return sum(
            part.shape[0] if part.dim() == 2 else part.shape[:-1].numel()
            for part in features
            if isinstance(part, torch.Tensor)
        )
    return features.shape[:-1].numel() if isinstance(features, torch.Tensor) else 0
