"""Kernels of operations that are checked in a run: of dynamic sizes or computed parameters.

PyTorch broadcasts where a definition refuses, so the types of such an operation are inferred again
for the shapes and parameters of a run, unless they are those of the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from crosschip.devices.torch.calls import Call, Kernel
from crosschip.devices.torch.converters.table import kernel_of
from crosschip.devices.torch.memory import fetch
from crosschip.ir import Array, ModelError, Operand, Operation, TensorType
from crosschip.ops import Operator


def call_of(operation: Operation) -> Call:
    """Return the call of a supported operation.

    Raises:
        CompileError: its converter failed; the error names the operation.
    """
    assert isinstance(operation, Operator), "others are not supported"
    computed = _computed(operation)
    tensors = _tensors(operation)
    if computed:
        reads = [*tensors, *(operation.inputs[index] for index in computed)]
        return Call(operation, _with_parameters(operation, tensors, computed), reads)
    kernel = kernel_of(operation)
    if any(o is not None and o.type.static_shape is None for o in tensors):
        kernel = _checked(operation, kernel)
    return Call(operation, kernel, tensors)


def _computed(operation: Operator) -> list[int]:
    """Return the indices of the parameters that are computed in a run."""
    return [
        operation.inputs.index(operand)
        for slot, operand in operation.filled()
        if slot.parameter and not operand.is_constant
    ]


def _tensors(operation: Operator) -> list[Operand | None]:
    """Return the operands of slots that are not parameters, in order; `None` for an empty one."""
    tensors: list[Operand | None] = []
    for slot in operation.slots:
        if slot.variadic:
            tensors.extend(getattr(operation, slot.name))
        elif not slot.parameter:
            tensors.append(operation.inputs[slot.index])
    return tensors


def _checked(operation: Operator, kernel: Kernel) -> Kernel:
    """Return a kernel that first checks shapes which differ from those of its last run."""
    operands = _tensors(operation)
    accepted: object = None

    def run(*tensors: torch.Tensor | None) -> Any:
        nonlocal accepted
        shapes = [None if tensor is None else tensor.shape for tensor in tensors]
        if shapes != accepted:
            _bound(operation, operands, shapes, {})
            accepted = shapes
        return kernel(*tensors)

    return run


def _with_parameters(
    operation: Operator, operands: Sequence[Operand | None], computed: Sequence[int]
) -> Kernel:
    """Return a kernel that gets the values of computed parameters after the tensors."""
    parameters = [operation.inputs[index] for index in computed]
    last: tuple[object, Kernel] | None = None

    def run(*arguments: torch.Tensor | None) -> Any:
        nonlocal last
        tensors = arguments[: len(operands)]
        values: dict[int, Array] = {}
        for index, operand, tensor in zip(
            computed, parameters, arguments[len(operands) :], strict=True
        ):
            assert operand is not None, "it is computed"
            assert tensor is not None, "it is computed"
            values[index] = fetch(tensor.contiguous(), operand.type.element_type)
        shapes = [None if tensor is None else tensor.shape for tensor in tensors]
        signature = (shapes, [(value.shape, value.tobytes()) for value in values.values()])
        if last is None or last[0] != signature:
            last = signature, kernel_of(_bound(operation, operands, shapes, values))
        return last[1](*tensors)

    return run


def _bound(
    operation: Operator,
    operands: Sequence[Operand | None],
    shapes: Sequence[tuple[int, ...] | None],
    values: dict[int, Array],
) -> Operator:
    """Return the operation with the shapes and parameters of a run.

    Raises:
        ValueError: they break a rule; the message starts with the slot.
    """
    sized = {
        operand: Operand(operand.name, _with_shape(operand.type, shape))
        for operand, shape in zip(operands, shapes, strict=True)
        if operand is not None and shape is not None and not operand.is_constant
    }
    inputs = list(operation.inputs)
    for index, operand in enumerate(inputs):
        if operand is not None:
            value = values.get(index)
            inputs[index] = (
                sized.get(operand, operand)
                if value is None
                else Operand(operand.name, operand.type, value.copy())
            )
    bound = operation.with_inputs(tuple(inputs))
    try:
        bound.infer()
    except ModelError as error:
        raise ValueError(str(error).removeprefix(f"{operation.type}.")) from None
    return bound


def _with_shape(type_: TensorType, shape: Sequence[int]) -> TensorType:
    return TensorType(type_.element_type, tuple(shape), type_.quantization)
