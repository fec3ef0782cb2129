"""One argument of a forward, made from its name and the model's config: candidates, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from twinlens.tracing.config_facts import Facts

BATCH = 2
LENGTH = 24
DECODER_LENGTH = 6
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


@dataclass(frozen=True, slots=True)
class Maker:
    """Knows how to make the argument of one name: candidates, the likeliest first."""

    model: nn.Module
    facts: Facts

    def candidates(self, name: str) -> list[Any]:
        for known, make in _MAKERS.items():
            if name == known:
                return make(self)
        if name.endswith(("attention_mask", "padding_mask")):
            return [torch.ones(BATCH, LENGTH, dtype=torch.long)]
        if name.endswith("input_ids"):
            return self.ids(LENGTH)
        if name.endswith(("_embeds", "_hidden_states")):
            return self.hidden()[-2:]
        return []

    def ids(self, length: int, batch: int = BATCH) -> list[torch.Tensor]:
        vocabulary = self.facts.integer("vocab_size", first="text", default=64)
        special = self._special_ids()
        plain = [index for index in range(3, vocabulary) if index not in special] or [0]
        drawn = torch.randint(0, len(plain), (batch, length))
        return [torch.tensor(plain)[drawn]]

    def _special_ids(self) -> set[int]:
        ids: set[int] = set()
        for config in self.facts.ordered(""):
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
        shapes: list[tuple[int, ...]] = [(BATCH, channels, height, width), (BATCH, 1, channels, height, width)]
        shapes += [(BATCH, frames, channels, height, width), *self.patches()]
        return [torch.randn(shape) for shape in shapes]

    def video(self) -> list[torch.Tensor]:
        channels, height, width = self.image()
        frames = self.facts.integer("num_frames", "frames_per_clip", first="vision", default=4)
        return [
            torch.randn(BATCH, frames, channels, height, width),
            torch.randn(BATCH, channels, frames, height, width),
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
        """Spectrograms: whisper's (bins, 2 x positions) first, then (frames, bins), then the reverse, last some
        frames side by side."""
        facts = self.facts
        sizes = [facts.integer(name, first="audio", default=0) for name in _BINS]
        bins = [size for size in dict.fromkeys(sizes) if size] or [80]
        frames = 2 * facts.integer("max_source_positions", first="audio", default=150)
        shapes: list[tuple[int, ...]] = [(BATCH, bins[0], frames)]
        shapes += [(BATCH, 128, size) for size in bins] + [(BATCH, size, 128) for size in bins]
        shapes += [(BATCH, frames, bins[0]), (BATCH, 1, 128, bins[0])]
        shapes += [(BATCH, 128, stacked * bins[0]) for stacked in (2, 4)]
        return [torch.randn(shape) for shape in shapes]

    def waveform(self) -> list[torch.Tensor]:
        channels = self.facts.integer("audio_channels", "num_audio_channels", default=1)
        bins = self.facts.integer("num_mel_bins", default=80)
        length = self.facts.integer("max_length", default=1024)
        shapes = [
            (BATCH, 6400),
            (BATCH, channels, 6400),
            (BATCH, length, bins),
            (BATCH, 100, bins),
            (BATCH, 24, bins),
        ]
        return [torch.randn(shape) for shape in shapes]

    def hidden(self) -> list[torch.Tensor]:
        """`hidden_states` of a vision encoder are patches; elsewhere they are of the model's own size."""
        size = self.facts.integer("hidden_size", "d_model", "embed_dim", default=64)
        shapes = [*self.patches(), (BATCH, LENGTH, size), (BATCH, size, LENGTH)]
        return [torch.randn(shape) for shape in shapes]

    def series(self) -> list[torch.Tensor]:
        length = self.facts.integer("context_length", default=64)
        lags = self.facts.get("lags_sequence", default=[0])
        channels = self.facts.integer("num_input_channels", "input_size", default=1)
        length += max(lags) if isinstance(lags, (list, tuple)) and lags else 0
        shapes = [(BATCH, length, channels), (BATCH, length)]
        return [torch.randn(shape) for shape in shapes]

    def series_features(self) -> list[torch.Tensor]:
        length = self.series()[0].shape[1]
        return [torch.randn(BATCH, length, self.facts.integer("num_time_features", default=1))]


def _ones(*shape: int) -> Callable[[Maker], list[Any]]:
    return lambda _maker: [torch.ones(shape, dtype=torch.long)]


