"""Names and codes of recurrent networks in other systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.ir import ModelError, Operand, TensorType, constant
from crosschip.mapping.opsets import NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    parameter_value,
    refusal,
    slot_operand,
    static_shape,
)
from crosschip.mapping.rules import Ignored, RequiredValue
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Flatten, Reshape, Transpose
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction, DynamicQuantizeLSTM
from crosschip.ops.standard.slicing import Slice

_LAYER_SLOTS = ("weight", "recurrence_weight", "bias", "initial_hidden", "initial_cell")


class ZeroDefault(Rule):
    """A bias or an initial state, which NNRt requires; an omitted one is exported as zeros."""

    def __init__(self, slot: str) -> None:
        self.slot = slot

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None:
            ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        operation = ctx.operation
        assert isinstance(operation, LSTM), "only rows of LSTM have this rule"
        operand = operation.operand(self.slot)
        if operand is not None:
            return operand
        weight = static_shape(operation.weight.type.shape)
        hidden = static_shape(operation.outputs[1].type.shape)
        if weight is None or hidden is None:
            raise refusal(ctx, self.slot, "cannot be omitted in the target")
        shape = (weight[0], 2 * weight[1]) if self.slot == "bias" else hidden
        zeros = np.zeros(shape, operation.input.type.element_type.dtype)
        return constant(zeros, f"{operation.name}.{self.slot}")


class BidirectionalFlag(Rule):
    """The flag whether the LSTM is bidirectional."""

    slot = "direction"
    text = "BIDIRECTIONAL sets `direction`"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        is_bidirectional = operand is not None and bool(number(operand, "BIDIRECTIONAL"))
        ctx.slots[self.slot] = Direction.BIDIRECTIONAL if is_bidirectional else Direction.FORWARD

    def export_operand(self, ctx: Export) -> Operand | None:
        direction = Direction(int(parameter_value(ctx, self.slot).item()))
        if direction is Direction.REVERSE:
            raise refusal(ctx, self.slot, f"has no code for {direction.name}")
        flag = np.array([direction is Direction.BIDIRECTIONAL])
        return constant(flag, f"{ctx.operation.name}.both")


class HasBiasFlag(Rule):
    """The flag whether the bias is used."""

    slot = ""
    text = "with HAS_BIAS false, the bias is left out"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None and not number(operand, "HAS_BIAS"):
            ctx.slots.pop("bias", None)

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(np.array([True]), f"{ctx.operation.name}.has_bias")


class LayerCount(Rule):
    """The number of stacked layers, each of which is imported as an LSTM."""

    slot = ""
    text = (
        "each of NUM_LAYERS is an LSTM with its rows of weights and states; the hidden values of "
        "the directions are side by side, [T, N, D * H], in the first output and between layers"
    )

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        count = 1 if operand is None else int(number(operand, "NUM_LAYERS"))
        passes = 2 if ctx.slots["direction"] is Direction.BIDIRECTIONAL else 1
        by_layer = {slot: ctx.slots[slot] for slot in _LAYER_SLOTS if slot in ctx.slots}
        shape = slot_operand(ctx, "weight").type.shape
        if not shape or count < 1 or shape[0] != count * passes:
            raise ModelError(f"weight: has no rows for {count} layers in {passes} directions")
        shared: dict[str, Any] = {"direction": ctx.slots["direction"]}

        def rows(layer: int) -> dict[str, Any]:
            if count == 1:
                return by_layer
            begin, end = (layer * passes,), ((layer + 1) * passes,)
            return {
                slot: ctx.builder.add(Slice, operand, axes=(0,), starts=begin, ends=end)
                for slot, operand in by_layer.items()
            }

        ctx.slots |= rows(0)

        def finish(outputs: tuple[Operand, ...]) -> tuple[Operand, ...]:
            states = [outputs[1:]]
            hidden = _flatten_directions(ctx, outputs[0])
            for layer in range(1, count):
                outputs = ctx.builder.add_all(LSTM, input=hidden, **rows(layer), **shared)
                hidden = _flatten_directions(ctx, outputs[0])
                states.append(outputs[1:])
            if count == 1:
                return (hidden, *outputs[1:])
            final = (ctx.builder.add(Concat, list(parts), 0) for parts in zip(*states, strict=True))
            return (hidden, *final)

        ctx.postprocessing.append(finish)

    def export_operand(self, ctx: Export) -> Operand | None:
        type_ = ctx.outputs[0].type
        shape = static_shape(type_.shape)
        if shape is None:
            raise refusal(ctx, "input", "must have a known shape in the target")
        steps, passes, batch, size = shape
        batch_second = TensorType(type_.element_type, (steps, batch, passes, size))
        flat = TensorType(type_.element_type, (steps, batch, passes * size))
        ctx.replace_output(0, batch_second, Transpose, (0, 2, 1, 3))
        ctx.replace_output(0, flat, Reshape, (steps, batch, passes, size))
        return constant(np.array([1], np.int64), f"{ctx.operation.name}.layers")


def _flatten_directions(ctx: Import, hidden: Operand) -> Operand:
    """Convert hidden values [T, D, N, H] to [T, N, D * H]."""
    return ctx.builder.add(Flatten, ctx.builder.add(Transpose, hidden, (0, 2, 1, 3)), 2, 3)


map_operator(RNN, onnx=["RNN"])
map_operator(GRU, onnx=["GRU"])

map_operator(
    LSTM,
    nnrt=[
        NNRt(
            75,
            "LSTM",
            (
                *("input", "weight", "recurrence_weight", ZeroDefault("bias")),
                *(ZeroDefault("initial_hidden"), ZeroDefault("initial_cell")),
            ),
            {
                "BIDIRECTIONAL": BidirectionalFlag(),
                "HAS_BIAS": HasBiasFlag(),
                "NUM_LAYERS": LayerCount(),
                "INPUT_SIZE": Ignored(),
                "HIDDEN_SIZE": Ignored(),
                "NUM_DIRECTIONS": Ignored(),
                "DROPOUT": Ignored(),
                "ZONEOUT_CELL": RequiredValue("ZONEOUT_CELL", 0),
                "ZONEOUT_HIDDEN": RequiredValue("ZONEOUT_HIDDEN", 0),
                "PROJ_SIZE": RequiredValue("PROJ_SIZE", 0),
            },
            outputs=3,
        )
    ],
    onnx=["LSTM"],
)

map_operator(DynamicQuantizeLSTM)
