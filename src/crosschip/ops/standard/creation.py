"""Operators that create a tensor from a description, or describe a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape, unknown
from crosschip.ir.dimension import ceil_div, minimum
from crosschip.ir.types import ALL_TYPES, INDICES, NUMBERS, ElementType
from crosschip.ops.definition.kinds import Layout, shape_parameter
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of, shape_value_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import fail_if
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.definition.slots import index_type, integer, integers, tensor
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where


@operator("SHAPE", core=True)
class ShapeOf(Layout):
    """The input's shape, as a list of integers of type `dtype` (int64 or int32)."""

    __slots__ = ()
    dtype = index_type(ElementType.INT64)

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        shape = self.input.type.shape
        return (unknown() if shape is None else len(shape),)

    def infer_shape_value(self) -> Shape:
        return shape_of(self.input)

    def reference(self, input: Array) -> Array:
        return np.array(input.shape, self.dtype.dtype)


@operator("RANK")
class Rank(Layout):
    """The rank of the input, as an int32 scalar."""

    __slots__ = ()

    def infer_element_type(self) -> ElementType:
        return ElementType.INT32

    def infer_shape(self) -> Shape:
        return ()

    def infer_shape_value(self) -> Shape:
        return (len(shape_of(self.input)),)

    def reference(self, input: Array) -> Array:
        return np.array(input.ndim, np.int32)

    def decompose(self, b: Builder) -> Operand:
        shape = b.add(ShapeOf, self.input, ElementType.INT32)
        return b.add(Reshape, b.add(ShapeOf, shape, ElementType.INT32), ())


@operator("FILL", core=True)
class Fill(Operator):
    """A tensor of the given shape in which all elements are `value`, a tensor of one element.

    A size of 0 gives an empty tensor, an empty shape a scalar. A negative size is an error.
    """

    __slots__ = ()
    moves = True
    shape = integers()
    value = tensor(ALL_TYPES)

    def infer_element_type(self) -> ElementType:
        return type(self).value.element_type(self.value)

    def infer_shape(self) -> Shape:
        check_single("value", self.value)
        sizes = tuple(shape_parameter(self, "shape"))
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise ValueError(f"shape: {list(sizes)} has a negative size")
        return sizes

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_of(self.value) * math.prod(self.shape)

    def reference(self, value: Array) -> Array:
        return np.full(self.shape, value.reshape(()), value.dtype)


@operator("FILL_LIKE")
class FillLike(Operator):
    """A tensor of the input's shape in which all elements are `value`, one element of any type.

    Only the input's shape is used.
    """

    __slots__ = ()
    input = tensor(ALL_TYPES)
    value = tensor(ALL_TYPES)

    def infer_element_type(self) -> ElementType:
        return type(self).value.element_type(self.value)

    def infer_shape(self) -> Shape:
        check_single("value", self.value)
        return shape_of(self.input)

    def reference(self, input: Array, value: Array) -> Array:
        return np.full(input.shape, value.reshape(()), value.dtype)

    def decompose(self, b: Builder) -> Operand:
        shape = self.input.type.static_shape
        sizes = b.add(ShapeOf, self.input) if shape is None else shape
        return b.add(Fill, sizes, self.value)


@operator("RANGE", core=True)
class Range(Operator):
    """`start`, `start + step`, `start + 2 * step`, … up to but excluding `end`.

    There are `max(0, ceil((end - start) / step))` elements: exact for integers, computed in float64
    for floats. Element `i` is `start + i * step`; for floats, in float64 and rounded once. Each
    input has one element. A step of 0, an infinity or NaN is an error.
    """

    __slots__ = ()
    start = tensor(NUMBERS)
    end = tensor(NUMBERS, like="start")
    step = tensor(NUMBERS, like="start")

    def infer_shape(self) -> Shape:
        parts = (self.start, self.end, self.step)
        for slot, part in zip(("start", "end", "step"), parts, strict=True):
            check_single(slot, part)
        # The elements of a quantized operand are not its values.
        plain = [part for part in parts if part.type.quantization is None]
        values = [part.value for part in plain if part.value is not None]
        if len(values) == len(parts):
            return (_count(*(value.item() for value in values)),)
        return (self._named_count(),)

    def _named_count(self) -> Dim:
        """Return the number of elements if it follows from sizes and the range is ascending."""
        if self.start.type.element_type not in INDICES:
            return unknown()
        try:
            (start,), (end,), (step,) = map(shape_value_of, (self.start, self.end, self.step))
        except UnknownRank:
            return unknown()
        if not isinstance(step, int) or step < 1:
            return unknown()
        return ceil_div(end - start - minimum(end - start, 0), step)

    def infer_shape_value(self) -> Sequence[Dim]:
        (start,), (end,), (step,) = map(shape_value_of, (self.start, self.end, self.step))
        bounds = [size for size in (start, end, step) if isinstance(size, int)]
        if len(bounds) < 3:
            raise UnknownRank
        return range(*bounds)

    def reference(self, start: Array, end: Array, step: Array) -> Array:
        first, last, by = start.item(), end.item(), step.item()
        numbers = np.arange(_count(first, last, by))
        if start.dtype.kind in "iu":
            # All elements are in the type's range, so intermediate overflow is harmless.
            return start.reshape(1) + numbers.astype(start.dtype) * step.reshape(1)
        return np.float64(first) + numbers * np.float64(by)


