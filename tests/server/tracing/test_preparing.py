"""From what the user names to a model that runs: targets, recipes, the library's tester, a shrunk config."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
import torch
from twinlens.tracing.errors import NoRecipeError, UsageError, UserCodeError
from twinlens.tracing.folders import nearest_recipes
from twinlens.tracing.preparing import prepare

MODELING = """
    from dataclasses import dataclass
    import torch
    from torch import nn

    @dataclass
    class {prefix}Config:
        hidden_size: int = 512
        num_attention_heads: int = 8
        intermediate_size: int = 2048
        num_hidden_layers: int = 24
        vocab_size: int = 100000

    class {prefix}MLP(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.up = nn.Linear(config.hidden_size, config.intermediate_size)
            self.down = nn.Linear(config.intermediate_size, config.hidden_size)

        def forward(self, hidden_states):
            return self.down(self.up(hidden_states).relu())

    class {prefix}Model(nn.Module):
        def __init__(self, config: {prefix}Config):
            super().__init__()
            self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
            self.layers = nn.ModuleList({prefix}MLP(config) for _ in range(config.num_hidden_layers))

        def forward(self, input_ids):
            hidden_states = self.embed(input_ids)
            for layer in self.layers:
                hidden_states = layer(hidden_states)
            return hidden_states

    class {prefix}Loose(nn.Module):
        def __init__(self, anything):
            super().__init__()

        def forward(self, something):
            return something

    not_a_class = 3
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch, request):
    """A workspace of one modeling file, whose module no other test has imported, and the prefix of its classes."""
    prefix = "".join(word.capitalize() for word in request.node.name.split("[")[0].split("_"))
    path = tmp_path / f"modeling_{prefix.lower()}.py"
    path.write_text(textwrap.dedent(MODELING.format(prefix=prefix)))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path, path.name, prefix


def write_recipe(root, text, name="recipe"):
    folder = root / ".twinlens" / "recipes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_{abs(hash(root))}.py").write_text("import torch, twinlens\n" + textwrap.dedent(text))


def prepared(root, text, seed=None):
    said = []
    ready = prepare(text, Path(root), seed, said.append)
    return ready, said


def test_a_class_whose_constructor_names_its_config_is_made_small(workspace):
    root, file, prefix = workspace
    ready, said = prepared(root, f"{file}::{prefix}Model")
    model = ready.prepared.model
    assert ready.part == ""
    assert len(model.layers) == 2
    assert model.embed.weight.shape == (384, 64)
    assert model.layers[0].up.weight.shape == (256, 64)
    assert ready.prepared.source == f"shrunk {prefix}Config"
    assert ready.prepared.kwargs["input_ids"].shape == (2, 24)
    assert said[-1].startswith(f"building {prefix}Model")


def test_a_part_runs_inside_a_model_of_its_file_that_contains_it(workspace):
    root, file, prefix = workspace
    ready, _said = prepared(root, f"{file}::{prefix}MLP")
    assert type(ready.prepared.model).__name__ == f"{prefix}Model"
    assert ready.part == f"{prefix}MLP"


def test_equal_seeds_give_equal_weights_and_inputs_and_others_do_not(workspace):
    root, file, prefix = workspace
    one, again, other = (prepared(root, f"{file}::{prefix}Model", seed)[0].prepared for seed in (1, 1, 2))
    assert torch.equal(one.model.embed.weight, again.model.embed.weight)
    assert torch.equal(one.kwargs["input_ids"], again.kwargs["input_ids"])
    assert not torch.equal(one.model.embed.weight, other.model.embed.weight)


def test_a_class_that_nothing_is_known_to_make_needs_a_recipe(workspace):
    root, file, prefix = workspace
    with pytest.raises(NoRecipeError, match=rf"{prefix}Loose.*write a recipe"):
        prepared(root, f"{file}::{prefix}Loose")


