"""Names and codes of control of a run in other systems."""

from __future__ import annotations

from crosschip.ir import Operand
from crosschip.mapping.opsets import NNRt, map_operator
from crosschip.mapping.translation import Export, Import, Rule, refusal
from crosschip.ops.standard.control import Assert


class OneTensor(Rule):
    """The data that is passed on, which is one tensor there."""

    slot = "data"
    text = "the data is one tensor"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.slots[self.slot] = [] if operand is None else [operand]

    def export_operand(self, use: Export) -> Operand | None:
        assert isinstance(use.operation, Assert), "its row has this rule"
        if len(use.operation.data) > 1:
            raise refusal(use, self.slot, "has no operand there beyond the first")
        return use.operation.data[0]


map_operator(
    Assert,
    nnrt=(
        NNRt(
            *(78, "ASSERT", ("condition", OneTensor())),
            parameters={"SUMMARIZE": "summarize"},
        ),
    ),
)
