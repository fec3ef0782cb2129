"""What a ranking compares of a definition: sets of hashed features of its sanitised source."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from twinlens.source.layout import Line, logical_lines

SETS = ("trigrams", "lines", "attributes", "methods", "role")
"""The fields of `Features` that are sets."""

_WORD_OF_A_NAME = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_UNIONS = {"Optional": ("|", "None"), "Union": ()}
"""What stands behind the last of their types once they are written with `|`."""
_BUILT_IN = {"List": "list", "Tuple": "tuple", "Dict": "dict", "Set": "set", "Type": "type"}
_TYPING = frozenset((*_UNIONS, *_BUILT_IN))
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Features:
    """Sets are sorted arrays of distinct hashes, uint32: of three tokens in a row, of logical lines, of the names
    assigned on `self` or in the class's body, of whole methods, and of the words in the definition's name.

    `method_sizes`, float32, counts the tokens of each of `methods`; `length` those of the whole definition.
    """

    trigrams: np.ndarray
    lines: np.ndarray
    attributes: np.ndarray
    methods: np.ndarray
    role: np.ndarray
    method_sizes: np.ndarray
    length: int


def features_of(sanitised: str) -> Features:
    """The features of one definition's sanitised source."""
    lines = [Line(line.indent, without_annotations(modern_types(line.tokens))) for line in logical_lines(sanitised)]
    tokens = [token for line in lines for token in line.tokens]
    sizes = {_hash(text): size for text, size in _methods(lines)}
    return Features(
        trigrams=_trigrams(tokens),
        lines=_hashes(line.text for line in lines),
        attributes=_hashes(_attributes(lines)),
        methods=np.array(sorted(sizes), dtype=np.uint32),
        role=_hashes(_role(lines)),
        method_sizes=np.array([sizes[key] for key in sorted(sizes)], dtype=np.float32),
        length=len(tokens),
    )


def modern_types(tokens: Sequence[str]) -> tuple[str, ...]:
    """`tokens` with types as PEP 585 and PEP 604 write them: `Optional[List[int]]` becomes `list[int] | None`.

    The library has moved from one spelling to the other between releases, and a class is the same in both.
    """
    if _TYPING.isdisjoint(tokens):
        return tuple(tokens)
    written: list[str] = []
    endings: list[tuple[str, ...]] = []  # what each open bracket is closed with
    place = 0
    while place < len(tokens):
        token = tokens[place]
        subscripted = place + 1 < len(tokens) and tokens[place + 1] == "["
        if subscripted and token in _UNIONS:
            endings.append(_UNIONS[token])
            place += 2
            continue
        if token in _BRACKETS:
            endings.append((_BRACKETS[token],))
        if token == "," and endings and endings[-1] in _UNIONS.values():
            token = "|"
        if token in _BRACKETS.values() and endings:
            written += endings.pop()
        else:
            written.append(_BUILT_IN.get(token, token) if subscripted else token)
        place += 1
    return tuple(written)


def without_annotations(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """The tokens of a logical line; where it begins a function, without the types of its parameters and its result.

    Models of one release annotate the same function in many ways, or not at all.
    """
    if not {"def", "async"} & set(tokens[:1]):
        return tokens
    kept: list[str] = []
    depth = 0
    in_parameter = in_result = in_default = False
    for place, token in enumerate(tokens):
        depth += (token in _BRACKETS) - (token in _BRACKETS.values())
        outermost = depth == 1 and token not in _BRACKETS and not in_result
        if outermost and token in (",", "="):
            in_parameter, in_default = False, token == "="
        elif outermost and token == ":" and not in_default:
            in_parameter = True
        elif depth == 0 and token == ":":
            return (*kept, *tokens[place:])
        elif depth == 0 and token in (")", "->"):
            in_parameter, in_result = False, in_result or token == "->"
        if not (in_parameter or in_result):
            kept.append(token)
    return tuple(kept)


def _trigrams(tokens: Sequence[str]) -> np.ndarray:
    hashes = np.fromiter(map(_hash_of_token, tokens), dtype=np.uint64, count=len(tokens))
    hashes = np.concatenate([hashes, np.zeros(max(0, 3 - len(hashes)), dtype=np.uint64)])
    mixed = hashes[:-2] * _MIX[0] ^ hashes[1:-1] * _MIX[1] ^ hashes[2:] * _MIX[2]
    return np.unique((mixed >> np.uint64(32)).astype(np.uint32))


def _methods(lines: Sequence[Line]) -> Iterator[tuple[str, int]]:
    """The text and the number of tokens of each method of a class."""
    if len(lines) < 2 or lines[0].tokens[0] != "class":
        return
    body = lines[1].indent
    method: list[str] = []
    for line in (*lines[1:], Line(body, ("",))):
        if line.indent > body and method:
            method += line.tokens
            continue
        if method:
            yield " ".join(method), len(method)
        method = list(line.tokens) if line.tokens[0] in ("def", "async") else []


def _attributes(lines: Sequence[Line]) -> Iterator[str]:
    body = lines[1].indent if len(lines) > 1 and lines[0].tokens[0] == "class" else None
    for line in lines:
        if line.tokens[:2] == ("self", ".") and line.tokens[3:4] in (("=",), (":",)):
            yield line.tokens[2]
        elif line.indent == body and line.tokens[1:2] in (("=",), (":",)) and line.tokens[0] != "else":
            yield line.tokens[0]


def _role(lines: Sequence[Line]) -> Iterator[str]:
    names = [token for line in lines[:1] for token in line.tokens[:3] if token not in ("class", "def", "async")]
    for name in names[:1]:
        yield from _WORD_OF_A_NAME.findall(name.removeprefix("Model"))


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


_hash_of_token = lru_cache(maxsize=1 << 16)(_hash)


def _hashes(texts: Iterable[str]) -> np.ndarray:
    return np.array(sorted({_hash(text) for text in texts}), dtype=np.uint32)
