"""The integer unit: bytes that stand for reals, sums of 32 bits, and rescaling by fixed point.

Products of matrices are computed in floating point where NumPy is fast, which changes nothing: the
type is chosen so that every sum is an integer that it holds exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fake_npu_ddk.machine.fixed_point import FixedPoint
from fake_npu_ddk.machine.kernel import Kernel, Work
from fake_npu_ddk.machine.windows import framed, strips, windows
from fake_npu_ddk.operators import Operator
from fake_npu_ddk.tensors import Array

_EXACT_IN_FLOAT32 = 2**24


class _Rescale:
    """Sums as bytes of the output: scaled, moved by its zero point and clamped.

    Args:
        work: the step.
        unit: the real that a sum of 1 stands for; one number, or one for each element.
    """

    def __init__(self, work: Work, unit: Array | float) -> None:
        scale, self._zero = work.output.scale, work.output.zero_point
        self._by = FixedPoint.of(np.asarray(unit, np.float64) / scale)
        low, high = (
            float(np.clip(bound / scale, -512, 512))
            for bound in (work.settings.low, work.settings.high)
        )
        self._low = int(np.clip(np.rint(low) + self._zero, 0, 255))
        self._high = int(np.clip(np.rint(high) + self._zero, 0, 255))

    def __call__(self, sums: Array) -> Array:
        return self.clamped(self._by.scaled(sums))

    def clamped(self, steps: Array) -> Array:
        """Reals in steps of the output's scale as bytes."""
        steps += self._zero
        return np.clip(steps, self._low, self._high, out=steps).astype(np.uint8)


def _centered(elements: Array, zero_point: int, dtype: type[np.number[Any]]) -> Array:
    return np.subtract(elements, zero_point, dtype=dtype)


def _sum_type(weights: Array, bias: Array) -> type[np.number[Any]]:
    """The fastest type in which every sum is exact."""
    axes = tuple(range(weights.ndim - 1))
    greatest = np.abs(weights).sum(axis=axes) * 255 + np.abs(bias.astype(np.float64))
    return np.float32 if greatest.max() < _EXACT_IN_FLOAT32 else np.float64


def _convolution(work: Work) -> Kernel:
    image, filters, _ = work.inputs
    settings, kernel = work.settings, filters.shape[:2]
    weights = _centered(work.constant(1), filters.zero_point, np.float64)
    bias = work.constant(2)
    dtype = _sum_type(weights, bias)
    matrix = weights.reshape(-1, filters.shape[3]).astype(dtype)
    offset = bias.astype(dtype)
    rescale = _Rescale(work, image.scale * filters.scale)

    def run(inputs: Sequence[Array], output: Array) -> None:
        source = framed(inputs[0], settings.pads, image.zero_point)
        places = windows(source, kernel, settings)
        for rows in strips(output.shape[1], work.rows):
            part = output[:, rows]
            columns = _centered(places[:, rows], image.zero_point, dtype)
            sums = columns.reshape(-1, len(matrix)) @ matrix
            sums += offset
            part[...] = rescale(sums).reshape(part.shape)

    return run


def _depthwise(work: Work) -> Kernel:
    image, filters, _ = work.inputs
    settings, (height, width) = work.settings, filters.shape[:2]
    weights = _centered(work.constant(1), filters.zero_point, np.int32)
    bias = work.constant(2)
    rescale = _Rescale(work, image.scale * filters.scale)

    def run(inputs: Sequence[Array], output: Array) -> None:
        source = framed(inputs[0], settings.pads, image.zero_point)
        places = windows(source, (height, width), settings)
        for rows in strips(output.shape[1], work.rows):
            part = output[:, rows]
            sums = np.broadcast_to(bias, part.shape).copy()
            for i in range(height):
                for j in range(width):
                    sums += (
                        _centered(places[:, rows, :, i, j], image.zero_point, np.int32)
                        * weights[i, j]
                    )
            part[...] = rescale(sums)

    return run


def _fully_connected(work: Work) -> Kernel:
    rows, table, _ = work.inputs
    weights = _centered(work.constant(1), table.zero_point, np.float64)
    bias = work.constant(2)
    dtype = _sum_type(weights, bias)
    matrix, offset = weights.astype(dtype), bias.astype(dtype)
    rescale = _Rescale(work, rows.scale * table.scale)

    def run(inputs: Sequence[Array], output: Array) -> None:
        sums = _centered(inputs[0], rows.zero_point, dtype) @ matrix
        sums += offset
        output[...] = rescale(sums)

    return run


