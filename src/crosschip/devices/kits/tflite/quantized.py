"""Quantized operations that a model spells out with conversions around operations on reals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.hal import Support
from crosschip.ir import Arithmetic, ElementType, Model, Operand, Operation, Quantization, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.definition.quantized import reals
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.conversion import BitCast, Cast
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.quantization import Dequantize, Quantize, Reinterpret
from crosschip.passes.base import Pass
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewriter import Rewriter

_ACTIVATIONS = (Relu, Relu6)
_READING_INTEGERS = (Reinterpret, Cast, BitCast)
_BYTES = (ElementType.INT8, ElementType.UINT8)
_OFFSET = 128


@dataclass(frozen=True)
class SignedBytes(Pass):
    """Replaces quantized uint8 by int8 with a zero point that is 128 less: the same reals.

    TensorFlow Lite's kernels have weights of int8, with activations of int8. Inputs and outputs of
    the model stay uint8, and are requantized without loss. A model in fixed point is that of
    TensorFlow Lite's kernels of uint8, which it keeps.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        if any(map(_is_fixed_point, model.producers)):
            return model
        fixed = {
            operand
            for operation in model.operations
            if _reads_integers(operation)
            for operand in (*operation.inputs, *operation.outputs)
            if operand is not None
        }
        fixed.update(model.inputs.values())
        # An operation of unsigned channels has one type for all of its operands.
        for operation in model.operations:
            operands = [o for o in (*operation.inputs, *operation.outputs) if o is not None]
            if any(map(_has_unsigned_channels, operands)):
                fixed.update(operands)
        fixed.update(filter(_is_per_channel, model.inputs.values()))
        signed = _SignedOperands(fixed)
        operations: list[Operation] = []
        for name, operand in model.inputs.items():
            if _is_unsigned(operand) and not _is_per_channel(operand):
                signed.replaced[operand] = _signed(operand)
                operations.append(_requantize(f"{name}.signed", operand, signed.replaced[operand]))
        operations += map(signed.operation, model.operations)
        outputs = {}
        for name, operand in model.outputs.items():
            outputs[name] = operand
            if operand in signed.replaced:
                outputs[name] = Operand(operand.name, operand.type)
                source = signed.replaced[operand]
                operations.append(_requantize(f"{name}.unsigned", source, outputs[name]))
        if not signed.replaced:
            return model
        return RemoveUnused().rewrite(Model(model.name, model.inputs, operations, outputs))


class _SignedOperands:
    """The int8 operands that replace uint8 ones.

    Args:
        fixed: the operands that stay.

    Attributes:
        replaced: the int8 operand for each uint8 one.
    """

    def __init__(self, fixed: Collection[Operand]) -> None:
        self.replaced: dict[Operand, Operand] = {}
        self._fixed = fixed

    def operation(self, operation: Operation) -> Operation:
        """Return an operation on int8."""
        if _reads_integers(operation):
            return operation
        assert isinstance(operation, Operator), "others read integers"
        inputs = tuple(o and self._operand(o) for o in operation.inputs)
        outputs = tuple(map(self._operand, operation.outputs))
        if inputs == operation.inputs and outputs == operation.outputs:
            return operation
        if isinstance(operation, Quantize) and outputs != operation.outputs:
            (output,) = outputs
            assert output.type.quantization is not None, "it is quantized"
            return _requantize(operation.name, inputs[0], output).standing_for(operation)
        quantization = tuple(
            each and output.type.quantization
            for each, output in zip(_declared(operation), outputs, strict=True)
        )
        changed = type(operation)(operation.name, inputs, outputs, quantization)
        return changed.standing_for(operation)

    def _operand(self, operand: Operand) -> Operand:
        if operand not in self.replaced and operand not in self._fixed and _is_unsigned(operand):
            self.replaced[operand] = _signed(operand)
        return self.replaced.get(operand, operand)


def _declared(operation: Operation) -> tuple[Quantization | None, ...]:
    """Return the declared quantization of each output."""
    declared, count = operation.output_quantization, len(operation.outputs)
    return declared * count if len(declared) == 1 else (*declared, *(None,) * count)[:count]


def _reads_integers(operation: Operation) -> bool:
    """Return whether an operation depends on the integers that represent reals."""
    if not isinstance(operation, Operator) or isinstance(operation, _READING_INTEGERS):
        return True
    tensors = [operand for slot, operand in operation.filled() if not slot.parameter]
    return any(
        each.type.element_type is ElementType.UINT8 and each.type.quantization is None
        for each in (*tensors, *operation.outputs)
    )


def _is_unsigned(operand: Operand) -> bool:
    return operand.type.element_type is ElementType.UINT8 and operand.type.quantization is not None


def _is_fixed_point(operand: Operand) -> bool:
    quantization = operand.type.quantization
    return quantization is not None and quantization.arithmetic is Arithmetic.FIXED_POINT


def _has_unsigned_channels(operand: Operand) -> bool:
    """Return whether channels have scales, and are no weights with the zero point 0 of int8."""
    quantization = operand.type.quantization
    if quantization is None or quantization.axis is None or not _is_unsigned(operand):
        return False
    return not operand.is_constant or set(quantization.zero_point) != {_OFFSET}


def _is_per_channel(operand: Operand) -> bool:
    quantization = operand.type.quantization
    return quantization is not None and quantization.axis is not None


def _signed(operand: Operand) -> Operand:
    """Return the int8 operand for a uint8 one."""
    quantization = operand.type.quantization
    assert quantization is not None, "the caller checks it"
    points = tuple(point - _OFFSET for point in quantization.zero_point)
    shifted = replace(quantization, zero_point=points)
    type_ = replace(operand.type, element_type=ElementType.INT8, quantization=shifted)
    value = operand.value
    array = None if value is None else (value.astype(np.int16) - _OFFSET).astype(np.int8)
    return Operand(operand.name, type_, array)


def _requantize(name: str, source: Operand | None, output: Operand) -> Operation:
    """Return the operation that quantizes an operand as another one."""
    quantization = output.type.quantization
    assert quantization is not None, "the caller checks it"
    scale = np.array(quantization.scale, np.float32)
    points = np.array(quantization.zero_point, np.float32)
    per_tensor = quantization.axis is None
    inputs = Quantize.bind(
        name,
        (source,),
        {
            "axis": None if per_tensor else quantization.axis,
            "scale": scale,
            "zero_point": points,
            "dtype": output.type.element_type,
        },
    )
    return Quantize(name, inputs, (output,))


@dataclass(frozen=True)
class RealConstants(Pass):
    """Dequantizes constants that are more than bytes, such as biases, in the file."""

    exact = False

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for original in model.operations:
            operation = rewriter.resolved(original)
            source = operation.input if isinstance(operation, Dequantize) else None
            if (
                source is None
                or source.value is None
                or source.type.quantization is None
                or source.type.element_type in _BYTES
            ):
                rewriter.keep(operation)
                continue
            array = reals(source.value, source.type.quantization)
            dtype = operation.outputs[0].type.element_type.dtype
            rewriter.replace_by_value(original.outputs[0], array.astype(dtype))
        return rewriter.finish()


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
