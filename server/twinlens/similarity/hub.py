"""Exchange an index with a dataset on the Hugging Face Hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlens.similarity import index as on_disk
from twinlens.similarity.contents import (
    DEFINITIONS,
    EMBEDDINGS,
    FEATURES,
    INDEX_MAP,
    LINEAGE,
    TOKENS,
    IndexDamagedError,
)
from twinlens.similarity.index import EMBEDDER, MANIFEST

if TYPE_CHECKING:
    from twinlens.similarity.embedder import LibraryEmbedder
    from twinlens.similarity.indexed import Index

DEFAULT_DATASET = "hf-internal-testing/transformers_code_embeddings"
"""Where transformers' own detector keeps its index."""

_NEEDED = (EMBEDDINGS, INDEX_MAP, TOKENS)
_HTTP_LIBRARIES = ("httpx", "httpx2", "requests")
_OURS = (MANIFEST, DEFINITIONS, LINEAGE, FEATURES)


class HubError(Exception):
    """The exchange failed, and the local index is as it was: one sentence."""


def pull(dataset: str, folder: Path) -> Index:
    """Put the index of `dataset` in place of the one in `folder`, once it is here whole.

    An index that upstream published has no manifest and is taken as it is. Raises `HubError`, and `OSError` where
    `folder` cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pull-", dir=folder) as scratch:
        here = Path(scratch)
        _download(dataset, here)
        try:
            index = on_disk.load(here)
            embedder = _fitted_embedder(here, index)
        except (IndexDamagedError, FileNotFoundError, ValueError) as error:
            reason = str(error).replace(f"{here}/", "").split(";")[0].removesuffix(".")
            raise HubError(f"{dataset} holds no whole index, the local one stays: {reason}.") from error
        on_disk.write(folder, index, embedder)
    return index


def push(dataset: str, folder: Path) -> None:
    """Upload the index in `folder` as one commit; the dataset is created where there is none. Raises `HubError`."""
    from huggingface_hub import HfApi

    allowed = [*_NEEDED, *_OURS, f"{EMBEDDER}/*"]
    api = HfApi()

    def upload() -> None:
        api.create_repo(dataset, repo_type="dataset", exist_ok=True)
        api.upload_folder(
            repo_id=dataset,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=allowed,
            commit_message="Upload a similarity index",
        )

    _asking(dataset, upload)


def _download(dataset: str, folder: Path) -> None:
    from huggingface_hub import HfApi, hf_hub_download

    def download() -> None:
        present = set(HfApi().list_repo_files(dataset, repo_type="dataset"))
        missing = [name for name in _NEEDED if name not in present]
        if missing:
            raise HubError(f"{dataset} holds no index, the local one stays: it has no {missing[0]}.")
        ours = [name for name in present if name in _OURS or name.startswith(f"{EMBEDDER}/")]
        for name in (*_NEEDED, *sorted(ours)):
            if ".." in Path(name).parts:
                raise HubError(f"{dataset} names a file outside its folder: {name}.")
            hf_hub_download(dataset, name, repo_type="dataset", local_dir=folder)

    _asking(dataset, download)


def _asking(dataset: str, exchange: Any) -> None:
    """Run an exchange with the Hub; what the client raises becomes one sentence."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        exchange()
    except HfHubHTTPError as error:
        answer = getattr(error, "response", None)
        status = f"HTTP {answer.status_code}" if answer is not None else str(error).splitlines()[0]
        raise HubError(f"the Hub refused the exchange with the dataset {dataset}: {status}.") from error
    except HFValidationError as error:
        raise HubError(f"{dataset} is no dataset's name; write it as ORG/NAME.") from error
    except Exception as error:
        # Which HTTP library raises here depends on the client's version.
        if not isinstance(error, (LocalEntryNotFoundError, OSError)) and _package(error) not in _HTTP_LIBRARIES:
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise HubError(f"the exchange with the dataset {dataset} broke off, the local one stays: {reason}") from error


def _package(error: Exception) -> str:
    return type(error).__module__.partition(".")[0]


def _fitted_embedder(folder: Path, index: Index) -> LibraryEmbedder | None:
    from twinlens.similarity.embedder import LibraryEmbedder
    from twinlens.similarity.embedder_names import DEFAULT

    return LibraryEmbedder.load(folder / EMBEDDER) if index.embedder == DEFAULT else None
