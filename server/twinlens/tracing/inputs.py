"""Inputs for one forward, made from its signature and the model's config: several guesses, the fullest first."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

_BATCH = 2
_LENGTH = 24
_DECODER_LENGTH = 6
_MOST_COMBINATIONS = 12
_IDS = ("input_ids", "decoder_input_ids", "qformer_input_ids")
_BINS = (
    "feature_projection_input_dim",
    "num_mel_bins",
    "feature_size",
    "n_mels",
    "n_mel_bins",
    "input_feat_size",
    "input_dim",
    "input_size",
)
_TOKENS_OF: Mapping[str, tuple[str, ...]] = {
    "image": ("image_token_id", "image_token_index", "image_patch_id", "media_token_index"),
    "audio": ("audio_token_id", "audio_token_index"),
}


class Facts:
    """Looks a field up in a config and then in its sub-configs, those named like `first` before the others."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def get(self, *names: str, first: str = "", default: Any = None) -> Any:
        for config in self._ordered(first):
            for name in names:
                value = getattr(config, name, None)
                if value is not None:
                    return value
        return default

    def integer(self, *names: str, first: str = "", default: int) -> int:
        value = self.get(*names, first=first, default=default)
        while isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, Mapping):
            value = next(iter(value.values()), default)
        return value if isinstance(value, int) else default

    def _ordered(self, first: str) -> Iterator[Any]:
        subs = list(_sub_configs(self.config))
        if first:
            yield from (sub for name, sub in subs if first in name)
        yield self.config
        yield from (sub for name, sub in subs if not first or first not in name)


def _sub_configs(config: Any, depth: int = 3) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict") and depth:
            yield name, value
            yield from ((f"{name}.{inner}", sub) for inner, sub in _sub_configs(value, depth - 1))


