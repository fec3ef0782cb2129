"""Embedders: text in, rows of unit length out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from twinlens.similarity.embedder_names import DEFAULT, UPSTREAM

FOLDER = "embedder"
"""Where in an index's folder its fitted embedder is kept."""

_VOCABULARY = 24_000
_DIMENSION = 256
_SEED = 673
_MODEL_FILE = "model.safetensors"
_TOKENIZER_FILE = "tokenizer.json"


class Embedder(Protocol):
    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 rows (len(texts), d), each of unit length or zero."""
        ...


class LibraryEmbedder:
    """A static embedder fitted on the library's own sanitised sources; it needs no download and no GPU.

    Byte-pair tokens are learned without splitting at spaces, only at line ends, so that a token is often a whole
    phrase of code. Each token has a random direction (the same in every fit) scaled by its inverse document
    frequency; a text's embedding is the normalised mean over its tokens. On disk it is a sentence-transformers
    `StaticEmbedding` with a `Normalize` behind it, and is read here straight from its two files.
    """

    name = DEFAULT

    def __init__(self, tokenizer: Tokenizer, weights: np.ndarray) -> None:
        """`weights`: float32 (vocabulary, d)."""
        self._tokenizer = tokenizer
        self._weights = weights

    @classmethod
    def fit(cls, texts: Sequence[str]) -> LibraryEmbedder:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n"), behavior="removed")
        trainer = trainers.BpeTrainer(vocab_size=_VOCABULARY, show_progress=False, special_tokens=[])
        tokenizer.train_from_iterator(texts, trainer)
        size = max(1, tokenizer.get_vocab_size())
        documents = np.zeros(size, dtype=np.int64)
        for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
            documents[np.unique(np.asarray(encoding.ids, dtype=np.int64))] += 1
        rarity = np.log((1 + len(texts)) / (1 + documents))
        directions = np.random.default_rng(_SEED).standard_normal((size, _DIMENSION))
        return cls(tokenizer, (directions * rarity[:, None]).astype(np.float32))

    @classmethod
    def load(cls, folder: Path) -> LibraryEmbedder:
        """Raises `OSError` or `ValueError` where a file is missing or damaged."""
        tokenizer_file, model_file = folder / _TOKENIZER_FILE, folder / _MODEL_FILE
        try:
            tokenizer = Tokenizer.from_file(str(tokenizer_file))
            weights = load_file(model_file)["embedding.weight"]
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"the embedder in {folder} is damaged: {error}") from error
        if tokenizer.get_vocab_size() > len(weights):
            raise ValueError(f"the embedder in {folder} is damaged: its two files do not belong together")
        return cls(tokenizer, weights)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._tokenizer.save(str(folder / _TOKENIZER_FILE))
        save_file({"embedding.weight": self._weights}, folder / _MODEL_FILE)
        modules = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"},
            {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"},
        ]
        (folder / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")
        (folder / "1_Normalize").mkdir(exist_ok=True)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        rows = np.zeros((len(texts), self._weights.shape[1]), dtype=np.float32)
        for row, encoding in zip(rows, encodings, strict=True):
            tokens, counts = np.unique(np.asarray(encoding.ids, dtype=np.int64), return_counts=True)
            row[:] = counts.astype(np.float32) @ self._weights[tokens]
        return unit_rows(rows)


class SentenceTransformerEmbedder:
    """Any sentence-transformers model, by the name of a Hub repository or by a folder."""

    def __init__(self, name: str, devices: Sequence[str] = ()) -> None:
        """Raises `ImportError` without sentence-transformers, `ValueError` where the model cannot be loaded."""
        from sentence_transformers import SentenceTransformer

        self.name = name
        self._devices = list(devices)
        try:
            self._model: Any = SentenceTransformer(name, device=self._devices[0] if len(self._devices) == 1 else None)
        except (OSError, ValueError) as error:
            raise ValueError(f"the embedder {name!r} cannot be loaded: {str(error).splitlines()[0]}") from error

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        several = self._devices if len(self._devices) > 1 else None
        # An empty list has no width: one text stands in, and its row is dropped.
        encoded = list(texts) or [""]
        rows = self._model.encode(encoded, normalize_embeddings=True, show_progress_bar=False, device=several)
        return unit_rows(np.asarray(rows, dtype=np.float32))[: len(texts)]


def open_embedder(name: str | None, index: Path) -> Embedder:
    """The embedder of the index in the folder `index`; an index without a name is upstream's.

    Raises `OSError` or `ValueError` where its files are damaged or cannot be loaded, `ImportError` where
    sentence-transformers is needed and missing.
    """
    if name == DEFAULT:
        return LibraryEmbedder.load(index / FOLDER)
    return SentenceTransformerEmbedder(name or UPSTREAM)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """`rows` with each row scaled to unit length; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
