"""Quirks of PyTorch, with reproductions; see `devices.kits.quirks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from crosschip.devices.kits.quirks import Dies, Differs, Quirk, Quirks, Raises
from crosschip.devices.torch import elements
from crosschip.devices.torch.converters import (
    arithmetic,
    convolution,
    indexing,
    reduction,
    sampling,
    searching,
    slicing,
    unary,
)
from crosschip.devices.torch.host_state import State
from crosschip.devices.torch.open_sizes import call_of
from crosschip.ir import Array
from crosschip.ops.standard.arithmetic import Add, Div
from crosschip.ops.standard.convolution import Conv1D, Conv2D, Conv3D
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.reduction import CumProd, CumSum, ReduceMax, ReduceMin
from crosschip.ops.standard.sampling import GridSample
from crosschip.ops.standard.searching import TopK, Unique
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Sign


def _run(function: Callable[..., Any], quirk: Quirk) -> list[Array]:
    result = function(*map(torch.from_numpy, quirk.inputs))
    outputs = [result] if isinstance(result, Tensor) else list(result)
    return [output.numpy() for output in outputs]


quirk = Quirks("torch", "torch 2.13.0", _run)


@quirk(
    Div,
    when="the least int64 is divided by -1",
    what="ends the process",
    avoided_by=arithmetic._divide_integers,
    inputs=[np.array([-(2**63), 6]), np.array([-1, 3])],
    right=[-(2**63), 2],
    wrong=Dies(),
    dies=True,
    processor="avx2",
    model=lambda b, x, y: b.add(Div, x, y),
)
def least_integer_by_minus_1(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="trunc")


@quirk(
    Div,
    when="integers are divided by 0",
    what="raises an error",
    avoided_by=arithmetic._divide_integers,
    inputs=[np.array([7, 9]), np.array([0, 3])],
    right=[0, 3],
    wrong=Raises("ZeroDivisionError"),
    model=lambda b, x, y: b.add(Div, x, y),
)
def integers_by_zero(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="trunc")


@quirk(
    Add,
    when="integers are unsigned and of 16 bits or more",
    what="has no kernel",
    avoided_by=[elements.entering, elements.wrapped],
    inputs=[np.array([65535, 1], np.uint16)],
    right=[65534, 2],
    wrong=Raises("not implemented"),
    model=lambda b, x: b.add(Add, x, x),
)
def unsigned_integers(x: Tensor) -> Tensor:
    return torch.add(x, x)


@quirk(
    Sign,
    when="the input is NaN",
    what="returns 0",
    avoided_by=unary.sign,
    inputs=[[np.nan, -2]],
    right=[np.nan, -1],
    wrong=[0, -1],
    model=lambda b, x: b.add(Sign, x),
)
def sign_of_nan(x: Tensor) -> Tensor:
    return torch.sign(x)


@quirk(
    Conv1D,
    Conv2D,
    Conv3D,
    when="the image has no pixels, and the padding makes some",
    what="raises an error",
    avoided_by=convolution.of_nothing,
    inputs=[np.zeros((1, 2, 0), np.float32), np.ones((3, 2, 1), np.float32)],
    right=np.zeros((1, 3, 2)),
    wrong=Raises("zero batch or zero channel"),
    model=lambda b, x, f: b.add(Conv1D, x, f, pads=(1, 1)),
)
def convolution_of_nothing(x: Tensor, filter: Tensor) -> Tensor:
    return functional.conv1d(x, filter, padding=1)


@quirk(
    CumProd,
    CumSum,
    when="a product of float32 leaves the type's range, and comes back",
    what="accumulates in float64, as if it had not",
    avoided_by=reduction._step_by_step,
    inputs=[[1e30, 1e30, 0]],
    right=[1e30, np.inf, np.nan],
    wrong=[1e30, np.inf, 0],
    model=lambda b, x: b.add(CumProd, x),
)
def product_beyond_float32(x: Tensor) -> Tensor:
    return torch.cumprod(x, 0)


@quirk(
    ReduceMax,
    ReduceMin,
    when="there are no elements",
    what="raises an error",
    avoided_by=reduction._extreme,
    inputs=[np.zeros((0, 2), np.float32)],
    right=[-np.inf, -np.inf],
    wrong=Raises("non-zero size"),
    model=lambda b, x: b.add(ReduceMax, x, (0,), False),
)
def maximum_of_nothing(x: Tensor) -> Tensor:
    return torch.amax(x, (0,))


@quirk(
    Gather,
    when="an index counts from the end",
    what="raises an error",
    avoided_by=indexing.within,
    inputs=[[1, 2, 3], np.array([-1])],
    right=[3],
    wrong=Raises("out of range"),
    model=lambda b, x, i: b.add(Gather, x, i),
)
def index_from_the_end(x: Tensor, indices: Tensor) -> Tensor:
    return torch.index_select(x, 0, indices)


@quirk(
    Slice,
    when="the step is negative",
    what="raises an error",
    avoided_by=slicing._part,
    inputs=[[1, 2, 3]],
    right=[3, 2, 1],
    wrong=Raises("positive"),
    model=lambda b, x: b.add(Slice, x, (0,), (-1,), (-(2**31),), (-1,)),
)
def backward_slice(x: Tensor) -> Tensor:
    return torch.ops.aten.slice.Tensor(x, 0, -1, None, -1)


@quirk(
    TopK,
    when="elements are equal",
    what="returns them in any order",
    avoided_by=searching.top_k,
    inputs=[np.ones(20, np.float32)],
    right=(np.ones(3), [0, 1, 2]),
    wrong=Differs(),
    model=lambda b, x: b.add_all(TopK, x, 3),
)
def equal_elements(x: Tensor) -> Any:
    return torch.topk(x, 3)


@quirk(
    FullyConnected,
    when="sizes are dynamic, and a bias has one element instead of one a unit",
    what="broadcasts it",
    avoided_by=call_of,
    inputs=[np.ones((1, 2), np.float32), np.ones((3, 2), np.float32), [1]],
    right=Raises("bias"),
    wrong=[[3, 3, 3]],
)
def bias_of_one_element(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.linear(x, weight, bias)


@quirk(
    GridSample,
    when="the image is of float64 and the grid is not",
    what="raises an error",
    avoided_by=sampling._coordinate_type,
    inputs=[np.ones((1, 1, 2, 2)), np.zeros((1, 1, 1, 2), np.float32)],
    right=[[[[1]]]],
    wrong=Raises("scalar type"),
    model=lambda b, x, grid: b.add(GridSample, x, grid),
)
def grid_of_another_type(x: Tensor, grid: Tensor) -> Tensor:
    return functional.grid_sample(x, grid, align_corners=True)


@quirk(
    MatMul,
    when="the process has set `medium` as the precision of products of float32",
    what="may round their factors to bfloat16",
    avoided_by=State.call,
    inputs=[np.full((64, 64), 1 + 2.0**-12, np.float32)],
    right=np.full((64, 64), 64 * (1 + 2.0**-12) ** 2),
    wrong=Differs(),
    tolerance=1e-6,
    processor="amx_bf16",
    model=lambda b, x: b.add(MatMul, x, x),
)
def products_of_rounded_factors(x: Tensor) -> Tensor:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        return torch.matmul(x, x)
    finally:
        torch.set_float32_matmul_precision(before)


@quirk(
    Unique,
    when="slices along an axis have no elements",
    what="raises an error",
    avoided_by=searching.equal_slices,
    inputs=[np.zeros((2, 0), np.float32)],
    right=(np.zeros((1, 0)), [0], [0, 0], [2]),
    wrong=Raises("unique cannot be applied"),
    model=lambda b, x: tuple(b.add_all(Unique, x, axis=0)),
)
def unique_slices_of_nothing(x: Tensor) -> tuple[Tensor, ...]:
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=0)
    return values, inverse[:1], inverse, counts
