"""Names and codes of non-maximum suppression in other systems."""

from __future__ import annotations

from crosschip.ir import Operand, TensorType
from crosschip.mapping.opsets import NNAdapter, map_operator
from crosschip.mapping.rule import Export, Import, Rule
from crosschip.ops.standard.layout import Squeeze, Unsqueeze
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices


class FlatIndices(Rule):
    """The third output: [K, 1] here, [K] in NNAdapter."""

    slot = ""
    text = "the indices are [K]"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.postprocessing.append(
            lambda outputs: (
                *outputs[:2],
                *(ctx.builder.add(Squeeze, o, (1,)) for o in outputs[2:]),
            )
        )

    def export_operand(self, ctx: Export) -> Operand | None:
        for index, output in list(enumerate(ctx.outputs))[2:]:
            shape = output.type.shape and output.type.shape[:1]
            ctx.replace_output(index, TensorType(output.type.element_type, shape), Unsqueeze, (1,))
        return None


map_operator(
    NonMaxSuppression, nnadapter=NNAdapter(94, other_rules=(FlatIndices(),), optional_outputs=1)
)

map_operator(NonMaxSuppressionIndices, onnx=("NonMaxSuppression",))
