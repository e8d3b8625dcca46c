"""Reductions, cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import WITH_UINT64, converts
from crosschip.ops.standard import reduction
from crosschip.ops.standard.reduction import CumProd, CumSum, Reduction

Reduce = Callable[[torch.Tensor, Sequence[int], bool], torch.Tensor]


def reduced(function: Reduce) -> Callable[[Reduction], Kernel]:
    """Return a converter to a reduction of axes."""

    def convert(op: Reduction) -> Kernel:
        axes, keepdim = op.axes, op.keepdim
        return lambda x: function(x, axes or tuple(range(x.ndim)), keepdim)

    return convert


def _sum(x: torch.Tensor, axes: Sequence[int], keepdim: bool) -> torch.Tensor:
    return torch.sum(x, axes, keepdim, dtype=x.dtype)


def _product(x: torch.Tensor, axes: Sequence[int], keepdim: bool) -> torch.Tensor:
    ordered = sorted((axis % x.ndim for axis in axes), reverse=True)
    return reduce(lambda y, axis: torch.prod(y, axis, keepdim, dtype=x.dtype), ordered, x)


def _extreme(function: Kernel, *, greatest: bool) -> Reduce:
    """Return a reduction to the maximum or minimum, which PyTorch has of some elements only."""

    def run(x: torch.Tensor, axes: Sequence[int], keepdim: bool) -> torch.Tensor:
        if not axes:
            return x
        if x.numel():
            return function(x, axes, keepdim)
        shape = torch.sum(x, axes, keepdim).shape
        return torch.full(shape, _neutral(x.dtype, greatest), dtype=x.dtype, device=x.device)

    return run


def _neutral(dtype: torch.dtype, greatest: bool) -> float:
    """Return the maximum of no elements, or the minimum."""
    if dtype is torch.bool:
        return not greatest
    if dtype.is_floating_point:
        return float("-inf" if greatest else "inf")
    return torch.iinfo(dtype).min if greatest else torch.iinfo(dtype).max


converts(reduction.ReduceSum, types=WITH_UINT64)(reduced(_sum))
converts(reduction.ReduceProd, types=WITH_UINT64)(reduced(_product))
converts(reduction.ReduceMax)(reduced(_extreme(torch.amax, greatest=True)))
converts(reduction.ReduceMin)(reduced(_extreme(torch.amin, greatest=False)))
converts(reduction.ReduceMean)(reduced(torch.mean))
converts(reduction.ReduceAll)(reduced(torch.all))
converts(reduction.ReduceAny)(reduced(torch.any))
converts(reduction.ReduceL1)(reduced(lambda x, *over: _sum(torch.abs(x), *over)))
converts(reduction.ReduceSumSquare, types=WITH_UINT64)(
    reduced(lambda x, *over: _sum(torch.square(x), *over))
)
converts(reduction.ReduceL2)(reduced(lambda x, *over: torch.sqrt(_sum(torch.square(x), *over))))
converts(reduction.ReduceLogSum)(reduced(lambda x, *over: torch.log(_sum(x, *over))))
converts(reduction.ReduceLogSumExp)(reduced(torch.logsumexp))


def _has_left_range(result: torch.Tensor) -> torch.Tensor:
    """Return where a cumulative result may have been too great or too small for its type."""
    return torch.logical_not(torch.isfinite(result)) | (result == 0)


def _step_by_step(x: torch.Tensor, axis: int, combine: Kernel) -> torch.Tensor:
    """Return cumulative results, each of which is rounded (quirk `product-beyond-float32`)."""
    return torch.stack(list(accumulate(x.unbind(axis), combine)), axis)


def _cumulative(
    function: Kernel, neutral: int, combine: Kernel
) -> Callable[[CumSum | CumProd], Kernel]:
    def convert(op: CumSum | CumProd) -> Kernel:
        axis, exclusive, backwards = op.axis, op.exclusive, op.reverse

        def run(x: torch.Tensor) -> torch.Tensor:
            if backwards:
                x = x.flip(axis)
            if exclusive and x.shape[axis]:
                first = torch.full_like(x.narrow(axis, 0, 1), neutral)
                x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
            result = function(x, axis, dtype=x.dtype)
            if x.is_floating_point() and bool(_has_left_range(result).any()):
                result = _step_by_step(x, axis, combine)
            return result.flip(axis) if backwards else result

        return run

    return convert


converts(CumSum, types=WITH_UINT64)(_cumulative(torch.cumsum, 0, torch.add))
converts(CumProd, types=WITH_UINT64)(_cumulative(torch.cumprod, 1, torch.mul))
