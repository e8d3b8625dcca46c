"""The registry of OpenVINO's quirks, and a runner for reproductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openvino
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.kits.quirks import Quirk, Quirks
from crosschip.ir import Array

_SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}


def constant(value: Any, type: Any = None) -> Node:
    """Create a constant; floats become float32, integers int64."""
    return ops.constant(value, type) if type else ops.constant(value)


def _run(build: Callable[..., Any], quirk: Quirk) -> list[Array]:
    """Return the outputs of the last run of the graph that `build` creates."""
    parameters = [
        ops.parameter([-1] * array.ndim if quirk.open_sizes else array.shape, array.dtype)
        for array in quirk.inputs
    ]
    results = build(*parameters)
    settings = {**_SETTINGS, **getattr(build, "settings", {})}
    outputs = results if isinstance(results, tuple) else (results,)
    model = openvino.Model([_output(each) for each in outputs], parameters)
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    for inputs in (*quirk.before, quirk.inputs):
        outputs_of_run = request.infer([_tensor(array) for array in inputs])
    return [outputs_of_run[index].copy() for index in range(len(outputs))]


def _output(result: Node | Output) -> Output:
    return result.output(0) if isinstance(result, Node) else result


def _tensor(array: Array) -> openvino.Tensor:
    return openvino.Tensor(array.copy())


quirk = Quirks("openvino", "2026.4.1", _run)
