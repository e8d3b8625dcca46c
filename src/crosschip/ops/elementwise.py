"""Element by element arithmetic on two tensors or more.

Where a tensor is quantized, what is said of reals holds: see `crosschip.ops.quantized`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape
from crosschip.ir.types import ALL_TYPES, NUMBERS
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.operator import Operator, operator, operator_named, shape_of
from crosschip.ops.quantized import limits
from crosschip.ops.shapes import broadcast
from crosschip.ops.slots import Fuse, Parameter, fuse, tensor, tensors

PROMOTED = "operands of two types become the wider of them"
FUSED = f"the activation is an OH_NN_FuseType, where RELU6 is 2; {PROMOTED}"


def number(value: float, like: Operand) -> Array:
    """One number of the element type of an operand; of unsigned integers, -1 is the greatest."""
    return np.array(value).astype(like.type.element_type.dtype)


class Elementwise(Operator):
    """Base of operators whose output has the shape and element type of their first input."""

    __slots__ = ()

    def infer_shape(self) -> Shape:
        return shape_of(self._first())


class Broadcast(Operator):
    """Base of operators on two tensors of one element type, broadcast as NumPy does.

    Shapes are aligned at their last axes; an axis of size 1, or one that is missing, is repeated.
    """

    __slots__ = ()
    input0 = tensor(NUMBERS)
    input1 = tensor(NUMBERS, like="input0")

    def infer_shape(self) -> Shape:
        return broadcast(shape_of(self.input0), shape_of(self.input1))


class Binary(Broadcast):
    """Base of arithmetic on two tensors; the activation `fuse_code` is applied to the result."""

    __slots__ = ()
    fuse_code = fuse()


INT8, UINT8, INT16 = ElementType.INT8, ElementType.UINT8, ElementType.INT16
INT32, INT64, FLOAT16 = ElementType.INT32, ElementType.INT64, ElementType.FLOAT16

FLOAT_PAIRS = (
    example(input0=random(2, 3), input1=random(2, 3)),
    example(input0=random(2, 1, 4), input1=random(3, 1)),
    example(input0=random(3, dtype=FLOAT16), input1=random(dtype=FLOAT16), fuse_code=Fuse.RELU6),
)
INTEGER_PAIRS = (
    example(
        input0=random(9, dtype=INT32, low=-99, high=99),
        input1=random(9, dtype=INT32, low=-9, high=9),
    ),
    example(input0=given(np.array([3, 250], np.uint8)), input1=given(np.array([5, 9], np.uint8))),
)
QUANTIZED_PAIRS = (
    example(
        input0=random(2, 3, dtype=INT8, low=-128, high=128, quantization=Quantization((0.05,))),
        input1=random(3, dtype=INT8, low=1, high=128, quantization=Quantization((0.02,))),
        fuse_code=Fuse.RELU,
        quantization=Quantization((0.1,)),
    ),
    example(
        input0=random(2, 3, dtype=UINT8, high=256, quantization=Quantization((0.05,), (120,))),
        input1=random(2, 3, dtype=UINT8, low=4, high=256, quantization=Quantization((0.02,), (3,))),
        quantization=Quantization((0.1,), (128,)),
    ),
)


@operator(
    "ADD",
    nnadapter=NNAdapter(3),
    nnrt=(
        NNRt(1, "ADD", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode SUM (1) is this operator"),
    ),
    hdi=(NodeType.ADD_FUSION, NodeType.ELTWISE),
    onnx=("Add",),
    core=True,
)
class Add(Binary):
    """`output = input0 + input1`, the two broadcast to one shape as NumPy does.

    Integers wrap around on overflow.
    """

    __slots__ = ()
    examples = (
        *FLOAT_PAIRS,
        *INTEGER_PAIRS,
        *QUANTIZED_PAIRS,
        example(
            input0=random(4, dtype=INT16, low=-999, high=999, quantization=Quantization((0.01,))),
            input1=random(4, dtype=INT16, low=-999, high=999, quantization=Quantization((0.02,))),
            quantization=Quantization((0.002,)),
        ),
    )

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.add(input0, input1)


@operator(
    "SUB",
    nnadapter=NNAdapter(83),
    nnrt=(NNRt(38, "SUB", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),),
    hdi=(NodeType.SUB_FUSION,),
    onnx=("Sub",),
    core=True,
)
class Sub(Binary):
    """`output = input0 - input1`, the two broadcast to one shape as NumPy does.

    Integers wrap around on overflow.
    """

    __slots__ = ()
    examples = (*FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.subtract(input0, input1)


@operator(
    "MUL",
    nnadapter=NNAdapter(52),
    nnrt=(
        NNRt(22, "MUL", ("input0", "input1"), {"ACTIVATION_TYPE": "fuse_code"}, FUSED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode PROD (0) is this operator"),
    ),
    hdi=(NodeType.MUL_FUSION, NodeType.ELTWISE),
    onnx=("Mul",),
    core=True,
)
class Mul(Binary):
    """`output = input0 * input1`, the two broadcast to one shape as NumPy does.

    Integers wrap around on overflow.
    """

    __slots__ = ()
    examples = (*FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.multiply(input0, input1)


@operator(
    "DIV",
    nnadapter=NNAdapter(20),
    nnrt=(NNRt(11, "DIV", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),),
    hdi=(NodeType.DIV_FUSION,),
    onnx=("Div",),
    core=True,
)
class Div(Binary):
    """`output = input0 / input1`, the two broadcast to one shape as NumPy does.

    Reals follow IEEE 754: by 0, they give an infinity, and 0 by 0 NaN. Integers are divided
    towards zero; by 0 they give 0, and the least integer by -1 gives itself.
    """

    __slots__ = ()
    examples = (
        *FLOAT_PAIRS,
        *INTEGER_PAIRS,
        *QUANTIZED_PAIRS,
        example(input0=given([7, -7, 0]), input1=np.array([2, 2, 3])),
    )

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind not in "iu":
            return np.divide(input0, input1)
        safe = np.where(input1 == 0, 1, input1)
        quotient = np.floor_divide(input0, safe)
        inexact = quotient * safe != input0
        towards_zero = quotient + (inexact & ((input0 < 0) != (safe < 0)))
        return np.where(input1 == 0, 0, towards_zero)


@operator(
    "POW",
    nnadapter=NNAdapter(57),
    nnrt=(
        NNRt(
            *(25, "POW", ("input0", "input1"), {"SCALE": "", "SHIFT": ""}),
            f"the base is scale * input + shift; {PROMOTED}",
        ),
    ),
    hdi=(NodeType.POW_FUSION,),
    onnx=("Pow",),
    core=True,
)
class Pow(Binary):
    """`output = input0 ** input1`, the two broadcast to one shape as NumPy does.

    Reals follow IEEE 754's `pow`: a negative base to a fractional power is NaN, anything to the
    power 0 is 1. Integers wrap around on overflow; to a negative power the result is truncated
    towards zero, which leaves 0 but for the bases 1 and -1.
    """

    __slots__ = ()
    examples = (
        example(input0=random(2, 1, 4, low=0.1), input1=random(3, 1)),
        example(input0=random(5), input1=2.0, fuse_code=Fuse.RELU1),
        example(input0=given([2, -3, 7, 0, -1, 5]), input1=given([10, 3, 0, 0, -3, -1])),
        *QUANTIZED_PAIRS[1:],
    )

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind not in "iu":
            return np.power(input0, input1)
        inverse = np.where(np.abs(input0) == 1, input0 ** (np.abs(input1) % 2), 0)
        return np.where(input1 < 0, inverse, np.power(input0, np.maximum(input1, 0)))


@operator(
    "MAX",
    nnadapter=NNAdapter(48),
    nnrt=(
        NNRt(20, "MAXIMUM", ("input0", "input1"), translation=PROMOTED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode MAX (2) is this operator"),
    ),
    hdi=(NodeType.MAXIMUM, NodeType.ELTWISE),
    onnx=("Max",),
    core=True,
)
class Max(Binary):
    """`output = max(input0, input1)`, the two broadcast to one shape as NumPy does.

    NaN if either is NaN; which zero is the greater one is open.
    """

    __slots__ = ()
    examples = (*FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.maximum(input0, input1)


@operator(
    "MIN",
    nnadapter=NNAdapter(51),
    nnrt=(NNRt(97, "MINIMUM", ("input0", "input1"), translation=PROMOTED),),
    onnx=("Min",),
    core=True,
)
class Min(Binary):
    """`output = min(input0, input1)`, the two broadcast to one shape as NumPy does.

    NaN if either is NaN; which zero is the lesser one is open.
    """

    __slots__ = ()
    examples = (*FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.minimum(input0, input1)


@operator(
    "SQUARED_DIFFERENCE",
    nnrt=(NNRt(34, "SQUARED_DIFFERENCE", ("input0", "input1"), translation=PROMOTED),),
    hdi=(NodeType.SQUARED_DIFFERENCE,),
)
class SquaredDifference(Broadcast):
    """`output = (input0 - input1) ** 2`, the two broadcast to one shape as NumPy does.

    Integers wrap around on overflow.
    """

    __slots__ = ()
    examples = (*(dict(e) for e in FLOAT_PAIRS[:2]), *INTEGER_PAIRS)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.square(np.subtract(input0, input1))

    def decompose(self, b: Builder) -> Operand:
        difference = b.add(Sub, self.input0, self.input1)
        return b.add(Mul, difference, difference)


@operator("SUM", nnadapter=NNAdapter(84), onnx=("Sum",))
class Sum(Operator):
    """The sum of one or more tensors of one element type, broadcast as NumPy does.

    Tensors are added from the first to the last, each sum rounded to the element type (that of
    narrow types: float32, and quantized ones: float64). Integers wrap around on overflow.
    """

    __slots__ = ()
    terms = tensors(NUMBERS)
    examples = (
        example(terms=[random(2, 3), random(3), random(2, 1)]),
        example(terms=[random(4)]),
        example(terms=[random(2, dtype=INT64, low=-9, high=9) for _ in range(2)]),
        example(
            terms=[
                random(3, dtype=INT8, low=-128, high=128, quantization=Quantization((scale,)))
                for scale in (0.1, 0.2)
            ],
            quantization=Quantization((0.3,)),
        ),
    )

    def infer_shape(self) -> Shape:
        return broadcast(*map(shape_of, self.terms), slot="terms")

    def reference(self, terms: Sequence[Array]) -> Array:
        return reduce(np.add, terms)

    def decompose(self, b: Builder) -> Operand:
        first, *others = self.terms
        if not others:
            return b.add(Assign, first)
        return reduce(lambda total, term: b.add(Add, total, term), others, first)


def _limit(default: float) -> Parameter[float]:
    """A bound: one number of any type, so that integers are exact; refused if NaN."""

    def decode(array: Array) -> float:
        number: float = array.item()
        if number != number:
            raise ValueError("NaN bounds nothing")
        return number

    return Parameter(NUMBERS, decode, default, kind="number", optional=True)


@operator(
    "CLIP",
    nnadapter=NNAdapter(12, translation="bounds have the type of the input, quantized ones too"),
    nnrt=(NNRt(76, "CLIP", parameters={"MIN": "min", "MAX": "max"}),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Clip",),
)
class Clip(Elementwise):
    """`output = min(max(input, min), max)`; NaN stays NaN.

    The upper bound wins where it is below the lower one. Bounds of any type become one of the
    input's: rounded for reals; for integers truncated towards zero and limited to what the type
    holds. A bound that is NaN is refused.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    min = _limit(-np.inf)
    max = _limit(np.inf)
    examples = (
        example(input=random(2, 3), min=-0.5, max=0.5),
        example(input=random(2, 3), min=1.0, max=-1.0),
        example(input=random(4), max=given(np.array([1.0], np.float32))),
        example(input=random(5, dtype=INT32, low=-9, high=9), min=-2.5, max=3),
        example(input=given([-(2**62) - 1, 2**62 + 3, 5]), min=-(2**62), max=2**62 + 1),
        example(input=random(5, dtype=UINT8, high=256), min=-1, max=200.5),
        example(
            input=random(5, dtype=INT8, low=-128, high=128, quantization=Quantization((0.1,))),
            min=-1.0,
            quantization=Quantization((0.1,)),
        ),
    )

    def reference(self, input: Array, min: float, max: float) -> Array:
        low, high = (_bound(number, input.dtype) for number in (min, max))
        return np.minimum(np.maximum(input, low), high)

    def decompose(self, b: Builder) -> Operand:
        low, high = self._operand_of(b, "min"), self._operand_of(b, "max")
        raised = b.add(Max, self.input, low) if low else self.input
        if high:
            return b.add(Min, raised, high)
        return raised if low else b.add(Assign, raised)

    def _operand_of(self, b: Builder, slot: str) -> Operand | None:
        """A bound as a scalar of the input's element type; `None` if there is none."""
        bound, own = self.operand(slot), self.input.type.element_type
        if bound is not None and bound.value is None and bound.type.element_type is own:
            return b.add(operator_named("RESHAPE"), bound, ())
        number: float = getattr(self, slot)
        return None if np.isinf(number) else b.constant(_bound(number, own.dtype))


def _bound(number: float, dtype: np.dtype) -> Array:
    """A bound as one of the elements that it bounds."""
    if dtype.kind in "iu":
        low, high = limits(ElementType.of(dtype))
        number = low if number <= low else high if number >= high else int(number)
    with np.errstate(over="ignore"):
        return np.asarray(number).astype(dtype)


@operator("ASSIGN", nnadapter=NNAdapter(7), hdi=(NodeType.ACTIVATION,), onnx=("Identity",))
class Assign(Elementwise):
    """`output = input`, bit by bit, for any element type and shape."""

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    examples = (
        example(input=random(2, 0, 3)),
        example(input=random(dtype=ElementType.BOOL)),
        example(input=random(3, dtype=INT8, low=-9, high=9, quantization=Quantization((0.1,)))),
    )

    def reference(self, input: Array) -> Array:
        return input

    def decompose(self, b: Builder) -> Operand:
        shape = b.add(operator_named("SHAPE"), self.input)
        return b.add(operator_named("RESHAPE"), self.input, shape)
