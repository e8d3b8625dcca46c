"""Names and codes of matrix operators in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.mapping.nodes import Activated
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import ActivationAfter, ProductBias, filled, number
from crosschip.mapping.translation import Export, Import, Rule
from crosschip.ops.standard.layout import Flatten
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul, MatMulNBits


class UsesAxis(Rule):
    """A flag that the input is flattened from an axis on; that follows it."""

    slot = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.slots["axis"] = None if operand is None else bool(number(operand, "USE_AXIS"))

    def export_operand(self, use: Export) -> Operand | None:
        return None


class FlattenedFrom(Rule):
    """The axis from which on the input is flattened, if it is."""

    slot = ""
    text = "with AXIS or USE_AXIS, the input is flattened from AXIS, 0 by default, on"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        used = use.slots.pop("axis")
        if operand is not None and used is False:
            raise ModelError("AXIS: is given, but USE_AXIS is false")
        if operand is not None or used:
            axis = 0 if operand is None else int(number(operand, "AXIS"))
            use.slots["input"] = use.builder.add(Flatten, filled(use, "input"), axis, -1)

    def export_operand(self, use: Export) -> Operand | None:
        return None


class FlattenedIf(Rule):
    """The axis from which on the input is flattened, where a flag says that it is."""

    slot = ""
    text = "with useAxis, the input is flattened from `axis` on"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if use.slots.pop("axis"):
            axis = 0 if operand is None else int(number(operand, "axis"))
            use.slots["input"] = use.builder.add(Flatten, filled(use, "input"), axis, -1)

    def export_operand(self, use: Export) -> Operand | None:
        return None


class HasBias(Rule):
    """A flag that there is a bias; left out, there is one if it is given."""

    slot = ""
    text = "without HAS_BIAS, `bias` is not looked at"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None and not number(operand, "HAS_BIAS"):
            use.slots.pop("bias", None)

    def export_operand(self, use: Export) -> Operand | None:
        there = use.operation.operand("bias") is not None
        return constant(np.array([there]), f"{use.operation.name}.has_bias")


map_operator(
    MatMul,
    nnadapter=NNAdapter(47),
    nnrt=[
        NNRt(
            *(19, "MATMUL", ("x", "y")),
            {
                "TRANSPOSE_A": "transpose_x",
                "TRANSPOSE_B": "transpose_y",
                "ACTIVATION_TYPE": ActivationAfter(),
            },
        )
    ],
    hdi=[
        HDI(
            *(89, "MATMUL_FUSION", ("x", "y")),
            {
                "transposeA": "transpose_x",
                "transposeB": "transpose_y",
                "activationType": Activated(),
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
            *(15, "FULL_CONNECTION"),
            ("input", "weight", ProductBias("weight", required=False)),
            {
                "USE_AXIS": UsesAxis(),
                "AXIS": FlattenedFrom(),
                "ACTIVATIONTYPE": "fuse_code",
                "HAS_BIAS": HasBias(),
            },
        )
    ],
    hdi=[
        HDI(
            *(67, "FULL_CONNECTION"),
            ("input", "weight", ProductBias("weight", required=False)),
            {
                "useAxis": UsesAxis(),
                "axis": FlattenedIf(),
                "activationType": Activated(),
                "hasBias": HasBias(),
            },
        )
    ],
    onnx=["Gemm"],
)

map_operator(
    Det,
    onnx=["Det"],
)

map_operator(MatMulNBits)
