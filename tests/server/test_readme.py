"""The README's Python examples run as they are printed, and do what is said beside them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from twinlens.tracing.reading import read_trace

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(folder, *arguments):
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=100)


def example(word):
    (found,) = [text for text in EXAMPLES if word in text]
    return found


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split("import ")[-1].split("\n")[0])
def test_an_example_runs_as_it_is_printed(tmp_path, text):
    (tmp_path / "example.py").write_text(text, encoding="utf-8")
    done = run(tmp_path, "-W", "error::UserWarning", "example.py")
    assert done.returncode == 0, done.stderr


def test_the_recipe_is_traced_by_its_name_and_for_its_class(tmp_path):
    folder = tmp_path / ".twinlens" / "recipes"
    folder.mkdir(parents=True)
    (folder / "example.py").write_text(example("@twinlens.recipe"), encoding="utf-8")
    command = ["-c", "from twinlens.cli import main; main()", "trace", "transformers:LlamaForCausalLM", "--stats-only"]
    done = run(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    assert read_trace(Path(done.stdout.strip())).info.recipe == "example.py::small_llama"


def test_the_context_writes_the_files_of_transformers_own_function(tmp_path):
    run(tmp_path, "-c", example("model_addition_debugger_context"))
    assert {path.name for path in (tmp_path / "traces").iterdir()} == {
        "Sequential_debug_tree_FULL_TENSORS.json",
        "Sequential_debug_tree_SUMMARY.json",
    }


def test_what_is_captured_and_what_takes_a_patched_class_place_is_as_the_comments_say(tmp_path):
    told = """
print([state is not None for state in outputs["hidden_states"]], len(outputs["attentions"]))
print({type(block.attn).__name__ for block in model.blocks})
print(len(model(torch.randn(1, 5, 8), output_attentions=True)["attentions"]))
"""
    (tmp_path / "example.py").write_text(example("apply_patches") + told, encoding="utf-8")
    done = run(tmp_path, "example.py")
    assert done.stdout == "[True, False, False, True] 3\n{'EinsumAttention'}\n3\n", done.stderr
