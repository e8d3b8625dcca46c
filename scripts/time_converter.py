"""Times an operator's converter on a device against the operator's decomposition there.

python scripts/time_converter.py openvino SEARCH_SORTED
python scripts/time_converter.py xla SOFTMAX --scale 64

The inputs are those of the operator's examples, with each size above 1 multiplied by the scale. A
converter that is slower than the decomposition needs a limit, or goes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import replace

from crosschip.hal import Options
from crosschip.ir import Array, Builder, Error, Model, UnsupportedError
from crosschip.ops import Operator, examples_of, operator_named
from crosschip.ops.definition.examples import Example, Sample, arrays_for, model_of
from crosschip.runtime.discovery import open_device
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.placement import place
from crosschip.runtime.placement.queries import device_query

_RUNS, _SECONDS = 30, 0.5
"""How often a program runs at most, and how long; the fastest run counts."""

_NOISE = 1.2
"""The factor up to which times are taken to be equal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Time each example, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", help="the device, as in openvino")
    parser.add_argument("operator", help="the operator, as in SEARCH_SORTED")
    parser.add_argument("--scale", type=int, default=16, help="the factor of sizes")
    options = parser.parse_args(arguments)
    operator = operator_named(options.operator)
    with open_device(options.device) as device:
        for index, example in enumerate(examples_of(operator)):
            scaled = {slot: _scaled(value, options.scale) for slot, value in example.items()}
            try:
                print(f"{operator.type}/{index}  {_compared(device, operator, scaled)}")
            except Error as error:
                print(f"{operator.type}/{index}  left out: {error}")
    return 0


def _scaled(value: object, scale: int) -> object:
    """Return an argument with larger sizes, if it is a random input."""
    if isinstance(value, list):
        return [_scaled(part, scale) for part in value]
    if not isinstance(value, Sample) or value.value is not None:
        return value
    shape = tuple(size if size == 1 else scale * size for size in value.type.static_shape or ())
    return replace(value, type=replace(value.type, shape=shape))


def _compared(device: GuardedDevice, operator: type[Operator], arguments: Example) -> str:
    """Return a text with the times of the converter and of the decomposition."""
    model, inputs = model_of(operator, arguments), list(arrays_for(arguments).values())
    ask = device_query(device, Options())
    (support,) = ask(model).answers
    if not support:
        raise UnsupportedError(support.reason)
    placed = place(_decomposed(model), {device.name: ask}).model
    own, others = (_milliseconds(device, each, inputs) for each in (model, placed))
    sizes = ", ".join(str(list(array.shape)) for array in inputs)
    remark = "" if own <= _NOISE * others else f"  {own / others:.1f} times slower"
    return f"{sizes}: converter {own:.3f} ms, decomposition {others:.3f} ms{remark}"


def _decomposed(model: Model) -> Model:
    """Return a model of one operation with its decomposition instead."""
    (operation,) = model.operations
    assert isinstance(operation, Operator), "examples are of operators"
    b = Builder(prefix="part.")
    results = operation.decomposition(b)
    if results is None:
        raise UnsupportedError(f"{operation.type} has no decomposition")
    outputs = dict(zip(model.outputs, results, strict=True))
    return Model(model.name, dict(model.inputs), b.operations, outputs)


def _milliseconds(device: GuardedDevice, model: Model, inputs: Sequence[Array]) -> float:
    """Return the least time of a run on one thread."""
    program = device.compile(model, Options(threads=1))
    least, end = math.inf, time.perf_counter() + _SECONDS
    for _ in range(_RUNS):
        start = time.perf_counter()
        program.run(inputs)
        least = min(least, time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    program.close()
    return least * 1e3


if __name__ == "__main__":
    raise SystemExit(main())
