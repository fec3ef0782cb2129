"""An index in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinlens.similarity.corpus import Corpus, Entry, FileEntries
from twinlens.source.dates import documented_dates
from twinlens.source.library import Library
from twinlens.source.ties import NO_TIES, FileTies

if TYPE_CHECKING:
    import numpy as np

    from twinlens.similarity.feature_table import FeatureTable


@dataclass(frozen=True, slots=True)
class Index:
    """An index in memory. `embeddings` is float32 (n, d) with rows of unit length, or None; `tokens` and `entries`
    have n items. `digests` maps each library file to its content's hash.
    """

    entries: tuple[Entry, ...]
    tokens: tuple[frozenset[str], ...]
    embeddings: np.ndarray | None = None
    embedder: str | None = None
    label: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    ties: Mapping[str, FileTies] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    released: Mapping[str, str] = field(default_factory=dict)
    features: FeatureTable | None = None

    def release_dates(self) -> dict[str, str]:
        """Model → the day of its release, or else the earliest day that its files allow; in ISO 8601."""
        earliest: dict[str, str] = {}
        for entry in self.entries:
            found = self.dates.get(entry.relative)
            if found:
                earliest[entry.model] = min(found, earliest.get(entry.model, found))
        return {**earliest, **self.released}

    def known_files(self) -> dict[str, FileEntries]:
        """What a rebuild need not parse again; nothing for an index without `definitions.json`."""
        by_file: dict[str, list[Entry]] = {relative: [] for relative in self.digests}
        for entry in self.entries:
            by_file.setdefault(entry.relative, []).append(entry)
        return {
            relative: FileEntries(
                relative,
                digest,
                tuple(by_file[relative]),
                self.ties.get(relative, NO_TIES),
                self.dates.get(relative),
            )
            for relative, digest in self.digests.items()
        }


def index_of_corpus(corpus: Corpus, library: Library) -> Index:
    entries = corpus.entries
    return Index(
        entries,
        tuple(entry.tokens() for entry in entries),
        label=library.label,
        digests={file.relative: file.digest for file in corpus.files},
        ties={file.relative: file.ties for file in corpus.files if file.ties != NO_TIES},
        dates={file.relative: file.date for file in corpus.files if file.date},
        released=documented_dates(library),
    )
