"""`twinlens check` as a person and a CI job run it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

WRONG = """from torch import nn
from transformers import PreTrainedModel


class Layer(nn.Module): ...


class Größe(PreTrainedModel):
    é = 1; _can_record_outputs = {"hidden_states": (Layer, Layer)}
"""


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", "from twinlens.cli import main; main()", "check", *arguments],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "modeling_wrong.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "modeling_right.py").write_text(WRONG.replace("(Layer, Layer)", "[Layer]"), encoding="utf-8")
    hidden = tmp_path / ".venv" / "lib"
    hidden.mkdir(parents=True)
    (hidden / "modeling_wrong.py").write_text(WRONG, encoding="utf-8")
    return tmp_path


def test_findings_are_printed_a_line_each_and_make_it_exit_with_1(folder):
    done = run(".", cwd=folder)
    assert done.stdout == (
        "modeling_wrong.py:9:52: tuple-of-recorders 'hidden_states' is a tuple: several recorders are given as a list\n"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("1 finding in 2 files, ")


def test_without_findings_it_exits_with_0(folder):
    done = run("modeling_right.py", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")


def test_json_is_a_list_of_findings(folder):
    done = run("--json", "modeling_wrong.py", cwd=folder)
    assert json.loads(done.stdout) == [
        {
            "path": "modeling_wrong.py",
            "line": 9,
            "column": 52,
            "code": "tuple-of-recorders",
            "message": "'hidden_states' is a tuple: several recorders are given as a list",
        }
    ]
    assert done.returncode == 1
    assert json.loads(run("--json", "modeling_right.py", cwd=folder).stdout) == []


def test_sarif_names_the_rule_and_the_place(folder):
    log = json.loads(run("--sarif", ".", cwd=folder).stdout)
    assert log["version"] == "2.1.0"
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "tuple-of-recorders"
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "modeling_wrong.py"
    assert location["region"] == {"startLine": 9, "startColumn": 52, "endLine": 9, "endColumn": 66}
    rules = {rule["id"]: rule for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert rules["tuple-of-recorders"]["help"]["markdown"].startswith("# tuple-of-recorders")


def test_a_page_is_printed_on_request(folder):
    done = run("--explain", "no-cache", cwd=folder)
    assert done.stdout.startswith("# no-cache\n")
    assert "## Why it matters" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name a file or a folder to check"),
        (["gone.py"], "gone.py does not exist"),
        (["notes.txt"], "notes.txt is no Python file; name files that end in .py, or folders"),
        (["empty"], "empty holds no Python file"),
        (["--explain", "nothing"], "no check has the code nothing; the codes are unknown-class, "),
        (["--json", "--sarif", "."], "choose one of --json and --sarif"),
        (["--library", "empty", "."], "empty holds no modeling_*.py file; name a folder of models with --library"),
        (["--library", "gone", "."], "gone is no folder; name a folder of models with --library"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(folder, arguments, sentence):
    (folder / "notes.txt").write_text("hi\n")
    (folder / "empty").mkdir()
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"twinlens: {sentence}")
    assert done.stderr.count("\n") == 1


def test_a_file_that_does_not_parse_is_named_and_the_others_are_checked(folder):
    (folder / "broken.py").write_text("_can_record_outputs = {\n")
    done = run(".", cwd=folder)
    assert "broken.py does not parse at line 1: '{' was never closed\n" in done.stderr
    assert "tuple-of-recorders" in done.stdout
    alone = run("broken.py", cwd=folder)
    assert (alone.returncode, alone.stdout) == (2, "")


BROKEN = {
    "syntax.py": (b"def f(:\n", "syntax.py does not parse at line 1: invalid syntax"),
    "nul.py": (b"x = 1\0\n", "nul.py does not parse"),
    "utf16.py": ("x = 1".encode("utf-16"), "utf16.py does not parse: invalid or missing encoding declaration"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_named_file_that_cannot_be_parsed_is_one_sentence_and_exit_code_2(tmp_path, name):
    content, sentence = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    done = run(name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"twinlens: {sentence}")
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_named_beside_others_and_cannot_be_parsed_is_exit_code_2(folder):
    (folder / "syntax.py").write_text("def f(:\n")
    done = run("syntax.py", "modeling_wrong.py", cwd=folder)
    assert done.returncode == 2
    assert "tuple-of-recorders" in done.stdout
    assert "1 finding in 1 file, 1 file not checked, " in done.stderr


def test_files_of_a_folder_that_cannot_be_parsed_are_named_and_not_counted(folder):
    for name, (content, _sentence) in BROKEN.items():
        (folder / name).write_bytes(content)
    done = run(".", cwd=folder)
    assert done.returncode == 1
    assert all(sentence in done.stderr for _content, sentence in BROKEN.values())
    assert "1 finding in 2 files, 3 files not checked, " in done.stderr


def test_a_folder_of_which_no_file_can_be_parsed_is_exit_code_2_and_each_is_named(tmp_path):
    for name, (content, _sentence) in BROKEN.items():
        (tmp_path / name).write_bytes(content)
    done = run(".", cwd=tmp_path)
    assert done.returncode == 2
    assert all(sentence in done.stderr for _content, sentence in BROKEN.values())
    assert "0 findings in 0 files, 3 files not checked, " in done.stderr
