from __future__ import annotations

import pytest
from twinlens.source.lineage import trace_lineage
from twinlens.source.ties import Reference, Tie, copied_reference, is_modular, read_ties

LLAMA, MISTRAL, QWEN2, PHI3 = (
    f"{model}/modeling_{model}.py:{prefix}MLP"
    for model, prefix in (("llama", "Llama"), ("mistral", "Mistral"), ("qwen2", "Qwen2"), ("phi3", "Phi3"))
)


def ties_of(text: str, file: str = "nova/modular_nova.py"):
    return read_ties(text, file).ties


@pytest.mark.parametrize(
    "text",
    [
        "from ..llama.modeling_llama import LlamaMLP\nclass NovaMLP(LlamaMLP): pass",
        "from ..llama.modeling_llama import LlamaMLP as Base\nclass NovaMLP(Base): pass",
        "from ...models.llama.modeling_llama import LlamaMLP\nclass NovaMLP(LlamaMLP): pass",
        "from transformers.models.llama.modeling_llama import LlamaMLP\nclass NovaMLP(LlamaMLP): pass",
        "from ..llama import modeling_llama\nclass NovaMLP(modeling_llama.LlamaMLP): pass",
        "import transformers.models.llama.modeling_llama as m\nclass NovaMLP(m.LlamaMLP): pass",
        "from ..llama.modeling_llama import LlamaMLP\nBase = LlamaMLP\nclass NovaMLP(Base): pass",
        (
            "try:\n    from ..llama.modeling_llama import LlamaMLP\nexcept ImportError:\n    LlamaMLP = object\n"
            "class NovaMLP(LlamaMLP): pass"
        ),
    ],
)
def test_a_base_is_followed_through_imports_and_aliases(text):
    assert ties_of(text) == (Tie("NovaMLP", Reference("llama/modeling_llama", "LlamaMLP"), "inherits"),)


def test_a_base_from_outside_the_library_or_of_the_file_itself_is_no_tie():
    assert not ties_of(
        "from torch import nn\nfrom ...modeling_utils import PreTrainedModel\n"
        "class A(nn.Module): pass\nclass B(A): pass\nclass C(PreTrainedModel): pass"
    )


@pytest.mark.parametrize(
    ("comment", "parent"),
    [
        ("# Copied from transformers.models.llama.modeling_llama.LlamaMLP with Llama->Nova", "LlamaMLP"),
        ("# Ignore copy-check. Copied from transformers.models.llama.modeling_llama.LlamaMLP", "LlamaMLP"),
        ("# Copied from models.llama.modeling_llama.LlamaMLP", "LlamaMLP"),
    ],
)
def test_a_copied_from_comment_is_a_tie(comment, parent):
    (tie,) = ties_of(f"{comment}\n@decorated\nclass NovaMLP(nn.Module): pass", "nova/modeling_nova.py")
    assert tie == Tie("NovaMLP", Reference("llama/modeling_llama", parent), "copied")


def test_a_comment_between_decorator_and_class_counts_and_one_in_the_body_does_not():
    comment = "# Copied from transformers.models.llama.modeling_llama.LlamaMLP"
    assert ties_of(f"@decorated\n{comment}\nclass NovaMLP(nn.Module): pass", "nova/modeling_nova.py")
    assert not ties_of(f"class NovaMLP(nn.Module):\n    {comment}.forward\n    def forward(self): pass")


@pytest.mark.parametrize(
    "path",
    ["transformers.models.llama.modeling_llama.LlamaMLP.forward", "https://github.com/x", "torch.nn.Linear", "models"],
)
def test_a_methods_or_a_foreign_path_is_no_definition(path):
    assert copied_reference(path) is None


def test_modular_files_are_told_by_name():
    assert is_modular("nova/modular_nova.py") and not is_modular("nova/modeling_modular.py")