@pytest.mark.parametrize(
    "inputs",
    [
        "{'input_ids': torch.ones(1, 3, dtype=torch.long)}",
        "(torch.ones(1, 3, dtype=torch.long),)",
        "torch.ones(1, 3, dtype=torch.long)",
    ],
)
def test_a_recipe_comes_before_everything_else(workspace, inputs):
    root, file, prefix = workspace
    write_recipe(
        root,
        f"""
        from {file.removesuffix(".py")} import {prefix}Config, {prefix}Model

        @twinlens.recipe(target="{prefix}Model", seed=5)
        def tiny():
            return {prefix}Model({prefix}Config(8, 2, 16, 1, 10)), {inputs}
        """,
    )
    ready, _said = prepared(root, f"{file}::{prefix}Model")
    assert ready.prepared.model.embed.weight.shape == (10, 8)
    assert ready.prepared.seed == 5
    arguments = [*ready.prepared.args, *ready.prepared.kwargs.values()]
    assert [argument.shape for argument in arguments] == [(1, 3)]
    by_name, _said = prepared(root, "tiny")
    assert torch.equal(by_name.prepared.model.embed.weight, ready.prepared.model.embed.weight)
    part, _said = prepared(root, f"{file}::{prefix}MLP")
    assert (part.part, part.prepared.source) == (f"{prefix}MLP", ready.prepared.source)


def test_a_recipe_function_is_named_by_its_file(workspace):
    root, _file, _prefix = workspace
    (root / "own.py").write_text("import torch\ndef make():\n    return torch.nn.Linear(2, 2), torch.ones(1, 2)\n")
    ready, _said = prepared(root, "own.py::make")
    assert type(ready.prepared.model) is torch.nn.Linear
    assert ready.prepared.seed == 673


def test_a_class_of_an_installed_module_is_named_by_the_module():
    pytest.importorskip("transformers")
    ready, _said = prepared(".", "transformers.models.llama.modeling_llama:LlamaModel")
    assert ready.prepared.source == "shrunk LlamaConfig"
    assert ready.prepared.model.config.num_hidden_layers == 2


def test_the_nearest_folder_with_recipes_is_the_one(tmp_path):
    for folder in (tmp_path, tmp_path / "a" / "b"):
        (folder / ".twinlens" / "recipes").mkdir(parents=True)
        (folder / ".twinlens" / "recipes" / "r.py").write_text("")
    (tmp_path / "a" / "b" / "c").mkdir()
    assert nearest_recipes(tmp_path / "a" / "b" / "c") == [tmp_path / "a" / "b" / ".twinlens" / "recipes" / "r.py"]
    assert nearest_recipes(tmp_path / "a") == [tmp_path / ".twinlens" / "recipes" / "r.py"]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ("None", "returned None; return (model, inputs)"),
        ("{}", "returned a dict"),
        ("torch.nn.Identity", "returned the class Identity"),
        ("(1, 2)", "returned a tuple of int, int"),
        ("(torch.nn.Identity(), 1, 2)", "returned a tuple of Identity, int, int"),
        ("torch.nn.Identity()", "returned an Identity"),
    ],
)
def test_a_recipe_that_returns_something_else_gets_a_sentence(workspace, result, sentence):
    root, _file, _prefix = workspace
    write_recipe(root, f"@twinlens.recipe()\ndef wrong():\n    return {result}\n")
    with pytest.raises(UsageError) as caught:
        prepared(root, "wrong")
    assert sentence in str(caught.value)


def test_a_recipe_for_a_class_must_return_a_model_that_has_it(workspace):
    root, file, prefix = workspace
    write_recipe(root, f"@twinlens.recipe('{prefix}Model')\ndef other():\n    return torch.nn.Identity(), 1\n")
    with pytest.raises(UsageError, match=rf"for {prefix}Model and returned an Identity without one"):
        prepared(root, f"{file}::{prefix}Model")


def test_a_recipe_that_raises_is_the_users_code(workspace):
    root, _file, _prefix = workspace
    write_recipe(root, "@twinlens.recipe()\ndef bad():\n    return {}['weights']\n")
    with pytest.raises(UserCodeError, match=r"running the recipe recipe_.*::bad") as caught:
        prepared(root, "bad")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("missing.py::Net", "missing.py does not exist"),
        ("::Net", "::Net does not exist"),
        ("notes.txt::Net", "notes.txt is no Python file"),
        (".::Net", ". is no Python file"),
        ("nets.py::net", "nets.py has no net; did you mean Net?"),
        ("nets.py::Nett", "nets.py has no Nett; did you mean Net?"),
        ("nets.py::Unlike", "nets.py has no Unlike; name a class or a recipe that it defines."),
        ("nets.py::needy", "nets.py::needy takes size, and a recipe takes nothing"),
        ("torch.nn:Linearr", "module torch.nn has no Linearr; did you mean Linear?"),
        ("modeling.py", "names a file and nothing in it"),
        ("no_such_module:Net", "There is no module no_such_module"),
        ("torch.nn:NoSuchClass", "module torch.nn has no NoSuchClass"),
        ("a b", "is no target"),
        ("torch:float32", "is neither an nn.Module class nor a recipe function"),
        ("nobody", "There is no recipe nobody"),
    ],
)
def test_a_target_that_names_nothing_gets_a_sentence(tmp_path, target, sentence):
    (tmp_path / "notes.txt").write_text("")
    text = "import torch\n\nclass Net(torch.nn.Identity): ...\n\ndef needy(size, *sizes, depth=1): ...\n"
    (tmp_path / "nets.py").write_text(text)
    with pytest.raises(UsageError) as caught:
        prepared(tmp_path, target)
    assert sentence in str(caught.value)


