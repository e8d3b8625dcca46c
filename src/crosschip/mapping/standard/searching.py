"""Names and codes of searches in other systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import AnyInteger, Case, Told, number
from crosschip.mapping.translation import (
    Export,
    Import,
    Passed,
    Rule,
    TypeOfOutput,
    refusal,
)
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, TopK, Unique
from crosschip.ops.standard.slicing import Slice


class Descending(Rule):
    """A flag that the greatest come first; else they come last."""

    slot = "sorted"
    text = "with SORTED false, both outputs are reversed"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is None or number(operand, "SORTED"):
            return
        axis = use.slots["axis"]
        place = int(number(axis, "axis")) if isinstance(axis, Operand) else -1

        def finish(outputs: tuple[Operand, ...]) -> tuple[Operand, ...]:
            return tuple(
                use.builder.add(
                    Slice, one, axes=(place,), starts=(-1,), ends=(_FIRST,), steps=(-1,)
                )
                for one in outputs
            )

        use.finishing.append(finish)

    def export_operand(self, use: Export) -> Operand | None:
        return constant(np.array([True]), f"{use.operation.name}.sorted")


class OneOutput(Rule):
    """One of two outputs, the only one there.

    Args:
        output: its place.
    """

    slot = ""

    def __init__(self, output: int) -> None:
        self._output = output

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if self._output == 1:
            use.slots["return_indices_dtype"] = use.declared[0].element_type
        use.finishing.append(lambda outputs: outputs[self._output : self._output + 1])

    def export_operand(self, use: Export) -> Operand | None:
        raise refusal(use, "k", "there is no number for it where there are two outputs")


_FIRST = -(2**31)
_INDICES = Case("OUT_MAX_VALUE", "false", lambda flag: not flag, np.array([False]))
_VALUES = Case("OUT_MAX_VALUE", "true", bool, np.array([True]))


class SeveralGreatest(Rule):
    """The number of the greatest elements that are found, where it is more than one."""

    slot = "k"
    text = "with TOP_K above 1"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], use: Import) -> bool:
        return operand is not None and number(operand, "TOP_K") != 1

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        return Passed(self.slot).export_operand(use)


def _several(values: bool) -> NNRt:
    return NNRt(
        *(54, "ARG_MAX", ("input",)),
        {
            "AXIS": Passed("axis", default=-1),
            "KEEPDIMS": Told(),
            "TOP_K": SeveralGreatest(),
            "OUT_MAX_VALUE": _VALUES if values else _INDICES,
        },
        (OneOutput(0 if values else 1),),
    )


def _case_of_values(values: bool) -> Case:
    text = str(values).lower()
    return Case("outMaxValue", text, lambda flag: bool(flag) == values, np.array(values))


def _several_node(values: bool) -> HDI:
    return HDI(
        *(11, "ARGMAX_FUSION", ("input",)),
        {"axis": "axis", "topK": SeveralGreatest(), "outMaxValue": _case_of_values(values)},
        (OneOutput(0 if values else 1),),
    )


map_operator(
    ArgMax,
    nnadapter=NNAdapter(5, ("input", "axis", "keepdim", "dtype")),
    nnrt=[
        NNRt(
            *(54, "ARG_MAX", ("input",)),
            {
                "AXIS": Passed("axis", default=-1),
                "KEEPDIMS": Passed("keepdim", default=False),
                "TOP_K": Case("TOP_K", "1", lambda k: k == 1, np.array([1], np.int64), 1),
                "OUT_MAX_VALUE": _INDICES,
            },
            (TypeOfOutput("dtype"),),
        )
    ],
    hdi=[
        HDI(
            *(11, "ARGMAX_FUSION", ("input",)),
            {
                "axis": "axis",
                "keepDims": "keepdim",
                "topK": Case("topK", "1", lambda k: k == 1, np.array(1)),
                "outMaxValue": _case_of_values(False),
            },
            (TypeOfOutput("dtype"),),
        )
    ],
    onnx=["ArgMax"],
)

map_operator(
    ArgMin,
    nnadapter=NNAdapter(6, ("input", "axis", "keepdim", "dtype")),
    onnx=["ArgMin"],
)

map_operator(
    TopK,
    nnadapter=NNAdapter(88),
    nnrt=[
        NNRt(
            *(53, "TOP_K", ("input", AnyInteger("k"))),
            {"AXIS": Passed("axis", default=-1), "SORTED": Descending()},
            (TypeOfOutput("return_indices_dtype", 1),),
            outputs=2,
        ),
        *(_several(values) for values in (False, True)),
    ],
    hdi=[
        HDI(
            *(161, "TOPK_FUSION", ("input", AnyInteger("k"))),
            {"axis": "axis", "sorted": Descending()},
            (TypeOfOutput("return_indices_dtype", 1),),
        ),
        *(_several_node(values) for values in (False, True)),
    ],
    onnx=["TopK"],
)

map_operator(
    NonZero,
    onnx=("NonZero",),
)

map_operator(
    Unique,
    onnx=("Unique",),
)
