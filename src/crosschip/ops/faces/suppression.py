"""Names and codes of non-maximum suppression in other systems."""

from __future__ import annotations

from crosschip.ir import Operand, TensorType
from crosschip.ops.definition.faces import NNAdapter, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule
from crosschip.ops.standard.layout import Squeeze, Unsqueeze
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices


class FlatIndices(Rule):
    """The third output has one axis there."""

    slot = ""
    text = "the indices are [K]"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        use.finishing.append(
            lambda made: (*made[:2], *(use.builder.add(Squeeze, o, (1,)) for o in made[2:]))
        )

    def outward(self, use: Outward) -> Operand | None:
        for place, column in list(enumerate(use.outputs))[2:]:
            shape = column.type.shape and column.type.shape[:1]
            use.follow(place, TensorType(column.type.element_type, shape), Unsqueeze, (1,))
        return None


faces(
    NonMaxSuppression,
    nnadapter=NNAdapter(94, given=(FlatIndices(),), optional_outputs=1),
)

faces(
    NonMaxSuppressionIndices,
    onnx=("NonMaxSuppression",),
)
