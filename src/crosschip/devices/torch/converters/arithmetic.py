"""Arithmetic on two or more tensors, and clipping."""

from __future__ import annotations

from functools import partial, reduce

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import WITH_UINT64, bounded, converts, same
from crosschip.ir.types import INTEGERS
from crosschip.ops.standard import arithmetic

converts(arithmetic.Add, types=WITH_UINT64, narrow=True)(same(torch.add))
converts(arithmetic.Sub, types=WITH_UINT64, narrow=True)(same(torch.sub))
converts(arithmetic.Mul, types=WITH_UINT64, narrow=True)(same(torch.mul))
converts(arithmetic.Max, narrow=True)(same(torch.maximum))
converts(arithmetic.Min, narrow=True)(same(torch.minimum))
converts(arithmetic.Sum, types=WITH_UINT64)(same(partial(reduce, torch.add)))
converts(arithmetic.SquaredDifference, types=WITH_UINT64)(
    same(lambda one, other: torch.square(torch.sub(one, other)))
)
converts(arithmetic.Pow)(same(torch.pow))


@converts(arithmetic.Div)
def div(op: arithmetic.Div) -> Kernel:
    return _divide_integers if op.input0.type.element_type in INTEGERS else torch.div


@converts(arithmetic.FloorDiv)
def floor_div(op: arithmetic.FloorDiv) -> Kernel:
    if op.input0.type.element_type in INTEGERS:
        return partial(_divide_integers, rounding="floor")
    return lambda a, b: torch.floor(torch.div(a, b))


@converts(arithmetic.Mod)
def mod(op: arithmetic.Mod) -> Kernel:
    remainder = torch.fmod if op.fmod else torch.remainder
    if op.input0.type.element_type not in INTEGERS:
        return remainder
    return lambda a, b: torch.where(_traps(b), 0, remainder(a, torch.where(_traps(b), 1, b)))


def _divide_integers(a: torch.Tensor, b: torch.Tensor, rounding: str = "trunc") -> torch.Tensor:
    """Divide integers; by 0 is 0, and the least integer by -1 is itself."""
    quotient = torch.div(a, torch.where(_traps(b), 1, b), rounding_mode=rounding)
    return torch.where(b == 0, 0, torch.where(_is_minus_1(b), torch.neg(a), quotient))


def _traps(b: torch.Tensor) -> torch.Tensor:
    """Return where an integer division may trap: by 0, or of the least integer by -1."""
    return torch.logical_or(b == 0, _is_minus_1(b))


def _is_minus_1(b: torch.Tensor) -> torch.Tensor:
    """Return where integers are -1; PyTorch compares -1 with unsigned ones as their greatest."""
    return torch.logical_and(b < 0, b == -1)


@converts(arithmetic.Clip)
def clip(op: arithmetic.Clip) -> Kernel:
    low, high, element_type = op.min, op.max, op.input.type.element_type
    return lambda x: bounded(x, low, high, element_type)


@converts(arithmetic.BiasAdd, types=WITH_UINT64)
def bias_add(op: arithmetic.BiasAdd) -> Kernel:
    axis = op.axis
    return lambda x, bias: torch.add(x, _spread(bias, x.ndim, axis))


@converts(arithmetic.Scale, types=WITH_UINT64)
def scale(op: arithmetic.Scale) -> Kernel:
    axis = op.axis

    def run(x: torch.Tensor, factor: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        scaled = x * _spread(factor, x.ndim, axis)
        return scaled if bias is None else scaled + _spread(bias, x.ndim, axis)

    return run


def _spread(value: torch.Tensor, rank: int, axis: int) -> torch.Tensor:
    """Reshape a tensor that runs along an input's axes from `axis` on to broadcast to the input."""
    after = rank - axis % max(rank, 1) - value.ndim
    return value.reshape(value.shape + (1,) * after)
