"""Names and codes of changes of shape and axis order in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    parameter_value,
    rank_of,
    refusal,
    slot_operand,
)
from crosschip.mapping.rules import Ignored, SingleAxis
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze


class FlattenAxis(Rule):
    """The axis at which NNRt's FLATTEN splits a shape into two flattened axes."""

    slot = "start_axis"
    text = "the axes before AXIS become one, and those from it on another"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        input = slot_operand(ctx, "input")
        rank = rank_of(input, "input")
        axis = 1 if operand is None else int(number(operand, "axis"))
        axis += rank if axis < 0 else 0
        if not 0 <= axis <= rank:
            raise ModelError(f"axis: is {axis}, but there are {rank} axes")
        if axis == 0:
            ctx.slots |= {"start_axis": 0, "end_axis": -1}
            ctx.postprocessing.append(
                lambda outputs: (ctx.builder.add(Unsqueeze, outputs[0], (0,)),)
            )
            return
        tail = (Unsqueeze, (-1,)) if axis == rank else (Flatten, axis, -1)
        ctx.slots["input"] = ctx.builder.add(tail[0], input, *tail[1:])
        ctx.slots |= {"start_axis": 0, "end_axis": axis - 1}

    def export_operand(self, ctx: Export) -> Operand | None:
        rank = len((ctx.operation.inputs[0].type.shape if ctx.operation.inputs[0] else None) or ())
        start, end = (int(parameter_value(ctx, slot).item()) for slot in ("start_axis", "end_axis"))
        start, end = (axis + rank if axis < 0 else axis for axis in (start, end))
        if rank > 1 and (start, end) == (1, rank - 1):
            axis = 1
        elif rank > 1 and (start, end) == (0, rank - 2):
            axis = rank - 1
        else:
            raise refusal(ctx, self.slot, f"has no code for the axes {start} to {end}")
        return constant(np.array([axis], np.int64), f"{ctx.operation.name}.axis")


map_operator(
    Reshape,
    nnadapter=NNAdapter(67, ("input", "shape")),
    nnrt=(NNRt(45, "RESHAPE", ("input", "shape")),),
    hdi=(HDI(119, "RESHAPE", ("input", "shape")),),
    onnx=("Reshape",),
)

map_operator(
    Transpose,
    nnadapter=NNAdapter(89),
    nnrt=(NNRt(41, "TRANSPOSE", ("input", "perm")),),
    hdi=(HDI(162, "TRANSPOSE", ("input", "perm")),),
    onnx=("Transpose",),
)

map_operator(
    Squeeze,
    nnadapter=NNAdapter(81),
    nnrt=(NNRt(35, "SQUEEZE", parameters={"AXIS": "axes"}),),
    hdi=(HDI(147, "SQUEEZE", attributes={"axis": "axes"}),),
    onnx=("Squeeze",),
)

map_operator(
    Unsqueeze,
    nnadapter=NNAdapter(90),
    nnrt=(
        NNRt(13, "EXPAND_DIMS", ("input", SingleAxis())),
        NNRt(55, "UNSQUEEZE", parameters={"AXIS": "axes"}),
    ),
    hdi=(
        HDI(165, "UNSQUEEZE", attributes={"axis": "axes"}),
        HDI(56, "EXPAND_DIMS", ("input", SingleAxis())),
    ),
    onnx=("Unsqueeze",),
)

map_operator(
    Flatten,
    nnadapter=NNAdapter(26),
    nnrt=(
        NNRt(64, "FLATTEN", parameters={"AXIS": FlattenAxis()}, other_rules=(Ignored("end_axis"),)),
    ),
    onnx=("Flatten",),
)

map_operator(
    Expand,
    nnadapter=NNAdapter(23),
    nnrt=(NNRt(69, "BROADCAST_TO", parameters={"SHAPE": "shape"}),),
    onnx=("Expand",),
)
