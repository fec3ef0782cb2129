"""Collect intermediate outputs with decorators, for any `nn.Module`."""

from __future__ import annotations

from twinlens.capture.decorators import capture_outputs
from twinlens.capture.defaults import merge_with_config_defaults
from twinlens.capture.recorder import OutputRecorder

__all__ = ["OutputRecorder", "capture_outputs", "merge_with_config_defaults"]
