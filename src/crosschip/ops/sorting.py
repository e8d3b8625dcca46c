"""Operators that find the greatest or least elements, and sums and products up to each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape, unknown
from crosschip.ir.types import FLOATS, INDICES, NUMBERS
from crosschip.ops.bitwise import BitwiseNot
from crosschip.ops.elementwise import Elementwise, Mul
from crosschip.ops.examples import example, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.padding import Pad
from crosschip.ops.shapes import axis_in
from crosschip.ops.slicing import Slice
from crosschip.ops.slots import ComputedParameter, element_type, flag, integer, tensor
from crosschip.ops.unary import Neg

_QUARTER = Quantization((0.25,))
_BYTES = random(3, 8, dtype=ElementType.INT8, low=-128, high=128, quantization=_QUARTER)


def _place(
    find: Callable[..., Any], input: Array, axis: int, keepdim: bool, select_last: bool
) -> Array:
    """Where NumPy finds the first element it looks for along an axis, or the last one."""
    turned = np.flip(input, axis) if select_last else input
    found = find(turned, axis, keepdims=keepdim)
    return np.asarray(input.shape[axis] - 1 - found if select_last else found)


class ArgExtreme(Operator):
    """What ARG_MAX and ARG_MIN share: the axis is removed, or of size 1 with `keepdim`.

    A negative `axis` counts from the last one. An axis of size 0 has no such element: an error.
    The index is an int32 or int64, as `dtype` says.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    axis = integer()
    keepdim = flag(True)
    dtype = element_type(ElementType.INT64)
    select_last = flag(False)
    examples = (
        example(input=random(2, 5, 3), axis=1),
        example(input=random(2, 5, 3), axis=-1, keepdim=False, dtype=ElementType.INT32),
        example(input=random(4, 6, dtype=ElementType.INT32, low=-2, high=2), axis=1),
        example(
            input=random(4, 6, dtype=ElementType.INT32, low=-2, high=2), axis=0, select_last=True
        ),
        example(input=random(4, 6, dtype=ElementType.FLOAT16), axis=-2, keepdim=False),
        example(input=_BYTES, axis=1),
    )

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        _check_index_type("dtype", self.dtype)
        shape = list(shape_of(self.input))
        axis = axis_in(self.axis, len(shape))
        if shape[axis] == 0:
            raise ValueError(f"axis: axis {axis} of the input has no elements")
        shape[axis : axis + 1] = [1] if self.keepdim else []
        return tuple(shape)


@operator(
    "ARG_MAX",
    nnadapter=NNAdapter(5, ("input", "axis", "keepdim", "dtype")),
    nnrt=[
        NNRt(
            *(54, "ARG_MAX", ("input",)),
            {"AXIS": "axis", "KEEPDIMS": "keepdim", "TOP_K": "", "OUT_MAX_VALUE": ""},
            "With TOP_K above 1 it is TOP_K's indices, and with OUT_MAX_VALUE the values: "
            "REDUCE_MAX, or TOP_K's values.",
        )
    ],
    hdi=[NodeType.ARGMAX_FUSION],
    onnx=["ArgMax"],
    core=True,
)
class ArgMax(ArgExtreme):
    """The index of the greatest element along `axis`.

    Of equal elements it is the first one, or the last one with `select_last`. A NaN counts as
    greater than any number.
    """

    __slots__ = ()

    def reference(
        self, input: Array, axis: int, keepdim: bool, dtype: ElementType, select_last: bool
    ) -> Array:
        return _place(np.argmax, input, axis, keepdim, select_last)


@operator(
    "ARG_MIN",
    nnadapter=NNAdapter(6, ("input", "axis", "keepdim", "dtype")),
    onnx=["ArgMin"],
)
class ArgMin(ArgExtreme):
    """The index of the least element along `axis`.

    Of equal elements it is the first one, or the last one with `select_last`. A NaN counts as
    less than any number.
    """

    __slots__ = ()

    def reference(
        self, input: Array, axis: int, keepdim: bool, dtype: ElementType, select_last: bool
    ) -> Array:
        return _place(np.argmin, input, axis, keepdim, select_last)

    def decompose(self, b: Builder) -> Operand:
        # The bitwise complement is an integer's negation, less one, which never overflows.
        reverse = Neg if self.input.type.element_type in FLOATS else BitwiseNot
        parameters = map(self.operand, ("axis", "keepdim", "dtype", "select_last"))
        return b.add(ArgMax, b.add(reverse, self.input), *parameters)