def test_twins_are_one_family_shown_by_the_one_the_others_descend_from():
    sameness = {MISTRAL: "a", LLAMA: "a", QWEN2: "a", PHI3: "b"}
    files = {
        "mistral/modular_mistral.py": read_ties(
            "from ..llama.modeling_llama import LlamaMLP\nclass MistralMLP(LlamaMLP): pass",
            "mistral/modular_mistral.py",
        ),
        "qwen2/modular_qwen2.py": read_ties(
            "from ..mistral.modeling_mistral import MistralMLP\nclass Qwen2MLP(MistralMLP): pass",
            "qwen2/modular_qwen2.py",
        ),
        "phi3/modular_phi3.py": read_ties(
            "from ..mistral.modeling_mistral import MistralMLP\nclass Phi3MLP(MistralMLP): pass",
            "phi3/modular_phi3.py",
        ),
    }
    lineage = trace_lineage(sameness, files)
    assert lineage.families == ((LLAMA, MISTRAL, QWEN2), (PHI3,))
    assert lineage.twins(MISTRAL) == (LLAMA, QWEN2)
    assert lineage.parents[PHI3] == (MISTRAL,)
    assert lineage.ancestors(PHI3) == (LLAMA,)
    assert lineage.ancestors(QWEN2) == ()
    assert lineage.heirs == {LLAMA: 1, MISTRAL: 2}


def test_a_re_export_leads_to_where_the_class_is_defined():
    files = {
        "mistral/modeling_mistral.py": read_ties(
            "from ..llama.modeling_llama import LlamaMLP\n", "mistral/modeling_mistral.py"
        ),
        "qwen2/modular_qwen2.py": read_ties(
            "from ..mistral.modeling_mistral import LlamaMLP\nclass Qwen2MLP(LlamaMLP): pass", "qwen2/modular_qwen2.py"
        ),
    }
    assert trace_lineage({LLAMA: "a", QWEN2: "b"}, files).parents == {QWEN2: (LLAMA,)}


def test_a_name_from_a_modular_file_or_a_package_means_the_generated_class():
    for module in ("..llama.modular_llama", "..llama"):
        files = {
            "qwen2/modular_qwen2.py": read_ties(
                f"from {module} import LlamaMLP\nclass Qwen2MLP(LlamaMLP): pass", "qwen2/modular_qwen2.py"
            )
        }
        assert trace_lineage({LLAMA: "a", QWEN2: "b"}, files).parents == {QWEN2: (LLAMA,)}


def test_models_that_inherit_from_each_other_end_the_climb():
    files = {
        f"{one}/modular_{one}.py": read_ties(
            f"from ..{other}.modeling_{other} import {base}\nclass {child}({base}): pass", f"{one}/modular_{one}.py"
        )
        for one, child, other, base in (
            ("llama", "LlamaMLP", "mistral", "MistralMLP"),
            ("mistral", "MistralMLP", "llama", "LlamaMLP"),
        )
    }
    lineage = trace_lineage({LLAMA: "a", MISTRAL: "b"}, files)
    assert lineage.ancestors(LLAMA) == (MISTRAL,)
    assert lineage.ancestors(MISTRAL) == (LLAMA,)


def test_re_exports_in_a_circle_lead_nowhere():
    files = {
        f"{one}/modeling_{one}.py": read_ties(
            f"from ..{other}.modeling_{other} import Thing\nclass {child}(Thing): pass", f"{one}/modeling_{one}.py"
        )
        for one, child, other in (("llama", "LlamaMLP", "mistral"), ("mistral", "MistralMLP", "llama"))
    }
    assert trace_lineage({LLAMA: "a", MISTRAL: "b"}, files).parents == {}


def test_the_installed_librarys_lineage(installed_models):
    names = ("llama", "mistral", "qwen2", "gemma2")
    sameness, files = {}, {}
    for model in names:
        for path in sorted((installed_models / model).glob("mod*_*.py")):
            relative = path.relative_to(installed_models).as_posix()
            files[relative] = read_ties(path.read_text(), relative)
            if not is_modular(relative):
                for name in ("RMSNorm", "MLP", "Attention"):
                    prefix = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "gemma2": "Gemma2"}[model]
                    sameness[f"{relative}:{prefix}{name}"] = f"{model} {name}"
    parents = trace_lineage(sameness, files).parents
    llama = "llama/modeling_llama.py:Llama"
    assert parents["qwen2/modeling_qwen2.py:Qwen2Attention"] == (f"{llama}Attention",)
    assert parents["mistral/modeling_mistral.py:MistralAttention"] == (f"{llama}Attention",)
    assert f"{llama}Attention" not in parents
