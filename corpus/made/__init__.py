"""Models that the usual tools make, one module a tool; a function a model, marked with `maker`.

The modules are imported where the tools are not installed, to know which models there are, so
they import their tools inside their functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from corpus.entry import Entry, Input

Make = Callable[[Path], None]
"""Writes a model to a path that ends in `.onnx`."""


@dataclass(frozen=True, slots=True)
class Made:
    """A model and the function that makes it."""

    entry: Entry
    make: Make


_MADE: dict[str, Made] = {}


def maker(
    name: str,
    *,
    family: str,
    origin: str,
    transformer: bool = False,
    quantized: bool = False,
    axes: Mapping[str, int] | None = None,
    inputs: Mapping[str, Input] | None = None,
    unstable: str = "",
) -> Callable[[Make], Make]:
    """Mark a function as the one that makes a model.

    Args:
        name: unique in the corpus; the file is `made/<name>/model.onnx`.
        family: the architecture, or the kind of network.
        origin: the tool and the call that write it, in a line.
        transformer: it has attention.
        quantized: it has weights of fewer bits, whose scales are in the file.
        axes: sizes of open axes by name; 1 for those without.
        inputs: rules for inputs by name; those without are random, integers 0 or 1.
        unstable: why two right engines may disagree by more than rounding; empty if they may not.

    Raises:
        ValueError: there is a model of this name.
    """

    def mark(make: Make) -> Make:
        if name in _MADE:
            raise ValueError(f"two models are made that are called {name!r}")
        entry = Entry(
            name=name,
            family=family,
            origin=origin,
            path=Path("made", name, "model.onnx"),
            transformer=transformer,
            quantized=quantized,
            axes=axes or {},
            inputs=inputs or {},
            unstable=unstable,
        )
        _MADE[name] = Made(entry, make)
        return make

    return mark


@cache
def all_made() -> Mapping[str, Made]:
    """Every model that can be made, by name."""
    for module in sorted(module.name for module in iter_modules(__path__)):
        if not module.startswith("_"):
            import_module(f"{__name__}.{module}")
    return _MADE