@dataclass(frozen=True, slots=True)
class _Maker:
    """Knows how to make the argument of one name: candidates, the likeliest first."""

    model: nn.Module
    facts: Facts

    def candidates(self, name: str) -> list[Any]:
        for known, make in _MAKERS.items():
            if name == known:
                return make(self)
        if name.endswith(("attention_mask", "padding_mask")):
            return [torch.ones(_BATCH, _LENGTH, dtype=torch.long)]
        if name.endswith("input_ids"):
            return self.ids(_LENGTH)
        return []

    def ids(self, length: int, batch: int = _BATCH) -> list[torch.Tensor]:
        vocabulary = self.facts.integer("vocab_size", first="text", default=64)
        special = self._special_ids()
        plain = [index for index in range(3, vocabulary) if index not in special] or [0]
        drawn = torch.randint(0, len(plain), (batch, length))
        return [torch.tensor(plain)[drawn]]

    def _special_ids(self) -> set[int]:
        ids: set[int] = set()
        for config in self.facts._ordered(""):
            for name, value in vars(config).items():
                if "token" in name or name.endswith(("_id", "_ids")):
                    ids.update(
                        item for item in (value if isinstance(value, list) else [value]) if isinstance(item, int)
                    )
        return ids

    def image(self) -> tuple[int, int, int]:
        """(channels, height, width)"""
        facts = self.facts
        channels = facts.integer("num_channels", "in_channels", "in_chans", "input_channels", first="vision", default=3)
        size = facts.get("image_size", "img_size", "crop_size", "train_size", first="vision", default=224)
        if isinstance(size, Mapping):
            size = [size.get("height", 64), size.get("width", 64)]
        if isinstance(size, int):
            size = [size, size]
        height, width = (list(size) * 2)[-2:] if len(size) < 2 else list(size)[-2:]
        return channels, height, width

    def pixels(self) -> list[torch.Tensor]:
        channels, height, width = self.image()
        frames = self.facts.integer("num_frames", "frames_per_clip", first="vision", default=2)
        shapes: list[tuple[int, ...]] = [(_BATCH, channels, height, width), (_BATCH, 1, channels, height, width)]
        shapes += [(_BATCH, frames, channels, height, width), *self.patches()]
        return [torch.randn(shape) for shape in shapes]

    def video(self) -> list[torch.Tensor]:
        channels, height, width = self.image()
        frames = self.facts.integer("num_frames", "frames_per_clip", first="vision", default=4)
        return [
            torch.randn(_BATCH, frames, channels, height, width),
            torch.randn(_BATCH, channels, frames, height, width),
        ]

    def patches(self) -> list[tuple[int, ...]]:
        """Shapes of images cut to patches: (patches, values of one), as `grid` counts them."""
        facts = self.facts
        channels = self.image()[0]
        patch = facts.integer("patch_size", "spatial_patch_size", first="vision", default=14)
        depth = facts.integer("temporal_patch_size", first="vision", default=1)
        count = int(self.grid().prod(-1).sum())
        values = channels * depth * patch * patch
        flat = [(count, values), (count, channels, patch, patch), (1, count, values)]
        if depth > 1:
            flat += [(count, channels * patch * patch), (count, channels, depth, patch, patch)]
        hidden = facts.integer("embed_dim", "hidden_size", first="vision", default=64)
        return [*flat, (count, hidden)]

    def grid(self) -> torch.Tensor:
        merge = self.facts.integer("spatial_merge_size", "merge_size", first="vision", default=2)
        side = 2 * max(merge, 1)
        return torch.tensor([[1, side, side]])

    def mel(self) -> list[torch.Tensor]:
        """Spectrograms: whisper's (bins, 2 x positions) first, then (frames, bins), then the reverse."""
        facts = self.facts
        sizes = [facts.integer(name, first="audio", default=0) for name in _BINS]
        bins = [size for size in dict.fromkeys(sizes) if size] or [80]
        frames = 2 * facts.integer("max_source_positions", first="audio", default=150)
        shapes: list[tuple[int, ...]] = [(_BATCH, bins[0], frames)]
        shapes += [(_BATCH, 128, size) for size in bins] + [(_BATCH, size, 128) for size in bins]
        shapes += [(_BATCH, frames, bins[0]), (_BATCH, 1, 128, bins[0])]
        return [torch.randn(shape) for shape in shapes]

    def waveform(self) -> list[torch.Tensor]:
        channels = self.facts.integer("audio_channels", "num_audio_channels", default=1)
        bins = self.facts.integer("num_mel_bins", default=80)
        length = self.facts.integer("max_length", default=1024)
        shapes = [
            (_BATCH, 6400),
            (_BATCH, channels, 6400),
            (_BATCH, length, bins),
            (_BATCH, 100, bins),
            (_BATCH, 24, bins),
        ]
        return [torch.randn(shape) for shape in shapes]

    def hidden(self) -> list[torch.Tensor]:
        """`hidden_states` of a vision encoder are patches; elsewhere they are of the model's own size."""
        size = self.facts.integer("hidden_size", "d_model", "embed_dim", default=64)
        shapes = [*self.patches(), (_BATCH, _LENGTH, size), (_BATCH, size, _LENGTH)]
        return [torch.randn(shape) for shape in shapes]

    def series(self) -> list[torch.Tensor]:
        length = self.facts.integer("context_length", default=64)
        lags = self.facts.get("lags_sequence", default=[0])
        channels = self.facts.integer("num_input_channels", "input_size", default=1)
        length += max(lags) if isinstance(lags, (list, tuple)) and lags else 0
        shapes = [(_BATCH, length, channels), (_BATCH, length)]
        return [torch.randn(shape) for shape in shapes]

    def series_features(self) -> list[torch.Tensor]:
        length = self.series()[0].shape[1]
        return [torch.randn(_BATCH, length, self.facts.integer("num_time_features", default=1))]


def _ones(*shape: int) -> Callable[[_Maker], list[Any]]:
    return lambda _maker: [torch.ones(shape, dtype=torch.long)]


