"""Quantized operations that a model spells out with conversions around float32 operators.

A chip that computes on integers runs `DEQUANTIZE` → operator → `QUANTIZE` as one operation. An
activation may follow the operator.
"""

from __future__ import annotations

from collections import Counter
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
        operations: the conversions and the operations between them, in model order.
        whole: the operation on the unit's integer inputs and outputs.
    """

    operations: tuple[Operation, ...]
    whole: Operation


def units(model: Model) -> list[Unit]:
    """Return the quantized operations of a model; units may share conversions only."""
    readers: dict[Operand, list[Operation]] = {}
    for operation in model.operations:
        for operand in dict.fromkeys(operation.inputs):
            if operand is not None:
                readers.setdefault(operand, []).append(operation)
    model_outputs = set(model.outputs.values())
    index_of = {operation.name: index for index, operation in enumerate(model.operations)}
    result = []
    for operation in model.operations:
        members = _unit(operation, model.producers, readers, model_outputs)
        if members:
            ordered = sorted(members.values(), key=lambda member: index_of[member.name])
            result.append(Unit(tuple(ordered), _whole(operation, members)))
    return result


def merge_overlapping(parts: Iterable[Iterable[int]]) -> list[list[int]]:
    """Merge sets of indices that share elements: units may share conversions."""
    groups: list[set[int]] = []
    for part in parts:
        merged = set(part)
        disjoint = []
        for group in groups:
            if group & merged:
                merged |= group
            else:
                disjoint.append(group)
        groups = [*disjoint, merged]
    return [sorted(group) for group in groups]


def submodel(model: Model, operations: Sequence[Operation]) -> Model:
    """Return some operations of a model, given in any order, as a model of their own."""
    names = {operation.name for operation in operations}
    operations = [operation for operation in model.operations if operation.name in names]
    computed = {output for operation in operations for output in operation.outputs}
    uses = Counter(o for operation in operations for o in operation.inputs if o is not None)
    inputs = [o for o in uses if not o.is_constant and o not in computed]
    model_outputs = set(model.outputs.values())
    outputs = [
        output
        for operation in operations
        for output in operation.outputs
        if output in model_outputs or model.uses.get(output, 0) > uses[output] or not uses[output]
    ]
    return Model(
        operations[0].name,
        {f"input{index}": operand for index, operand in enumerate(inputs)},
        operations,
        {f"output{index}": operand for index, operand in enumerate(outputs)},
    )


def computes_float32(operation: Operation) -> bool:
    """Return whether an operation other than a conversion has float32 operands."""
    return not isinstance(operation, Quantize | Dequantize) and any(
        map(_is_float32, _tensors(operation))
    )


def _unit(
    operation: Operation,
    producers: Mapping[Operand, Operation],
    readers: Mapping[Operand, Sequence[Operation]],
    model_outputs: set[Operand],
) -> dict[str, Operation]:
    """Return the members of the unit around an operator, by name; empty if there is none."""
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
    """Return the operation on the integers before and after its conversions."""
    integers = {
        member.outputs[0]: member.inputs[0]
        for member in members.values()
        if isinstance(member, Dequantize)
    }
    outputs = dict(zip(operation.outputs, operation.outputs, strict=True))
    for member in members.values():
        if isinstance(member, Quantize):
            source = next(filter(None, member.inputs))
            while source not in outputs:
                source = next(
                    o for m in members.values() if source in m.outputs for o in m.inputs if o
                )
            outputs[source] = member.outputs[0]
    inputs = tuple(integers.get(o, o) if o else o for o in operation.inputs)
    return operation.with_inputs(inputs, tuple(outputs.values()))


def _tensors(operation: Operation) -> Sequence[Operand]:
    if isinstance(operation, Operator):
        read = [operand for slot, operand in operation.filled() if not slot.parameter]
    else:
        read = [operand for operand in operation.inputs if operand is not None]
    return [*read, *operation.outputs]


def _is_float32(operand: Operand) -> bool:
    return operand.type.element_type is ElementType.FLOAT32
