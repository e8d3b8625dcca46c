"""Constant folding."""

from __future__ import annotations

import numpy as np
import pytest
from tests.modelling import dedented, float32, model_of

from crosschip.ir import (
    Builder,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.ops.standard.arithmetic import Add, Div, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Reshape, Transpose
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.resizing import ResizeNearest
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Sqrt
from crosschip.passes import FoldConstants

fold = FoldConstants()
N = symbol("N")


def test_what_reads_only_constants_becomes_a_constant() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        two = b.add(Add, b.constant(np.float32(1)), b.constant(np.float32(1)))
        return b.add(Mul, x, b.add(Sqrt, b.add(Mul, two, two)))

    model = model_of(make, float32(3))
    assert str(model) == dedented("""
        model model
          input x0: float32[3]
          %add_0 = ADD(input0=1.0, input1=1.0): float32[]
          %mul_0 = MUL(input0=%add_0, input1=%add_0): float32[]
          %sqrt_0 = SQRT(input=%mul_0): float32[]
          %mul_1 = MUL(input0=%x0, input1=%sqrt_0): float32[3]
          output y0 = %mul_1
    """)
    assert str(fold(model)) == dedented("""
        model model
          input x0: float32[3]
          %mul_1 = MUL(input0=%x0, input1=2.0): float32[3]
          output y0 = %mul_1
    """)


def test_what_holds_of_every_size_is_known() -> None:
    """Exporters compare sizes with -1."""

    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Equal, b.add(ShapeOf, x), b.constant(np.array([-1])))

    assert str(fold(model_of(make, float32(N)))) == dedented("""
        model model
          input x0: float32[N]
          %shape_0 = SHAPE(input=%x0): int64[1]
          output y0 = [False]
    """)


def test_a_shape_computed_from_known_sizes_makes_sizes_known() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        rows = b.add(Slice, b.add(ShapeOf, x), (0,), (0,), (1,))
        return b.add(Reshape, x, b.add(Concat, [rows, b.constant(np.array([-1]))], 0))

    model = model_of(make, float32(4, 2, 3))
    assert str(model) == dedented("""
        model model
          input x0: float32[4, 2, 3]
          %shape_0 = SHAPE(input=%x0): int64[3]
          %slice_0 = SLICE(input=%shape_0, axes=[0], starts=[0], ends=[1]): int64[1]
          %concat_0 = CONCAT(parts=[%slice_0, [-1]], axis=0): int64[2]
          %reshape_0 = RESHAPE(input=%x0, shape=%concat_0): float32[4, 6]
          output y0 = %reshape_0
    """)
    assert str(fold(model)) == dedented("""
        model model
          input x0: float32[4, 2, 3]
          %reshape_0 = RESHAPE(input=%x0, shape=[4, -1]): float32[4, 6]
          output y0 = %reshape_0
    """)


def test_numbers_that_follow_from_known_sizes_of_open_shapes_are_known() -> None:
    """A batch is dynamic; the padding of its images to whole windows is static."""

    def make(b: Builder, x: Operand) -> Operand:
        height = b.add(Slice, b.add(ShapeOf, x), (0,), (1,), (2,))
        missing = b.add(
            Mod, b.add(Sub, np.array([4]), b.add(Mod, height, np.array([4]))), np.array([4])
        )
        before = b.constant(np.array([0, 0, 0]))
        return b.add(Pad, x, b.add(Concat, [before, missing], axis=0))

    *_, padding = fold(model_of(make, float32(N, 6))).operations
    pads = padding.inputs[1]
    assert pads is not None
    assert pads.value is not None
    assert pads.value.tolist() == [0, 0, 0, 2]


def test_the_shape_of_what_is_open_stays() -> None:
    model = model_of(lambda b, x: b.add(ShapeOf, x), float32(N, 3))
    assert str(fold(model)) == str(model)


def test_the_shape_of_an_operand_of_known_rank_is_known_though_its_values_are_not() -> None:
    model = model_of(
        lambda b, x: b.add(ShapeOf, x, ElementType.INT32), float32(2, 0, 3), name="empty"
    )
    assert str(fold(model)) == dedented("""
        model empty
          input x0: float32[2, 0, 3]
          output y0 = [2, 0, 3]
    """)


def test_whether_there_are_any_is_no_size() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        rows = b.add(Slice, b.add(ShapeOf, x), (0,), (1,), (2,))
        return b.add(Cast, rows, ElementType.BOOL)

    (found,) = fold(model_of(make, float32(N, 3))).outputs.values()
    assert found.value is not None
    assert found.value.tolist() == [True]


