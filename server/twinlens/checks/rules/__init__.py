"""The checks, one a file."""

from __future__ import annotations

from twinlens.checks.check import Check
from twinlens.checks.rules import (
    ambiguous_recorders,
    decorator_order,
    index_out_of_range,
    manual_collection,
    missing_declaration,
    missing_decorator,
    missing_kwargs,
    no_cache,
    patch_bad_pattern,
    patch_no_match,
    patch_not_module,
    patch_signature,
    patch_too_wide,
    tuple_of_recorders,
    unknown_class,
    unknown_key,
    unknown_layer_name,
)

CHECKS: tuple[Check, ...] = (
    unknown_class.CHECK,
    unknown_key.CHECK,
    index_out_of_range.CHECK,
    unknown_layer_name.CHECK,
    ambiguous_recorders.CHECK,
    tuple_of_recorders.CHECK,
    missing_declaration.CHECK,
    missing_decorator.CHECK,
    decorator_order.CHECK,
    missing_kwargs.CHECK,
    manual_collection.CHECK,
    no_cache.CHECK,
    patch_no_match.CHECK,
    patch_too_wide.CHECK,
    patch_signature.CHECK,
    patch_not_module.CHECK,
    patch_bad_pattern.CHECK,
)
