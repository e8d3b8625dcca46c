"""Whether threads share the work of a run.

OpenVINO shares out each kernel, and there are a dozen in each step of a loop. Where they are small,
handing them over takes longer than computing them.
"""

from __future__ import annotations

import os
from math import prod
from typing import Any

from crosschip.devices.openvino.converters.recurrent import is_plain
from crosschip.hal import Options
from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Model, Operation
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.recurrent import Recurrent

_STEP = 13_000.0
"""The nanoseconds by which a loop's step takes longer with several threads, besides its sums."""
_MULTIPLY_ADD = 0.01
_ELEMENT = 0.7
"""The nanoseconds that one thread takes to make an element of an output."""


def threads(model: Model, options: Options) -> dict[str, Any]:
    """The setting by which one thread does each run, if several would take longer."""
    count = options.threads_each or os.cpu_count() or 1
    steps = sum(map(_steps, model.operations))
    gain = sum(map(_nanoseconds, model.operations)) * (1 - 1 / count)
    return {"INFERENCE_NUM_THREADS": options.in_flight} if steps * _STEP > gain else {}


def _steps(operation: Operation) -> int:
    """How often the body of a loop is run; 0 for what is no loop, or has an open size."""
    if not isinstance(operation, Recurrent) or is_plain(operation):
        return 0
    steps = shape_of(operation.input)[0]
    return steps * len(operation.direction.passes) if isinstance(steps, int) else 0


def _nanoseconds(operation: Operation) -> float:
    """About how long an operation takes one thread; its sums, of bytes, and its elements."""
    elements = sum(prod(output.type.static_shape or ()) for output in operation.outputs)
    moves = getattr(operation, "moves", False)
    return multiply_adds(operation) * _MULTIPLY_ADD + (0 if moves else elements * _ELEMENT)