def test_a_size_that_the_element_type_does_not_hold_is_left_to_the_run() -> None:
    size = 2**31
    model = model_of(lambda b, x: b.add(ShapeOf, x, ElementType.INT32), float32(size, 0))
    assert [operation.type for operation in fold(model).operations] == ["SHAPE"]
    model = model_of(lambda b, x: b.add(ShapeOf, x, ElementType.INT64), float32(size, 0))
    (shape,) = fold(model).outputs.values()
    assert shape.value is not None
    assert shape.value.tolist() == [size, 0]


def test_what_would_make_the_model_grow_stays() -> None:
    def make(b: Builder) -> tuple[Operand, ...]:
        one = b.constant(np.float32(1))
        return b.add(Fill, (256, 256), one), b.add(Fill, (256, 257), one)

    model = model_of(make)
    assert str(fold(model)) == dedented("""
        model model
          constant @fill_0: float32[256, 256]
          %fill_1 = FILL(shape=[256, 257], value=1.0): float32[256, 257]
          output y0 = @fill_0
          output y1 = %fill_1
    """)


def test_large_weights_are_folded_if_they_do_not_grow() -> None:
    weights = np.arange(300 * 300, dtype=np.float32).reshape(300, 300)
    model = model_of(lambda b: b.add(Transpose, b.constant(weights, "w"), (1, 0)))
    (constant,) = fold(model).constants
    assert constant.value is not None
    np.testing.assert_array_equal(constant.value, weights.T)


def test_quantized_weights_stay_for_devices_that_compute_on_them() -> None:
    weights = np.array([[-128, 0, 127], [1, 2, 3]], np.int8)
    quantization = Quantization((0.5, 2.0), (0, 1), axis=0)
    model = model_of(lambda b: b.add(Dequantize, b.constant(weights, "w", quantization)))
    assert str(fold(model)) == dedented("""
        model model
          %dequantize_0 = DEQUANTIZE(input=[[-128, 0, 127], [1, 2, 3]]): float32[2, 3]
          output y0 = %dequantize_0
    """)


def test_quantized_parameters_become_what_they_stand_for() -> None:
    def model(b: Builder) -> Operand:
        scales = b.constant(np.array([4, 4], np.int8), "s", Quantization((0.5,), (0,)))
        image = b.input("x", TensorType(ElementType.FLOAT32, (1, 1, 2, 2)))
        return b.add(ResizeNearest, image, scales=b.add(Dequantize, scales))

    (resize,) = fold(model_of(model)).operations
    assert isinstance(resize, ResizeNearest)
    assert resize.scales == (2.0, 2.0)


def test_every_output_of_an_operation_is_folded() -> None:
    model = model_of(lambda b: b.add_all(Split, b.constant(np.arange(3)), 0, (1, 2)))
    assert str(fold(model)) == dedented("""
        model model
          output y0 = [0]
          output y1 = [1, 2]
    """)


def test_what_fails_when_it_runs_is_left_to_fail_then() -> None:
    model = model_of(lambda b: b.add(Gather, b.constant(np.arange(3)), np.array([3])))
    assert str(fold(model)) == str(model)


def test_what_can_never_run_is_refused_once_that_is_known() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Reshape, x, b.add(Add, b.constant(np.array([2])), np.array([2])))

    with pytest.raises(ModelError, match=r"'reshape_0': RESHAPE\.shape: \[4\] does not hold"):
        fold(model_of(make, float32(3)))


def test_a_value_that_overflows_is_folded_without_a_warning() -> None:
    def make(b: Builder) -> tuple[Operand, ...]:
        big = b.constant(np.array([1e38, 0], np.float32))
        zero = b.constant(np.array([0, 0], np.float32))
        return b.add(Mul, big, big), b.add(Div, big, zero), b.add(Cast, big, ElementType.FLOAT16)

    assert str(fold(model_of(make))) == dedented("""
        model model
          output y0 = [inf, 0.0]
          output y1 = [inf, nan]
          output y2 = [inf, 0.0]
    """)


def test_an_expansion_to_many_elements_stays() -> None:
    model = model_of(lambda b: b.add(Expand, b.constant(np.float32(1)), (2**20, 2**20, 2**20)))
    assert [operation.type for operation in fold(model).operations] == ["EXPAND"]
