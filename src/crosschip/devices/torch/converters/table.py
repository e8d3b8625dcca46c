"""The converter table: for each operator a function that makes the kernel of an operation.

A kernel takes the tensors of the operation's slots, in their order, without its parameters: `None`
for an empty slot, a list for a variadic one. The function reads the parameters, so that a run reads
none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.elements import CARRIED, inner, wrapped
from crosschip.hal import Converters, Refusal, Rule
from crosschip.ir import ElementType, Operation
from crosschip.ir.types import ALL_TYPES, BOOLEANS, HALF_FLOATS, INDICES, INTEGERS, NUMBERS
from crosschip.ops import Operator
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.slots import Fuse, Tensors

COMPUTED = (NUMBERS | BOOLEANS) - {ElementType.UINT64}
"""The types that kernels compute in; uint64 is only moved, unless a converter names it."""
WITH_UINT64 = NUMBERS | BOOLEANS
"""The types of kernels that compute uint64 right from its bits as an int64."""

converters = Converters[None, Kernel](ALL_TYPES, fuses=True, device="torch")

Make = Callable[[Any], Kernel]
"""Returns the kernel of an operation."""


def converts(
    *operators: type[Operator],
    types: Collection[ElementType] | None = None,
    limit: Callable[[Any], Refusal | None] | None = None,
    narrow: bool = False,
) -> Callable[[Make], Make]:
    """Decorate a function as the converter of operators.

    Kernels get 16-bit floats as float32, in which operators compute, and their results are rounded;
    fused activations are applied to their results.

    Args:
        operators: the operators.
        types: the element types of their tensors; by default all if they only move elements.
        limit: returns a refusal for unsupported operations.
        narrow: whether kernels compute 16-bit floats with the precision of float32 themselves.
    """

    def register(make: Make) -> Make:
        for operator in operators:
            refuses = (
                _refused_activation if limit is None and hasattr(operator, "fuse_code") else limit
            )
            own = types or (ALL_TYPES if operator.moves else COMPUTED)
            computed = [slot.name for slot in operator.slots if slot.parameter]
            decorate = converters.converts(
                operator, types=own, output_types=ALL_TYPES, limit=refuses, computed=computed
            )
            decorate(_complete(make, narrow or operator.moves))
        return make

    return register


def same(function: Kernel) -> Make:
    """Return a converter to a function with the same operands and no attributes."""
    return lambda op: function


def kernel_of(operation: Operation) -> Kernel:
    """Return the kernel of a supported operation whose parameters are constant.

    Raises:
        CompileError: the converter failed; the error names the operation.
    """
    (kernel,) = converters.convert(None, operation)
    return kernel


def as_element(number: float, element_type: ElementType) -> float:
    """Return the nearest number that an integer type has; of reals the number itself."""
    if element_type in INTEGERS:
        low, high = limits(element_type)
        return low if number <= low else high if number >= high else int(number)
    return number


def bounded(
    value: torch.Tensor, low: float, high: float, element_type: ElementType
) -> torch.Tensor:
    """Clamp a tensor to bounds of any type; the upper one wins, and NaN stays NaN."""
    return torch.clamp(value, as_element(low, element_type), as_element(high, element_type))


def _refused_activation(op: Operator) -> Refusal | None:
    """Refuse bounds of uint64, whose bits are those of a negative int64 from half of it on."""
    if op.fused is Fuse.NONE or op.outputs[0].type.element_type is not ElementType.UINT64:
        return None
    return Refusal("fuse_code", "is not for uint64 here", Rule.FUSION)


def _complete(make: Make, narrow: bool) -> Callable[[None, Operator], Kernel]:
    """Add the list of a variadic slot, the rounding and the activation to a converter."""

    def convert(_: None, op: Operator) -> Kernel:
        kernel = _with_list(make(op), op)
        reads = [o.type.element_type for slot, o in op.filled() if not slot.parameter]
        halves = not narrow and any(t in HALF_FLOATS for t in reads)
        if halves:
            kernel = _widened(kernel)
        results = [output.type.element_type for output in op.outputs]
        changed = any(
            t not in reads[:1] or t in INDICES or (t in CARRIED and not op.moves) for t in results
        )
        if halves or changed or op.fused is not Fuse.NONE:
            kernel = _rounded(kernel, results, op.fused)
        return kernel

    return convert


def _with_list(kernel: Kernel, op: Operator) -> Kernel:
    """Return a kernel that gets the tensors of a variadic slot one by one."""
    tensors = [slot for slot in op.slots if not slot.parameter]
    index = next((i for i, slot in enumerate(tensors) if isinstance(slot, Tensors)), None)
    if index is None:
        return kernel
    after = len(tensors) - 1 - index

    def run(*values: torch.Tensor) -> Any:
        end = len(values) - after
        return kernel(*values[:index], list(values[index:end]), *values[end:])

    return run


_HALVES = frozenset({torch.float16, torch.bfloat16})


def _widened(kernel: Kernel) -> Kernel:
    def run(*values: torch.Tensor | None) -> Any:
        return kernel(*(v.float() if v is not None and v.dtype in _HALVES else v for v in values))

    return run


def _rounded(kernel: Kernel, results: Sequence[ElementType], fused: Fuse) -> Kernel:
    """Return a kernel whose results have the element types, the first one after an activation."""
    bounds = None if fused is Fuse.NONE else fused.bounds

    def store(value: torch.Tensor, element_type: ElementType) -> torch.Tensor:
        if element_type in CARRIED:
            return wrapped(value, element_type)
        return value.to(inner(element_type))

    def run(*values: torch.Tensor | None) -> Any:
        result = kernel(*values)
        outputs = [result] if isinstance(result, torch.Tensor) else list(result)
        outputs = [store(*pair) for pair in zip(outputs, results, strict=True)]
        if bounds:
            outputs[0] = bounded(outputs[0], *bounds, results[0])
        return outputs[0] if len(outputs) == 1 else outputs

    return run
