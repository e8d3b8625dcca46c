"""The quantized operations of a model that writes them with conversions around them.

`DEQUANTIZE` → operator → `QUANTIZE` is one operation on integers, whatever stands in between in
float32: a chip that computes in integers takes it for that. An activation may follow the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from crosschip.ir import ElementType, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.arithmetic import Clip
from crosschip.ops.standard.quantization import Dequantize, Quantize

_ACTIVATIONS = (Relu, Relu6, Clip)


@dataclass(frozen=True, slots=True)
class Unit:
    """A quantized operation.

    Attributes:
        operations: the conversions and what stands between them, in the order of the model.
        whole: the operation on the integers that it reads, making those that it makes.
    """

    operations: tuple[Operation, ...]
    whole: Operation


def units(model: Model) -> list[Unit]:
    """The quantized operations of a model; conversions may be in several, others in one."""
    readers: dict[Operand, list[Operation]] = {}
    for operation in model.operations:
        for operand in dict.fromkeys(operation.inputs):
            if operand is not None:
                readers.setdefault(operand, []).append(operation)
    model_outputs = set(model.outputs.values())
    place = {operation.name: index for index, operation in enumerate(model.operations)}
    result = []
    for operation in model.operations:
        members = _unit(operation, model.producers, readers, model_outputs)
        if members:
            ordered = sorted(members.values(), key=lambda member: place[member.name])
            result.append(Unit(tuple(ordered), _whole(operation, members)))
    return result


def joined(parts: Iterable[Iterable[int]]) -> list[list[int]]:
    """Sets of places, those that share some made one: units share conversions."""
    groups: list[set[int]] = []
    for part in parts:
        one = set(part)
        disjoint = []
        for group in groups:
            if group & one:
                one |= group
            else:
                disjoint.append(group)
        groups = [*disjoint, one]
    return [sorted(group) for group in groups]


def computes_float32(operation: Operation) -> bool:
    """Tell whether an operation reads or makes float32 tensors, other than to convert them."""
    return not isinstance(operation, Quantize | Dequantize) and any(
        map(_is_float32, _all(operation))
    )


def _unit(
    operation: Operation,
    producers: Mapping[Operand, Operation],
    readers: Mapping[Operand, Sequence[Operation]],
    model_outputs: set[Operand],
) -> dict[str, Operation]:
    """The unit whose operator an operation is; empty if there is none."""
    if not isinstance(operation, Operator) or isinstance(operation, Quantize | Dequantize):
        return {}
    members: dict[str, Operation] = {operation.name: operation}
    before: dict[str, Operation] = {}
    for slot, operand in operation.filled():
        if slot.parameter or operand.is_constant or not _is_float32(operand):
            continue
        producer = producers.get(operand)
        if not isinstance(producer, Dequantize):
            return {}
        before[producer.name] = producer
    if not before:
        return {}
    pending = list(operation.outputs)
    while pending:
        operand = pending.pop()
        after = readers.get(operand, ())
        if not _is_float32(operand):
            continue
        if operand in model_outputs or not after:
            return {}
        if len(after) == 1 and isinstance(after[0], _ACTIVATIONS):
            members[after[0].name] = after[0]
            pending += after[0].outputs
        elif all(isinstance(reader, Quantize) for reader in after):
            members.update((reader.name, reader) for reader in after)
        else:
            return {}
    return before | members


def _whole(operation: Operation, members: Mapping[str, Operation]) -> Operation:
    """An operation on what the conversions around it read and make."""
    integers = {
        member.outputs[0]: member.inputs[0]
        for member in members.values()
        if isinstance(member, Dequantize)
    }
    makes = dict(zip(operation.outputs, operation.outputs, strict=True))
    for member in members.values():
        if isinstance(member, Quantize):
            read = next(filter(None, member.inputs))
            while read not in makes:
                read = next(o for m in members.values() if read in m.outputs for o in m.inputs if o)
            makes[read] = member.outputs[0]
    inputs = tuple(integers.get(o, o) if o else o for o in operation.inputs)
    return operation.with_inputs(inputs, tuple(makes.values()))


def _all(operation: Operation) -> Sequence[Operand]:
    if isinstance(operation, Operator):
        read = [operand for slot, operand in operation.filled() if not slot.parameter]
    else:
        read = [operand for operand in operation.inputs if operand is not None]
    return [*read, *operation.outputs]


def _is_float32(operand: Operand) -> bool:
    return operand.type.element_type is ElementType.FLOAT32
