"""The real unit: float16 in memory, float32 while it computes, rounded once at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fake_npu_ddk.machine.kernel import Kernel, Work
from fake_npu_ddk.machine.windows import framed, strips, windows
from fake_npu_ddk.operators import Operator
from fake_npu_ddk.tensors import Array


def _clamped(work: Work, values: Array) -> Array:
    if work.settings.low == -np.inf and work.settings.high == np.inf:
        return values
    return np.clip(values, np.float32(work.settings.low), np.float32(work.settings.high))


def _convolution(work: Work) -> Kernel:
    filters, settings = work.inputs[1], work.settings
    matrix = work.constant(1).astype(np.float32).reshape(-1, filters.shape[3])
    bias = work.constant(2).astype(np.float32)

    def run(inputs: Sequence[Array], output: Array) -> None:
        places = windows(framed(inputs[0], settings.pads, 0), filters.shape[:2], settings)
        for rows in strips(output.shape[1], work.rows):
            part = output[:, rows]
            columns = places[:, rows].astype(np.float32).reshape(-1, len(matrix))
            part[...] = _clamped(work, columns @ matrix + bias).reshape(part.shape)

    return run


def _depthwise(work: Work) -> Kernel:
    settings, (height, width) = work.settings, work.inputs[1].shape[:2]
    weights = work.constant(1).astype(np.float32)
    bias = work.constant(2).astype(np.float32)

    def run(inputs: Sequence[Array], output: Array) -> None:
        places = windows(framed(inputs[0], settings.pads, 0), (height, width), settings)
        for rows in strips(output.shape[1], work.rows):
            part = output[:, rows]
            sums = np.broadcast_to(bias, part.shape).copy()
            for i in range(height):
                for j in range(width):
                    sums += places[:, rows, :, i, j].astype(np.float32) * weights[i, j]
            part[...] = _clamped(work, sums)

    return run


def _fully_connected(work: Work) -> Kernel:
    matrix = work.constant(1).astype(np.float32)
    bias = work.constant(2).astype(np.float32)

    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = _clamped(work, inputs[0].astype(np.float32) @ matrix + bias)

    return run


def _average_pool(work: Work) -> Kernel:
    (image,), settings = work.inputs, work.settings
    ones = framed(np.ones((1, *image.shape[1:3], 1), np.float32), settings.pads, 0)
    counts = windows(ones, settings.kernel, settings).sum(axis=(3, 4))

    def run(inputs: Sequence[Array], output: Array) -> None:
        places = windows(framed(inputs[0], settings.pads, 0), settings.kernel, settings)
        output[...] = _clamped(work, places.sum(axis=(3, 4), dtype=np.float32) / counts)

    return run


def _global_average_pool(work: Work) -> Kernel:
    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = _clamped(work, inputs[0].mean(axis=(1, 2), keepdims=True, dtype=np.float32))

    return run


def _max_pool(work: Work) -> Kernel:
    settings = work.settings

    def run(inputs: Sequence[Array], output: Array) -> None:
        places = windows(framed(inputs[0], settings.pads, -np.inf), settings.kernel, settings)
        output[...] = _clamped(work, places.max(axis=(3, 4)))

    return run


def _pairwise(function: Callable[[Array, Array], Array]) -> Callable[[Work], Kernel]:
    def make(work: Work) -> Kernel:
        def run(inputs: Sequence[Array], output: Array) -> None:
            one, other = (part.astype(np.float32) for part in inputs)
            output[...] = _clamped(work, function(one, other))

        return run

    return make


def _rescaled(work: Work) -> Kernel:
    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = _clamped(work, inputs[0])

    return run


def _concatenated(work: Work) -> Kernel:
    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = np.concatenate(inputs, work.settings.axis)

    return run


def _softmax(work: Work) -> Kernel:
    def run(inputs: Sequence[Array], output: Array) -> None:
        values = inputs[0].astype(np.float32)
        powers = np.exp(values - values.max(axis=-1, keepdims=True))
        output[...] = powers / powers.sum(axis=-1, keepdims=True)

    return run


def _from_bytes(work: Work) -> Kernel:
    (source,) = work.inputs
    every = np.arange(256, dtype=np.float64) - source.zero_point
    table = (every * source.scale).astype(np.float16)

    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = table[inputs[0]]

    return run


KERNELS: dict[Operator, Callable[[Work], Kernel]] = {
    Operator.CONV_2D: _convolution,
    Operator.DEPTHWISE_CONV_2D: _depthwise,
    Operator.FULLY_CONNECTED: _fully_connected,
    Operator.AVERAGE_POOL_2D: _average_pool,
    Operator.GLOBAL_AVERAGE_POOL: _global_average_pool,
    Operator.MAX_POOL_2D: _max_pool,
    Operator.ADD: _pairwise(np.add),
    Operator.SUBTRACT: _pairwise(np.subtract),
    Operator.MULTIPLY: _pairwise(np.multiply),
    Operator.RESCALE: _rescaled,
    Operator.CONCATENATE: _concatenated,
    Operator.SOFTMAX: _softmax,
    Operator.CONVERT: _from_bytes,
}
