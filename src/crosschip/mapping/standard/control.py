"""Names and codes of assertions in other systems."""

from __future__ import annotations

from crosschip.ir import Operand
from crosschip.mapping.opsets import NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, refusal
from crosschip.ops.standard.control import Assert


class SingleTensor(Rule):
    """Imports NNRt's single tensor as the variadic slot `data`."""

    slot = "data"
    text = "the data is one tensor"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.slots[self.slot] = [] if operand is None else [operand]

    def export_operand(self, ctx: Export) -> Operand | None:
        assert isinstance(ctx.operation, Assert), "only rows of ASSERT have this rule"
        if len(ctx.operation.data) > 1:
            raise refusal(ctx, self.slot, "has no operand in the target beyond the first")
        return ctx.operation.data[0]


map_operator(
    Assert,
    nnrt=(
        NNRt(78, "ASSERT", ("condition", SingleTensor()), parameters={"SUMMARIZE": "summarize"}),
    ),
)
