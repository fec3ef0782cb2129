"""Facts of earlier runs, kept in one file for each checkout and found by the content that they were read from."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from twinlens.skips.codec import FORMAT, decode, encode
from twinlens.skips.facts import File
from twinlens.skips.storage import read_json, write_beside


class Memory:
    """What is remembered of one checkout. A file that can't be read as such is taken for an empty one, and replaced."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._path = folder / f"facts-{name_of(root)}.json"
        self._encoded: dict[str, str] | None = None
        self._fresh: dict[str, File] = {}

    def recall(self, digest: str) -> File | None:
        """The facts of a content, if they are remembered."""
        encoded = self._stored().get(digest)
        if encoded is None:
            return self._fresh.get(digest)
        try:
            found = decode(json.loads(encoded))
        except (ValueError, TypeError):
            return None
        return found if isinstance(found, File) else None

    def keep(self, digest: str, file: File) -> None:
        """Remember the facts of a content, on disk from the next `save` on."""
        self._fresh[digest] = file

    def save(self, digests: set[str]) -> None:
        """Write what is remembered of these contents, and nothing else."""
        stored = self._stored()
        if not self._fresh and stored.keys() <= digests:
            return
        kept = {digest: text for digest, text in stored.items() if digest in digests}
        for digest, file in self._fresh.items():
            if digest in digests:
                kept[digest] = json.dumps(encode(file), separators=(",", ":"))
        write_beside(self._path, json.dumps({"format": FORMAT, "facts": kept}))
        self._encoded, self._fresh = kept, {}

    def _stored(self) -> dict[str, str]:
        if self._encoded is None:
            self._encoded = _facts_in(read_json(self._path))
        return self._encoded


def name_of(root: Path) -> str:
    """A short name for what is stored of a checkout: the same for the same folder."""
    return blake2b(str(root.resolve()).encode(), digest_size=8).hexdigest()


def _facts_in(stored: Any) -> dict[str, str]:
    if not isinstance(stored, dict) or stored.get("format") != FORMAT or not isinstance(stored.get("facts"), dict):
        return {}
    return {digest: text for digest, text in stored["facts"].items() if isinstance(text, str)}
