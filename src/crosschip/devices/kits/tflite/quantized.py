"""Quantized operations that a model spells out with conversions around operations on reals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crosschip.hal import Support
from crosschip.ir import Model, Operand, Operation, Quantization, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.passes.base import Pass
from crosschip.passes.remove_unused import RemoveUnused

_ACTIVATIONS = (Relu, Relu6)


@dataclass(frozen=True)
class FuseQuantized(Pass):
    """Replaces `DEQUANTIZE` → operation → `QUANTIZE` by the operation on integers.

    An activation may follow the operation. Only operations that the target supports on integers are
    replaced, so others keep computing on reals. Results may be one step off.

    Args:
        supports: whether the target supports an operation.
    """

    exact = False

    supports: Callable[[Operation], Support]

    def rewrite(self, model: Model) -> Model:
        producers = model.producers
        readers: dict[Operand, list[Operation]] = {}
        for operation in model.operations:
            for operand in operation.inputs:
                if operand is not None:
                    readers.setdefault(operand, []).append(operation)
        outputs = set(model.outputs.values())
        replaced: dict[Operation, Sequence[Operation]] = {}
        for operation in model.operations:
            chain = _chain(operation, readers, outputs)
            if chain is None or not isinstance(operation, Operator):
                continue
            fused = self._fuse(operation, chain, producers)
            if fused:
                replaced[operation] = fused
                replaced.update(dict.fromkeys(chain, ()))
        if not replaced:
            return model
        operations = [part for o in model.operations for part in replaced.get(o, (o,))]
        return RemoveUnused().rewrite(Model(model.name, model.inputs, operations, model.outputs))

    def _fuse(
        self,
        operation: Operator,
        chain: Sequence[Operation],
        producers: Mapping[Operand, Operation],
    ) -> Sequence[Operation]:
        """Return the operation, and the activation after it, on integers; empty if unsupported."""
        inputs = _quantized_inputs(operation, producers)
        if inputs is None:
            return ()
        *activations, quantize = chain
        result = quantize.outputs[0]
        quantization = (result.type.quantization,)
        parts: list[Operation] = []
        for index, part in enumerate([operation, *activations]):
            is_last = index == len(activations)
            output = result if is_last else Operand(f"{part.outputs[0].name}.q", result.type)
            part_inputs = inputs if part is operation else (parts[-1].outputs[0], *part.inputs[1:])
            fused = type(part)(part.name, part_inputs, (output,), quantization).standing_for(part)
            if not self.supports(fused):
                return ()
            parts.append(fused)
        return parts


def _chain(
    operation: Operation,
    readers: Mapping[Operand, Sequence[Operation]],
    outputs: set[Operand],
) -> Sequence[Operation] | None:
    """Return the activation, if any, and the `QUANTIZE` that alone read an operation's output."""
    if not isinstance(operation, Operator) or isinstance(operation, Quantize | Dequantize):
        return None
    if len(operation.outputs) != 1:
        return None
    chain: list[Operation] = []
    output = operation.outputs[0]
    while output not in outputs and len(readers.get(output, ())) == 1:
        (reader,) = readers[output]
        chain.append(reader)
        if isinstance(reader, Quantize):
            return chain
        if not isinstance(reader, _ACTIVATIONS) or len(chain) > 1:
            return None
        output = reader.outputs[0]
    return None


def _quantized_inputs(
    operation: Operator, producers: Mapping[Operand, Operation]
) -> tuple[Operand | None, ...] | None:
    """Return an operation's inputs as integers; `None` if one is not dequantized before it."""
    integers: dict[Operand, Operand] = {}
    for slot, operand in operation.filled():
        if slot.parameter or slot.name == "bias":
            continue
        producer = producers.get(operand)
        if not isinstance(producer, Dequantize):
            return None
        integers[operand] = producer.input
    bias = operation.operand("bias")
    if bias is not None and isinstance(operation, Conv2D | Conv2DTranspose | FullyConnected):
        weight = operation.weight if isinstance(operation, FullyConnected) else operation.filter
        steps = _bias(bias, integers[operation.input], integers[weight], producers)
        if steps is None:
            return None
        integers[bias] = steps
    return tuple(operand and integers.get(operand, operand) for operand in operation.inputs)


def _bias(
    bias: Operand,
    input: Operand,
    weight: Operand,
    producers: Mapping[Operand, Operation],
) -> Operand | None:
    """Return a bias in steps of the products; `None` if it is computed at run time."""
    producer = producers.get(bias)
    if isinstance(producer, Dequantize) and producer.input.is_constant:
        return producer.input
    if bias.value is None:
        return None
    unit, scales = input.type.quantization, weight.type.quantization
    if unit is None or scales is None:
        return None
    steps = np.float32(unit.scale[0]) * np.array(scales.scale, np.float32)
    integers = np.rint(bias.value.astype(np.float64) / steps)
    limit = np.iinfo(np.int32)
    axis = None if scales.axis is None else 0
    return constant(
        np.clip(integers, limit.min, limit.max).astype(np.int32),
        bias.name,
        Quantization(tuple(steps.tolist()), axis=axis),
    )
