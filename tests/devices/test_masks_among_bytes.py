"""Masks in quantized models, which OpenVINO's passes for bytes must not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.modelling import float32

import crosschip
from crosschip.ir import Builder, Dim, ElementType, Model, Operand, TensorType, symbol
from crosschip.ops.standard.activation import Softmax
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.integers import MatMulInteger
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.quantization import Dequantize, DynamicQuantize, Quantize, Reinterpret

pytestmark = pytest.mark.slow

LEAST = np.finfo(np.float32).min
N = symbol("N")


def products(b: Builder) -> Operand:
    """Return products of bytes, by which OpenVINO treats the model as quantized."""
    steps, _, zero = b.add_all(DynamicQuantize, b.input("x", float32(N, 4)))
    made = b.add(MatMulInteger, steps, b.constant(np.ones((4, 4), np.int8)), zero)
    return b.add(Cast, made, ElementType.FLOAT32)


def run(model: Model, **inputs: Any) -> np.ndarray[Any, Any]:
    with crosschip.compile(model, ["openvino"], cache=False) as compiled:
        return np.asarray(compiled.run({"x": np.ones((2, 4), np.float32), **inputs})["y"])


def test_a_mask_of_flags_times_the_least_number() -> None:
    b = Builder("mask")
    b.output("products", products(b))
    flags = b.input("flags", TensorType(ElementType.BOOL, (N, 4)))
    mask = b.add(Mul, b.add(Cast, flags, ElementType.FLOAT32), np.array(LEAST))
    masked = b.add(Add, mask, b.input("z", float32(N, 4)))
    b.output("y", b.add(Cast, b.add(Equal, masked, np.array(0.0, np.float32)), ElementType.FLOAT32))
    given = np.array([[0, 1, 1, 0], [1, 0, 1, 0]], np.bool_)
    z = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(run(b.build(), flags=given, z=z), given * LEAST + z == 0)


def test_a_mask_added_to_a_quantized_table() -> None:
    """As in T5: a quantized bias by position, plus a mask."""
    b = Builder("bias")
    table = np.array([[130, 7, 90, 1], [0, 255, 12, 2]], np.uint8)
    places = b.input("places", TensorType(ElementType.INT32, (N,)))
    rows = b.add(Gather, b.constant(table), places, 0)
    bias = b.add(Dequantize, b.add(Reinterpret, rows, scale=[0.197], zero_point=[127]))
    masked = b.add(Add, bias, b.input("mask", float32(N, 4)))
    b.output("y", b.add(Add, products(b), masked))
    mask = np.array([[0, LEAST, 0, 0], [0, 0, LEAST, 0]], np.float32)
    reals = (table.astype(np.float32) - 127) * np.float32(0.197)
    found = run(b.build(), places=np.array([1, 0], np.int32), mask=mask)
    np.testing.assert_allclose(found, 4 * 255 + (reals[::-1] + mask), rtol=1e-6)


@pytest.mark.parametrize("rows", [4, N], ids=["fixed", "open"])
@pytest.mark.parametrize("dtype", [ElementType.UINT8, ElementType.INT8], ids=str)
def test_a_row_that_is_masked_altogether(dtype: ElementType, rows: Dim) -> None:
    """Its softmax is NaN, which quantizes to the least integer, as in ONNX Runtime."""
    b = Builder("rows")
    kept = b.input("kept", TensorType(ElementType.BOOL, (rows, rows)))
    masked = b.add(Where, kept, b.input("x", float32(rows, rows)), np.array(-np.inf, np.float32))
    zero_point = int(dtype is ElementType.UINT8)
    steps = b.add(
        Quantize, b.add(Softmax, masked), scale=[1 / 64], zero_point=[zero_point], dtype=dtype
    )
    b.output("y", b.add(Mul, b.add(Dequantize, steps), np.array(2.0, np.float32)))
    given = np.array([[0, 0, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]], np.bool_)
    shares = run(b.build(), kept=given, x=np.ones((4, 4), np.float32))
    least = -2.0 if dtype is ElementType.INT8 else -1 / 64
    expected = [[least] * 4, [0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25] * 4]
    np.testing.assert_array_equal(shares / 2, expected)
