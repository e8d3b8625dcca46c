"""The time that importing crosschip and a model takes.

Each import runs in several new processes, of which the median counts. The time is measured inside
the process, from before `import crosschip` until the module or the model exists, so the import of a
model includes all libraries that it needs. The names in crosschip are imported when they are first
used, so the time for all names is a separate row. The files are in the system's file cache. Weights
stay in their file and are read when they are first used, so that time is part of compilation.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from benchmarks import fresh
from benchmarks.models import model_file
from benchmarks.subject import Column, Row

IMPORT_LIMIT_SECONDS = 0.1
LOAD_LIMIT_SECONDS = 0.2
REQUIREMENT = (
    f"`import crosschip` takes at most {IMPORT_LIMIT_SECONDS:g} s and imports no engine; "
    f"importing ResNet50 takes at most {LOAD_LIMIT_SECONDS:g} s"
)

_HEAVY = {"onnx", "onnxruntime", "openvino", "rich", "typer"}
_NOTHING = "none"
_FORMATS = (".pdmodel", ".json", ".onnx")


@dataclass(frozen=True)
class Loading(Row):
    """One thing that is loaded."""

    what: Annotated[str, Column("what")]
    limit_seconds: Annotated[float | None, Column("limit s", ".1f")]
    seconds: Annotated[float, Column("median s", ".3f")]
    slowest_seconds: Annotated[float, Column("slowest s", ".3f")]
    imports: Annotated[str, Column("imports of onnx, typer, rich, engines")] = ""

    @property
    def met(self) -> bool | None:
        if self.limit_seconds is None:
            return None
        return self.seconds <= self.limit_seconds and self.imports in ("", _NOTHING)


def measure(*, quick: bool) -> Iterator[Loading]:
    """`import crosschip`, without and with using its names, and ResNet50 in each format."""
    times = 3 if quick else 11
    yield _import("`import crosschip`", IMPORT_LIMIT_SECONDS, times)
    yield _import("`import crosschip` and every name in it", None, times, "all")
    for format in _FORMATS:
        yield _load(format, times)


def _import(what: str, limit: float | None, times: int, *names: str) -> Loading:
    found = [fresh.run("import_crosschip", *names) for _ in range(times)]
    seconds = [one["seconds"] for one in found]
    heavy = sorted(_HEAVY.intersection(found[0]["packages"]))
    return Loading(
        what, limit, statistics.median(seconds), max(seconds), ", ".join(heavy) or _NOTHING
    )


def _load(format: str, times: int) -> Loading:
    path = model_file("ResNet50", format).path
    seconds = [fresh.run("load_model", path)["seconds"] for _ in range(times)]
    return Loading(
        f"ResNet50 {format}", LOAD_LIMIT_SECONDS, statistics.median(seconds), max(seconds)
    )
