"""The accuracy that a device must keep, by element type and length of sums.

Integers, booleans and elements that are only moved must be exact. A quantized result may be one
step off, except where the real number before rounding is exact in any arithmetic.

A float result may differ by `(8 + depth) * epsilon` of the largest element, where `epsilon` is the
spacing of the element type at 1 and `depth` is the most summed elements, taken to be the number of
elements of the largest input. The reference computes half-precision types in float32 and rounds
the result; many devices compute in half precision, so `depth` counts as at most 64 there. The same
holds for float32 that the device computes in half precision on request; numbers beyond the narrower
range may then be infinite. Where the reference is infinite or NaN, the device must be, too. The
sign of zero counts only for operators that move elements or change signs (`signs_bind`).

If a result is further off, it may differ by as much as the operator's decomposition does when it is
computed step by step in the same element type from random inputs that are a few roundings off,
because the last digits of a sum that cancels are arbitrary. It need not be closer than `epsilon`,
because many functions pass through numbers near 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

import numpy as np

from crosschip.accuracy.epsilon import arithmetic_type, epsilon
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Precision
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    Model,
    Operand,
    Operation,
    TensorType,
)
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.quantization import Quantize
from crosschip.ops.standard.unary import Abs, Neg

_HALF = (ElementType.FLOAT16, ElementType.BFLOAT16)
_HALF_DEPTH = 64
_ROUNDINGS = 4
_PARTS_OF_A_STEP = 64
"""The fraction of a quantization step of which exact reals are multiples."""
_TRIES = 4


def tolerance(output: TensorType, inputs: Sequence[Array]) -> float:
    """Return the allowed difference relative to the largest element; 0 if results are exact."""
    if output.element_type not in FLOATS:
        return 0.0
    depth = max((array.size for array in inputs), default=1)
    if output.element_type in _HALF:
        depth = min(depth, _HALF_DEPTH)
    return (8 + depth) * epsilon(output.element_type)


def narrowed(array: Array, precision: Precision) -> Array:
    """Round float32 elements to the arithmetic's precision, so that the device converts exactly."""
    if array.dtype != np.float32 or precision is Precision.FLOAT32:
        return array
    with np.errstate(over="ignore"):
        return array.astype(ElementType(precision.value).dtype).astype(np.float32)


def sensitivity(
    model: Model,
    inputs: Sequence[Array],
    random: Collection[str],
    expected: Sequence[Array],
    precision: Precision = Precision.FLOAT32,
    size: float = 0.0,
) -> list[float]:
    """Return the error of each output if all steps, and the inputs, are rounded.

    Args:
        model: a model of one operation, which is decomposed if possible.
        inputs: its inputs.
        random: the names of inputs and constants with random elements; others may be ties or
            limits, which must not be changed.
        expected: the reference's outputs for the unchanged inputs.
        precision: the arithmetic for float32.
        size: the minimum for the largest magnitude of each output.
    """
    generator, moved = np.random.default_rng(0), [0.0] * len(expected)
    model, held = _constants_to_inputs(model, random)
    inputs = [*inputs, *held]
    program = ReferenceProgram(_in_steps(model))
    for _ in range(_TRIES):
        shaken = [
            _shaken(array, arithmetic_type(operand.type, precision).element_type, generator, size)
            if name in random
            else array
            for (name, operand), array in zip(model.inputs.items(), inputs, strict=True)
        ]
        with suppress(DeviceError):  # what is off by a little may be refused
            for index, shaken_output in enumerate(program.run(shaken)):
                moved[index] = max(moved[index], _distance(shaken_output, expected[index]))
    return moved


def _constants_to_inputs(model: Model, names: Collection[str]) -> tuple[Model, list[Array]]:
    """Turn constants with some names into inputs; return the model and their elements."""
    held = [o for o in model.constants if o.name in names and o.type.element_type in FLOATS]
    if not held:
        return model, []
    inputs = {constant: Operand(constant.name, constant.type) for constant in held}
    (operation,) = model.operations
    operation = operation.with_inputs(
        tuple(inputs.get(operand, operand) if operand else None for operand in operation.inputs)
    )
    named = {operand.name: operand for operand in inputs.values()}
    opened = Model(model.name, {**model.inputs, **named}, [operation], model.outputs)
    return opened, [constant.value for constant in held if constant.value is not None]


