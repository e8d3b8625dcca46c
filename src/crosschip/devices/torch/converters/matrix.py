"""Matrix products and the determinant."""

from __future__ import annotations

import torch
from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import WITH_UINT64, converts, same
from crosschip.ir import ElementType
from crosschip.ir.types import FLOATS
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul, MatMulNBits

converts(Det)(same(torch.linalg.det))


@converts(MatMul, types=WITH_UINT64, narrow=True)
def mat_mul(op: MatMul) -> Kernel:
    transpose_x, transpose_y = op.transpose_x, op.transpose_y

    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.mT if transpose_x and x.ndim > 1 else x
        y = y.mT if transpose_y and y.ndim > 1 else y
        if y.ndim == 2 and x.ndim > 2:
            # Of a view, PyTorch makes a product for each matrix of x.
            return torch.matmul(x.flatten(0, -2), y).unflatten(0, x.shape[:-1])
        return torch.matmul(x, y)

    return run


@converts(FullyConnected, narrow=True)
def fully_connected(op: FullyConnected) -> Kernel:
    if len(op.input.type.shape or ()) == 2:
        return functional.linear
    return lambda x, weight, bias: functional.linear(
        x if x.ndim == 2 else x.reshape(-1, weight.shape[1]), weight, bias
    )


@converts(MatMulNBits, types=FLOATS | {ElementType.UINT8})
def mat_mul_n_bits(op: MatMulNBits) -> Kernel:
    bits, size = op.bits, op.size

    def unpack(packed: torch.Tensor) -> torch.Tensor:
        shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=packed.device)
        return ((packed[..., None] >> shifts) & (2**bits - 1)).flatten(-2)

    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        scale: torch.Tensor,
        zero_point: torch.Tensor | None,
        bias: torch.Tensor | None,
    ) -> torch.Tensor:
        zeros: torch.Tensor | int = 2 ** (bits - 1)
        if zero_point is not None:
            packed = zero_point.dtype is torch.uint8
            zeros = unpack(zero_point)[:, : scale.shape[1]] if packed else zero_point
            zeros = zeros.to(scale.dtype)[..., None]
        reals = (unpack(weight).to(scale.dtype) - zeros) * scale[..., None]
        return functional.linear(x, reals.flatten(1)[:, :size].to(x.dtype), bias)

    return run
