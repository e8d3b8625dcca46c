"""Conversion of a model of static shapes to a TOSA block: expressions on its values.

TOSA computes integers in int32, so integers of other widths are widened before arithmetic and
reduced to their range after it. Unsigned integers of 8 and 16 bits and int64 are int32 in a block;
`Graph.store` reduces a computed value to the range of an element type.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import numpy as np

from crosschip.devices.kits.tosa.block import BFLOAT16, Block, Value
from crosschip.flatbuffer.schemas.tosa import DType, NanPropagationMode, Op
from crosschip.ir import Array, ElementType, Operand

DTYPES: Mapping[ElementType, DType] = {
    ElementType.BOOL: DType.BOOL,
    ElementType.INT4: DType.INT8,
    ElementType.INT2: DType.INT8,
    ElementType.UINT4: DType.INT8,
    ElementType.UINT2: DType.INT8,
    ElementType.INT8: DType.INT8,
    ElementType.INT16: DType.INT16,
    ElementType.INT32: DType.INT32,
    ElementType.UINT8: DType.INT32,
    ElementType.UINT16: DType.INT32,
    ElementType.INT64: DType.INT32,
    ElementType.FLOAT16: DType.FP16,
    ElementType.BFLOAT16: DType.BF16,
    ElementType.FLOAT32: DType.FP32,
}
"""The type of an operand's value in a block, by its element type."""
NUMPY: Mapping[DType, np.dtype] = {
    DType.BOOL: np.dtype(np.bool_),
    DType.INT8: np.dtype(np.int8),
    DType.INT16: np.dtype(np.int16),
    DType.INT32: np.dtype(np.int32),
    DType.FP16: np.dtype(np.float16),
    DType.BF16: BFLOAT16,
    DType.FP32: np.dtype(np.float32),
    DType.SHAPE: np.dtype(np.int64),
}
REALS = frozenset({DType.FP32, DType.FP16, DType.BF16})
_UNSIGNED = {ElementType.UINT8: 0xFF, ElementType.UINT16: 0xFFFF}
_BOUNDARY = {ElementType.UINT8: DType.INT8, ElementType.UINT16: DType.INT16}
"""The types of unsigned inputs and outputs in a file."""
_FOLDED = {Op.ADD: np.add, Op.SUB: np.subtract, Op.MUL: np.multiply}
"""Operators on constants, which are computed here."""
_MAX_LIST = 64
"""The most tensors that an operator takes in level 8K."""
_WITH_NAN_MODE = frozenset({Op.MAXIMUM, Op.MINIMUM, Op.REDUCE_MAX, Op.REDUCE_MIN})
_ZERO_POINTS = {Op.NEGATE: 2, Op.MATMUL: 2}