@operator(
    "TOP_K",
    nnadapter=NNAdapter(88),
    nnrt=[
        NNRt(
            *(53, "TOP_K", ("input", "k"), {"AXIS": "axis", "SORTED": ""}),
            "SORTED true finds the greatest, in descending order; its documentation has false "
            "find the greatest in ascending order: a reversal of both outputs follows. The indices "
            "are int32.",
        )
    ],
    hdi=[NodeType.TOPK_FUSION],
    onnx=["TopK"],
    core=True,
)
class TopK(Operator):
    """The `k` greatest elements along `axis`, or the least ones without `largest`, in two outputs.

    1. The elements, the greatest (least) first, in the input's type.
    2. Their indices on the axis, as int32 or int64 (`return_indices_dtype`).

    Of equal elements the one with the lower index comes first. A NaN counts as greater than any
    number. Without `sorted` the caller does not need the order; this one is as good as any, and is
    what the reference gives. A negative `axis` counts from the last one. A `k` that is negative or
    above the axis' size is an error; a `k` of 0 gives empty outputs.
    """

    __slots__ = ()
    moves = True
    input = tensor(NUMBERS)
    k = integer()
    axis = integer(-1)
    largest = flag(True)
    sorted = flag(True)
    return_indices_dtype = element_type(ElementType.INT64)
    examples = (
        example(input=random(3, 7), k=3),
        example(input=random(3, 7, 2), k=2, axis=1, largest=False),
        example(
            input=random(4, 5, dtype=ElementType.INT32, low=-2, high=2),
            **{"k": 4, "axis": -1, "return_indices_dtype": ElementType.INT32},
        ),
        example(input=random(6, 2, dtype=ElementType.INT64, low=-9, high=9), k=1, axis=0),
        example(input=random(2, 8, dtype=ElementType.FLOAT16), k=8, axis=1, largest=False),
        example(input=_BYTES, k=3, axis=1),
    )

    def output_count(self) -> int:
        return 2

    def infer_element_type(self) -> list[ElementType]:
        return [type(self).input.element_type(self.input), self.return_indices_dtype]

    def infer_shape(self) -> list[Shape]:
        _check_index_type("return_indices_dtype", self.return_indices_dtype)
        shape = list(shape_of(self.input))
        axis = axis_in(self.axis, len(shape))
        try:
            _check_count(self.k, shape[axis])
            shape[axis] = self.k
        except ComputedParameter:
            shape[axis] = unknown()
        return [tuple(shape)] * 2

    def reference(
        self,
        input: Array,
        k: int,
        axis: int,
        largest: bool,
        sorted: bool,
        return_indices_dtype: ElementType,
    ) -> tuple[Array, Array]:
        _check_count(k, input.shape[axis])
        # A stable ascending order of what is flipped, flipped back, is a stable descending one.
        order = np.argsort(np.flip(input, axis) if largest else input, axis, kind="stable")
        if largest:
            order = input.shape[axis] - 1 - np.flip(order, axis)
        indices = np.take(order, range(k), axis)
        return np.take_along_axis(input, indices, axis), indices


