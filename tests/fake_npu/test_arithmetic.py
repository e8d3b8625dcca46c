"""What the chip computes, against exact rational arithmetic and the formulas of real numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_npu.graphs import Array, ran

from fake_npu_ddk import Chip, DataType, Graph, Operator, Settings, Tensor, compile
from fake_npu_ddk.machine.fixed_point import FixedPoint

SCALES = st.floats(2**-12, 2**6)
ZEROS = st.integers(0, 255)


@given(st.floats(2**-40, 2**25), st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_fixed_point_is_within_half_a_step(real: float, integers: list[int]) -> None:
    made = FixedPoint.of(real).scaled(np.array(integers))
    for one, integer in zip(made.tolist(), integers, strict=True):
        exact = Fraction(real) * integer
        assert abs(one - exact) <= Fraction(1, 2) + abs(exact) * Fraction(1, 2**30)


SHAPES = [((3, 5), (3, 5)), ((3, 5), (1, 5)), ((1, 4, 1, 2), (1, 1, 3, 2))]
"""Shapes of which one broadcasts to the other, or both to a third."""


def alone(operator: Operator, inputs: list[Tensor], constants: list[Array], made: Tensor,
          settings: Settings) -> Graph:  # fmt: skip
    """A graph of one node, whose first tensor is an input and whose others are constants."""
    graph = Graph()
    numbers = [graph.input(inputs[0])]
    numbers += [graph.constant(*pair) for pair in zip(inputs[1:], constants, strict=True)]
    graph.output(graph.add(operator, numbers, made, settings))
    return graph.finish()


def computed(graph: Graph, elements: Array, made: Tensor) -> Array:
    chip = Chip()
    (result,) = ran(chip, chip.load(compile(graph, 1 << 22)), elements, made)
    chip.close()
    return result


def stored(reals: Array, tensor: Tensor, low: float = -np.inf, high: float = np.inf) -> Array:
    """Bytes for reals, by the definition of quantization."""
    steps = np.rint(np.clip(reals, low, high) / tensor.scale) + tensor.zero_point
    clamped: Array = np.clip(steps, 0, 255)
    return clamped


def reals(elements: Array, tensor: Tensor) -> Array:
    made: Array = (elements.astype(np.float64) - tensor.zero_point) * tensor.scale
    return made


def bytes_like(random: np.random.Generator, *shape: int) -> Array:
    return random.integers(0, 256, shape, np.uint8)


def convolved(image: Array, filters: Array, strides: tuple[int, int], dilations: tuple[int, int],
              pads: tuple[int, ...], *, depthwise: bool) -> Array:  # fmt: skip
    """A convolution of reals, one output element after the other."""
    top, bottom, left, right = pads
    padded = np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)))
    reach = [(filters.shape[axis] - 1) * dilations[axis] + 1 for axis in range(2)]
    size = [(padded.shape[1 + a] - reach[a]) // strides[a] + 1 for a in range(2)]
    out = np.zeros((image.shape[0], *size, filters.shape[-1]))
    for y in range(size[0]):
        for x in range(size[1]):
            window = padded[
                :,
                y * strides[0] : y * strides[0] + reach[0] : dilations[0],
                x * strides[1] : x * strides[1] + reach[1] : dilations[1],
            ]
            way = "nijc,ijc->nc" if depthwise else "nijc,ijco->no"
            out[:, y, x] = np.einsum(way, window, filters)
    return out


@pytest.mark.parametrize("depthwise", [False, True])
@given(data=st.data())
def test_convolutions_are_within_a_step(depthwise: bool, data: st.DataObject) -> None:
    draw: Any = data.draw
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    channels, out = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    kernel = draw(st.tuples(*[st.integers(1, 4)] * 2))
    settings = Settings(
        strides=draw(st.tuples(*[st.integers(1, 3)] * 2)),
        dilations=draw(st.tuples(*[st.integers(1, 2)] * 2)),
        pads=draw(st.tuples(*[st.integers(0, 3)] * 4)),
        low=draw(st.sampled_from([-np.inf, 0.0])),
        high=draw(st.sampled_from([np.inf, 6.0])),
    )
    source = Tensor(
        DataType.UINT8, (draw(st.integers(1, 2)), 8, 9, channels), draw(SCALES), draw(ZEROS)
    )
    shape = (*kernel, channels) if depthwise else (*kernel, channels, out)
    filters = Tensor(DataType.UINT8, shape, draw(SCALES), draw(ZEROS))
    image, weights = bytes_like(random, *source.shape), bytes_like(random, *shape)
    bias = random.integers(-(2**12), 2**12, shape[-1]).astype(np.int32)
    unit = source.scale * filters.scale
    exact = convolved(
        reals(image, source), reals(weights, filters), settings.strides, settings.dilations,
        settings.pads, depthwise=depthwise,
    ) + bias * unit  # fmt: skip
    scale = float(max(np.abs(exact).max(), unit) / draw(st.sampled_from([60, 128, 300])))
    made = Tensor(DataType.UINT8, exact.shape, scale, draw(ZEROS))
    operator = Operator.DEPTHWISE_CONV_2D if depthwise else Operator.CONV_2D
    inputs = [source, filters, Tensor(DataType.INT32, bias.shape)]
    result = computed(alone(operator, inputs, [weights, bias], made, settings), image, made)
    expected = stored(exact, made, settings.low, settings.high)
    assert np.abs(result - expected).max() <= 1


@given(data=st.data())
def test_sums_and_products_are_within_a_step(data: st.DataObject) -> None:
    draw: Any = data.draw
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = draw(
        st.sampled_from([((3, 5), (3, 5)), ((3, 5), (1, 5)), ((1, 4, 1, 2), (1, 1, 3, 2))])
    )
    one, other = (Tensor(DataType.UINT8, shape, draw(SCALES), draw(ZEROS)) for shape in shapes)
    left, right = (bytes_like(random, *shape) for shape in shapes)
    functions = {
        Operator.ADD: np.add,
        Operator.SUBTRACT: np.subtract,
        Operator.MULTIPLY: np.multiply,
    }
    operator = draw(st.sampled_from(list(functions)))
    exact = functions[operator](reals(left, one), reals(right, other))
    made = Tensor(DataType.UINT8, exact.shape, draw(SCALES), draw(ZEROS))
    graph = alone(operator, [one, other], [right], made, Settings())
    result = computed(graph, left, made)
    assert np.abs(result - stored(exact, made)).max() <= 1


@pytest.mark.parametrize("operator", [Operator.AVERAGE_POOL_2D, Operator.MAX_POOL_2D])
@given(data=st.data())
def test_poolings_are_within_a_step(operator: Operator, data: st.DataObject) -> None:
    draw: Any = data.draw
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kernel = draw(st.tuples(*[st.integers(1, 7)] * 2))
    settings = Settings(
        kernel=kernel,
        strides=draw(st.tuples(*[st.integers(1, 4)] * 2)),
        pads=tuple(draw(st.integers(0, kernel[axis // 2] - 1)) for axis in range(4)),
    )
    source = Tensor(DataType.UINT8, (1, 8, 7, 3), draw(SCALES), draw(ZEROS))
    image = bytes_like(random, *source.shape)
    top, bottom, left, right = settings.pads
    padded = np.pad(
        reals(image, source), ((0, 0), (top, bottom), (left, right), (0, 0)),
        constant_values=np.nan,
    )  # fmt: skip
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))
    windows = windows[:, :: settings.strides[0], :: settings.strides[1]]
    function = np.nanmean if operator is Operator.AVERAGE_POOL_2D else np.nanmax
    exact = np.asarray(function(windows, axis=(4, 5)))
    made = Tensor(DataType.UINT8, exact.shape, draw(SCALES), draw(ZEROS))
    result = computed(alone(operator, [source], [], made, settings), image, made)
    assert np.abs(result - stored(exact, made)).max() <= 1


def test_sums_that_float32_does_not_hold_are_exact() -> None:
    """The greatest products, so many that their sum has 29 bits, next to one small one."""
    rows = Tensor(DataType.UINT8, (1, 8192), 1.0, 0)
    weights = Tensor(DataType.UINT8, (8192, 1), 1.0, 0)
    made = Tensor(DataType.UINT8, (1, 1), 1.0, 0)
    left = np.full(rows.shape, 255, np.uint8)
    right = np.full(weights.shape, 255, np.uint8)
    right[0] = 2
    total = int(left.astype(np.int64)[0] @ right.astype(np.int64)[:, 0])
    bias = np.array([77 - total], np.int32)
    inputs = [rows, weights, Tensor(DataType.INT32, (1,))]
    graph = alone(Operator.FULLY_CONNECTED, inputs, [right, bias], made, Settings())
    assert computed(graph, left, made).tolist() == [[77]]
