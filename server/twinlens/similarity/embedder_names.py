"""Names of embedders, apart from their code, for processes that import no numpy."""

from __future__ import annotations

DEFAULT = "library"
"""The embedder that is fitted on the library itself."""

UPSTREAM = "Qwen/Qwen3-Embedding-4B"
"""The embedder of an index that transformers' own detector wrote."""
