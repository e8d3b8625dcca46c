"""Recurrent networks as loops over time steps, whose body is the formula of the cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import bounded, converts
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.numerics.cells import CellFunction, Gate, ScanDirection
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, DynamicQuantizeLSTM, Recurrent


class _Arrays:
    """The operations of a cell's formula on JAX arrays."""

    def pick(self, value: Value, index: Any) -> Value:
        return lax.dynamic_index_in_dim(value, index, keepdims=False)

    def split(self, value: Value, count: int) -> list[Value]:
        return list(jnp.split(value, count))

    def transpose(self, value: Value) -> Value:
        return value.T

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        return jnp.stack(values, axis)

    def before(self, step: Any, lengths: Value, value: Value, other: Value) -> Value:
        return jnp.where(lengths[:, None] > step, value, other)

    def gate(self, function: CellFunction, alpha: float, beta: float, clip: float) -> Gate:
        return lambda x: _FORMULAS[function](bounded(x, -clip, clip), alpha, beta)

    def round_to_bytes(self, value: Value) -> Value:
        if not value.size:
            return value
        low, high = jnp.minimum(value.min(), 0), jnp.maximum(value.max(), 0)
        step = (high - low) / np.float32(255)
        scale = jnp.where(step == 0, np.float32(1), step)
        zero_point = jnp.round(-low / scale)
        return (jnp.clip(jnp.round(value / scale) + zero_point, 0, 255) - zero_point) * scale

    def reals(self, value: Value, scale: Value, zero_point: Value | None) -> Value:
        steps = value.astype(jnp.float32)
        if zero_point is not None:
            steps -= _along(zero_point.astype(jnp.float32), value.ndim)
        return steps * _along(scale, value.ndim)


def _along(numbers: Value, rank: int) -> Value:
    return numbers.reshape(numbers.shape + (1,) * (rank - numbers.ndim))


_FORMULAS: dict[CellFunction, Callable[[Value, float, float], Value]] = {
    CellFunction.SIGMOID: lambda x, alpha, beta: lax.logistic(x),
    CellFunction.TANH: lambda x, alpha, beta: jnp.tanh(x),
    CellFunction.RELU: lambda x, alpha, beta: jnp.maximum(x, 0),
    CellFunction.AFFINE: lambda x, alpha, beta: alpha * x + beta,
    CellFunction.LEAKY_RELU: lambda x, alpha, beta: jnp.where(x < 0, alpha * x, x),
    CellFunction.THRESHOLDED_RELU: lambda x, alpha, beta: jnp.where(x > alpha, x, 0),
    CellFunction.SCALED_TANH: lambda x, alpha, beta: alpha * jnp.tanh(beta * x),
    CellFunction.HARD_SIGMOID: lambda x, alpha, beta: bounded(alpha * x + beta, 0, 1),
    CellFunction.ELU: lambda x, alpha, beta: jnp.where(x < 0, alpha * jnp.expm1(x), x),
    CellFunction.SOFTSIGN: lambda x, alpha, beta: x / (1 + jnp.abs(x)),
    CellFunction.SOFTPLUS: lambda x, alpha, beta: jnp.logaddexp(x, 0),
}


@converts(DynamicQuantizeLSTM, GRU, LSTM, RNN)
def recurrent(g: Graph, op: Recurrent) -> Sequence[Value]:
    tensors: dict[str, Any] = {
        slot.name: None if operand is None else g[operand]
        for slot in op.slots
        if not slot.parameter
        for operand in [op.operand(slot.name)]
    }
    if isinstance(op, DynamicQuantizeLSTM):
        tensors = op.dequantize_tensors(_Arrays(), tensors)
    steps, batch = tensors["input"].shape[:2]
    lengths = tensors["sequence_lengths"]
    if lengths is not None:
        holds = (lengths >= 0) & (lengths <= steps)
        g.require(op, f"sequence_lengths: one is not in [0, {steps}]", holds)
    zero = jnp.zeros((batch, tensors["recurrence_weight"].shape[2]), tensors["input"].dtype)
    with jax.default_matmul_precision("highest"):
        passes = [
            _scan_direction(op, tensors, index, steps, zero, backwards=backwards)
            for index, backwards in enumerate(op.direction.passes)
        ]
    hidden, last = zip(*passes, strict=True)
    states = (jnp.stack(each, 0) for each in zip(*last, strict=True))
    return [jnp.stack(hidden, 1), *states]


def _scan_direction(
    op: Recurrent, tensors: dict[str, Any], index: int, steps: int, zero: Value, *, backwards: bool
) -> tuple[Value, tuple[Value, ...]]:
    """Return the hidden states of all steps of one direction, and the last states."""
    algebra = _Arrays()
    p = ScanDirection(algebra, tensors, index, op.gates, op.functions_of(algebra, index))
    first = tuple(zero if tensors[slot] is None else tensors[slot][index] for slot in op.states)

    def step(states: tuple[Value, ...], position: Any) -> tuple[tuple[Value, ...], Value]:
        x = [algebra.pick(part, position) for part in p.inputs]
        after = op.step(p, x, *states)
        states_after = tuple(
            p.unless_over(position, *pair) for pair in zip(after, states, strict=True)
        )
        return states_after, p.unless_over(position, after[0], zero)

    last, hidden = lax.scan(step, first, jnp.arange(steps), reverse=backwards)
    return hidden, last
