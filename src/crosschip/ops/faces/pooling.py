"""Names and codes of pooling in other systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosschip.ir import ModelError, Operand
from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, refusal
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.faces.rules import (
    ChannelsLast,
    ChannelsLastOutput,
    Padding,
    PaddingMode,
    filled,
    number,
)
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


class WholeImage(Rule):
    """A flag that one window is the whole image."""

    slot = ""
    text = "with GLOBAL, `kernel_shape` is the image's"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        if operand is None or not number(operand, "GLOBAL"):
            return
        sizes = (filled(use, "input").type.shape or ())[2:]
        if not all(isinstance(size, int) for size in sizes):
            raise ModelError("input: must have a known height and width, as GLOBAL is given")
        use.slots |= {"kernel_shape": sizes, "strides": (1, 1), "pads": (0, 0, 0, 0)}
        use.slots["auto_pad"] = AutoPad.NONE

    def outward(self, use: Outward) -> Operand | None:
        return None


_NNRT_PARAMETERS: Mapping[str, str | Rule] = {
    "KERNEL_SIZE": "kernel_shape",
    "STRIDE": "strides",
    "PAD_MODE": PaddingMode(),
    "PAD": Padding(),
    "ACTIVATION_TYPE": "fuse_code",
    "ROUND_MODE": "ceil_mode",
    "GLOBAL": WholeImage(),
}


def _nnrt(code: int, name: str) -> NNRt:
    return NNRt(
        code,
        name,
        inputs=(ChannelsLast("input"),),
        parameters=_NNRT_PARAMETERS,
        given=(ChannelsLastOutput(), _INSIDE),
    )


faces(
    AveragePool2D,
    nnadapter=NNAdapter(
        8, operands=(*_WINDOW_OPERANDS, "count_include_pad", "fuse_code"), given=(_INSIDE,)
    ),
    nnrt=(_nnrt(2, "AVG_POOL"),),
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
    nnrt=(_nnrt(21, "MAX_POOL"),),
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
