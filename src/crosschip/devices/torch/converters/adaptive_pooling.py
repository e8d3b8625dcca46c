"""Pooling over a grid of cells."""

from __future__ import annotations

from functools import partial

from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard import adaptive_pooling as pooling

_AVERAGES = {
    1: functional.adaptive_avg_pool1d,
    2: functional.adaptive_avg_pool2d,
    3: functional.adaptive_avg_pool3d,
}
_MAXIMA = {
    1: functional.adaptive_max_pool1d,
    2: functional.adaptive_max_pool2d,
    3: functional.adaptive_max_pool3d,
}


@converts(
    pooling.AdaptiveAveragePool1D, pooling.AdaptiveAveragePool2D, pooling.AdaptiveAveragePool3D
)
def adaptive_average_pool(op: pooling.AdaptiveAveragePool) -> Kernel:
    return partial(_AVERAGES[op.spatial_rank], output_size=op.output_shape)


@converts(pooling.AdaptiveMaxPool1D, pooling.AdaptiveMaxPool2D, pooling.AdaptiveMaxPool3D)
def adaptive_max_pool(op: pooling.AdaptiveMaxPool) -> Kernel:
    return partial(
        _MAXIMA[op.spatial_rank], output_size=op.output_shape, return_indices=op.return_indices
    )
