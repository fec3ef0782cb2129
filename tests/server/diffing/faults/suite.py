"""All pairs: one fault each, two at once, and none."""

from __future__ import annotations

from . import decoder_cases, encoder_cases, moe_cases, vision_cases
from .pairs import Case

MODULES = (decoder_cases, encoder_cases, vision_cases, moe_cases)
SINGLE: tuple[Case, ...] = tuple(case for module in MODULES for case in module.CASES)
CONTROLS: tuple[Case, ...] = tuple(case for module in MODULES for case in module.CONTROLS)
STACKED: tuple[Case, ...] = decoder_cases.STACKED