@operator(
    "CUM_SUM",
    nnadapter=NNAdapter(17),
    onnx=["CumSum"],
    core=True,
)
class CumSum(Elementwise):
    """The sum of the elements up to each one along `axis`: `output[i] = sum(input[0 … i])`.

    With `exclusive` the element itself is left out, so that the first sum is 0; with `reverse`
    sums run from the last element backwards. A negative `axis` counts from the last one. Integers
    wrap around on overflow; a NaN makes every sum NaN that it is in.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    axis = integer(-1)
    exclusive = flag(False)
    reverse = flag(False)
    examples = (
        example(input=random(3, 5)),
        example(input=random(3, 5, 2), axis=1, exclusive=True),
        example(input=random(3, 5), axis=0, reverse=True),
        example(input=random(6), axis=-1, exclusive=True, reverse=True),
        example(input=random(3, 4, dtype=ElementType.INT32, low=-9, high=9), axis=1),
        example(input=_BYTES, axis=1, quantization=Quantization((1.0,))),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        _check_axis(self, len(shape))
        return shape

    def reference(self, input: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
        return _accumulated(np.add, 0, input, axis, exclusive, reverse)


@operator("CUM_PROD", onnx=["CumProd"])
class CumProd(Elementwise):
    """The product of the elements up to each one along `axis`: `output[i] = prod(input[0 … i])`.

    With `exclusive` the element itself is left out, so that the first product is 1; with `reverse`
    products run from the last element backwards. A negative `axis` counts from the last one.
    Integers wrap around on overflow; a NaN makes every product NaN that it is in.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    axis = integer(-1)
    exclusive = flag(False)
    reverse = flag(False)
    examples = (
        example(input=random(3, 5)),
        example(input=random(3, 5, 2), axis=1, exclusive=True),
        example(input=random(3, 5), axis=0, reverse=True),
        example(input=random(6), axis=-1, exclusive=True, reverse=True),
        example(input=random(3, 4, dtype=ElementType.INT32, low=-9, high=9), axis=1),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        _check_axis(self, len(shape))
        return shape

    def reference(self, input: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
        return _accumulated(np.multiply, 1, input, axis, exclusive, reverse)

    def decompose(self, b: Builder) -> Operand | None:
        shape = shape_of(self.input)
        axis = axis_in(self.axis, len(shape))
        size = shape[axis]
        if not isinstance(size, int):
            return None
        value = _flipped(b, self.input, axis) if self.reverse else self.input
        if self.exclusive:
            value = _moved(b, value, axis, min(1, size))
        reach = 1  # how many elements each product is of
        while reach < size:
            value = b.add(Mul, value, _moved(b, value, axis, reach))
            reach *= 2
        return _flipped(b, value, axis) if self.reverse else value


def _check_index_type(slot: str, element_type: ElementType) -> None:
    if element_type not in INDICES:
        raise ValueError(f"{slot}: {element_type} is neither int32 nor int64")


def _check_count(k: int, size: object) -> None:
    if k < 0:
        raise ValueError(f"k: {k} is negative")
    if isinstance(size, int) and k > size:
        raise ValueError(f"k: {k} is more than the axis' {size} elements")


def _check_axis(op: CumSum | CumProd, rank: int) -> None:
    """`ValueError` if there is no such axis; one computed at run time changes no shape."""
    try:
        axis_in(op.axis, rank)
    except ComputedParameter:
        return


def _accumulated(
    function: np.ufunc, neutral: int, input: Array, axis: int, exclusive: bool, reverse: bool
) -> Array:
    """Sums or products up to each element."""
    array = np.flip(input, axis) if reverse else input
    found = function.accumulate(array, axis, dtype=input.dtype)
    if exclusive:
        before = np.full_like(np.take(found, range(min(1, found.shape[axis])), axis), neutral)
        found = np.concatenate([before, np.take(found, range(found.shape[axis] - 1), axis)], axis)
    return np.flip(found, axis) if reverse else found


def _flipped(b: Builder, operand: Operand, axis: int) -> Operand:
    return b.add(Slice, operand, (axis,), (-1,), (-(2**31),), (-1,))


def _moved(b: Builder, operand: Operand, axis: int, count: int) -> Operand:
    """The elements `count` places further along the axis, and 1 in the places left."""
    pads = [0] * (2 * len(shape_of(operand)))
    pads[2 * axis : 2 * axis + 2] = [count, -count]
    one = b.constant(np.ones((), operand.type.element_type.dtype))
    return b.add(Pad, operand, pads, value=one)
