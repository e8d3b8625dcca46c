"""Names and codes of slicing in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, ModelError, Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    numbers,
    parameter_value,
    refusal,
    slot_operand,
    static_shape,
)
from crosschip.mapping.rules import CastOnExport, PassThrough, TypePromotion
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.slicing import Crop, Slice, StridedSlice


def _bounds(ctx: Export) -> tuple[Array, Array]:
    """Return the first index and the length of a slice on each of its axes."""
    starts, ends = (parameter_value(ctx, slot).reshape(-1) for slot in ("starts", "ends"))
    input, axes_operand = ctx.operation.operand("input"), ctx.operation.operand("axes")
    assert input is not None, "input is required"
    axes = (
        np.arange(starts.size) if axes_operand is None else parameter_value(ctx, "axes").reshape(-1)
    )
    shape = input.type.shape or ()
    sizes = static_shape(tuple(shape[int(axis)] for axis in axes)) if shape else None
    if sizes is None:
        raise refusal(ctx, "ends", "must be on axes of known size in the target")
    ranges = [slice(*pair).indices(n) for *pair, n in zip(starts, ends, sizes, strict=True)]
    begin = np.array([start for start, *_ in ranges], np.int32)
    return begin, np.array([max(stop - start, 0) for start, stop, _ in ranges], np.int32)


class SliceBegin(Rule):
    """The first index of a slice, exported as a nonnegative index."""

    slot = "starts"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(_bounds(ctx)[0], f"{ctx.operation.name}.begin")


class SliceSize(Rule):
    """The length of a slice, which becomes `ends` on import."""

    slot = "ends"
    text = "the third input is a size: `ends` is `starts` and that"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            raise ModelError("size: is missing")
        begin = slot_operand(ctx, "starts")
        if operand.value is None or begin.value is None:
            same = TypePromotion("size", "starts")
            same.import_operand(operand, ctx)
            parts = (ctx.slots["starts"], ctx.slots.pop("size"))
            ctx.slots[self.slot] = ctx.builder.add(Add, *parts)
            return
        total = numbers(begin, "starts") + numbers(operand, "size").astype(np.int64)
        ctx.slots[self.slot] = tuple(total.tolist())

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(_bounds(ctx)[1], f"{ctx.operation.name}.size")


class UnitSteps(Rule):
    """Exports only steps of 1, for which there is no operand."""

    slot = "steps"

    def export_operand(self, ctx: Export) -> Operand | None:
        if ctx.operation.operand(self.slot) is not None:
            steps = parameter_value(ctx, self.slot)
            if np.any(steps != 1):
                raise refusal(ctx, self.slot, f"has no code for {steps.tolist()}")
        return None


_BOUNDS = (
    # Clipping to int32 is exact: larger values only mean the end of an axis.
    CastOnExport("starts", ElementType.INT32),
    CastOnExport("ends", ElementType.INT32),
)

map_operator(
    Slice,
    nnadapter=NNAdapter(76, ("input", "axes", *_BOUNDS, "steps")),
    nnrt=(
        NNRt(
            29,
            "SLICE",
            ("input", SliceBegin(), SliceSize()),
            parameters={"AXES": "axes"},
            other_rules=(UnitSteps(),),
        ),
    ),
    hdi=(
        HDI(
            135,
            "SLICE_FUSION",
            ("input", SliceBegin(), SliceSize()),
            {"axes": "axes"},
            (UnitSteps(),),
        ),
    ),
    onnx=("Slice",),
)

map_operator(
    StridedSlice,
    nnrt=(
        NNRt(
            37,
            "STRIDED_SLICE",
            ("input", "begin", "end", "strides"),
            parameters={
                "BEGIN_MASK": "begin_mask",
                "END_MASK": "end_mask",
                "ELLIPSIS_MASK": "ellipsis_mask",
                "NEW_AXIS_MASK": "new_axis_mask",
                "SHRINK_AXIS_MASK": "shrink_axis_mask",
            },
        ),
    ),
    hdi=(
        HDI(
            151,
            "STRIDED_SLICE",
            ("input", "begin", "end", "strides"),
            attributes={
                "beginMask": "begin_mask",
                "endMask": "end_mask",
                "ellipsisMask": "ellipsis_mask",
                "newAxisMask": "new_axis_mask",
                "shrinkAxisMask": "shrink_axis_mask",
            },
        ),
    ),
)

map_operator(
    Crop,
    nnrt=(NNRt(91, "CROP", ("input", "shape"), parameters={"AXIS": "axis", "OFFSET": "offset"}),),
)
