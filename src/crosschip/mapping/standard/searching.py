"""Names and codes of searches in other systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, number, refusal
from crosschip.mapping.rules import AnyInteger, Ignored, PassThrough, Selector, TypeOfOutput
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, TopK, Unique
from crosschip.ops.standard.slicing import Slice


class SortedFlag(Rule):
    """The flag whether the greatest elements come first; otherwise they come last."""

    slot = "sorted"
    text = "with SORTED false, both outputs are reversed"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None or number(operand, "SORTED"):
            return
        axis_operand = ctx.slots["axis"]
        axis = int(number(axis_operand, "axis")) if isinstance(axis_operand, Operand) else -1
        reverse: dict[str, Any] = {"starts": (-1,), "ends": (-(2**31),), "steps": (-1,)}

        def finish(outputs: tuple[Operand, ...]) -> tuple[Operand, ...]:
            return tuple(ctx.builder.add(Slice, out, axes=(axis,), **reverse) for out in outputs)

        ctx.postprocessing.append(finish)

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(np.array([True]), f"{ctx.operation.name}.sorted")


class SelectedOutput(Rule):
    """Imports one of the two outputs of TOP_K.

    Args:
        output: the index of the output.
    """

    slot = ""

    def __init__(self, output: int) -> None:
        self._output = output

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if self._output == 1:
            ctx.slots["return_indices_dtype"] = ctx.declared[0].element_type
        ctx.postprocessing.append(lambda outputs: outputs[self._output : self._output + 1])

    def export_operand(self, ctx: Export) -> Operand | None:
        raise refusal(ctx, "k", "has no code for two outputs")


_INDICES = Selector("OUT_MAX_VALUE", "false", lambda flag: not flag, np.array([False]))
_VALUES = Selector("OUT_MAX_VALUE", "true", bool, np.array([True]))


class TopKCount(Rule):
    """The number of greatest elements, for ARG_MAX with more than one."""

    slot = "k"
    text = "with TOP_K above 1"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], ctx: Import) -> bool:
        return operand is not None and number(operand, "TOP_K") != 1

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        return PassThrough(self.slot).export_operand(ctx)


def _top_k(values: bool) -> NNRt:
    return NNRt(
        54,
        "ARG_MAX",
        ("input",),
        {
            "AXIS": PassThrough("axis", default=-1),
            "KEEPDIMS": Ignored(),
            "TOP_K": TopKCount(),
            "OUT_MAX_VALUE": _VALUES if values else _INDICES,
        },
        (SelectedOutput(0 if values else 1),),
    )


def _case_of_values(values: bool) -> Selector:
    """Select the output with the values, or else the output with the indices."""
    text = str(values).lower()
    return Selector("outMaxValue", text, lambda flag: bool(flag) == values, np.array(values))


def _top_k_node(values: bool) -> HDI:
    return HDI(
        11,
        "ARGMAX_FUSION",
        ("input",),
        {"axis": "axis", "topK": TopKCount(), "outMaxValue": _case_of_values(values)},
        (SelectedOutput(0 if values else 1),),
    )


map_operator(
    ArgMax,
    nnadapter=NNAdapter(5, ("input", "axis", "keepdim", "dtype")),
    nnrt=[
        NNRt(
            54,
            "ARG_MAX",
            ("input",),
            {
                "AXIS": PassThrough("axis", default=-1),
                "KEEPDIMS": PassThrough("keepdim", default=False),
                "TOP_K": Selector("TOP_K", "1", lambda k: k == 1, np.array([1], np.int64), 1),
                "OUT_MAX_VALUE": _INDICES,
            },
            (TypeOfOutput("dtype"),),
        )
    ],
    hdi=[
        HDI(
            11,
            "ARGMAX_FUSION",
            ("input",),
            {
                "axis": "axis",
                "keepDims": "keepdim",
                "topK": Selector("topK", "1", lambda k: k == 1, np.array(1)),
                "outMaxValue": _case_of_values(False),
            },
            (TypeOfOutput("dtype"),),
        )
    ],
    onnx=["ArgMax"],
)

map_operator(ArgMin, nnadapter=NNAdapter(6, ("input", "axis", "keepdim", "dtype")), onnx=["ArgMin"])

map_operator(
    TopK,
    nnadapter=NNAdapter(88),
    nnrt=[
        NNRt(
            53,
            "TOP_K",
            ("input", AnyInteger("k")),
            {"AXIS": PassThrough("axis", default=-1), "SORTED": SortedFlag()},
            (TypeOfOutput("return_indices_dtype", 1),),
            outputs=2,
        ),
        *(_top_k(values) for values in (False, True)),
    ],
    hdi=[
        HDI(
            161,
            "TOPK_FUSION",
            ("input", AnyInteger("k")),
            {"axis": "axis", "sorted": SortedFlag()},
            (TypeOfOutput("return_indices_dtype", 1),),
        ),
        *(_top_k_node(values) for values in (False, True)),
    ],
    onnx=["TopK"],
)

map_operator(NonZero, onnx=("NonZero",))
map_operator(Unique, onnx=("Unique",))
