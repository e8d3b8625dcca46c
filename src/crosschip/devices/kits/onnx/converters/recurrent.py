"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.devices.kits.limits import hidden_size
from crosschip.devices.kits.onnx.converters.table import converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, DynamicQuantizeLSTM, Recurrent

_FUNCTIONS = {
    CellFunction.SIGMOID: ("Sigmoid", 0),
    CellFunction.TANH: ("Tanh", 0),
    CellFunction.RELU: ("Relu", 0),
    CellFunction.AFFINE: ("Affine", 2),
    CellFunction.LEAKY_RELU: ("LeakyRelu", 1),
    CellFunction.THRESHOLDED_RELU: ("ThresholdedRelu", 1),
    CellFunction.SCALED_TANH: ("ScaledTanh", 2),
    CellFunction.HARD_SIGMOID: ("HardSigmoid", 2),
    CellFunction.ELU: ("Elu", 1),
    CellFunction.SOFTSIGN: ("Softsign", 0),
}
"""The ONNX name of each function, and the number of its parameters."""
_TENSORS = (
    *("input", "weight", "recurrence_weight", "bias", "sequence_lengths", "initial_hidden"),
    *("initial_cell", "peephole"),
)


def _limit(op: Recurrent) -> Refusal | None:
    # exp(x) overflows in ONNX Runtime's Softplus (quirk softplus-in-cells).
    if CellFunction.SOFTPLUS in op.activations:
        return Refusal("activations", "SOFTPLUS overflows")
    # ONNX Runtime does not clip the input of the last function (quirk last-function-of-lstm).
    clips = isinstance(op, LSTM) and np.isfinite(op.clip)
    return Refusal("clip", "must be left out") if clips or op.clip == 0 else _size_limit(op)


def _size_limit(op: Recurrent) -> Refusal | None:
    """Require static sizes: an input of size 0 ends the process of ONNX Runtime."""
    sizes = [operand.type.shape[2] for operand in (op.input, op.weight) if operand.type.shape]
    if not any(isinstance(size, int) for size in sizes):
        return Refusal("input", "its last size must be known", Rule.SHAPE)
    return hidden_size(op)


@converts(RNN, GRU, LSTM, types=INDICES | {ElementType.FLOAT32}, limit=_limit, nonempty=True)
def recurrent(g: Graph, op: Recurrent) -> list[str]:
    tensors = _tensors(g, op, _TENSORS)
    while not tensors[-1]:
        tensors.pop()
    return g.add_all(op.type, len(op.outputs), *tensors, **_attributes(op))


def _dynamic_quantize_limit(op: DynamicQuantizeLSTM) -> Refusal | None:
    for slot, weight in (("weight", op.weight), ("recurrence_weight", op.recurrence_weight)):
        if weight.value is None:
            return Refusal(slot, "ONNX Runtime takes constants only", Rule.COMPUTED)
    return _limit(op)


@converts(
    DynamicQuantizeLSTM,
    types=INDICES | {ElementType.FLOAT32, ElementType.INT8, ElementType.UINT8},
    limit=_dynamic_quantize_limit,
    nonempty=True,
)
def dynamic_quantize_lstm(g: Graph, op: DynamicQuantizeLSTM) -> list[str]:
    tensors = _tensors(g, op, [slot for slot in _TENSORS if "weight" not in slot])
    scaled = (
        (op.weight, op.weight_scale, op.weight_zero_point),
        (op.recurrence_weight, op.recurrence_weight_scale, op.recurrence_weight_zero_point),
    )
    for index, (weight, scale, zero_point) in enumerate(scaled, _TENSORS.index("weight")):
        assert weight.value is not None, "the limit requires constants"
        tensors.insert(index, g.constant(np.ascontiguousarray(weight.value.swapaxes(1, 2))))
        if zero_point is None:
            zeros = np.zeros(scale.type.static_shape or (), weight.type.element_type.dtype)
            tensors += [g[scale], g.constant(zeros)]
        else:
            tensors += [g[scale], g[zero_point]]
    count = len(op.outputs)
    return g.add_all_contributed("DynamicQuantizeLSTM", count, *tensors, **_attributes(op))


def _tensors(g: Graph, op: Recurrent, slots: Sequence[str]) -> list[str]:
    """Return the value names of slots; empty for omitted operands and missing slots."""
    names = [g[operand] if (operand := op.operand(slot)) else "" for slot in slots]
    names[slots.index("sequence_lengths")] = _lengths(g, op)
    return names


def _lengths(g: Graph, op: Recurrent) -> str:
    """Return the sequence lengths; fail the run on an empty batch, which ends the process."""
    lengths = g.cast(g[op.sequence_lengths], np.int32) if op.sequence_lengths else ""
    length, batch, _ = op.input.type.shape or (None,) * 3
    if isinstance(op, RNN) or isinstance(batch, int):
        return lengths

    def batch_size() -> str:
        return g.add("Max", g.sizes(op.input, 1, 2), g.int64([1]))

    if lengths:
        return g.add("Reshape", lengths, batch_size())

    def full_lengths() -> str:
        return g.add("Expand", g.cast(g.sizes(op.input, end=1), np.int32), batch_size())

    # Layers of a network share the lengths.
    return g.once((Recurrent, length, batch), full_lengths) if batch else full_lengths()


def _attributes(op: Recurrent) -> dict[str, Any]:
    functions = op.activations or op.functions * len(op.direction.passes)
    alpha = op.activation_alpha or [function.alpha for function in functions]
    beta = op.activation_beta or [function.beta for function in functions]
    attributes = {
        "direction": op.direction.name.lower(),
        "hidden_size": shape_of(op.recurrence_weight)[2],
        "activations": [_FUNCTIONS[function][0] for function in functions],
        "activation_alpha": _used_values(functions, alpha, 1),
        "activation_beta": _used_values(functions, beta, 2),
        "clip": op.clip if np.isfinite(op.clip) else None,
    }
    if isinstance(op, GRU):
        attributes["linear_before_reset"] = int(op.linear_before_reset)
    if isinstance(op, LSTM):
        attributes["input_forget"] = int(op.input_forget)
    return attributes


def _used_values(
    functions: Sequence[CellFunction], values: Sequence[float], parameters: int
) -> list[float] | None:
    """Return the values for functions with that many parameters: ONNX lists no others."""
    used = [
        value
        for function, value in zip(functions, values, strict=True)
        if _FUNCTIONS[function][1] >= parameters
    ]
    return used or None
