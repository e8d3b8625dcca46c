"""Names and codes of assertions in other systems."""

from __future__ import annotations

from crosschip.ir import Operand
from crosschip.mapping.opsets import NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, refusal
from crosschip.ops.standard.control import Assert


class SingleTensor(Rule):
    """The variadic `data`, for which NNRt has one tensor."""

    slot = "data"
    text = "the data is one tensor"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.slots[self.slot] = [] if operand is None else [operand]

    def export_operand(self, use: Export) -> Operand | None:
        assert isinstance(use.operation, Assert), "only its row has this rule"
        if len(use.operation.data) > 1:
            raise refusal(use, self.slot, "has no operand in the target beyond the first")
        return use.operation.data[0]


map_operator(
    Assert,
    nnrt=(
        NNRt(78, "ASSERT", ("condition", SingleTensor()), parameters={"SUMMARIZE": "summarize"}),
    ),
)
