"""Products of 8-bit integers, which float64 accumulates exactly."""

from __future__ import annotations

import torch
from torch import Tensor

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.convolution import CONVOLUTIONS, of_nothing, padded
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard import integers


@converts(integers.MatMulInteger)
def mat_mul_integer(op: integers.MatMulInteger) -> Kernel:
    def run(x: Tensor, y: Tensor, x_zero: Tensor | None, y_zero: Tensor | None) -> Tensor:
        return torch.matmul(_differences(x, x_zero), _differences(y, y_zero)).long()

    return run


@converts(integers.Conv1DInteger, integers.Conv2DInteger, integers.Conv3DInteger)
def convolve_integers(op: integers.ConvInteger) -> Kernel:
    function, rank = CONVOLUTIONS[op.spatial_rank], op.spatial_rank
    strides, dilations, group = op.strides, op.dilations, op.group

    def run(x: Tensor, filter: Tensor, x_zero: Tensor | None, zero: Tensor | None) -> Tensor:
        if zero is not None and zero.ndim:
            zero = zero.reshape(-1, *(1,) * (1 + rank))
        windows = op.windows(tuple(filter.shape[2:]))
        if not (x.numel() and filter.numel()):
            return of_nothing(windows, x, filter, None)
        image, pads = padded(windows, _differences(x, x_zero))
        weights = _differences(filter, zero)
        return function(image, weights, None, strides, pads, dilations, group).long()

    return run


def _differences(values: Tensor, zero_point: Tensor | None) -> Tensor:
    wide = values.double()
    return wide if zero_point is None else wide - zero_point.double()
