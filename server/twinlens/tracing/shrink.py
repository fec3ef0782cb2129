"""A small config from a large one, in proportion: what must divide or equal still does.

All widths (hidden sizes, feed-forward sizes, head dimensions, ranks, channels, in every sub-config) are divided by one
power of two, and counts of heads and groups stay, so that hidden = heads x head dimension and every equality between
widths hold. Layers are cut to a few that hold each kind of layer once; vocabularies, experts and images have limits of
their own. Which field is what is told by its name (`fields.py`), and by being equal to a width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinlens.tracing import fields as names
from twinlens.tracing.completing import (
    with_aligned_experts,
    with_available_backbone,
    with_dividing_heads,
    with_head_dimension,
)
from twinlens.tracing.fields import is_count
from twinlens.tracing.plans import Plan
from twinlens.tracing.widths import SMALLEST_EQUAL_WIDTH, configs, is_by_layer, sub_configs, width_divisor, widths

_SMALLEST_WIDTH = 16
_SMALL_VOCAB = 384
_SMALL_EXPERTS = 4
_SMALL_IMAGE = 256
_SMALL_WINDOW = 8
_PLACEHOLDER_IDS: Mapping[str, int] = {"image": 5, "audio": 6, "video": 7}


def shrunk(fields: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The fields of a config (`to_dict()`, sub-configs as dicts in it), made small."""
    shrinker = _Shrinker(plan, width_divisor(fields, plan), widths(fields), _special_ids(fields))
    return shrinker.config(fields)


def _special_ids(fields: Mapping[str, Any]) -> dict[int, int]:
    """New ids for the special tokens that lie beyond the small vocabulary: distinct ones at its upper end."""
    ids: set[int] = set()
    for config in configs(fields):
        for name, value in config.items():
            if names.TOKEN_ID.search(name):
                values = value if isinstance(value, (list, tuple)) else [value]
                ids.update(item for item in values if is_count(item) and item >= _SMALL_VOCAB - 1)
    return {old: _SMALL_VOCAB - 2 - rank for rank, old in enumerate(sorted(ids))}


