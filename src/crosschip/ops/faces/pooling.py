"""Names and codes of pooling in other systems."""

from __future__ import annotations

from dataclasses import dataclass

from crosschip.ir import Operand
from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, refusal
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptiveMaxPool2D,
    AveragePool2D,
    MaxPool2D,
)


@dataclass(frozen=True, slots=True)
class OfSizesOnly(Rule):
    """A slot that has no operand, and that only decides how many windows there are.

    Args:
        slot: the slot.
    """

    slot: str

    def inward(self, operand: Operand | None, use: Inward) -> None:
        return

    def outward(self, use: Outward) -> Operand | None:
        operation = use.operation
        if operation.operand(self.slot) is not None:
            inputs = list(operation.inputs)
            inputs[getattr(type(operation), self.slot).index] = None
            shapes = [made.shape for made in operation.with_inputs(tuple(inputs)).infer()]
            if shapes != [made.type.shape for made in operation.outputs]:
                raise refusal(use, self.slot, "has no operand there, and there are other windows")
        return None


_INSIDE = OfSizesOnly("inside")

_WINDOW_OPERANDS = ("input", "auto_pad", "pads", "kernel_shape", "strides", "ceil_mode")

_NNRT_PARAMETERS = {
    "KERNEL_SIZE": "kernel_shape",
    "STRIDE": "strides",
    "PAD_MODE": "auto_pad",
    "PAD": "pads",
    "ACTIVATION_TYPE": "fuse_code",
    "ROUND_MODE": "ceil_mode",
    "GLOBAL": "",
}

_NNRT_TRANSLATION = (
    "input and output are NHWC; PAD_MODE 0 is SAME, 1 and 2 are VALID; with PAD, auto_pad is NONE; "
    "with GLOBAL, kernel_shape is the image's"
)

faces(
    AveragePool2D,
    nnadapter=NNAdapter(
        8, operands=(*_WINDOW_OPERANDS, "count_include_pad", "fuse_code"), given=(_INSIDE,)
    ),
    nnrt=(NNRt(2, "AVG_POOL", parameters=_NNRT_PARAMETERS, translation=_NNRT_TRANSLATION),),
    hdi=(NodeType.AVGPOOL_FUSION,),
    onnx=("AveragePool",),
)

faces(
    MaxPool2D,
    nnadapter=NNAdapter(
        49,
        operands=(*_WINDOW_OPERANDS, "return_indices", "return_indices_dtype", "fuse_code"),
        given=(_INSIDE,),
        optional_outputs=1,
    ),
    nnrt=(NNRt(21, "MAX_POOL", parameters=_NNRT_PARAMETERS, translation=_NNRT_TRANSLATION),),
    hdi=(NodeType.MAX_POOL_FUSION,),
    onnx=("MaxPool",),
)

faces(
    AdaptiveAveragePool2D,
    nnadapter=NNAdapter(1),
    onnx=("GlobalAveragePool",),
)

faces(
    AdaptiveMaxPool2D,
    nnadapter=NNAdapter(2, optional_outputs=1),
    onnx=("GlobalMaxPool",),
)
