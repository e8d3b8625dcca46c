"""Recurrent networks as loops over time steps, whose body is the formula of the cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.quantization import byte_steps
from crosschip.devices.torch.converters.table import COMPUTED, converts
from crosschip.ops.numerics.cells import CellFunction, Gate, ScanDirection
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, DynamicQuantizeLSTM, Recurrent


class _Tensors:
    """The operations of a cell's formula on tensors."""

    def pick(self, value: Tensor, index: Any) -> Tensor:
        return value[index]

    def split(self, value: Tensor, count: int) -> list[Tensor]:
        return list(torch.tensor_split(value, count))

    def transpose(self, value: Tensor) -> Tensor:
        return value.T

    def stack(self, values: Sequence[Tensor], axis: int) -> Tensor:
        return torch.stack(list(values), axis)

    def before(self, step: Any, lengths: Tensor, value: Tensor, other: Tensor) -> Tensor:
        return torch.where(lengths[:, None] > step, value, other)

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        formula = _FORMULAS[function]
        if clip == float("inf"):
            return lambda x: formula(x, alpha, beta)
        return lambda x: formula(torch.clamp(x, -clip, clip), alpha, beta)

    def round_to_bytes(self, value: Tensor) -> Tensor:
        if not value.numel():
            return value
        scale, zero = byte_steps(value)
        return (torch.clamp(torch.round(value / scale) + zero, 0, 255) - zero) * scale

    def reals(self, value: Tensor, scale: Tensor, zero_point: Tensor | None) -> Tensor:
        steps = value.float()
        if zero_point is not None:
            steps = steps - _along(zero_point.float(), value.ndim)
        return steps * _along(scale, value.ndim)


def _along(numbers: Tensor, rank: int) -> Tensor:
    return numbers.reshape(numbers.shape + (1,) * (rank - numbers.ndim))


_FORMULAS: dict[CellFunction, Callable[[Tensor, float, float], Tensor]] = {
    CellFunction.SIGMOID: lambda x, alpha, beta: torch.sigmoid(x),
    CellFunction.TANH: lambda x, alpha, beta: torch.tanh(x),
    CellFunction.RELU: lambda x, alpha, beta: torch.relu(x),
    CellFunction.AFFINE: lambda x, alpha, beta: alpha * x + beta,
    CellFunction.LEAKY_RELU: lambda x, alpha, beta: functional.leaky_relu(x, alpha),
    CellFunction.THRESHOLDED_RELU: lambda x, alpha, beta: torch.where(x > alpha, x, 0),
    CellFunction.SCALED_TANH: lambda x, alpha, beta: alpha * torch.tanh(beta * x),
    CellFunction.HARD_SIGMOID: lambda x, alpha, beta: torch.clamp(alpha * x + beta, 0, 1),
    CellFunction.ELU: lambda x, alpha, beta: torch.where(x < 0, alpha * torch.expm1(x), x),
    CellFunction.SOFTSIGN: lambda x, alpha, beta: functional.softsign(x),
    CellFunction.SOFTPLUS: lambda x, alpha, beta: functional.softplus(x, threshold=80),
}


@converts(GRU, LSTM, RNN, types=COMPUTED)
def recurrent(op: Recurrent) -> Kernel:
    algebra = _Tensors()
    slots = [slot.name for slot in op.slots if not slot.parameter]
    functions = [op.functions_of(algebra, index) for index, _ in enumerate(op.direction.passes)]

    def run(*values: Tensor | None) -> Sequence[Tensor]:
        tensors: dict[str, Any] = dict(zip(slots, values, strict=True))
        if isinstance(op, DynamicQuantizeLSTM):
            tensors = op.dequantize_tensors(algebra, tensors)
        steps, batch = tensors["input"].shape[:2]
        lengths = tensors["sequence_lengths"]
        if lengths is not None and bool(((lengths < 0) | (lengths > steps)).any()):
            raise ValueError(f"sequence_lengths: one is not in [0, {steps}]")
        zero = tensors["input"].new_zeros((batch, tensors["recurrence_weight"].shape[2]))
        passes = [
            _scan(op, tensors, index, functions[index], zero, backwards=backwards)
            for index, backwards in enumerate(op.direction.passes)
        ]
        hidden, last = zip(*passes, strict=True)
        states = [torch.stack(each) for each in zip(*last, strict=True)]
        return [torch.stack(hidden, 1), *states]

    return run


converts(DynamicQuantizeLSTM, types=COMPUTED)(recurrent)


def _scan(
    op: Recurrent,
    tensors: dict[str, Any],
    index: int,
    functions: Sequence[Gate],
    zero: Tensor,
    *,
    backwards: bool,
) -> tuple[Tensor, Sequence[Tensor]]:
    """Return the hidden states of all steps of one direction, and the last states."""
    p = ScanDirection(_Tensors(), tensors, index, op.gates, functions)
    states = [zero if tensors[slot] is None else tensors[slot][index] for slot in op.states]
    steps = tensors["input"].shape[0]
    hidden = [zero] * steps
    for step in reversed(range(steps)) if backwards else range(steps):
        after = op.step(p, [part[step] for part in p.inputs], *states)
        hidden[step] = p.unless_over(step, after[0], zero)
        states = [p.unless_over(step, *pair) for pair in zip(after, states, strict=True)]
    return torch.stack(hidden), states
