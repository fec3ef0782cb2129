"""Take a model's own name out of its code, so that equal code of two models reads the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

PLACEHOLDER = "Model"

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|_")
_SHARE_OF_A_FAMILY = 0.5


def model_prefixes(names: Sequence[str], hints: Iterable[str]) -> tuple[str, ...]:
    """The prefixes that the class names of one model bear, such as `Qwen2_5_VL` and `Qwen2_5_Vision`, longest first.

    `hints` are the names of the model's folder and file (`qwen2_5_vl`). A prefix that spells a hint comes first; of the
    names that it leaves over, those that begin with the same word make further families (`AltCLIP`, `AltRoberta`).
    Where no name spells a hint, the prefix is the longest that most names share (`AST`), and for a single class its
    first word.
    """
    public = [name.lstrip("_") for name in dict.fromkeys(names)]
    spelled = {found for hint in hints for name in public if (found := _spelled_prefix(name, hint))}
    prefixes = set(spelled)
    rest = [name for name in public if not _starts_with_any(name, prefixes)]
    if not prefixes:
        family = _shared_prefix(rest, at_least=max(2, round(_SHARE_OF_A_FAMILY * len(rest))))
        if family is None and len(rest) == 1 and len(words := _WORDS.findall(rest[0])) > 1:
            family = words[0]
        prefixes = {family} if family else set()
    else:
        first_words = {_WORDS.findall(prefix)[0] for prefix in prefixes}
        for word in sorted(first_words):
            relatives = [name for name in rest if name.startswith(word) and name != word]
            family = _shared_prefix(relatives, at_least=len(relatives)) if len(relatives) > 1 else None
            prefixes |= {family} if family else set()
    return tuple(sorted(prefixes, key=lambda prefix: (-len(prefix), prefix)))


def sanitise(code: str, prefixes: Sequence[str], hints: Iterable[str] = ()) -> str:
    """`code` with each of the model's prefixes replaced by `Model`, where it begins a word of an identifier.

    `LlamaMLP`, `llama_mlp` and `LLAMA_INPUTS` lose their prefix; `sample` keeps its own in the model `sam`.
    """
    pattern = _pattern(prefixes, hints)
    return pattern.sub(PLACEHOLDER, code) if pattern else code


def identifier_tokens(sanitised: str) -> frozenset[str]:
    """The set of identifiers and keywords in sanitised source: what the Jaccard score compares."""
    return frozenset(re.findall(r"\b[a-zA-Z_][a-zA-Z0-9_]*\b", sanitised))


def _pattern(prefixes: Sequence[str], hints: Iterable[str]) -> re.Pattern[str] | None:
    camel = sorted(dict.fromkeys(prefixes), key=len, reverse=True)
    snake = {form for prefix in prefixes for form in _snake_forms(prefix)} | set(hints)
    snake = {form for form in snake if len(form) > 1}
    parts = []
    if camel:
        parts.append(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, camel))})(?![a-z])")
    if snake:
        alternatives = "|".join(map(re.escape, sorted(snake, key=lambda form: (-len(form), form))))
        parts.append(rf"(?<![A-Za-z0-9])(?:{alternatives}|{alternatives.upper()})(?![A-Za-z0-9])")
    return re.compile("|".join(parts)) if parts else None


def _snake_forms(prefix: str) -> set[str]:
    words = [word for word in _WORDS.findall(prefix) if word != "_"]
    joined = "_".join(word.lower() for word in words)
    return {prefix.lower(), prefix.lower().replace("_", ""), re.sub(r"_(?=\d)", "", joined), joined}


def _spelled_prefix(name: str, hint: str) -> str | None:
    """The part of `name` that spells `hint` when case and underscores are ignored, if a word ends there."""
    letters = hint.lower().replace("_", "").replace("-", "")
    place = 0
    for letter in letters:
        while place < len(name) and name[place] == "_":
            place += 1
        if place == len(name) or name[place].lower() != letter:
            return None
        place += 1
    ends_a_word = place < len(name) and not name[place].islower()
    return name[:place] if letters and ends_a_word else None


def _starts_with_any(name: str, prefixes: Iterable[str]) -> bool:
    return any(name.startswith(prefix) and not name[len(prefix) :][:1].islower() for prefix in prefixes)


def _shared_prefix(names: Sequence[str], at_least: int) -> str | None:
    """Of the prefixes borne by the most names, and by `at_least` of them, the longest."""
    counts = Counter(
        name[:place] for name in names for place in range(2, len(name)) if name[place].isupper() or name[place] == "_"
    )
    eligible = [(count, len(prefix), prefix) for prefix, count in counts.items() if count >= max(2, at_least)]
    return max(eligible)[2] if eligible else None