def test_a_value_that_is_no_class_gets_a_sentence(workspace):
    root, file, _prefix = workspace
    with pytest.raises(UsageError, match=r"neither an nn.Module class nor a recipe"):
        prepared(root, f"{file}::not_a_class")


def test_a_file_that_does_not_import_is_the_users_code(tmp_path):
    (tmp_path / "broken_import.py").write_text("import torch\nraise RuntimeError('no weights here')\n")
    with pytest.raises(UserCodeError, match=r"importing broken_import\.py"):
        prepared(tmp_path, "broken_import.py::Net")


def test_a_file_of_a_package_is_imported_as_part_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    package = tmp_path / "some_package_of_ours"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("SIZE = 3\n")
    (package / "net.py").write_text(
        "import torch\nfrom .sizes import SIZE\ndef make():\n    return torch.nn.Linear(SIZE, 1), torch.ones(SIZE)\n"
    )
    ready, _said = prepared(tmp_path, "some_package_of_ours/net.py::make")
    assert ready.prepared.model.in_features == 3


def test_a_file_with_relative_imports_in_no_package_has_its_folder_for_one(tmp_path):
    folder = tmp_path / "hub-repository"
    folder.mkdir()
    (folder / "sizes_of_hub.py").write_text("SIZE = 4\n")
    (folder / "net_of_hub.py").write_text(
        "import torch\nfrom .sizes_of_hub import SIZE\n"
        "def make():\n    return torch.nn.Linear(SIZE, 1), torch.ones(SIZE)\n"
    )
    ready, _said = prepared(tmp_path, "hub-repository/net_of_hub.py::make")
    assert ready.prepared.model.in_features == 4


TESTER = """
    import unittest
    import torch
    from {module} import {prefix}Config, {prefix}Model

    class {prefix}ModelTester:
        def __init__(self, parent):
            self.parent = parent

        def prepare_config_and_inputs_for_common(self):
            return {prefix}Config(8, 2, 24, 3, 11), {{"input_ids": torch.randint(0, 11, (1, 5))}}

    class {prefix}ModelTest(unittest.TestCase):
        all_model_classes = ({prefix}Model,)

        def setUp(self):
            self.model_tester = {prefix}ModelTester(self)
"""


def test_the_librarys_model_tester_is_used_where_there_is_one(workspace):
    root, file, prefix = workspace
    name = prefix.lower()
    folder = root / "tests" / "models" / name
    folder.mkdir(parents=True)
    text = TESTER.format(module=file.removesuffix(".py"), prefix=prefix)
    (folder / f"test_modeling_{name}.py").write_text(textwrap.dedent(text))
    ready, said = prepared(root, f"{file}::{prefix}MLP")
    assert ready.prepared.source == f"model tester of test_modeling_{name}.py"
    assert ready.prepared.model.embed.weight.shape == (11, 8)
    assert ready.part == f"{prefix}MLP"
    assert f"preparing {prefix}MLP as test_modeling_{name}.py does" in said


def test_a_model_tester_that_raises_is_named_and_passed_over(workspace):
    root, file, prefix = workspace
    name = prefix.lower()
    folder = root / "tests" / "models" / name
    folder.mkdir(parents=True)
    (folder / f"test_modeling_{name}.py").write_text("import a_package_that_is_not_there\n")
    ready, said = prepared(root, f"{file}::{prefix}Model")
    assert ready.prepared.source == f"shrunk {prefix}Config"
    assert any("is of no use here" in sentence and "a_package_that_is_not_there" in sentence for sentence in said)
