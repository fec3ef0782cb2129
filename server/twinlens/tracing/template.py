"""The text of a new recipe, filled in with the class, its constructor's and its forward's arguments.

Read from the source alone: the server writes it, which imports nothing of the user's. Standard library only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

_VALUES: Mapping[str, str] = {
    "input_ids": "torch.randint(0, 100, (1, 128))",
    "decoder_input_ids": "torch.randint(0, 100, (1, 8))",
    "attention_mask": "torch.ones(1, 128, dtype=torch.long)",
    "position_ids": "torch.arange(128)[None]",
    "inputs_embeds": "torch.randn(1, 128, 64)",
    "hidden_states": "torch.randn(1, 128, 64)",
    "pixel_values": "torch.randn(1, 3, 224, 224)",
    "input_features": "torch.randn(1, 80, 3000)",
    "input_values": "torch.randn(1, 16000)",
    "x": "torch.randn(1, 128, 64)",
}


def recipe_template(source: str, class_name: str, file: Path, root: Path) -> str:
    """The text of a recipe for `class_name` of `file`, whose text is `source`, in the workspace `root`.

    Raises:
        ValueError: `source` does not parse or has no such class.
    """
    node = _class(source, class_name)
    constructor = "".join(f"{name}=..., " for name in _required(node, "__init__")).removesuffix(", ")
    arguments = _required(node, "forward") or _all(node, "forward")[:1]
    inputs = "".join(f'        "{name}": {_VALUES.get(name, "...")},\n' for name in arguments)
    fill_in = " Fill in what is `...`." if "..." in constructor + inputs else ""
    return f'''"""A recipe for {class_name}: the model, and the inputs of one forward.{fill_in}"""

import torch
import twinlens

from {module_name(file, root)} import {class_name}


@twinlens.recipe(target="{class_name}", seed=673)
def {recipe_name(class_name)}():
    model = {class_name}({constructor}).eval()
    inputs = {{
{inputs}    }}
    return model, inputs
'''


def recipe_name(class_name: str) -> str:
    """`LlamaRMSNorm` → `llama_rms_norm`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()


def module_name(file: Path, root: Path) -> str:
    """The dotted name to import `file` by: from its package's parent, or from `root` where it is in no package."""
    folder = file.parent
    parts = [file.stem]
    while folder.name.isidentifier() and (
        (folder / "__init__.py").is_file() or (folder != root and root in folder.parents and folder.name != "src")
    ):
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _class(source: str, class_name: str) -> ast.ClassDef:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return node
    raise ValueError(f"there is no class {class_name}")


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == name), None)


def _all(node: ast.ClassDef, method: str) -> list[str]:
    function = _method(node, method)
    if function is None:
        return []
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)][1:]


def _required(node: ast.ClassDef, method: str) -> list[str]:
    """Names of the method's arguments without a default, `self` left out."""
    function = _method(node, method)
    if function is None:
        return []
    names = _all(node, method)
    with_default = len(function.args.defaults)
    positional = names[: len(names) - with_default] if with_default else names
    keyword = [
        argument.arg
        for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if default is None
    ]
    return [*positional, *keyword]
