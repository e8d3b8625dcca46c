"""Recurrent networks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import ModelError, Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction, DynamicQuantizeLSTM

_OPERATORS: dict[str, type[Operator]] = {"RNN": RNN, "GRU": GRU, "LSTM": LSTM}
_DEFAULTS = {
    "RNN": ("Tanh",),
    "GRU": ("Sigmoid", "Tanh"),
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "DynamicQuantizeLSTM": ("Sigmoid", "Tanh", "Tanh"),
}
_DIRECTIONS = {
    "forward": Direction.FORWARD,
    "reverse": Direction.REVERSE,
    "bidirectional": Direction.BIDIRECTIONAL,
}
_FUNCTIONS = {function.name.replace("_", "").lower(): function for function in CellFunction}
_ALPHA = {
    CellFunction.AFFINE: 1.0,
    CellFunction.ELU: 1.0,
    CellFunction.HARD_SIGMOID: 0.2,
    CellFunction.LEAKY_RELU: 0.01,
    CellFunction.SCALED_TANH: 1.0,
    CellFunction.THRESHOLDED_RELU: 1.0,
}
_BETA = {CellFunction.AFFINE: 0.0, CellFunction.HARD_SIGMOID: 0.5, CellFunction.SCALED_TANH: 1.0}


@imports(*_OPERATORS)
def recurrent(node: Node) -> list[Operand]:
    """Import RNN, GRU or LSTM; with `layout` 1, the batch is the first axis of all tensors."""
    _check_hidden_size(node, node[2])
    direction = _direction(node)
    by_batch = node.opset >= 14 and node.flag("layout")
    arguments: dict[str, object] = {
        "input": _swap_batch(node, node[0], by_batch),
        "weight": node[1],
        "recurrence_weight": node[2],
        "bias": node.optional(3),
        "sequence_lengths": node.optional(4),
        "initial_hidden": _swap_batch(node, node.optional(5), by_batch),
        "direction": direction,
        "clip": node.real("clip", math.inf),
        **_activations(node, len(direction.passes)),
    }
    if node.type == "LSTM":
        arguments["initial_cell"] = _swap_batch(node, node.optional(6), by_batch)
        arguments["peephole"] = node.optional(7)
        arguments["input_forget"] = node.flag("input_forget")
    if node.type == "GRU":
        arguments["linear_before_reset"] = node.flag("linear_before_reset")
    hidden, *last = node.add_all(_OPERATORS[node.type], **arguments)
    if not by_batch:
        return [hidden, *last]
    by_batch_first = node.add(Transpose, hidden, (2, 0, 1, 3))
    return [by_batch_first, *(node.add(Transpose, state, (1, 0, 2)) for state in last)]


@imports(f"{DOMAIN}.DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: Node) -> Sequence[Operand]:
    """Import DynamicQuantizeLSTM, whose weights have their last two axes swapped."""
    weight, recurrence_weight = (node.add(Transpose, node[n], (0, 2, 1)) for n in (1, 2))
    _check_hidden_size(node, recurrence_weight)
    direction = _direction(node)
    return node.add_all(
        DynamicQuantizeLSTM,
        node[0],
        weight,
        recurrence_weight,
        bias=node.optional(3),
        sequence_lengths=node.optional(4),
        initial_hidden=node.optional(5),
        initial_cell=node.optional(6),
        peephole=node.optional(7),
        weight_scale=node[8],
        weight_zero_point=node[9],
        recurrence_weight_scale=node[10],
        recurrence_weight_zero_point=node[11],
        direction=direction,
        clip=node.real("clip", math.inf),
        input_forget=node.flag("input_forget", False),
        **_activations(node, len(direction.passes)),
    )


def _direction(node: Node) -> Direction:
    text = node.text("direction", "forward")
    return _DIRECTIONS[only("direction", text, *_DIRECTIONS)]


def _check_hidden_size(node: Node, recurrence_weight: Operand) -> None:
    """Raise `ModelError` if `hidden_size` differs from the weights'."""
    shape = recurrence_weight.type.shape
    actual = shape[-1] if shape else None
    stated = node.integer("hidden_size", actual if isinstance(actual, int) else 0)
    if isinstance(actual, int) and stated != actual:
        raise ModelError(f"hidden_size is {stated}, but the recurrence weights have {actual}")


def _swap_batch(node: Node, operand: Operand | None, by_batch: bool) -> Operand | None:
    if operand is None or not by_batch:
        return operand
    return node.add(Transpose, operand, (1, 0, 2))


def _activations(node: Node, passes: int) -> dict[str, object]:
    """Return the functions of all passes; those with parameters take the next listed ones."""
    usual = _DEFAULTS[node.type] * passes
    # The schema of RNN has a default for two passes only.
    names = node.texts("activations") if node.has("activations") else usual
    alphas = iter(node.reals("activation_alpha", ()))
    betas = iter(node.reals("activation_beta", ()))
    functions = [_FUNCTIONS[only("activation", name.lower(), *_FUNCTIONS)] for name in names]
    if [name.lower() for name in names] == [name.lower() for name in usual]:
        return {}
    return {
        "activations": functions,
        "activation_alpha": [next(alphas, _ALPHA[f]) if f in _ALPHA else 0.0 for f in functions],
        "activation_beta": [next(betas, _BETA[f]) if f in _BETA else 0.0 for f in functions],
    }
