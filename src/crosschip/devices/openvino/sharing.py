"""The choice between one thread and several for a run.

OpenVINO distributes each kernel over the threads, and each step of a loop has a dozen kernels.
Small
kernels take less time than their distribution.
"""

from __future__ import annotations

import os
from math import prod
from typing import Any

from crosschip.devices.openvino.converters.recurrent import is_plain
from crosschip.hal import Options
from crosschip.hal.work import multiply_adds
from crosschip.ir import Model, Operation
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.recurrent import Recurrent

_STEP = 13_000.0
"""The overhead of several threads in each step of a loop, in nanoseconds."""
_MULTIPLY_ADD = 0.01
_ELEMENT = 0.7
"""The time of one thread per output element, in nanoseconds."""


def threads(model: Model, options: Options) -> dict[str, Any]:
    """Return the setting for one thread per run, if several threads are estimated to be slower."""
    count = options.threads_each or os.cpu_count() or 1
    steps = sum(map(_steps, model.operations))
    gain = sum(map(_nanoseconds, model.operations)) * (1 - 1 / count)
    return {"INFERENCE_NUM_THREADS": options.in_flight} if steps * _STEP > gain else {}


def _steps(operation: Operation) -> int:
    """Return how often a loop body runs; 0 without a loop or with a dynamic number of steps."""
    if not isinstance(operation, Recurrent) or is_plain(operation):
        return 0
    steps = shape_of(operation.input)[0]
    return steps * len(operation.direction.passes) if isinstance(steps, int) else 0


def _nanoseconds(operation: Operation) -> float:
    """Estimate the time of an operation on one thread from its multiply-adds and outputs."""
    elements = sum(prod(output.type.static_shape or ()) for output in operation.outputs)
    moves = getattr(operation, "moves", False)
    return multiply_adds(operation) * _MULTIPLY_ADD + (0 if moves else elements * _ELEMENT)
