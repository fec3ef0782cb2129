from __future__ import annotations

from pathlib import Path

from twinlens.source.library import find_library, model_of_file, modeling_files


def make_models(root: Path, *files: str) -> None:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("class A: pass\n")


def test_a_checkout_around_the_file_is_the_library(tmp_path):
    make_models(tmp_path / "src/transformers/models", "llama/modeling_llama.py")
    (tmp_path / "src/transformers/__init__.py").write_text('__version__ = "5.1.0.dev0"\n')
    library = find_library([tmp_path / "src/transformers/models/llama/modeling_llama.py"])
    assert library is not None
    assert (library.origin, library.version, library.label) == ("checkout", "5.1.0.dev0", "transformers 5.1.0.dev0")
    assert library.roots == (tmp_path / "src/transformers/models",)


def test_a_checkout_wins_over_the_installed_package(tmp_path):
    make_models(tmp_path / "checkout/src/transformers/models", "llama/modeling_llama.py")
    make_models(tmp_path / "site/transformers/models", "bert/modeling_bert.py")
    found = find_library([tmp_path / "checkout"], tmp_path / "site/transformers")
    assert found is not None and found.origin == "checkout"
    installed = find_library([tmp_path / "site"], tmp_path / "site/transformers")
    assert installed is not None and installed.origin == "installed"


def test_folders_that_the_user_names_win(tmp_path):
    make_models(tmp_path / "mine", "llama/modeling_llama.py", "modeling_flat.py")
    library = find_library([tmp_path], None, [tmp_path / "mine"])
    assert library is not None and library.origin == "folder"
    assert [(f.relative, f.model) for f in modeling_files(library)] == [
        ("llama/modeling_llama.py", "llama"),
        ("modeling_flat.py", "flat"),
    ]


def test_where_there_is_nothing_there_is_no_library(tmp_path):
    assert find_library([tmp_path], tmp_path / "transformers") is None


def test_files_of_other_frameworks_are_left_out(tmp_path):
    make_models(tmp_path, "bert/modeling_bert.py", "bert/modeling_tf_bert.py", "bert/modeling_flax_bert.py")
    library = find_library((), None, [tmp_path])
    assert library is not None
    assert [f.relative for f in modeling_files(library)] == ["bert/modeling_bert.py"]


def test_a_file_belongs_to_the_model_of_its_folder_in_the_library_else_of_its_name(tmp_path):
    make_models(tmp_path, "data2vec/modeling_data2vec_text.py")
    library = find_library((), None, [tmp_path])
    assert model_of_file(tmp_path / "data2vec/modeling_data2vec_text.py", library) == "data2vec"
    assert model_of_file(Path("/elsewhere/modeling_lumen.py"), library) == "lumen"
    assert model_of_file(Path("/elsewhere/scratch.py"), None) == "scratch"