def _count(start: float, end: float, step: float) -> int:
    if not all(map(math.isfinite, (start, end, step))):
        raise ValueError(f"start: {start} to {end} by {step} never ends")
    if step == 0:
        raise ValueError("step: must not be 0")
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return max(0, -((start - end) // step))
    return max(0, math.ceil((end - start) / step))


def check_single(slot: str, operand: Operand) -> None:
    """Raise ValueError unless an operand may have exactly one element."""
    shape = operand.type.static_shape
    if shape is not None and math.prod(shape) != 1:
        raise ValueError(f"{slot}: takes one element, not a tensor of {operand.type}")


@operator("ONE_HOT")
class OneHot(Operator):
    """For each index, `depth` elements: `on_value` at the index, `off_value` at all others.

    The elements are along a new output axis `axis`; a negative one counts from the output's end. A
    negative index counts from the end of the list. An index out of `[-depth, depth)` gives
    `off_value` everywhere. Fractional indices are truncated. The two values have one element each,
    in the output's element type. Source: ONNX's OneHot.
    """

    __slots__ = ()
    indices = tensor(NUMBERS)
    depth = integer()
    on_value = tensor(ALL_TYPES)
    off_value = tensor(ALL_TYPES, like="on_value")
    axis = integer(-1)

    def infer_element_type(self) -> ElementType:
        return type(self).on_value.element_type(self.on_value)

    def infer_shape(self) -> Shape:
        check_single("on_value", self.on_value)
        check_single("off_value", self.off_value)
        sizes = list(shape_of(self.indices))
        (depth,) = shape_parameter(self, "depth")
        if isinstance(depth, int) and depth < 0:
            raise ValueError(f"depth: {depth} is negative")
        sizes.insert(normalize_axis(self.axis, len(sizes) + 1), depth)
        return tuple(sizes)

    def reference(self, indices: Array, on_value: Array, off_value: Array) -> Array:
        truncated = np.trunc(indices).astype(np.int64)
        positions = np.where(truncated < 0, truncated + self.depth, truncated)
        hot = np.moveaxis(positions[..., None] == np.arange(self.depth), -1, self.axis)
        return np.where(hot, on_value.reshape(()), off_value.reshape(()))

    def decompose(self, b: Builder) -> Operand:
        rank = len(shape_of(self.indices)) + 1
        axis = normalize_axis(self.axis, rank)
        indices = b.add(Cast, self.indices, ElementType.INT64)
        zero, one = b.constant(np.array(0)), b.constant(np.array(1))
        depth_operand = self.operand("depth")
        depth = b.add(Cast, depth_operand, ElementType.INT64)
        if depth_operand is not None and not depth_operand.is_constant:
            depth = fail_if(b, b.add(Less, depth, zero), depth)
        from_end = b.add(Less, indices, zero)
        positions = b.add(Where, from_end, b.add(Add, indices, b.add(Reshape, depth, ())), indices)
        line = b.add(Range, zero, depth, one)
        numbers = b.add(Reshape, line, [-1 if i == axis else 1 for i in range(rank)])
        hot = b.add(Equal, b.add(Unsqueeze, positions, (axis,)), numbers)
        on, off = (b.add(Reshape, value, ()) for value in (self.on_value, self.off_value))
        return b.add(Where, hot, on, off)
