"""The device `litert`, against LiteRT's own interpreter.

Each `.tflite` file of the corpus runs on three roads, with one thread for each core: by crosschip
on `litert`, by LiteRT on the file that crosschip wrote for it (what the road costs), and by LiteRT
on the original file (what the rewrites cost). The runs alternate, as in the benchmark of latency.
Files of which LiteRT does not take all operations from crosschip are listed with the reason.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import crosschip
from benchmarks.comparison import Estimate, compare
from benchmarks.subject import Column, Row
from benchmarks.subjects.exporting import CORPUS, files_in, load_fixed, run_of_litert
from crosschip.devices.litert import LitertDevice
from crosschip.hal import Options
from crosschip.ir import Array, Error, Model
from crosschip.passes import simplify

LIMIT = 0.97
MAX_ADDED = 15.0
REQUIREMENT = (
    f"the median time of LiteRT's interpreter is at least {LIMIT:g} times crosschip's, or "
    f"crosschip adds at most {MAX_ADDED:g} microseconds to a call"
)
_QUICK = 2


@dataclass(frozen=True)
class Interpreted(Row):
    """One file against LiteRT on one of two files."""

    model: Annotated[str, Column("model")]
    file: Annotated[str, Column("LiteRT's file")]
    direct_ms: Annotated[float | None, Column("LiteRT ms", ".3f")]
    ours_ms: Annotated[float | None, Column("crosschip ms", ".3f")]
    ratio: Annotated[Estimate | None, Column("ratio", ".3f")]
    added: Annotated[float | None, Column("added µs", ".1f")]
    note: Annotated[str, Column("note")] = ""

    @property
    def met(self) -> bool | None:
        if self.ratio is None or self.added is None:
            return None
        return self.ratio.value >= LIMIT or self.added <= MAX_ADDED


def measure(*, quick: bool) -> Iterator[Interpreted]:
    """Each file of the corpus that is not too large, against the file written and the original."""
    for path in files_in(CORPUS, ".tflite")[: _QUICK if quick else None]:
        name = path.parent.name
        try:
            model, inputs = load_fixed(path)
            with tempfile.TemporaryDirectory() as folder:
                written = Path(folder, "model.tflite")
                written.write_bytes(_written(model))
                for file, direct in (("written", written), ("original", path)):
                    yield _compare(name, file, model, direct, inputs, quick=quick)
        except (Error, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0][:160]
            yield Interpreted(name, "", None, None, None, None, reason)


def _written(model: Model) -> bytes:
    """Return the file that the device runs."""
    program = LitertDevice().compile(simplify(model), Options())
    saved = program.save()
    program.close()
    assert saved is not None, "the device saves programs"
    return saved


def _compare(
    name: str, file: str, model: Model, path: Path, inputs: Mapping[str, Array], *, quick: bool
) -> Interpreted:
    threads = os.cpu_count() or 1
    result = compare(
        partial(_run_of_ours, model, inputs, threads),
        partial(run_of_litert, path, inputs, threads),
        seconds=0.2 if quick else 0.5,
        blocks=2 if quick else 4,
        error=0.005,
        patience=0 if quick else 6.0,
    )
    added = (result.ours_ms - result.direct_ms) * 1e3
    return Interpreted(name, file, result.direct_ms, result.ours_ms, result.ratio, added)


def _run_of_ours(
    model: Model, inputs: Mapping[str, Array], threads: int
) -> Callable[[], Mapping[str, Any]]:
    compiled = crosschip.compile(model, ["litert"], threads=threads, cache=False)
    arrays = dict(zip(compiled.inputs, inputs.values(), strict=True))
    return lambda: compiled.run(arrays)
