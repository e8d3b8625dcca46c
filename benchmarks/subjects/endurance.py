"""The remains of many calls: latency and memory after 100,000 of them.

A small model (RELU of [1, 64], one thread) is called 100,000 times, by `run` and by `submit`, which
also gets a deadline. Then it is compiled anew, and the old and the new one take turns: if calls
left anything behind, the old one would be slower. Memory is what the process has resident after a
tenth of the calls and after all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.comparison import Estimate, compare
from benchmarks.engines import compiled_by_us, engines
from benchmarks.subject import Column, Row
from crosschip.bench.timing import Run
from crosschip.ir import Array
from crosschip.runtime.compiled import CompiledModel

LIMIT, LIMIT_MB = 0.97, 1.0
REQUIREMENT = (
    f"a model just compiled takes at least {LIMIT:g} of the time of the old one, and memory grows "
    f"by at most {LIMIT_MB:g} MiB"
)

_CALLS, _QUICK_CALLS = 100_000, 2_000
_SHAPE = (1, 64)
_INPUTS: Mapping[str, Array] = {"x": np.ones(_SHAPE, np.float32)}
_WAYS: Mapping[str, Callable[[CompiledModel], Run]] = {
    "run": lambda compiled: partial(compiled.run, _INPUTS),
    "submit": lambda compiled: lambda: compiled.submit(_INPUTS, deadline=60).result(),
}


@dataclass(frozen=True)
class Endurance(Row):
    """One way to call a model on one device."""

    device: Annotated[str, Column("device")]
    way: Annotated[str, Column("call")]
    calls: Annotated[int, Column("calls", ",")]
    old_us: Annotated[float, Column("old µs", ".1f")]
    new_us: Annotated[float, Column("new µs", ".1f")]
    ratio: Annotated[Estimate, Column("new / old", ".3f")]
    grown: Annotated[float, Column("memory grew by MiB", ".2f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= LIMIT and self.grown <= LIMIT_MB


def measure(*, quick: bool) -> Iterator[Endurance]:
    """Each way to call a model on each device with an engine."""
    calls = _QUICK_CALLS if quick else _CALLS
    with TemporaryDirectory() as folder:
        path = Path(folder, "relu.onnx")
        _write(path)
        for device in engines():
            for way, made in _WAYS.items():
                old = made(compiled_by_us(path, device, _INPUTS, 1))
                grown = _grown(old, calls)
                found = compare(
                    lambda old=old: old,  # type: ignore[misc]  # bound now
                    lambda made=made, device=device: made(  # type: ignore[misc]
                        compiled_by_us(path, device, _INPUTS, 1)
                    ),
                    seconds=0.1 if quick else 0.5,
                    blocks=3 if quick else 9,
                    patience=0 if quick else 10,
                )
                times = found.ours_ms * 1e3, found.direct_ms * 1e3
                yield Endurance(device, way, calls, *times, found.ratio, grown, found.others)


def _grown(run: Run, calls: int) -> float:
    """The memory that is resident after so many calls and was not after a tenth, in MiB."""
    for _ in range(calls // 10):
        run()
    before = _resident()
    for _ in range(calls - calls // 10):
        run()
    return (_resident() - before) / 2**20


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _write(path: Path) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, _SHAPE) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", ends[:1], ends[1:])
    opset = helper.make_operatorsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