class Graph(Block):
    """A block under construction, with the value of each operand of a model.

    Args:
        reserved: names that inputs and outputs get.
        checks_indices: whether all indices out of range make the reference model fail.

    Attributes:
        checks_indices: see above.
        channels_last: whether images have their channels last in the operation being converted.
    """

    def __init__(self, reserved: Collection[str] = (), *, checks_indices: bool = False) -> None:
        super().__init__(reserved)
        self._operands: dict[Operand, Value] = {}
        self.checks_indices = checks_indices
        self.channels_last = False

    def __getitem__(self, operand: Operand) -> Value:
        """Return the value of an operand; a constant is converted on first use."""
        value = self._operands.get(operand)
        if value is None:
            elements = operand.value
            assert elements is not None, "operations are in topological order"
            value = self._operands[operand] = self.elements(elements, operand.type.element_type)
        return value

    def bind(self, operand: Operand, value: Value) -> None:
        """Set the value of an operand."""
        shape = operand.type.static_shape
        if value.shape != shape or value.dtype is not DTYPES[operand.type.element_type]:
            raise TypeError(
                f"made {value.dtype.name}{list(value.shape)} where {operand.type} belongs"
            )
        self._operands[operand] = value

    def boundary_input(self, name: str, element_type: ElementType, shape: Sequence[int]) -> Value:
        """Add an input, in its type in a file, and return its value."""
        value = self.input(name, boundary_type(element_type), shape)
        return self.store(value, element_type)

    def boundary_output(self, name: str, value: Value, element_type: ElementType) -> None:
        """Add an output, in its type in a file."""
        self.output(name, self.cast(value, boundary_type(element_type)))

    def elements(self, elements: Array, element_type: ElementType) -> Value:
        """Return a constant of a model's elements.

        Raises:
            ValueError: an int64 is beyond the range of int32.
        """
        if element_type is ElementType.INT64 and np.any(elements != elements.astype(np.int32)):
            raise ValueError("a constant of int64 has elements beyond int32")
        dtype = DTYPES[element_type]
        return self.constant(elements.astype(NUMPY[dtype]), dtype)

    def number(self, number: float, like: Value) -> Value:
        """Return a constant with one element in the type and number of axes of a value."""
        with np.errstate(over="ignore"):
            element = np.asarray(number).astype(NUMPY[like.dtype])
        return self.constant(element.reshape((1,) * like.rank), like.dtype)

    def store(self, value: Value, element_type: ElementType) -> Value:
        """Reduce a computed value to the range of an element type, in its type in a block."""
        if element_type in _UNSIGNED:
            wide = self.cast(value, DType.INT32)
            if value.dtype is DType.BOOL:
                return wide
            return self.binary(Op.BITWISE_AND, wide, self.number(_UNSIGNED[element_type], wide))
        return self.cast(value, DTYPES[element_type])

    def widen(self, value: Value) -> Value:
        """Return a value in the type that arithmetic is done in."""
        if value.dtype in (DType.FP16, DType.BF16):
            return self.cast(value, DType.FP32)
        return self.cast(value, DType.INT32) if value.dtype in _NARROW else value

    def cast(self, value: Value, dtype: DType) -> Value:
        """Convert to another type: reals round to nearest even, integers keep their low bits."""
        if value.dtype is dtype:
            return value
        if value.elements is not None and not _rounds(value.dtype, dtype):
            return self.constant(value.elements.astype(NUMPY[dtype]), dtype)
        pair = {value.dtype, dtype}
        if dtype is DType.BOOL and value.dtype in REALS:
            return self.logical_not(self.equal(value, self.number(0, value)))
        if DType.BOOL in pair and pair & REALS:
            return self.cast(self.cast(value, DType.INT32), dtype)
        return self.add(Op.CAST, (value,), dtype, value.shape)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the same elements in another shape."""
        if value.shape == tuple(shape):
            return value
        if value.elements is not None:
            return self.constant(value.elements.reshape(shape), value.dtype)
        return self.add(Op.RESHAPE, (value, self.shape(shape)), value.dtype, shape)

    def transpose(self, value: Value, perm: Sequence[int]) -> Value:
        """Permute the axes."""
        if list(perm) == list(range(value.rank)):
            return value
        if value.elements is not None:
            return self.constant(value.elements.transpose(perm), value.dtype)
        shape = [value.shape[axis] for axis in perm]
        return self.add(Op.TRANSPOSE, (value,), value.dtype, shape, perms=[*perm])

    def with_rank(self, value: Value, rank: int) -> Value:
        """Add leading axes of size 1 up to a number of axes."""
        return self.reshape(value, (1,) * (rank - value.rank) + value.shape)

    def aligned(self, *values: Value) -> list[Value]:
        """Return values with the same number of axes, as elementwise operators need them."""
        rank = max(value.rank for value in values)
        return [self.with_rank(value, rank) for value in values]

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """Repeat elements up to a shape, by NumPy's rules."""
        value = self.with_rank(value, len(shape))
        multiples = [size // own for size, own in zip(shape, value.shape, strict=True)]
        return self.tile(value, multiples)

    def tile(self, value: Value, multiples: Sequence[int]) -> Value:
        """Repeat a value along each axis."""
        if all(multiple == 1 for multiple in multiples):
            return value
        shape = [size * multiple for size, multiple in zip(value.shape, multiples, strict=True)]
        return self.add(Op.TILE, (value, self.shape(multiples)), value.dtype, shape)

    def unary(self, op: Op, value: Value) -> Value:
        """Add an elementwise operator of one value."""
        zeros = [self.zero(value.dtype)] * _ZERO_POINTS.get(op, 0)
        return self.add(op, (value, *zeros), value.dtype, value.shape)

    def zero(self, dtype: DType) -> Value:
        """Return a constant list of one zero, such as a zero point."""
        return self.constant(np.zeros(1, NUMPY[dtype]), dtype)

    def binary(self, op: Op, one: Value, other: Value, dtype: DType | None = None) -> Value:
        """Add an elementwise operator of two values that broadcast; `dtype` is the result's."""
        one, other = self.aligned(one, other)
        if op in _FOLDED and one.elements is not None and other.elements is not None:
            with np.errstate(all="ignore"):
                return self.constant(_FOLDED[op](one.elements, other.elements), one.dtype)
        shape = np.broadcast_shapes(one.shape, other.shape)
        attributes = {"nan_mode": NanPropagationMode.PROPAGATE} if op in _WITH_NAN_MODE else {}
        shifts = [self.zero(DType.INT8)] if op is Op.MUL else []
        result = one.dtype if dtype is None else dtype
        return self.add(op, (one, other, *shifts), result, shape, **attributes)

    def sum(self, one: Value, other: Value) -> Value:
        """Add two values."""
        return self.binary(Op.ADD, one, other)

    def difference(self, one: Value, other: Value) -> Value:
        """Subtract two values."""
        return self.binary(Op.SUB, one, other)

    def product(self, one: Value, other: Value) -> Value:
        """Multiply two values."""
        return self.binary(Op.MUL, one, other)

    def quotient(self, one: Value, other: Value) -> Value:
        """Divide two reals."""
        if other.elements is not None:
            with np.errstate(all="ignore"):
                inverse = np.divide(np.float32(1), other.elements.astype(np.float32))
            if _are_powers_of_2(other.elements):
                return self.product(one, self.constant(inverse, other.dtype))
        return self.product(one, self.unary(Op.RECIPROCAL, other))

    def rounded_quotient(self, one: Value, other: Value) -> Value:
        """Divide two reals as IEEE 754 rounds, but for rare last digits.

        The error of the product with the reciprocal is computed from halves of the factors, whose
        products are exact, and divided again.
        """
        quotient = self.quotient(one, other)
        if other.elements is not None and _are_powers_of_2(other.elements):
            return quotient
        rest = self.less_products(one, quotient, other)
        corrected = self.sum(quotient, self.quotient(rest, other))
        finite = self.less(self.unary(Op.ABS, corrected), self.number(np.inf, corrected))
        return self.select(finite, corrected, quotient)

    def less_products(self, value: Value, one: Value, other: Value) -> Value:
        """Return `value - one * other`, whose products of half as many digits are exact."""
        for high in self._halves(one):
            for low in self._halves(other):
                value = self.difference(value, self.product(high, low))
        return value

    def _halves(self, value: Value) -> tuple[Value, Value]:
        """Return two float32 of 12 digits whose sum is the value (Veltkamp)."""
        scaled = self.product(value, self.number(4097, value))
        high = self.difference(scaled, self.difference(scaled, value))
        return high, self.difference(value, high)

    def round(self, value: Value) -> Value:
        """Round float32 to the nearest integer, ties to even."""
        most = 2.0**23
        integers = self.cast(self.clamp(value, -most, most), DType.INT32)
        small = self.less(self.unary(Op.ABS, value), self.number(most, value))
        return self.select(small, self.cast(integers, value.dtype), value)

    def truncate(self, value: Value) -> Value:
        """Convert float32 to int32, rounded towards zero."""
        negative = self.greater(self.number(0, value), value)
        ends = (self.unary(Op.CEIL, value), self.unary(Op.FLOOR, value))
        return self.cast(self.select(negative, *ends), DType.INT32)

    def less(self, one: Value, other: Value) -> Value:
        """Compare two values."""
        return self.greater(other, one)

    def greater(self, one: Value, other: Value) -> Value:
        """Compare two values."""
        return self.binary(Op.GREATER, one, other, DType.BOOL)

    def greater_equal(self, one: Value, other: Value) -> Value:
        """Compare two values."""
        return self.binary(Op.GREATER_EQUAL, one, other, DType.BOOL)

    def equal(self, one: Value, other: Value) -> Value:
        """Compare two values."""
        if one.dtype is DType.BOOL:
            return self.logical_not(self.binary(Op.LOGICAL_XOR, one, other))
        return self.binary(Op.EQUAL, one, other, DType.BOOL)

    def logical_not(self, value: Value) -> Value:
        """Negate a boolean."""
        return self.unary(Op.LOGICAL_NOT, value)

    def select(self, condition: Value, one: Value, other: Value) -> Value:
        """Return elements of `one` where the condition holds, else of `other`."""
        condition, one, other = self.aligned(condition, one, other)
        shape = np.broadcast_shapes(condition.shape, one.shape, other.shape)
        return self.add(Op.SELECT, (condition, one, other), one.dtype, shape)

    def clamp(self, value: Value, low: float, high: float) -> Value:
        """Limit a real or an int32 to bounds; NaN stays NaN."""
        low = min(low, high)
        if value.dtype is DType.INT32:
            limits = np.iinfo(np.int32)
            low, high = max(low, limits.min), min(high, limits.max)
            if low > limits.min:
                value = self.binary(Op.MAXIMUM, value, self.number(int(low), value))
            if high < limits.max:
                value = self.binary(Op.MINIMUM, value, self.number(int(high), value))
            return value
        bounds = {
            name: np.asarray(number).astype(NUMPY[value.dtype]).tobytes()
            for name, number in (("min_val", low), ("max_val", high))
        }
        mode = NanPropagationMode.PROPAGATE
        return self.add(Op.CLAMP, (value,), value.dtype, value.shape, nan_mode=mode, **bounds)

    def pad(self, value: Value, pads: Sequence[tuple[int, int]], fill: Value) -> Value:
        """Pad each axis before and after with one element."""
        if not any(map(any, pads)):
            return value
        sizes = zip(value.shape, pads, strict=True)
        shape = [size + before + after for size, (before, after) in sizes]
        sides = self.shape([side for pair in pads for side in pair])
        inputs = (value, sides, self.reshape(fill, (1,)))
        return self.add(Op.PAD, inputs, value.dtype, shape)

    def slice(self, value: Value, starts: Sequence[int], sizes: Sequence[int]) -> Value:
        """Return a box of a value."""
        if tuple(sizes) == value.shape:
            return value
        if value.elements is not None:
            box = tuple(
                slice(start, start + size) for start, size in zip(starts, sizes, strict=True)
            )
            return self.constant(value.elements[box], value.dtype)
        inputs = (value, self.shape(starts), self.shape(sizes))
        return self.add(Op.SLICE, inputs, value.dtype, sizes)

    def part(self, value: Value, axis: int, start: int, end: int) -> Value:
        """Return a range of an axis."""
        starts, sizes = [0] * value.rank, list(value.shape)
        starts[axis], sizes[axis] = start, end - start
        return self.slice(value, starts, sizes)

    def strided(self, value: Value, axis: int, step: int) -> Value:
        """Return every `step`-th entry of an axis, from the first."""
        size = value.shape[axis]
        if step == 1 or size == 1:
            return self.part(value, axis, 0, 1) if step > 1 else value
        count = -(-size // step)
        pads = [(0, count * step - size if i == axis else 0) for i in range(value.rank)]
        padded = self.pad(value, pads, self.zero(value.dtype))
        before, after = value.shape[:axis], value.shape[axis + 1 :]
        rows = self.reshape(padded, (math.prod(before), count, step, math.prod(after)))
        return self.reshape(self.part(rows, 2, 0, 1), (*before, count, *after))

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Join values along an axis."""
        if len(values) == 1:
            return values[0]
        if len(values) > _MAX_LIST:
            groups = [values[at : at + _MAX_LIST] for at in range(0, len(values), _MAX_LIST)]
            return self.concat([self.concat(group, axis) for group in groups], axis)
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.add(Op.CONCAT, values, values[0].dtype, shape, axis=axis)

    def reverse(self, value: Value, axis: int) -> Value:
        """Reverse the order along an axis."""
        return self.add(Op.REVERSE, (value,), value.dtype, value.shape, axis=axis)

    def reduce(self, op: Op, value: Value, axes: Sequence[int]) -> Value:
        """Reduce axes to size 1."""
        attributes = {"nan_mode": NanPropagationMode.PROPAGATE} if op in _WITH_NAN_MODE else {}

        def along(value: Value, axis: int) -> Value:
            shape = [1 if i == axis else size for i, size in enumerate(value.shape)]
            return self.add(op, (value,), value.dtype, shape, axis=axis, **attributes)

        return reduce(along, sorted(axes), value)

    def gather_rows(self, rows: Value, indices: Value) -> Value:
        """Return rows of [N, K, C] at indices of [N, W], none of which is negative."""
        if rows.dtype is DType.BOOL:
            bytes_ = self.gather_rows(self.cast(rows, DType.INT8), indices)
            return self.cast(bytes_, DType.BOOL)
        shape = (*indices.shape, rows.shape[2])
        return self.add(Op.GATHER, (rows, indices), rows.dtype, shape)

    def gather(self, value: Value, indices: Array, axis: int) -> Value:
        """Return the entries of an axis at constant indices."""
        if value.elements is not None:
            return self.constant(np.take(value.elements, indices, axis), value.dtype)
        before, after = value.shape[:axis], value.shape[axis + 1 :]
        rows = self.reshape(value, (math.prod(before), value.shape[axis], math.prod(after)))
        numbers = np.broadcast_to(indices.ravel().astype(np.int32), (rows.shape[0], indices.size))
        entries = self.gather_rows(rows, self.constant(numbers, DType.INT32))
        return self.reshape(entries, (*before, *indices.shape, *after))

    def matmul(self, one: Value, other: Value, zero_points: Sequence[Value] = ()) -> Value:
        """Multiply [N, H, C] by [N, C, W]; bytes give int32."""
        zeros = zero_points or (self.zero(one.dtype), self.zero(other.dtype))
        dtype = one.dtype if one.dtype in REALS else DType.INT32
        shape = (one.shape[0], one.shape[1], other.shape[2])
        return self.add(Op.MATMUL, (one, other, *zeros), dtype, shape)


_NARROW = frozenset({DType.INT8, DType.INT16})


def boundary_type(element_type: ElementType) -> DType:
    """Return the type of inputs and outputs in a file; unsigned ones have the signed type."""
    return _BOUNDARY.get(element_type, DTYPES[element_type])


def _rounds(one: DType, other: DType) -> bool:
    """Return whether NumPy's conversion differs from TOSA's, which rounds reals to integers."""
    return one in REALS and other not in REALS


def _are_powers_of_2(elements: Array) -> bool:
    """Return whether dividing by reals is multiplying by their reciprocals, without rounding."""
    return bool(np.all(np.frexp(elements.astype(np.float32))[0] == 0.5))
