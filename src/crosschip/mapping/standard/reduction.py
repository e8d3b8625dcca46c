"""Names and codes of reductions in other systems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    numbers,
    parameter_value,
    rank_of,
    refusal,
    slot_operand,
)
from crosschip.mapping.rules import BoolCast, NumericFlag, PassThrough, Selector, SingleAxis
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.reduction import (
    CumProd,
    CumSum,
    ReduceAll,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)


class ReducedAxes(Rule):
    """The axes; an empty list, which means all, is exported as all axes."""

    slot = "axes"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        axes = parameter_value(ctx, self.slot)
        if axes.size:
            return PassThrough(self.slot).export_operand(ctx)
        input = ctx.operation.inputs[0]
        if input is None or input.type.shape is None:
            raise refusal(ctx, self.slot, "must be listed in the target, but are unknown")
        axes = np.arange(len(input.type.shape), dtype=np.int32)
        return constant(axes, f"{ctx.operation.name}.axes")


class ReduceToEnd(Rule):
    """The flag whether to reduce the first of `axes` and all axes after it."""

    slot = ""
    text = "with REDUCE_TO_END, `axes` are the first that is named and all after it"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None or not number(operand, "REDUCE_TO_END"):
            return
        rank = rank_of(slot_operand(ctx, "input"), "input")
        axes = numbers(slot_operand(ctx, "axes"), "axes")
        if not axes.size:
            raise ModelError("axes: must have the one to begin with")
        axis = int(axes[0])
        ctx.slots["axes"] = tuple(range(axis % rank if rank else 0, rank))


class Coefficient(Rule):
    """A factor of the result."""

    slot = ""
    text = "a COEFF other than 0 (not set) and 1 multiplies the result"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        factor = 0 if operand is None else number(operand, "COEFF")
        if factor in (0, 1):
            return

        def finish(outputs: tuple[Operand, ...]) -> tuple[Operand, ...]:
            array = np.array(factor, outputs[0].type.element_type.dtype)
            return (ctx.builder.add(Mul, outputs[0], array),)

        ctx.postprocessing.append(finish)


class ReduceToEndCoefficient(Coefficient):
    """A factor of a mean or product, which applies if `ReduceToEnd` is true."""

    text = "a coeff other than 0 (not set) and 1 multiplies what is reduced to the end"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if isinstance(ctx.slots["axes"], tuple):  # set by ReduceToEnd; otherwise an operand
            super().import_operand(operand, ctx)


_KEEP_DIMS = PassThrough("keepdim", default=False)


def reduce_operator(code: int, name: str) -> NNRt:
    """Return the mapping to NNRt's operator `REDUCE_<name>`."""
    parameters: Mapping[str, str | Rule] = {
        "KEEP_DIMS": _KEEP_DIMS,
        "REDUCE_TO_END": ReduceToEnd(),
        "COEFF": Coefficient(),
    }
    return NNRt(code, f"REDUCE_{name}", ("input", ReducedAxes()), parameters)


def reduce_node(
    code: int, name: str, input: str | Rule = "input", since: tuple[int, int] = (1, 0)
) -> HDI:
    """Return the mapping to the REDUCE_FUSION node with one ReduceMode."""
    factor: Mapping[str, str | Rule] = {"coeff": ReduceToEndCoefficient()} if code in (0, 3) else {}
    attributes: Mapping[str, str | Rule] = {
        "mode": Selector("mode", f"{code} {name}", code.__eq__, np.array(code)),
        "keepDims": "keepdim",
        "reduceToEnd": ReduceToEnd(),
        **factor,
    }
    return HDI(118, "REDUCE_FUSION", (input, ReducedAxes()), attributes, since=since)


_ARG_MAX_NODE = HDI(
    11,
    "ARGMAX_FUSION",
    ("input",),
    {
        "axis": SingleAxis(),
        "keepDims": "keepdim",
        "topK": Selector("topK", "1", lambda k: k == 1, np.array(1)),
        "outMaxValue": Selector("outMaxValue", "true", bool, np.array(True)),
    },
)

_ARG_MAX = NNRt(
    54,
    "ARG_MAX",
    ("input",),
    {
        "AXIS": SingleAxis(-1),
        "KEEPDIMS": _KEEP_DIMS,
        "TOP_K": Selector("TOP_K", "1", lambda k: k == 1, np.array([1], np.int64), 1),
        "OUT_MAX_VALUE": Selector("OUT_MAX_VALUE", "true", bool, np.array([True])),
    },
)

map_operator(
    ReduceSum,
    nnadapter=NNAdapter(64),
    nnrt=[reduce_operator(101, "SUM")],
    hdi=[reduce_node(4, "SUM")],
    onnx=["ReduceSum"],
)

map_operator(
    ReduceProd,
    nnrt=[reduce_operator(50, "PROD")],
    hdi=[reduce_node(3, "PROD")],
    onnx=["ReduceProd"],
)

map_operator(
    ReduceMax,
    nnadapter=NNAdapter(63),
    nnrt=[reduce_operator(99, "MAX"), _ARG_MAX],
    hdi=[reduce_node(1, "MAX"), _ARG_MAX_NODE],
    onnx=["ReduceMax"],
)

map_operator(
    ReduceMin, nnrt=[reduce_operator(100, "MIN")], hdi=[reduce_node(2, "MIN")], onnx=["ReduceMin"]
)

map_operator(
    ReduceMean,
    nnadapter=NNAdapter(62),
    nnrt=[reduce_operator(42, "MEAN")],
    hdi=[reduce_node(0, "MEAN")],
    onnx=["ReduceMean"],
)

map_operator(
    ReduceAll,
    nnrt=[
        reduce_operator(51, "ALL"),
        NNRt(77, "ALL", (BoolCast("input"), ReducedAxes()), {"KEEP_DIMS": NumericFlag("keepdim")}),
    ],
    hdi=[reduce_node(7, "ALL", BoolCast("input"))],
)

map_operator(ReduceL1, hdi=[reduce_node(6, "ASUM")], onnx=["ReduceL1"])
map_operator(ReduceSumSquare, hdi=[reduce_node(5, "SUM_SQUARE")], onnx=["ReduceSumSquare"])

map_operator(
    ReduceL2,
    nnrt=[reduce_operator(106, "L2")],
    hdi=[reduce_node(8, "L2", since=(2, 1))],
    onnx=["ReduceL2"],
)

map_operator(ReduceLogSum, onnx=["ReduceLogSum"])
map_operator(ReduceLogSumExp, onnx=["ReduceLogSumExp"])
map_operator(CumSum, nnadapter=NNAdapter(17), onnx=["CumSum"])
map_operator(CumProd, onnx=["CumProd"])