def rounds_exact_reals(model: Model, inputs: Sequence[Array]) -> bool:
    """Return whether a quantized result is rounded from reals that any arithmetic computes exactly.

    This holds if the scales are powers of 2 and the reals have few digits: the inputs of QUANTIZE,
    and multiples of a small part of the scale.
    """
    (operation,) = model.operations
    (output, *_) = operation.outputs
    scales = [o.type.quantization for o in (*operation.inputs, output) if o is not None]
    known = [each for each in scales if each is not None]
    powers = all(np.frexp(scale)[0] == 0.5 for each in known for scale in each.scale)
    if output.type.quantization is None or not powers or not isinstance(operation, Operator):
        return False
    if isinstance(operation, Quantize):
        return True
    plain = [Operand(o.name, _as_real(o.type)) for o in operation.outputs]
    outputs = dict(zip(model.outputs, plain, strict=True))
    real = type(operation)(operation.name, operation.inputs, tuple(plain))
    values = ReferenceProgram(Model(model.name, model.inputs, [real], outputs)).run(inputs)[0]
    steps = values.astype(np.float64) / min(output.type.quantization.scale) * _PARTS_OF_A_STEP
    return bool(np.all(np.isfinite(steps) & (steps == np.rint(steps)) & (abs(steps) < 2**23)))


def _as_real(type_: TensorType) -> TensorType:
    """Return the float type that a quantized tensor represents."""
    return type_ if type_.quantization is None else TensorType(ElementType.FLOAT32, type_.shape)


def in_steps(model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Return the outputs of an operation, computed by its decomposition if it has one."""
    return ReferenceProgram(_in_steps(model)).run(inputs)


def _in_steps(model: Model) -> Model:
    (operation,) = model.operations
    b = Builder()
    results = operation.decomposition(b) if isinstance(operation, Operator) else None
    if results is None:
        return model
    return Model(
        model.name, model.inputs, b.operations, dict(zip(model.outputs, results, strict=True))
    )


def _shaken(
    array: Array, element_type: ElementType, generator: np.random.Generator, size: float
) -> Array:
    if element_type not in FLOATS or not array.size:
        return array
    wide = array.astype(np.float64)
    largest = np.abs(wide[np.isfinite(wide)]).max(initial=size)
    step = _ROUNDINGS * epsilon(element_type) * largest
    with np.errstate(over="ignore"):
        return np.asarray(wide + step * generator.choice((-1, 1), wide.shape)).astype(array.dtype)


def _distance(actual: Array, wanted: Array) -> float:
    if actual.shape != wanted.shape:
        return 0.0
    with np.errstate(invalid="ignore"):
        distances = np.abs(actual.astype(np.float64) - wanted.astype(np.float64))
    return float(distances[np.isfinite(distances)].max(initial=0.0))


def difference(
    actual: Array,
    expected: Array,
    output: TensorType,
    allowed: float,
    moved: float = 0.0,
    precision: Precision = Precision.FLOAT32,
    *,
    exact: bool = False,
) -> str:
    """Return the fault of an output; empty if it is right.

    Args:
        actual: the device's output.
        expected: the reference's output.
        output: the output's type.
        allowed: the allowed difference, relative to the largest element.
        moved: the further allowed difference; see `sensitivity`.
        precision: the arithmetic for float32.
        exact: whether a quantized result must be exact.
    """
    if not isinstance(actual, np.ndarray):
        return f"is a {type(actual).__name__}, not an array"
    if actual.dtype != expected.dtype:
        return f"has elements of type {actual.dtype}, not {expected.dtype}"
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}, not {list(expected.shape)}"
    if not actual.flags.c_contiguous:
        return "is not C-contiguous"
    if not expected.size:
        return ""
    if not output.element_type.value.startswith(("float", "bfloat")):
        steps = 1 if output.quantization and not exact else 0
        return _worst(_steps_apart(actual, expected, steps), actual, expected)
    numbers, wanted = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wanted)
    same = (numbers == wanted) | (np.isnan(numbers) & np.isnan(wanted))
    largest = float(np.abs(wanted[finite]).max(initial=0.0))
    same |= numbers == narrowed(expected, precision)
    with np.errstate(invalid="ignore"):
        near = same | (np.abs(numbers - wanted) <= allowed * largest + moved)
    return _worst(~np.where(finite, near, same), actual, expected)


def signs_bind(operation: Operation) -> bool:
    """Return whether an operator only moves elements or changes signs, so that -0 is not 0.

    WHERE is excluded: ONNX Runtime adds two tensors in which unselected elements are zeros.
    """
    if isinstance(operation, Where):
        return False
    return isinstance(operation, Abs | Neg) or (isinstance(operation, Operator) and operation.moves)


def wrong_zeros(actual: Array, expected: Array) -> str:
    """Return the fault of the signs of zeros in an output; empty if they are right."""
    if ElementType.of(expected.dtype) not in FLOATS:
        return ""
    zeros = (actual == 0) & (expected == 0)
    return _worst(zeros & (np.signbit(actual) != np.signbit(expected)), actual, expected)


def _steps_apart(actual: Array, expected: Array, steps: int) -> Array:
    if not steps:
        return np.asarray(actual != expected)
    return np.asarray(np.abs(actual.astype(np.int64) - expected.astype(np.int64)) > steps)


def _worst(wrong: Array, actual: Array, expected: Array) -> str:
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (
        f"{count} of {expected.size} elements are wrong, the first at {list(place)}: "
        f"{actual[place]} instead of {expected[place]}"
    )
