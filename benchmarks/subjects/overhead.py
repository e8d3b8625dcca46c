"""The time that `compiled.run` and `compiled.submit` add to the engine's own call.

Models of one operation, each a single segment on a device. crosschip and the engine load and
compile the same `.onnx` file, and run in turn on the same inputs. Small inputs show the cost of a
call, large ones (200,704 elements, 0.8 MB) whether data is copied. The direct call of OpenVINO
follows its documentation: one request, reused, and shared inputs; its results are in the request's
memory until the next run, so a caller who keeps them must copy them, as crosschip does. Both forms
are compared: *owned* copies, *borrowed* does not. A submitted run is timed until its result is
available; it wakes a thread, even if the waiting thread executes the run first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.comparison import Estimate, Open, compare
from benchmarks.engines import compiled_by_us, engines, run_of_engine
from benchmarks.subject import Column, Row
from crosschip.bench.timing import Run
from crosschip.ir import Array

LIMITS_US = {"run": 6.0, "submit": 25.0}
REQUIREMENT = (
    " and ".join(
        f"`{call}` adds at most {limit:g} µs to the engine's own call"
        for call, limit in LIMITS_US.items()
    )
    + " (medians)"
)

_THREADS = 1
_MODELS = {
    "RELU [1, 8]": ("Relu", 1, (1, 8)),
    "ADD [1, 8] + [1, 8]": ("Add", 2, (1, 8)),
    "RELU [1, 64, 56, 56]": ("Relu", 1, (1, 64, 56, 56)),
}


@dataclass(frozen=True)
class Overhead(Row):
    """One model on one device."""

    device: Annotated[str, Column("device")]
    model: Annotated[str, Column("model")]
    way: Annotated[str, Column("call")]
    outputs: Annotated[str, Column("the engine's outputs are")]
    engine_us: Annotated[float, Column("engine µs", ".1f")]
    ours_us: Annotated[float, Column("crosschip µs", ".1f")]
    added_us: Annotated[Estimate, Column("added µs", ".1f")]

    @property
    def met(self) -> bool:
        return self.added_us.value <= LIMITS_US[self.way]


def measure(*, quick: bool) -> Iterator[Overhead]:
    """Each model on each device with an engine."""
    with TemporaryDirectory() as folder:
        for name, (operator, inputs, shape) in _MODELS.items():
            path = Path(folder, f"{operator} {shape}.onnx")
            arrays = _write(path, operator, inputs, shape)
            for device in engines():
                ours = {way: partial(_ours, way, path, device, arrays) for way in LIMITS_US}
                for outputs, direct in _direct_calls(device, path, arrays):
                    for way in LIMITS_US if outputs == "owned" else ["run"]:
                        result = compare(
                            ours[way],
                            direct,
                            seconds=0.1 if quick else 0.3,
                            blocks=2 if quick else 5,
                            patience=0 if quick else 5,
                        )
                        figures = result.direct_ms * 1e3, result.ours_ms * 1e3, result.added_us
                        yield Overhead(device, name, way, outputs, *figures)


def _ours(way: str, path: Path, device: str, inputs: Mapping[str, Array]) -> Run:
    compiled = compiled_by_us(path, device, inputs, _THREADS)
    if way == "run":
        return partial(compiled.run, inputs)
    return lambda: compiled.submit(inputs).result()


def _write(path: Path, operator: str, inputs: int, shape: Sequence[int]) -> dict[str, Array]:
    """Write a model of one operation, and make inputs for it."""
    names = [f"x{i}" for i in range(inputs)]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in [*names, "y"]]
    node = helper.make_node(operator, names, ["y"])
    graph = helper.make_graph([node], "one", values[:-1], values[-1:])
    opset = helper.make_operatorsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    generator = np.random.default_rng(0)
    return {name: generator.standard_normal(shape, np.float32) for name in names}


def _direct_calls(
    engine: str, path: Path, inputs: Mapping[str, Array]
) -> Iterator[tuple[str, Open]]:
    yield "owned", partial(run_of_engine, path, engine, inputs, _THREADS)
    if engine == "openvino":
        yield "borrowed", partial(_borrowing_openvino, path, inputs)


def _borrowing_openvino(path: Path, inputs: Mapping[str, Array]) -> Run:
    import openvino

    config = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": _THREADS}
    request = openvino.Core().compile_model(path, "CPU", config).create_infer_request()
    feed = dict(inputs)
    return lambda: request.infer(feed, share_inputs=True, share_outputs=True)
