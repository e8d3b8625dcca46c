"""Execution of an operator's reference implementation on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crosschip.ir import (
    Arithmetic,
    Array,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    TensorType,
)
from crosschip.ir.types import HALF_FLOATS
from crosschip.ops.definition import quantized
from crosschip.ops.definition.slots import ComputedParameter, Fuse, Parameter, Slot, Tensors

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

Kernel = Callable[[Sequence[Array | None]], tuple[Array, ...]]
"""Computes an operation's outputs from the arrays of its slots, in slot order."""

_REALS = (np.dtype(np.float32), np.dtype(np.float64))
_with_attributes: dict[type[Operator], type[Operator]] = {}


def kernel_of(operation: Operator) -> Kernel:
    """Return the operation's reference computation, with all constant parameters decoded.

    The reference takes tensors as arguments named like their slots, and reads parameters from
    `self`.

    float16 and bfloat16 are computed in float32, quantized tensors in float64, and results are
    rounded once at the end. Where the output declares fixed-point arithmetic that
    `crosschip.ops.fixed_point` has for the operator, integers are computed instead. A run raises
    ValueError, with a message that starts with the slot, if inference would reject the actual
    shapes and parameters.
    """
    static, computed = _parameters(operation)
    constant = _with_parameters(operation, static)
    tensor_slots = [slot for slot in operation.slots if not slot.parameter]
    types = [output.type for output in operation.outputs]
    in_integers = _integer_function(operation)
    scales = [] if in_integers else _scales(operation)
    widen = any(
        operand.type.element_type in HALF_FLOATS
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
        decoded_operation = constant
        if computed:
            decoded = {slot.name: slot.__get__(bound, type(bound)) for slot in computed}
            decoded_operation = _with_parameters(bound, {**static, **decoded})
        if scales:
            arrays = _dequantize(arrays, scales)
        tensors = {slot.name: _pick(slot, arrays, widen) for slot in tensor_slots}
        with np.errstate(all="ignore"):
            try:
                compute = in_integers or type(decoded_operation).reference
                result = compute(decoded_operation, **tensors)
            except IndexError as error:
                raise ValueError(f"indices: {error}") from error
            results = [result] if isinstance(result, np.ndarray | np.generic) else result
            if len(results) != len(types):
                raise ValueError(f"its reference makes {len(results)} outputs, not {len(types)}")
            if bounds and not in_integers:
                first, *others = results
                results = [_clip(first, bounds), *others]
            return tuple(map(_store, results, types))

    return run


def _integer_function(operation: Operator) -> Callable[..., Array] | None:
    """Return the function that computes the output in fixed point, if it declares that."""
    declared = [output.type.quantization for output in operation.outputs]
    if not any(q and q.arithmetic is Arithmetic.FIXED_POINT for q in declared):
        return None
    # Imported here because the functions import the operators.
    from crosschip.ops.fixed_point import function_of

    return function_of(operation)


def _parameters(operation: Operator) -> tuple[dict[str, Any], list[Parameter[Any]]]:
    """Return the values of constant parameters, and the parameters computed at run time."""
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
    """Return the operation with the parameters of one run as constants."""
    inputs = list(operation.inputs)
    for slot in computed:
        operand = inputs[slot.index]
        assert operand is not None, "it is computed"
        inputs[slot.index] = Operand(operand.name, operand.type, arrays[slot.index])
    return operation.with_inputs(tuple(inputs))


def _with_parameters(operation: Operator, values: Mapping[str, Any]) -> Operator:
    """Return the operation with parameter values as attributes, to decode them only once."""
    if not values:
        return operation
    kind = _with_attributes.get(type(operation)) or _class_with_attributes(type(operation))
    copy = kind(operation.name, operation.inputs, operation.outputs, operation.output_quantization)
    vars(copy).update(values)
    return copy


def _class_with_attributes(kind: type[Operator]) -> type[Operator]:
    """Return the class without `__slots__`, so that instance attributes hide its descriptors."""
    _with_attributes[kind] = type(kind.__name__, (kind,), {})
    return _with_attributes[kind]


def _inference_signature(arrays: Sequence[Array | None], computed: Sequence[Slot]) -> object:
    """Return everything that type inference depends on in the arrays of a run."""
    shapes = [None if array is None else array.shape for array in arrays]
    return shapes, [cast(Array, arrays[slot.index]).tobytes() for slot in computed]


def _check(operation: Operator, arrays: Sequence[Array | None]) -> None:
    """Infer the operation's types from the shapes of a run.

    Raises:
        ValueError: a rule is broken; the message starts with the slot.
    """
    inputs = tuple(
        operand
        if operand is None or array is None
        else Operand(operand.name, _run_type(operand.type, array), operand.value)
        for operand, array in zip(operation.inputs, arrays, strict=True)
    )
    try:
        operation.with_inputs(inputs).infer()
    except ModelError as error:
        raise ValueError(str(error).removeprefix(f"{operation.type}.")) from None


def _run_type(type_: TensorType, array: Array) -> TensorType:
    return TensorType(type_.element_type, array.shape, type_.quantization)


def _scales(operation: Operator) -> list[tuple[int, Quantization]]:
    """Return the index and the quantization of each quantized input that is read as reals.

    The shape of a tensor is read without its elements, which may be many.
    """
    is_stored_real = any(output.type.quantization for output in operation.outputs)
    if operation.moves_integers and not is_stored_real:
        return []
    sources = operation.quantized_inputs()
    return [
        (index, operand.type.quantization)
        for index, operand in enumerate(operation.inputs)
        if operand in sources and operand is not None and operand.type.quantization is not None
    ]


def _pick(slot: Slot, arrays: Sequence[Array | None], widen: bool) -> Any:
    if isinstance(slot, Tensors):
        many = arrays[slot.index : len(arrays) - slot.after]
        return [_widen(cast(Array, array)) if widen else array for array in many]
    array = arrays[slot.index]
    return _widen(array) if widen and array is not None else array


def _dequantize(
    arrays: Sequence[Array | None], scales: Sequence[tuple[int, Quantization]]
) -> list[Array | None]:
    """Return the arrays with quantized ones converted to reals."""
    values = list(arrays)
    for index, quantization in scales:
        values[index] = quantized.reals(cast(Array, values[index]), quantization)
    return values


def _store(result: Array, type_: TensorType) -> Array:
    """Return a result in its operand's element type, quantized if the operand is."""
    array = np.asarray(result)
    if type_.quantization is not None and array.dtype in _REALS:
        array = np.asarray(quantized.stored(array, type_.quantization, type_.element_type))
    return array.astype(type_.element_type.dtype, copy=False)


def _clip(array: Array, bounds: tuple[float, float]) -> Array:
    """Clip elements to bounds, which are first clipped to the range of an integer type."""
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        least, greatest = (int(max(limits.min, min(bound, limits.max))) for bound in bounds)
        return np.clip(array, least, greatest)
    return np.clip(array, *bounds)


def _widen(array: Array) -> Array:
    is_half = ElementType.of(array.dtype) in HALF_FLOATS
    return array.astype(np.float32) if is_half else array