@dataclass(frozen=True, slots=True)
class _Shrinker:
    plan: Plan
    divisor: int
    widths: frozenset[int]
    special_ids: Mapping[int, int]

    def config(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        kept = self._kept_layers(fields)
        small = {name: self._value(name, value, fields, kept) for name, value in fields.items()}
        small |= {name: self.config(sub) for name, sub in sub_configs(fields)}
        if "stage_names" in small and len(kept) < (
            _layer_count(fields) or 0
        ):  # stages are layers here: let it count anew
            small = {name: value for name, value in small.items() if name.removeprefix("_") not in names.OF_STAGES}
        small = with_aligned_experts(with_dividing_heads(small))
        return with_available_backbone(with_head_dimension(small) if self.plan.fills_gaps else small)

    def _kept_layers(self, fields: Mapping[str, Any]) -> list[int]:
        """Indices of the layers to keep: the first of each kind that a list of layer types names, in order."""
        count = _layer_count(fields) or 0
        types = next(
            (
                value
                for name, value in fields.items()
                if name.endswith("layer_types") and isinstance(value, list) and len(value) == count
            ),
            [],
        )
        if _is_staged(fields, count):
            return list(range(count))
        kept = sorted({types.index(kind) for kind in types})
        for index in range(count):
            if len(kept) < min(self.plan.layers, count) and index not in kept:
                kept.append(index)
        return sorted(kept)

    def _value(self, name: str, value: Any, fields: Mapping[str, Any], kept: Sequence[int]) -> Any:
        if isinstance(value, Mapping):
            if is_by_layer(name, value):
                value = {str(kept.index(int(key))): item for key, item in value.items() if int(key) in kept}
            return {key: self._value(str(key), item, fields, kept) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return self._list(name, list(value), fields, kept)
        if value is None:
            return self._missing(name, fields)
        return self._count(name, value, fields, kept) if is_count(value) else value

    def _missing(self, name: str, fields: Mapping[str, Any]) -> Any:
        """Fields without a default that a model cannot do without."""
        if name == "prediction_length":
            return 4
        if self.plan.fills_gaps:
            if names.VOCAB.search(name):
                return _SMALL_VOCAB
            if names.EXPERTS.search(name):
                return _SMALL_EXPERTS
            if names.EXPERT_GROUPS.search(name) or names.SHARED_EXPERTS.search(name):
                return 1
            if name.endswith("intermediate_size"):
                return SMALLEST_EQUAL_WIDTH
            if name == "layer_types":
                return ["full_attention"] * self.plan.layers
        if names.CHOSEN_EXPERTS.search(name) and any(names.EXPERTS.search(other) for other in fields):
            return 2
        return (
            _PLACEHOLDER_IDS.get(name.partition("_token_")[0]) if name.endswith(("_token_id", "_token_index")) else None
        )

    def _count(self, name: str, value: int, fields: Mapping[str, Any], kept: Sequence[int]) -> int:
        plan = self.plan
        if names.SHARED_LAYERS.search(name):
            return value * len(kept) // max(_layer_count(fields) or 0, 1)
        if names.is_layer_count(name):
            return min(value, max(plan.layers, len(kept)))
        if names.EXPERTS.search(name):
            return min(value, _SMALL_EXPERTS)
        if names.CHOSEN_EXPERTS.search(name):
            return min(value, 2)
        if names.EXPERT_GROUPS.search(name):
            return min(value, 1)
        if plan.shrinks_vocabulary and names.VOCAB.search(name):
            return min(value, _SMALL_VOCAB)
        if plan.shrinks_windows and names.SLIDING.search(name):
            return min(value, _SMALL_WINDOW)
        return self._item(name, value, fields)

    def _item(self, name: str, value: Any, fields: Mapping[str, Any]) -> Any:
        """A number by itself or in a list."""
        if isinstance(value, (list, tuple)):
            return [self._item(name, item, fields) for item in value]
        if not is_count(value):
            return value
        if self.plan.shrinks_vocabulary and names.TOKEN_ID.search(name):
            return self._token_id(value, fields)
        if self.plan.shrinks_images and names.IMAGE.search(name):
            return _small_image(value)
        if self.plan.fewer_heads and names.HEADS.search(name):
            return max(1, value // self.divisor)
        if self.plan.fewer_heads and (names.HEAD_SIZE.search(name) or name.endswith("_section")):
            return value
        if name.endswith("_section"):
            return value // self.divisor
        return self._width(value) if self._is_width(name, value) else value

    def _is_width(self, name: str, value: int) -> bool:
        return names.is_width(name) or (value in self.widths and not names.NEVER_A_WIDTH.search(name))

    def _width(self, value: int) -> int:
        return value // self.divisor if value >= _SMALLEST_WIDTH and value % self.divisor == 0 else value

    def _token_id(self, value: int, fields: Mapping[str, Any]) -> int:
        if value == fields.get("vocab_size"):
            return min(value, _SMALL_VOCAB)
        return self.special_ids.get(value, value)

    def _list(self, name: str, values: list[Any], fields: Mapping[str, Any], kept: Sequence[int]) -> list[Any]:
        if name.removeprefix("_") in names.OF_STAGES:
            return values
        if kept and len(values) == _layer_count(fields) and len(values) > len(kept):
            return [self._item(name, values[index], fields) for index in kept]
        if names.DEPTHS.search(name) and all(is_count(value) for value in values):
            return [min(value, self.plan.layers) for value in values]
        if names.LAYER_INDICES.search(name):
            return _indices(values, len(kept) or self.plan.layers)
        return [self._item(name, value, fields) for value in values]


def _layer_count(fields: Mapping[str, Any]) -> int | None:
    return next((fields[name] for name in names.MAIN_LAYERS if is_count(fields.get(name))), None)


def _is_staged(fields: Mapping[str, Any], layers: int) -> bool:
    """Whether layers are stages, each of a depth of its own: there are few, and what comes after counts on all."""
    return any(
        names.DEPTHS.search(name) and isinstance(value, (list, tuple)) and len(value) == layers
        for name, value in fields.items()
    )


def _indices(values: list[Any], layers: int) -> list[Any]:
    """Indices of layers: those that are left, or the last one."""
    if not layers or not all(is_count(value) for value in values) or all(value < layers for value in values):
        return values
    return sorted({min(value, layers - 1) for value in values})


def _small_image(size: int) -> int:
    while size > _SMALL_IMAGE and size % 2 == 0:
        size //= 2
    return size
