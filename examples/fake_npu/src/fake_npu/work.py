"""What a model asks of the chip: operations on bytes for those between conversions, others as such.

In a quantized model, `DEQUANTIZE` → operator → `QUANTIZE` is one operation on bytes, and an
activation behind the operator is a pair of bounds. `crosschip.devices.kits.onnx.units` finds those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crosschip.devices.kits.onnx.units import Unit, units
from crosschip.ir import Model, Operand, Operation
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.arithmetic import Clip
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.quantization import Dequantize, Quantize
from fake_npu.products import products

Bounds = tuple[float, float]
"""The least and the greatest real of a result."""

ANY: Bounds = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Job:
    """An operation for the chip.

    Attributes:
        operation: the operation, on bytes where the model has conversions around it.
        bounds: those of the activation behind it.
    """

    operation: Operation
    bounds: Bounds = ANY


def on_bytes(model: Model) -> list[Unit]:
    """The quantized operations of a model."""
    return [*units(model), *products(model)]


def jobs_of(unit: Unit) -> list[Job]:
    """The jobs for a quantized operation: one for each way in which its result is rounded."""
    bounds = _bounds(unit)
    made = [m.outputs for m in unit.operations if isinstance(m, Quantize)]
    if len(unit.whole.outputs) > 1 or not made:
        return [Job(unit.whole, bounds)]
    return [Job(unit.whole.with_outputs(outputs), bounds) for outputs in made]


def jobs(model: Model) -> list[Job]:
    """The jobs that make the outputs of a model, in order; a `DEQUANTIZE` at its end is none."""
    found = on_bytes(model)
    cores = {unit.whole.name: unit for unit in found}
    inside = {
        member.name
        for unit in found
        for member in unit.operations
        if not isinstance(member, Dequantize)
    }
    every: list[Job] = []
    for operation in model.operations:
        if operation.name in cores:
            every += jobs_of(cores[operation.name])
        elif operation.name not in inside:
            every.append(Job(_direct(model, operation)))
    needed = {source_of(model, operand) for operand in model.outputs.values()}
    kept = []
    for job in reversed(every):
        if needed.intersection(job.operation.outputs):
            needed.update(operand for operand in job.operation.inputs if operand is not None)
            kept.append(job)
    return kept[::-1]


def source_of(model: Model, output: Operand) -> Operand:
    """The operand on the chip of which an output is made: the bytes, where it stands for those."""
    maker = model.producers.get(output)
    return maker.input if isinstance(maker, Dequantize) else output


def _direct(model: Model, operation: Operation) -> Operation:
    """An operation; where it makes bytes of reals that bytes stand for, what makes bytes of bytes.

    The reals in between would be float16 on the chip, which nobody has asked for.
    """
    if not isinstance(operation, Quantize):
        return operation
    source = source_of(model, operation.input)
    if source is operation.input:
        return operation
    return Assign(operation.name, (source,), operation.outputs)


def _bounds(unit: Unit) -> Bounds:
    low, high = ANY
    for member in unit.operations:
        if member.name == unit.whole.name:
            continue
        if isinstance(member, Relu | Relu6):
            low, high = max(low, 0.0), min(high, 6.0 if isinstance(member, Relu6) else high)
        elif isinstance(member, Clip):
            low, high = max(low, member.min), min(high, member.max)
    return low, high
