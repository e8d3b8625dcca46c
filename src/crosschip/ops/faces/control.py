"""Names and codes of control of a run in other systems."""

from __future__ import annotations

from crosschip.ir import Operand
from crosschip.ops.definition.faces import NNRt, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, refusal
from crosschip.ops.standard.control import Assert


class OneTensor(Rule):
    """The data that is passed on, which is one tensor there."""

    slot = "data"
    text = "the data is one tensor"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        use.slots[self.slot] = [] if operand is None else [operand]

    def outward(self, use: Outward) -> Operand | None:
        assert isinstance(use.operation, Assert), "its row has this rule"
        if len(use.operation.data) > 1:
            raise refusal(use, self.slot, "has no operand there beyond the first")
        return use.operation.data[0]


faces(
    Assert,
    nnrt=(
        NNRt(
            *(78, "ASSERT", ("condition", OneTensor())),
            parameters={"SUMMARIZE": "summarize"},
        ),
    ),
)
