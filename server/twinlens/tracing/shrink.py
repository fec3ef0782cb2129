"""A small config from a large one, in proportion: what must divide or equal still does.

All widths (hidden sizes, feed-forward sizes, head dimensions, ranks, channels, in every sub-config) are divided by one
power of two, and counts of heads and groups stay, so that hidden = heads x head dimension and every equality between
widths hold. Layers are cut to a few that hold each kind of layer once; vocabularies, experts and images have limits of
their own. Which field is what is told by its name (`fields.py`), and by being equal to a width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from twinlens.tracing import fields as names
from twinlens.tracing.fields import is_count

_SMALLEST_WIDTH = 16
_SMALLEST_EQUAL_WIDTH = 64
_SMALL_VOCAB = 384
_SMALL_EXPERTS = 4
_SMALL_IMAGE = 256
_SMALL_WINDOW = 8
_PLACEHOLDER_IDS: Mapping[str, int] = {"image": 5, "audio": 6, "video": 7}


@dataclass(frozen=True, slots=True)
class Plan:
    """How far to shrink. Plans are tried in turn: the smaller a model, the more of its author's assumptions break."""

    layers: int = 2
    smallest_head: int = 8
    """Widths are divided as long as no head gets narrower than this; 0 leaves widths alone."""
    fewer_heads: bool = False
    """Divide the counts of heads along with the widths, in place of the heads' own dimensions."""
    widest: int = 64
    """Widths are divided no further when no hidden size is above this."""
    shrinks_vocabulary: bool = True
    shrinks_images: bool = True
    shrinks_windows: bool = True


PLANS = (
    Plan(),
    Plan(shrinks_images=False, shrinks_windows=False),
    Plan(fewer_heads=True, widest=256, shrinks_windows=False),
    Plan(smallest_head=0, shrinks_windows=False),
    Plan(layers=4, smallest_head=16, widest=256, shrinks_images=False, shrinks_windows=False),
    Plan(layers=8, smallest_head=0, shrinks_images=False, shrinks_windows=False),
    Plan(layers=2, smallest_head=0, shrinks_vocabulary=False, shrinks_images=False, shrinks_windows=False),
)


