"""Products with constants of few bits on OpenVINO, computed on integers, compared with NumPy."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tests.limits import lacks_avx512

import crosschip
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    Model,
    Operand,
    TensorType,
    symbol,
)
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.integers import Conv2DInteger, MatMulInteger
from crosschip.ops.standard.matrix import MatMulNBits
from crosschip.ops.standard.quantization import DynamicQuantize

pytestmark = pytest.mark.slow

BYTES: list[Any] = [np.int8, np.uint8]


def drawn(random: np.random.Generator, dtype: Any, *shape: int) -> Array:
    """Return random bytes with frequent extremes."""
    limits = np.iinfo(dtype)
    spread = random.integers(limits.min, limits.max, shape, np.int64, endpoint=True)
    ends = random.choice([limits.min, limits.max], shape)
    return np.where(random.random(shape) < 0.3, ends, spread).astype(dtype)


def run(model: Model, inputs: dict[str, Array]) -> Array:
    with crosschip.compile(model, ["openvino"], cache=False) as compiled:
        return np.asarray(compiled.run(inputs)["y"])


@pytest.mark.parametrize("seed", range(16))
def test_matrix_products(seed: int) -> None:
    """Also with more terms than float32 adds exactly, and a dynamic number of rows."""
    random = np.random.default_rng(seed)
    x_type, y_type = (BYTES[random.integers(2)] for _ in range(2))
    terms, columns = int(random.choice([1, 7, 300, 5000])), int(random.integers(1, 6))
    x, y = drawn(random, x_type, 2, 3, terms), drawn(random, y_type, terms, columns)
    x_zero = drawn(random, x_type, *[(), (1,), (3, 1)][random.integers(3)])
    y_zero = drawn(random, y_type, *[(), (columns,)][random.integers(2)])
    b = Builder()
    shape = (symbol("N"), 3, terms) if random.random() < 0.5 else (2, 3, terms)
    given = b.input("x", TensorType(ElementType.of(np.dtype(x_type)), shape))
    inputs, expected = {"x": x}, x.astype(np.int64)
    zeros: list[Operand | None] = [None, None]
    if random.random() < 0.7:
        zeros[0] = b.input("z", TensorType(given.type.element_type, x_zero.shape))
        inputs["z"] = x_zero
        expected = expected - x_zero
    weights = y.astype(np.int64)
    if random.random() < 0.5:
        zeros[1] = b.constant(y_zero)
        weights = weights - y_zero
    b.output("y", b.add(MatMulInteger, given, b.constant(y), *zeros))
    np.testing.assert_array_equal(run(b.build(), inputs), expected @ weights)


@pytest.mark.parametrize("seed", range(3))
def test_products_of_computed_matrices_over_an_open_axis(seed: int) -> None:
    random = np.random.default_rng(seed)
    dtypes, (n, s) = random.choice(BYTES, 2), (symbol("N"), symbol("S"))
    types = [ElementType.of(np.dtype(dtype)) for dtype in dtypes]
    b = Builder()
    x = b.input("x", TensorType(types[0], (n, 3, s)))
    y = b.input("y", TensorType(types[1], (n, s, 5)))
    zeros = drawn(random, dtypes[0], 3, 1), drawn(random, dtypes[1], 5)
    given = [b.constant(zero) if random.random() < 0.7 else None for zero in zeros]
    b.output("z", b.add(MatMulInteger, x, y, *given))
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        for size in (1, 700, 2**16):
            arrays = drawn(random, dtypes[0], 2, 3, size), drawn(random, dtypes[1], 2, size, 5)
            wide = [array.astype(np.int64) for array in arrays]
            for index, (operand, zero) in enumerate(zip(given, zeros, strict=True)):
                if operand is not None:
                    wide[index] -= zero
            expected = np.matmul(*wide).astype(np.int32)
            np.testing.assert_array_equal(
                compiled.run(dict(zip("xy", arrays, strict=True)))["z"], expected
            )
        long = np.zeros((1, 3, 65537), dtypes[0]), np.zeros((1, 65537, 5), dtypes[1])
        with pytest.raises(DeviceError, match="more than 65536 products to add up"):
            compiled.run(dict(zip("xy", long, strict=True)))


@pytest.mark.parametrize("seed", range(16))
def test_convolutions(seed: int) -> None:
    random = np.random.default_rng(seed)
    image_type, filter_type = (BYTES[random.integers(2)] for _ in range(2))
    group, into, out = int(random.choice([1, 1, 2])), int(random.choice([1, 3, 600])), 2
    kernel, strides, dilations = (random.integers(1, 4, 2).tolist() for _ in range(3))
    pads = random.integers(0, 3, 4).tolist()
    padding = random.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if padding in ("SAME_UPPER", "SAME_LOWER"):
        dilations = [1, 1]  # ONNX's evaluator takes no others
    image = drawn(random, image_type, 2, group * into, 8, 9)
    filter = drawn(random, filter_type, group * out, into, *kernel)
    zero = drawn(random, image_type)
    b = Builder()
    given = b.input("x", TensorType(ElementType.of(np.dtype(image_type)), image.shape))
    inputs, reals = {"x": image}, image.astype(np.float64)
    if random.random() < 0.7:
        inputs["z"], reals = zero, reals - zero
    zero_point = b.input("z", TensorType(given.type.element_type, ())) if "z" in inputs else None
    kind = AutoPad[{"NOTSET": "NONE", "SAME_UPPER": "SAME"}.get(padding, padding)]
    made = b.add(
        Conv2DInteger,
        *(given, b.constant(filter), zero_point),
        auto_pad=kind,
        pads=(pads[0], pads[2], pads[1], pads[3]) if padding == "NOTSET" else (0, 0, 0, 0),
        strides=strides,
        dilations=dilations,
        group=group,
    )
    b.output("y", made)
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": group}
    attributes |= {"pads": pads} if padding == "NOTSET" else {"auto_pad": padding}
    node = helper.make_node("Conv", ["a", "b"], ["y"], **attributes)
    feeds = {"a": reals, "b": filter.astype(np.float64)}
    (expected,) = ReferenceEvaluator(node).run(None, feeds)
    np.testing.assert_array_equal(run(b.build(), inputs), expected)


def test_integers_between_operations() -> None:
    """A dynamically quantized layer: quantize, multiply, dequantize."""
    random = np.random.default_rng(5)
    reals = random.normal(size=(4, 40)).astype(np.float32)
    weights = drawn(random, np.int8, 40, 6)
    b = Builder()
    given = b.input("x", TensorType(ElementType.FLOAT32, (4, 40)))
    integers, scale, zero_point = b.add_all(DynamicQuantize, given)
    sums = b.add(MatMulInteger, integers, b.constant(weights), zero_point)
    b.output("y", b.add(Cast, sums, ElementType.FLOAT32))
    b.output("scale", scale)
    low, high = min(0, reals.min()), max(0, reals.max())
    step = np.float32((high - low) / np.float32(255))
    shift = np.rint(-low / step)
    steps = np.clip(np.rint(reals / step) + shift, 0, 255) - shift
    np.testing.assert_array_equal(run(b.build(), {"x": reals}), steps @ weights.astype(np.float32))


@pytest.mark.parametrize(("level", "tolerance"), [(0, 1e-5), (4, 2e-2)])
def test_weights_of_few_bits(level: int, tolerance: float) -> None:
    """The other factor is quantized only if the model allows it."""
    random = np.random.default_rng(2)
    reals = random.normal(size=(3, 128)).astype(np.float32)
    integers = random.integers(0, 16, (64, 4, 32))
    packed = (integers[..., ::2] | integers[..., 1::2] << 4).astype(np.uint8)
    scale = random.uniform(0.1, 0.2, (64, 4)).astype(np.float32)
    b = Builder()
    given = b.input("x", TensorType(ElementType.FLOAT32, (3, 128)))
    weight = b.constant(packed), b.constant(scale)
    b.output("y", b.add(MatMulNBits, given, *weight, size=128, block_size=32, accuracy_level=level))
    expected = reals @ ((integers - 8) * scale[..., None]).reshape(64, 128).T
    # With fewer instruction sets oneDNN may have no such product, or one in float32.
    with suppress(DeviceError) if lacks_avx512() else nullcontext():
        difference = np.abs(run(b.build(), {"x": reals}) - expected).max()
        assert difference <= tolerance * np.abs(expected).max()
        rounds = difference > 1e-4 * np.abs(expected).max()
        assert level == 0 or rounds or lacks_avx512(), "as quick as OpenVINO itself, which rounds"
