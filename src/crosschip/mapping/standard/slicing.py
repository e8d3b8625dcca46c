"""Names and codes of slicing in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, ModelError, Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import Promoted, filled, numbers, shape_known, value_in
from crosschip.mapping.translation import (
    Export,
    Import,
    Passed,
    Rule,
    Written,
    refusal,
)
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.slicing import Crop, Slice, StridedSlice


def _bounds(use: Export) -> tuple[Array, Array]:
    """The place where a slice begins, and its length, on each of its axes."""
    starts, ends = (value_in(use, slot).reshape(-1) for slot in ("starts", "ends"))
    input, listed = use.operation.operand("input"), use.operation.operand("axes")
    assert input is not None, "there is an input"
    axes = np.arange(starts.size) if listed is None else value_in(use, "axes").reshape(-1)
    shape = input.type.shape or ()
    sizes = shape_known(tuple(shape[int(axis)] for axis in axes)) if shape else None
    if sizes is None:
        raise refusal(use, "ends", "must be on axes of known size there")
    places = [slice(*pair).indices(n) for *pair, n in zip(starts, ends, sizes, strict=True)]
    begin = np.array([start for start, *_ in places], np.int32)
    return begin, np.array([max(stop - start, 0) for start, stop, _ in places], np.int32)


class BeginOfSlice(Rule):
    """The place where a slice begins, which is not counted from the end there."""

    slot = "starts"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        return constant(_bounds(use)[0], f"{use.operation.name}.begin")


class SizeOfSlice(Rule):
    """The length of a slice."""

    slot = "ends"
    text = "the third input is a size: `ends` is `starts` and that"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is None:
            raise ModelError("size: is missing")
        begin = filled(use, "starts")
        if operand.value is None or begin.value is None:
            same = Promoted("size", "starts")
            same.import_operand(operand, use)
            parts = (use.slots["starts"], use.slots.pop("size"))
            use.slots[self.slot] = use.builder.add(Add, *parts)
            return
        total = numbers(begin, "starts") + numbers(operand, "size").astype(np.int64)
        use.slots[self.slot] = tuple(total.tolist())

    def export_operand(self, use: Export) -> Operand | None:
        return constant(_bounds(use)[1], f"{use.operation.name}.size")


class UnitSteps(Rule):
    """Steps, all of which are 1 there."""

    slot = "steps"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        if use.operation.operand(self.slot) is not None:
            steps = value_in(use, self.slot)
            if np.any(steps != 1):
                raise refusal(use, self.slot, f"there is no number for {steps.tolist()}")
        return None


_PLACES = (
    # No axis is as long as the places that stand for its end.
    Written("starts", ElementType.INT32),
    Written("ends", ElementType.INT32),
)

map_operator(
    Slice,
    nnadapter=NNAdapter(76, ("input", "axes", *_PLACES, "steps")),
    nnrt=(
        NNRt(
            *(29, "SLICE", ("input", BeginOfSlice(), SizeOfSlice())),
            parameters={"AXES": "axes"},
            other_rules=(UnitSteps(),),
        ),
    ),
    hdi=(
        HDI(
            135,
            "SLICE_FUSION",
            ("input", BeginOfSlice(), SizeOfSlice()),
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
            *(37, "STRIDED_SLICE", ("input", "begin", "end", "strides")),
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
            *(151, "STRIDED_SLICE", ("input", "begin", "end", "strides")),
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
    nnrt=(
        NNRt(
            *(91, "CROP", ("input", "shape")),
            parameters={"AXIS": "axis", "OFFSET": "offset"},
        ),
    ),
)
