"""Running an operator's reference on arrays in the form that a model holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crosschip.ir import Array, ElementType, ModelError, Operand, Quantization, TensorType
from crosschip.ops.definition import quantized
from crosschip.ops.definition.slots import ComputedParameter, Fuse, Parameter, Slot, Tensors

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

Kernel = Callable[[Sequence[Array | None]], tuple[Array, ...]]
"""Computes an operation's outputs from the arrays that fill its slots, in slot order."""

_REALS = (np.dtype(np.float32), np.dtype(np.float64))
_with_attributes: dict[type[Operator], type[Operator]] = {}
_NARROW_FLOATS = frozenset({ElementType.FLOAT16, ElementType.BFLOAT16})


def kernel_of(operation: Operator) -> Kernel:
    """The operation's reference computation, with every constant parameter decoded beforehand.

    The reference gets the tensors, by the names of their slots, and reads parameters from `self`.

    Elements of the narrow float types are computed in float32, quantized ones in float64, and
    rounded once, at the end. What inference would refuse if it knew sizes and parameters as they
    are in a run is refused in the run, by a `ValueError` that starts with the slot.
    """
    static, computed = _parameters(operation)
    constant = _with_parameters(operation, static)
    tensor_slots = [slot for slot in operation.slots if not slot.parameter]
    types = [output.type for output in operation.outputs]
    scales = _scales(operation)
    widen = any(
        operand.type.element_type in _NARROW_FLOATS
        for slot, operand in operation.filled()
        if not slot.parameter
    )
    bounds = None if operation.fused is Fuse.NONE else operation.fused.bounds
    is_open = bool(computed) or any(
        operand.type.static_shape is None for _, operand in operation.filled()
    )
    accepted: object = None

    def run(arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        nonlocal accepted
        bound = _with_values(operation, computed, arrays) if computed else operation
        if is_open:
            signature = _inference_signature(arrays, computed)
            if signature != accepted:
                _check(bound, arrays)
                accepted = signature
        known = constant
        if computed:
            decoded = {slot.name: slot.__get__(bound, type(bound)) for slot in computed}
            known = _with_parameters(bound, {**static, **decoded})
        if scales:
            arrays = _dequantized(arrays, scales)
        tensors = {slot.name: _pick(slot, arrays, widen) for slot in tensor_slots}
        with np.errstate(all="ignore"):
            try:
                result = known.reference(**tensors)
            except IndexError as error:
                raise ValueError(f"indices: {error}") from error
            results = [result] if isinstance(result, np.ndarray | np.generic) else result
            if len(results) != len(types):
                raise ValueError(f"its reference makes {len(results)} outputs, not {len(types)}")
            if bounds:
                first, *others = results
                results = [_bounded(first, bounds), *others]
            return tuple(map(_stored, results, types))

    return run


def _parameters(operation: Operator) -> tuple[dict[str, Any], list[Parameter[Any]]]:
    """The values of the parameters that are known, and the parameters that are not."""
    static: dict[str, Any] = {}
    computed: list[Parameter[Any]] = []
    for slot in operation.slots:
        if isinstance(slot, Parameter):
            try:
                static[slot.name] = slot.__get__(operation, type(operation))
            except ComputedParameter:
                computed.append(slot)
    return static, computed


def _with_values(
    operation: Operator, computed: Sequence[Slot], arrays: Sequence[Array | None]
) -> Operator:
    """The operation as it is in one run, where every parameter is a constant."""
    inputs = list(operation.inputs)
    for slot in computed:
        operand = inputs[slot.index]
        assert operand is not None, "it is computed"
        inputs[slot.index] = Operand(operand.name, operand.type, arrays[slot.index])
    return operation.with_inputs(tuple(inputs))


def _with_parameters(operation: Operator, values: Mapping[str, Any]) -> Operator:
    """The operation with the values of parameters as plain attributes, not decoded when read."""
    if not values:
        return operation
    kind = _with_attributes.get(type(operation)) or _made_with_attributes(type(operation))
    copy = kind(operation.name, operation.inputs, operation.outputs, operation.output_quantization)
    vars(copy).update(values)
    return copy


def _made_with_attributes(kind: type[Operator]) -> type[Operator]:
    """The same operator without `__slots__`: what an instance holds comes before what it reads."""
    _with_attributes[kind] = type(kind.__name__, (kind,), {})
    return _with_attributes[kind]


def _inference_signature(arrays: Sequence[Array | None], computed: Sequence[Slot]) -> object:
    """All that inference sees of the arrays of a run."""
    shapes = [None if array is None else array.shape for array in arrays]
    return shapes, [cast(Array, arrays[slot.index]).tobytes() for slot in computed]


def _check(operation: Operator, arrays: Sequence[Array | None]) -> None:
    """Infer the operation's types from the shapes of a run.

    Raises:
        ValueError: they break a rule; the message starts with the slot.
    """
    inputs = tuple(
        operand
        if operand is None or array is None
        else Operand(operand.name, _as_in_run(operand.type, array), operand.value)
        for operand, array in zip(operation.inputs, arrays, strict=True)
    )
    try:
        operation.with_inputs(inputs).infer()
    except ModelError as error:
        raise ValueError(str(error).removeprefix(f"{operation.type}.")) from None


def _as_in_run(type_: TensorType, array: Array) -> TensorType:
    return TensorType(type_.element_type, array.shape, type_.quantization)


def _scales(operation: Operator) -> list[tuple[int, Quantization]]:
    """The inputs that are quantized, by their place, and how."""
    sources = operation.quantized_inputs()
    return [
        (index, operand.type.quantization)
        for index, operand in enumerate(operation.inputs)
        if operand in sources and operand is not None and operand.type.quantization is not None
    ]


def _pick(slot: Slot, arrays: Sequence[Array | None], widen: bool) -> Any:
    if isinstance(slot, Tensors):
        many = arrays[slot.index : len(arrays) - slot.after]
        return [_widened(cast(Array, array)) if widen else array for array in many]
    array = arrays[slot.index]
    return _widened(array) if widen and array is not None else array


def _dequantized(
    arrays: Sequence[Array | None], scales: Sequence[tuple[int, Quantization]]
) -> list[Array | None]:
    """The arrays, with reals in place of the integers that stand for them."""
    values = list(arrays)
    for index, quantization in scales:
        values[index] = quantized.reals(cast(Array, values[index]), quantization)
    return values


def _stored(result: Array, type_: TensorType) -> Array:
    """A result in the form that its operand has."""
    array = np.asarray(result)
    if type_.quantization is not None and array.dtype in _REALS:
        array = np.asarray(quantized.stored(array, type_.quantization, type_.element_type))
    return array.astype(type_.element_type.dtype, copy=False)


def _bounded(array: Array, bounds: tuple[float, float]) -> Array:
    """Elements between bounds, which for integers are brought into their type's range."""
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        least, greatest = (int(max(limits.min, min(bound, limits.max))) for bound in bounds)
        return np.clip(array, least, greatest)
    return np.clip(array, *bounds)


def _widened(array: Array) -> Array:
    is_narrow = array.dtype in (ElementType.FLOAT16.dtype, ElementType.BFLOAT16.dtype)
    return array.astype(np.float32) if is_narrow else array
