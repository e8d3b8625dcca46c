"""Names and codes of non-maximum suppression in other systems."""

from __future__ import annotations

from crosschip.ir import Operand, TensorType
from crosschip.mapping.opsets import NNAdapter, map_operator
from crosschip.mapping.translation import Export, Import, Rule
from crosschip.ops.standard.layout import Squeeze, Unsqueeze
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices


class FlatIndices(Rule):
    """The third output has one axis there."""

    slot = ""
    text = "the indices are [K]"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.finishing.append(
            lambda outputs: (
                *outputs[:2],
                *(use.builder.add(Squeeze, o, (1,)) for o in outputs[2:]),
            )
        )

    def export_operand(self, use: Export) -> Operand | None:
        for place, column in list(enumerate(use.outputs))[2:]:
            shape = column.type.shape and column.type.shape[:1]
            use.follow(place, TensorType(column.type.element_type, shape), Unsqueeze, (1,))
        return None


map_operator(
    NonMaxSuppression,
    nnadapter=NNAdapter(94, other_rules=(FlatIndices(),), optional_outputs=1),
)

map_operator(
    NonMaxSuppressionIndices,
    onnx=("NonMaxSuppression",),
)