_MAKERS: Mapping[str, Callable[[_Maker], list[Any]]] = {
    "input_ids": lambda maker: maker.ids(_LENGTH),
    "decoder_input_ids": lambda maker: maker.ids(_DECODER_LENGTH),
    "pixel_values": lambda maker: maker.pixels(),
    "pixel_values_videos": lambda maker: maker.video(),
    "prompt_pixel_values": lambda maker: maker.pixels(),
    "prompt_masks": lambda maker: maker.pixels(),
    "flattened_patches": lambda maker: [
        torch.randn(_BATCH, _LENGTH, maker.facts.integer("patch_embed_hidden_size", default=768) + 2)
    ],
    "hidden_states": lambda maker: maker.hidden(),
    "grid_thw": lambda maker: [maker.grid(), maker.grid()[:, 1:]],
    "image_grid_thw": lambda maker: [maker.grid()],
    "merge_sizes": lambda _maker: [torch.tensor([1])],
    "spatial_shapes": lambda _maker: [torch.tensor([[4, 4]])],
    "input_features": lambda maker: maker.mel(),
    "audio_mel": lambda maker: maker.mel(),
    "audio_mel_mask": lambda _maker: [torch.zeros(_BATCH, 128, dtype=torch.bool)],
    "input_features_mask": lambda maker: [
        torch.ones(_BATCH, size, dtype=torch.long) for size in (maker.mel()[0].shape[-1], 128)
    ],
    "input_values": lambda maker: maker.waveform(),
    "past_values": lambda maker: maker.series(),
    "past_time_features": lambda maker: maker.series_features(),
    "past_observed_mask": lambda maker: [torch.ones_like(maker.series()[0]), torch.ones_like(maker.series()[1])],
    "past_values_padding": lambda maker: [torch.zeros_like(maker.series()[1])],
    "freq": lambda _maker: [torch.zeros(_BATCH, 1, dtype=torch.long)],
    "inputs": lambda maker: [torch.randn(_BATCH, _LENGTH, maker.facts.integer("d_model", default=64))],
    "query_embeds": lambda maker: [torch.randn(_BATCH, 8, maker.facts.integer("hidden_size", default=64))],
    "inputs_embeds": lambda maker: [torch.randn(_BATCH, _LENGTH, maker.facts.integer("hidden_size", default=64))],
    "encoder_hidden_states": lambda maker: [
        torch.randn(
            _BATCH,
            _LENGTH,
            maker.facts.integer("encoder_hidden_size", "cross_attention_hidden_size", "hidden_size", default=64),
        )
    ],
    "bbox": lambda _maker: [torch.zeros(_BATCH, _LENGTH, 4, dtype=torch.long)],
    "token_type_ids": lambda _maker: [torch.zeros(_BATCH, _LENGTH, dtype=torch.long)],
    "visual_feats": lambda maker: [torch.randn(_BATCH, 5, maker.facts.integer("visual_feat_dim", default=64))],
    "visual_pos": lambda maker: [torch.rand(_BATCH, 5, maker.facts.integer("visual_pos_dim", default=4))],
    "latents": lambda maker: [
        torch.randn(_BATCH, _LENGTH, maker.facts.integer("hidden_size", default=64)),
        torch.randn(_BATCH, maker.facts.integer("hidden_size", default=64), _LENGTH),
    ],
    "states": lambda maker: [torch.randn(_BATCH, 5, maker.facts.integer("state_dim", default=17))],
    "actions": lambda maker: [torch.randn(_BATCH, 5, maker.facts.integer("act_dim", default=4))],
    "rewards": lambda _maker: [torch.randn(_BATCH, 5, 1)],
    "returns_to_go": lambda _maker: [torch.randn(_BATCH, 5, 1)],
    "timesteps": lambda _maker: [torch.arange(5).repeat(_BATCH, 1)],
    "task_inputs": lambda maker: [torch.randint(3, 60, (_BATCH, maker.facts.integer("task_seq_len", default=77)))],
    "pixel_attention_mask": lambda _maker: [torch.ones(_BATCH, 16, dtype=torch.long)],
    "pixel_position_ids": lambda _maker: [
        torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="xy"), -1).reshape(1, 16, 2)
    ],
    "classes_input_ids": lambda maker: maker.ids(8),
    "classes_attention_mask": _ones(_BATCH, 8),
    "tasks_input_ids": lambda maker: maker.ids(8),
    "tasks_attention_mask": _ones(_BATCH, 8),
    "classes_structure": _ones(_BATCH),
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
    maker = _Maker(model, Facts(config))
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


def _combinations(maker: _Maker, chosen: Sequence[str]) -> Iterator[dict[str, Any]]:
    known = {name: maker.candidates(name) for name in chosen}
    known = {name: candidates for name, candidates in known.items() if candidates}
    for values in itertools.islice(itertools.product(*known.values()), _MOST_COMBINATIONS):
        yield dict(zip(known, values, strict=True))


def _with_placeholders(maker: _Maker, chosen: Sequence[str]) -> Iterator[dict[str, Any]]:
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
                batch = _BATCH if count % _BATCH == 0 and arguments[names[0]].shape[0] == _BATCH else 1
                text = maker.ids(_DECODER_LENGTH, batch)[0]
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
