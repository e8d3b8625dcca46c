"""Names and codes of matrix operators in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.mapping.layer_rules import ActivationCode, ProductBias, SeparateActivation
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, number, slot_operand
from crosschip.ops.standard.layout import Flatten
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul, MatMulNBits


class UseAxisFlag(Rule):
    """The flag whether to flatten the input; the rule of the axis reads it from slot `axis`."""

    slot = ""

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.slots["axis"] = None if operand is None else bool(number(operand, "USE_AXIS"))


class FlattenAxis(Rule):
    """The first axis to flatten, in NNRt's FULL_CONNECTION."""

    slot = ""
    text = "with AXIS or USE_AXIS, the input is flattened from AXIS, 0 by default, on"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        used = ctx.slots.pop("axis")
        if operand is not None and used is False:
            raise ModelError("AXIS: is given, but USE_AXIS is false")
        if operand is not None or used:
            axis = 0 if operand is None else int(number(operand, "AXIS"))
            ctx.slots["input"] = ctx.builder.add(Flatten, slot_operand(ctx, "input"), axis, -1)


class FlattenAxisIfUsed(Rule):
    """The first axis to flatten, in FULL_CONNECTION of the driver interface."""

    slot = ""
    text = "with useAxis, the input is flattened from `axis` on"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if ctx.slots.pop("axis"):
            axis = 0 if operand is None else int(number(operand, "axis"))
            ctx.slots["input"] = ctx.builder.add(Flatten, slot_operand(ctx, "input"), axis, -1)


class HasBiasFlag(Rule):
    """The flag whether to use the bias; if the flag is omitted, an existing bias is used."""

    slot = ""
    text = "without HAS_BIAS, `bias` is not looked at"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None and not number(operand, "HAS_BIAS"):
            ctx.slots.pop("bias", None)

    def export_operand(self, ctx: Export) -> Operand | None:
        has_bias = ctx.operation.operand("bias") is not None
        return constant(np.array([has_bias]), f"{ctx.operation.name}.has_bias")


map_operator(
    MatMul,
    nnadapter=NNAdapter(47),
    nnrt=[
        NNRt(
            19,
            "MATMUL",
            ("x", "y"),
            {
                "TRANSPOSE_A": "transpose_x",
                "TRANSPOSE_B": "transpose_y",
                "ACTIVATION_TYPE": SeparateActivation(),
            },
        )
    ],
    hdi=[
        HDI(
            89,
            "MATMUL_FUSION",
            ("x", "y"),
            {
                "transposeA": "transpose_x",
                "transposeB": "transpose_y",
                "activationType": ActivationCode(),
            },
        )
    ],
    onnx=["MatMul", "com.microsoft.FusedMatMul"],
)

map_operator(
    FullyConnected,
    nnadapter=NNAdapter(29),
    nnrt=[
        NNRt(
            15,
            "FULL_CONNECTION",
            ("input", "weight", ProductBias("weight", required=False)),
            {
                "USE_AXIS": UseAxisFlag(),
                "AXIS": FlattenAxis(),
                "ACTIVATIONTYPE": "fuse_code",
                "HAS_BIAS": HasBiasFlag(),
            },
        )
    ],
    hdi=[
        HDI(
            67,
            "FULL_CONNECTION",
            ("input", "weight", ProductBias("weight", required=False)),
            {
                "useAxis": UseAxisFlag(),
                "axis": FlattenAxisIfUsed(),
                "activationType": ActivationCode(),
                "hasBias": HasBiasFlag(),
            },
        )
    ],
    onnx=["Gemm"],
)

map_operator(Det, onnx=["Det"])
map_operator(MatMulNBits)
