from __future__ import annotations

from datetime import date

from twinlens.source.dates import copyright_date, documented_dates, is_later
from twinlens.source.library import find_library


def test_the_earliest_copyright_year_counts():
    text = "# Copyright 2022 EleutherAI and (c) 2024 the team.\n# Copyright (c) 2020, NVIDIA.\nimport torch\n"
    assert copyright_date(text) == "2020-01-01"
    assert copyright_date("import torch\n") is None


def test_a_checkouts_documentation_names_the_day_of_the_release(tmp_path):
    models = tmp_path / "src/transformers/models"
    (models / "nova").mkdir(parents=True)
    pages = tmp_path / "docs/source/en/model_doc"
    pages.mkdir(parents=True)
    added = "added to Hugging Face Transformers on 2024-05-06"
    (pages / "nova.md").write_text(f"*This model was released on 2024-02-03 and {added}.*")
    (pages / "nova-next.md").write_text(f"*This model was released on {{release_date}} and {added}.*")
    (pages / "auto.md").write_text("# Auto classes")
    library = find_library([models])
    assert documented_dates(library) == {"nova": "2024-02-03", "nova_next": "2024-05-06"}


def test_an_unknown_date_is_not_later():
    assert is_later("2024-02-03", date(2024, 2, 2))
    assert not is_later("2024-02-03", date(2024, 2, 3))
    assert not is_later(None, date(2024, 2, 3))
