"""The number of the standard operators that each device runs.

Each device is queried with each operator's examples: an operator counts as native if the device
supports an example directly, as decomposed if it supports one as simpler operators. The last column
is the median number of lines of a converter.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Annotated

from benchmarks.engines import available
from benchmarks.subject import Column, Row
from crosschip.ops import operators
from crosschip.runtime.coverage import DECOMPOSED, NATIVE, coverage
from crosschip.runtime.discovery import open_device

DOCUMENT = "coverage"
FEWEST, MOST_LINES = 140, 6
REQUIREMENT = (
    f"each device has at least {FEWEST} operators, and at most {MOST_LINES} lines per converter"
)

_SHARED = {"onnxruntime": "crosschip.devices.kits.onnx.converters"}
"""Where the converters of a device are that others have, too."""


@dataclass(frozen=True)
class Coverage(Row):
    """The operators that one device runs."""

    device: Annotated[str, Column("device")]
    operators: Annotated[int, Column("operators")]
    native: Annotated[int, Column("native")]
    decomposed: Annotated[int, Column("decomposed")]
    lines: Annotated[float | None, Column("lines per converter", "g")]

    @property
    def met(self) -> bool:
        return self.native + self.decomposed >= FEWEST and (self.lines or 0) <= MOST_LINES


def measure(*, quick: bool) -> Iterator[Coverage]:
    """Each device."""
    for name in available():
        with open_device(name) as device:
            ways = [coverage(operator, device) for operator in operators().values()]
        native, decomposed = ways.count(NATIVE), ways.count(DECOMPOSED)
        yield Coverage(name, len(ways), native, decomposed, _lines(name))


def _lines(device: str) -> float | None:
    """The median length of a device's converters; `None` if it has none."""
    if device == "reference":
        return None
    room = _SHARED.get(device, f"crosschip.devices.{device}.converters")
    table = import_module(room).converters
    sources = (inspect.getsourcelines(function)[0] for function in table.functions)
    return median(sum(bool(line.strip()) for line in source) for source in sources)