def _average_pool(work: Work) -> Kernel:
    (image,), settings = work.inputs, work.settings
    ones = framed(np.ones((1, *image.shape[1:3], 1), np.int32), settings.pads, 0)
    counts = windows(ones, settings.kernel, settings).sum(axis=(3, 4))
    rescale = _Rescale(work, image.scale / counts)

    def run(inputs: Sequence[Array], output: Array) -> None:
        centered = _centered(inputs[0], image.zero_point, np.int32)
        places = windows(framed(centered, settings.pads, 0), settings.kernel, settings)
        output[...] = rescale(places.sum(axis=(3, 4), dtype=np.int32))

    return run


def _global_average_pool(work: Work) -> Kernel:
    (image,) = work.inputs
    rescale = _Rescale(work, image.scale / (image.shape[1] * image.shape[2]))

    def run(inputs: Sequence[Array], output: Array) -> None:
        centered = _centered(inputs[0], image.zero_point, np.int32)
        output[...] = rescale(centered.sum(axis=(1, 2), keepdims=True, dtype=np.int32))

    return run


def _max_pool(work: Work) -> Kernel:
    (image,), settings = work.inputs, work.settings
    rescale = _Rescale(work, image.scale)

    def run(inputs: Sequence[Array], output: Array) -> None:
        places = windows(framed(inputs[0], settings.pads, 0), settings.kernel, settings)
        output[...] = rescale(_centered(places.max(axis=(3, 4)), image.zero_point, np.int32))

    return run


def _sum(sign: int) -> Callable[[Work], Kernel]:
    def make(work: Work) -> Kernel:
        one, other = work.inputs
        ratios = np.array([one.scale, other.scale]) / work.output.scale
        by = FixedPoint.of(ratios, bits=52)
        factors = by.factors * (1, sign)
        rescale = _Rescale(work, 1.0)

        def run(inputs: Sequence[Array], output: Array) -> None:
            first = _centered(inputs[0], one.zero_point, np.int64) * factors[0]
            second = _centered(inputs[1], other.zero_point, np.int64) * factors[1]
            output[...] = rescale.clamped(by.rounded(first + second))

        return run

    return make


def _product(work: Work) -> Kernel:
    one, other = work.inputs
    rescale = _Rescale(work, one.scale * other.scale)

    def run(inputs: Sequence[Array], output: Array) -> None:
        first = _centered(inputs[0], one.zero_point, np.int32)
        output[...] = rescale(first * _centered(inputs[1], other.zero_point, np.int32))

    return run


def _rescaled(work: Work) -> Kernel:
    (source,) = work.inputs
    rescale = _Rescale(work, source.scale)
    every = _centered(np.arange(256, dtype=np.uint8), source.zero_point, np.int32)
    table = rescale(every)

    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = table[inputs[0]]

    return run


def _looked_up(work: Work) -> Kernel:
    table = work.constant(1)

    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = table[inputs[0]]

    return run


def _concatenated(work: Work) -> Kernel:
    makers = [
        _rescaled(Work([part], work.output, [None], work.settings, 1)) for part in work.inputs
    ]
    axis = work.settings.axis

    def run(inputs: Sequence[Array], output: Array) -> None:
        first = 0
        for kernel, part in zip(makers, inputs, strict=True):
            place = (slice(None),) * axis + (slice(first, first + part.shape[axis]),)
            kernel([part], output[place])
            first += part.shape[axis]

    return run


def _from_real(work: Work) -> Kernel:
    scale, zero_point = np.float32(work.output.scale), work.output.zero_point

    def run(inputs: Sequence[Array], output: Array) -> None:
        steps = np.rint(inputs[0].astype(np.float32) / scale) + np.float32(zero_point)
        output[...] = np.clip(np.nan_to_num(steps, nan=0.0), 0, 255)

    return run


KERNELS: dict[Operator, Callable[[Work], Kernel]] = {
    Operator.CONV_2D: _convolution,
    Operator.DEPTHWISE_CONV_2D: _depthwise,
    Operator.FULLY_CONNECTED: _fully_connected,
    Operator.AVERAGE_POOL_2D: _average_pool,
    Operator.GLOBAL_AVERAGE_POOL: _global_average_pool,
    Operator.MAX_POOL_2D: _max_pool,
    Operator.ADD: _sum(1),
    Operator.SUBTRACT: _sum(-1),
    Operator.MULTIPLY: _product,
    Operator.RESCALE: _rescaled,
    Operator.LOOK_UP: _looked_up,
    Operator.CONCATENATE: _concatenated,
    Operator.CONVERT: _from_real,
}
