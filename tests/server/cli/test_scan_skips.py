from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from twinlens.cli import main; main()", "scan-skips"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory, samples):
    copy = tmp_path_factory.mktemp("scan") / "checkout"
    return shutil.copytree(samples / "checkout", copy, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def scan_skips(checkout, tmp_path):
    def run(*arguments, cwd=checkout):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        command = [*COMMAND, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", cwd=cwd, env=environment, check=False
        )

    return run


def test_a_full_scan_prints_and_writes_as_upstream_does(scan_skips, tmp_path):
    done = scan_skips("--output_dir", tmp_path / "out")
    written = tmp_path / "out" / "all_tests_scan_result.json"
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "🔬 Parsing 9 model test files once each...\n"
        "📝 Aggregating 21 tests...\n"
        "  (21/21) test_prompt_lookup_decoding\n"
        "✅ Scan complete.\n"
        f"\n📄 JSON saved to {written}\n"
    )
    found = json.loads(written.read_text(encoding="utf-8"))
    assert list(found["test_inputs_embeds"]) == [
        "origin",
        "models_ran",
        "models_skipped",
        "skipped_proportion",
        "reasons_skipped",
        "models_mixed",
        "models_not_applicable",
        "states",
    ]


def test_one_test_is_summed_up_on_the_terminal(scan_skips, tmp_path):
    done = scan_skips("--test-method-name", "test_signature", "--output-dir", tmp_path)
    assert done.stdout == (
        "🔬 Parsing 9 model test files once each...\n"
        "\n== test_signature ==\n\n"
        "Ran    : 5/7\n"
        "Skipped : 2/7 (28.6%)\n"
        " - aster: Aster's forward takes anything\n"
        " - birch: the method does nothing\n"
        "\nIn some classes only : 2 of those that ran\n"
        "Not applicable : 1\n"
        f"\n📄 JSON saved to {tmp_path / 'scan_test_signature.json'}\n"
    )
    assert json.loads((tmp_path / "scan_test_signature.json").read_text(encoding="utf-8"))["models_mixed"] == [
        "cedar",
        "fern",
    ]


def test_a_second_scan_from_the_cache_writes_the_same(scan_skips, tmp_path):
    first = scan_skips("--output_dir", tmp_path / "one")
    second = scan_skips("--output_dir", tmp_path / "two")
    assert first.returncode == second.returncode == 0
    name = "all_tests_scan_result.json"
    assert (tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text()


def test_another_folder_is_scanned_with_root(scan_skips, checkout, tmp_path):
    done = scan_skips("--root", checkout, "--test_method_name", "test_forward", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scan_test_forward.json").is_file()


def test_a_test_that_is_not_common_is_a_mistake_with_a_hint(scan_skips):
    done = scan_skips("--test_method_name", "test_input_embeds")
    assert done.returncode == 2
    assert "no common test is called test_input_embeds; is test_inputs_embeds meant?" in done.stderr


def test_a_folder_that_is_no_checkout_is_a_mistake(scan_skips, tmp_path):
    done = scan_skips("--root", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"twinlens: {tmp_path} has no tests/models/")
    assert scan_skips("--root", tmp_path, "--compat").returncode == 2


def test_compat_counts_as_upstream_does(scan_skips, tmp_path):
    done = scan_skips("--compat", "--test_method_name", "test_hidden_states_output", "--output_dir", tmp_path)
    assert "Skipped : 1/8 (12.5%)\n - aster: Aster doesn\n" in done.stdout
    found = json.loads((tmp_path / "scan_test_hidden_states_output.json").read_text(encoding="utf-8"))
    assert list(found) == ["models_ran", "models_skipped", "skipped_proportion", "reasons_skipped"]


def test_lints_fail_a_build_by_their_codes(scan_skips, tmp_path):
    done = scan_skips("--fail-on", "stale-variant,flag-nobody-reads", "--output_dir", tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == [
        "tests/models/birch/test_modeling_birch.py:19: flag-nobody-reads: no test of BirchModelTest reads test_pruning",
        (
            "tests/models/dahlia/test_modeling_dahlia.py:33: stale-variant: test_assisted_decoding has no variant "
            "test_assisted_decoding_2_other, so this skips nothing; is test_assisted_decoding_1_same meant?"
        ),
    ]


def test_an_unknown_code_is_a_mistake_that_names_the_codes(scan_skips):
    done = scan_skips("--fail-on", "stale-variants")
    assert done.returncode == 2
    assert "no lint has the code stale-variants; the codes are skip-overrides-nothing, stale-variant," in done.stderr


def test_the_page_is_one_file_that_loads_nothing(scan_skips, tmp_path):
    done = scan_skips("--html", tmp_path / "page.html", "--output_dir", tmp_path)
    assert f"📊 Page saved to {tmp_path / 'page.html'}" in done.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "http" not in page and " src=" not in page and "@import" not in page
    data = json.loads(page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    assert data["models"] == ["aster", "birch", "cedar", "dahlia", "elm", "fern", "hazel", "ivy"]
    assert next(test for test in data["tests"] if test["name"] == "test_signature")["skipped"] == 2


def test_what_cannot_be_read_is_told_and_the_rest_is_scanned(checkout, scan_skips, tmp_path):
    torn = checkout / "tests" / "models" / "torn" / "test_modeling_torn.py"
    torn.parent.mkdir()
    torn.write_text("class Torn(:\n", encoding="utf-8")
    try:
        done = scan_skips("--output_dir", tmp_path)
    finally:
        shutil.rmtree(torn.parent)
    assert done.returncode == 0
    assert done.stderr == (
        "tests/models/torn/test_modeling_torn.py:1: does not parse (invalid syntax); it is left out until it does\n"
    )


def test_a_folder_that_cannot_be_written_is_a_mistake(scan_skips, tmp_path):
    (tmp_path / "taken").write_text("", encoding="utf-8")
    done = scan_skips("--output_dir", tmp_path / "taken")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