def shrunk(fields: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The fields of a config (`to_dict()`, sub-configs as dicts in it), made small."""
    shrinker = _Shrinker(plan, _width_divisor(fields, plan), _widths(fields), _special_ids(fields))
    return shrinker.config(fields)


def _sub_configs(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, value in fields.items():
        if isinstance(value, Mapping) and ("model_type" in value or name.endswith("_config")):
            yield name, value


def _configs(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield fields
    for _name, sub in _sub_configs(fields):
        yield from _configs(sub)


def _width_divisor(fields: Mapping[str, Any], plan: Plan) -> int:
    """The largest power of two by which every width can be divided within the plan."""
    heads = [head for config in _configs(fields) for head in _head_dimensions(config)]
    sections = list(_sections(fields))
    widest = max(
        (value for config in _configs(fields) for name, value in config.items() if names.is_hidden_size(name, value)),
        default=0,
    )
    if not plan.smallest_head or not heads:
        return 1
    counts = [
        value
        for config in _configs(fields)
        for name, value in config.items()
        if is_count(value) and value > 1 and names.HEADS.search(name)
    ]

    def allows(divisor: int) -> bool:
        if widest // divisor < plan.widest:
            return False
        if plan.fewer_heads:
            return all(count % divisor == 0 for count in counts)
        return all(head % divisor == 0 and head // divisor >= plan.smallest_head for head in heads) and all(
            section % divisor == 0 for section in sections
        )

    divisor = 1
    while allows(divisor * 2):
        divisor *= 2
    return divisor


def _head_dimensions(config: Mapping[str, Any]) -> list[int]:
    """Every head dimension that the config states, or that follows from a hidden size and a number of heads."""
    stated = [value for name, value in config.items() if is_count(value) and value > 0 and names.HEAD_SIZE.search(name)]
    hidden = [value for name, value in config.items() if names.is_hidden_size(name, value)]
    heads = [value for name, value in config.items() if is_count(value) and value > 0 and names.HEADS.search(name)]
    if not stated and hidden and heads:
        stated = [size // max(heads) for size in hidden if size % max(heads) == 0]
    return stated


def _sections(fields: Mapping[str, Any]) -> Iterator[int]:
    """Parts that a head dimension is divided into for positions of several axes."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _sections(value)
        elif str(name).endswith("_section") and isinstance(value, (list, tuple)):
            yield from value


def _widths(fields: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(
        item
        for config in _configs(fields)
        for name, value in config.items()
        if names.is_width(name)
        for item in (value if isinstance(value, (list, tuple)) else [value])
        if is_count(item) and item >= _SMALLEST_EQUAL_WIDTH
    )


def _special_ids(fields: Mapping[str, Any]) -> dict[int, int]:
    """New ids for the special tokens that lie beyond the small vocabulary: distinct ones at its upper end."""
    ids: set[int] = set()
    for config in _configs(fields):
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
        small |= {name: self.config(sub) for name, sub in _sub_configs(fields)}
        if "stage_names" in small and len(kept) < (
            _layer_count(fields) or 0
        ):  # stages are layers here: let it count anew
            small = {name: value for name, value in small.items() if name.removeprefix("_") not in names.OF_STAGES}
        return _with_available_backbone(_with_aligned_experts(_with_dividing_heads(small)))

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
        kept = sorted({types.index(kind) for kind in types})
        for index in range(count):
            if len(kept) < min(self.plan.layers, count) and index not in kept:
                kept.append(index)
        return sorted(kept)

    def _value(self, name: str, value: Any, fields: Mapping[str, Any], kept: Sequence[int]) -> Any:
        if isinstance(value, Mapping):
            return {
                key: self._value(str(key), item, fields, kept)
                for key, item in value.items()
                if not (name.startswith("per_layer") and str(key).isdigit() and int(key) >= len(kept))
            }
        if isinstance(value, (list, tuple)):
            return self._list(name, list(value), fields, kept)
        if value is None:
            return self._missing(name, fields)
        return self._count(name, value, fields, kept) if is_count(value) else value

    def _missing(self, name: str, fields: Mapping[str, Any]) -> Any:
        """Fields without a default that a model cannot do without."""
        if name == "prediction_length":
            return 4
        if names.CHOSEN_EXPERTS.search(name) and any(names.EXPERTS.search(other) for other in fields):
            return 2
        return (
            _PLACEHOLDER_IDS.get(name.partition("_token_")[0]) if name.endswith(("_token_id", "_token_index")) else None
        )

    def _count(self, name: str, value: int, fields: Mapping[str, Any], kept: Sequence[int]) -> int:
        plan = self.plan
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
        if kept and len(values) == _layer_count(fields) and len(values) > len(kept):
            return [self._item(name, values[index], fields) for index in kept]
        if names.DEPTHS.search(name) and all(is_count(value) for value in values):
            return [min(value, self.plan.layers) for value in values]
        if names.LAYER_INDICES.search(name):
            return _indices(values, len(kept))
        return [self._item(name, value, fields) for value in values]


def _layer_count(fields: Mapping[str, Any]) -> int | None:
    return next((fields[name] for name in names.MAIN_LAYERS if is_count(fields.get(name))), None)


def _indices(values: list[Any], layers: int) -> list[Any]:
    """Indices of layers: those that are left, or the last one."""
    if not layers or not all(is_count(value) for value in values) or all(value < layers for value in values):
        return values
    return sorted({min(value, layers - 1) for value in values})


def _small_image(size: int) -> int:
    while size > _SMALL_IMAGE and size % 2 == 0:
        size //= 2
    return size


def _with_dividing_heads(fields: dict[str, Any]) -> dict[str, Any]:
    """Some defaults have a number of heads that does not divide the hidden size; such a model cannot be made."""
    hidden, heads = fields.get("hidden_size"), fields.get("num_attention_heads")
    stated = any(names.HEAD_SIZE.search(name) and value for name, value in fields.items())
    if not (isinstance(hidden, int) and isinstance(heads, int) and heads) or stated or hidden % heads == 0:
        return fields
    return {**fields, "num_attention_heads": math.gcd(hidden, heads)}


def _with_aligned_experts(fields: dict[str, Any]) -> dict[str, Any]:
    """torch's grouped matrix product, which experts run on, wants rows of a multiple of 16 bytes."""
    return {
        name: value - value % 16 if name == "moe_intermediate_size" and is_count(value) and value > 16 else value
        for name, value in fields.items()
    }


def _with_available_backbone(fields: dict[str, Any]) -> dict[str, Any]:
    """A convolutional backbone of transformers in place of timm's, where timm is not installed."""
    backbone = fields.get("backbone_config")
    if not isinstance(backbone, Mapping) or backbone.get("model_type") != "timm_backbone" or find_spec("timm"):
        return fields
    stages = [f"stage{index}" for index in range(1, 5)]
    wanted = [stages[index - 1] for index in backbone.get("out_indices") or [4] if 1 <= index <= 4]
    return {
        **fields,
        "backbone_config": {
            "model_type": "resnet",
            "embedding_size": 16,
            "hidden_sizes": [16, 32, 48, 64],
            "depths": [1, 1, 1, 1],
            "layer_type": "basic",
            "out_features": wanted or stages[-1:],
        },
    }