_MAKERS: Mapping[str, Callable[[Maker], list[Any]]] = {
    "input_ids": lambda maker: maker.ids(LENGTH),
    "decoder_input_ids": lambda maker: maker.ids(DECODER_LENGTH),
    "pixel_values": lambda maker: maker.pixels(),
    "pixel_values_videos": lambda maker: maker.video(),
    "prompt_pixel_values": lambda maker: maker.pixels(),
    "prompt_masks": lambda maker: maker.pixels(),
    "flattened_patches": lambda maker: [
        torch.randn(BATCH, LENGTH, maker.facts.integer("patch_embed_hidden_size", default=768) + 2)
    ],
    "hidden_states": lambda maker: maker.hidden(),
    "grid_thw": lambda maker: [maker.grid(), maker.grid()[:, 1:]],
    "image_grid_thw": lambda maker: [maker.grid()],
    "merge_sizes": lambda _maker: [torch.tensor([1])],
    "spatial_shapes": lambda _maker: [torch.tensor([[4, 4]])],
    "input_features": lambda maker: maker.mel(),
    "audio_mel": lambda maker: maker.mel(),
    "audio_mel_mask": lambda _maker: [torch.zeros(BATCH, 128, dtype=torch.bool)],
    "input_features_mask": lambda maker: [
        torch.ones(BATCH, size, dtype=torch.long) for size in (maker.mel()[0].shape[-1], 128)
    ],
    "input_values": lambda maker: maker.waveform(),
    "past_values": lambda maker: maker.series(),
    "past_time_features": lambda maker: maker.series_features(),
    "past_observed_mask": lambda maker: [torch.ones_like(maker.series()[0]), torch.ones_like(maker.series()[1])],
    "past_values_padding": lambda maker: [torch.zeros_like(maker.series()[1])],
    "freq": lambda _maker: [torch.zeros(BATCH, 1, dtype=torch.long)],
    "inputs": lambda maker: [torch.randn(BATCH, LENGTH, maker.facts.integer("d_model", default=64))],
    "query_embeds": lambda maker: [torch.randn(BATCH, 8, maker.facts.integer("hidden_size", default=64))],
    "inputs_embeds": lambda maker: [torch.randn(BATCH, LENGTH, maker.facts.integer("hidden_size", default=64))],
    "encoder_hidden_states": lambda maker: [
        torch.randn(
            BATCH,
            LENGTH,
            maker.facts.integer("encoder_hidden_size", "cross_attention_hidden_size", "hidden_size", default=64),
        )
    ],
    "bbox": lambda _maker: [torch.zeros(BATCH, LENGTH, 4, dtype=torch.long)],
    "token_type_ids": lambda _maker: [torch.zeros(BATCH, LENGTH, dtype=torch.long)],
    "visual_feats": lambda maker: [torch.randn(BATCH, 5, maker.facts.integer("visual_feat_dim", default=64))],
    "visual_pos": lambda maker: [torch.rand(BATCH, 5, maker.facts.integer("visual_pos_dim", default=4))],
    "latents": lambda maker: [
        torch.randn(BATCH, LENGTH, maker.facts.integer("hidden_size", default=64)),
        torch.randn(BATCH, maker.facts.integer("hidden_size", default=64), LENGTH),
    ],
    "states": lambda maker: [torch.randn(BATCH, 5, maker.facts.integer("state_dim", default=17))],
    "actions": lambda maker: [torch.randn(BATCH, 5, maker.facts.integer("act_dim", default=4))],
    "rewards": lambda _maker: [torch.randn(BATCH, 5, 1)],
    "returns_to_go": lambda _maker: [torch.randn(BATCH, 5, 1)],
    "timesteps": lambda _maker: [torch.arange(5).repeat(BATCH, 1)],
    "task_inputs": lambda maker: [torch.randint(3, 60, (BATCH, maker.facts.integer("task_seq_len", default=77)))],
    "pixel_attention_mask": lambda _maker: [torch.ones(BATCH, 16, dtype=torch.long)],
    "pixel_position_ids": lambda _maker: [
        torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="xy"), -1).reshape(1, 16, 2)
    ],
    "classes_input_ids": lambda maker: maker.ids(8),
    "classes_attention_mask": _ones(BATCH, 8),
    "tasks_input_ids": lambda maker: maker.ids(8),
    "tasks_attention_mask": _ones(BATCH, 8),
    "classes_structure": _ones(BATCH),
}
