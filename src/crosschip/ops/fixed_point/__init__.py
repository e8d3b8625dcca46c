"""Quantized operators in integers: the arithmetic of TensorFlow Lite's reference kernels.

An operation whose output declares `Arithmetic.FIXED_POINT` is computed by the function registered
for its operator and its elements' types, and on reals if there is none. A function takes the
operation, with its parameters decoded, and the stored integers of its tensors, by slot:

    @fixed_point(AveragePool2D, EIGHT_BITS)
    def average_pool(operation: AveragePool2D, input: Array) -> Array:
        return clamped(operation, half_away(operation.reference(input.astype(np.float64))))

The steps that all share (multipliers, shifts and their rounding) are in
`crosschip.ops.fixed_point.rescaling`. Each family of operators has a module of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.operator import Operator

Function = Callable[..., Array]
"""Computes the integers of an operation's output from the operation and its tensors' integers."""

EIGHT_BITS = frozenset({ElementType.INT8, ElementType.UINT8})
INTEGERS = EIGHT_BITS | {ElementType.INT16}

_registry: dict[tuple[type[Operator], ElementType], Function] = {}

FunctionT = TypeVar("FunctionT", bound=Function)


def fixed_point(
    operator: type[Operator], element_types: Collection[ElementType]
) -> Callable[[FunctionT], FunctionT]:
    """Register the decorated function for an operator whose first tensor has one of the types."""

    def register(function: FunctionT) -> FunctionT:
        _registry.update(((operator, element_type), function) for element_type in element_types)
        return function

    return register


def function_of(operation: Operator) -> Function | None:
    """Return the function that computes an operation in integers; `None` if reals compute it."""
    tensors = [operand.type for slot, operand in operation.filled() if not slot.parameter]
    function = _registry.get((type(operation), tensors[0].element_type)) if tensors else None
    are_alike = len({type_.quantization is None for type_ in tensors}) == 1
    return function if are_alike else None


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
