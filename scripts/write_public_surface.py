"""Write down the public surface: every public name, with its signature and, for classes, members.

A test compares `tests/public_surface.txt` with the code, so that a review sees what changes:

    python scripts/write_public_surface.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import FunctionType

from crosschip.ops import Operator

FILE = Path(__file__).parents[1] / "tests" / "public_surface.txt"

PACKAGES = (
    "crosschip",
    "crosschip.ir",
    "crosschip.ops",
    "crosschip.hal",
    "crosschip.progress",
    "crosschip.bench",
    "crosschip.comparison",
    "crosschip.opdef",
    "crosschip.conformance",
    "crosschip.apis.nnadapter",
    "crosschip.apis.nnrt",
    "crosschip.apis.paddle_inference",
    "crosschip.apis.paddle_lite",
)
"""The public packages: each lists its names in `__all__`. All else is private."""


def surface() -> str:
    """The public surface as text, a line for each name and each member of a class."""
    return "".join(f"{line}\n" for package in PACKAGES for line in _package(package))


def _package(name: str) -> Iterator[str]:
    package = import_module(name)
    for public in sorted(package.__all__):
        yield from _entry(f"{name}.{public}", getattr(package, public))


def _entry(name: str, value: object) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}"
        return
    if issubclass(value, Operator) and value is not Operator:
        yield f"{name}: {', '.join(slot.name for slot in value.slots)}"
        return
    yield f"class {name}{_signature(value)}"
    for member in sorted(vars(value)):
        if not member.startswith("_"):
            yield f"    {member}{_signature(vars(value)[member])}"


def _signature(value: object) -> str:
    """The names of a function's or class's parameters, with `=` where one may be left out."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if inspect.isclass(function):
        if issubclass(function, Enum | Exception):
            return ""
    elif not isinstance(function, FunctionType):
        return ""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return ""
    words = [_word(parameter) for parameter in parameters]
    named = [index for index, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY]
    if named and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        words.insert(named[0], "*")
    return f"({', '.join(words)})"


def _word(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    return f"{stars}{parameter.name}{'' if parameter.default is parameter.empty else '='}"


if __name__ == "__main__":
    FILE.write_text(surface(), "utf-8")
    print(f"wrote {FILE.relative_to(Path.cwd())}")
