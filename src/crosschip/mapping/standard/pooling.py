"""Names and codes of pooling in other systems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.ir import Operand, constant
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.layer_rules import (
    ActivationCode,
    ExplicitPads,
    PaddingMode,
    PadsWithoutMode,
)
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    refusal,
)
from crosschip.mapping.rules import Selector
from crosschip.ops.standard.pooling import (
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
)


@dataclass(frozen=True, slots=True)
class OfSizesOnly(Rule):
    """A slot without an operand that only affects the number of windows.

    Args:
        slot: the slot.
    """

    slot: str

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        return

    def export_operand(self, ctx: Export) -> Operand | None:
        operation = ctx.operation
        if operation.operand(self.slot) is not None:
            inputs = list(operation.inputs)
            inputs[getattr(type(operation), self.slot).index] = None
            shapes = [output.shape for output in operation.with_inputs(tuple(inputs)).infer()]
            if shapes != [output.type.shape for output in operation.outputs]:
                raise refusal(
                    ctx, self.slot, "has no operand in the target, but changes the windows"
                )
        return None


_INSIDE = OfSizesOnly("inside")

_WINDOW_OPERANDS = ("input", "auto_pad", "pads", "kernel_shape", "strides", "ceil_mode")


WINDOWS: Mapping[str, str | Rule] = {
    "KERNEL_SIZE": "kernel_shape",
    "STRIDE": "strides",
    "PAD_MODE": PaddingMode(),
    "PAD": PadsWithoutMode(),
    "ACTIVATION_TYPE": "fuse_code",
    "ROUND_MODE": "ceil_mode",
    "GLOBAL": Selector("GLOBAL", "false", lambda value: not value, np.array([False])),
}


def _nnrt(code: int, name: str) -> NNRt:
    return NNRt(
        *(code, name, (ChannelsLast("input"),), WINDOWS),
        other_rules=(ChannelsLastOutput(), _INSIDE),
    )


class FormatOfImage(Rule):
    """The layout code of the image, which its tensor has, too."""

    slot = ""

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        return  # some always write 0, whatever the tensor says

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(np.array(int(ctx.channels_last)), "format")


FORMAT: Mapping[str, str | Rule] = {"format": FormatOfImage(), "activationType": ActivationCode()}
_PART = Selector("global", "false", lambda value: not value, np.array(False))


def _window_node(
    code: int,
    name: str,
    rounding: Mapping[str, str | Rule],
    *more_rules: Rule,
    since: tuple[int, int] = (1, 0),
) -> HDI:
    windows: Mapping[str, str | Rule] = {
        "kernelSize": "kernel_shape",
        "strides": "strides",
        "padMode": "auto_pad",
        "pad": ExplicitPads(),
        "global": _PART,
    }
    attributes = {**windows, **rounding, **FORMAT}
    return HDI(
        *(code, name, (ChannelsLast("input"),), attributes),
        other_rules=(ChannelsLastOutput(), _INSIDE, *more_rules),
        since=since,
    )


map_operator(
    AveragePool2D,
    nnadapter=NNAdapter(
        8, operands=(*_WINDOW_OPERANDS, "count_include_pad", "fuse_code"), other_rules=(_INSIDE,)
    ),
    nnrt=(_nnrt(2, "AVG_POOL"),),
    hdi=(_window_node(17, "AVGPOOL_FUSION", {"roundMode": "ceil_mode"}),),
    onnx=("AveragePool",),
)

map_operator(
    MaxPool2D,
    nnadapter=NNAdapter(
        49,
        operands=(*_WINDOW_OPERANDS, "return_indices", "return_indices_dtype", "fuse_code"),
        other_rules=(_INSIDE,),
        optional_outputs=1,
    ),
    nnrt=(_nnrt(21, "MAX_POOL"),),
    hdi=(
        _window_node(92, "MAX_POOL_FUSION", {}, OfSizesOnly("ceil_mode")),
        _window_node(92, "MAX_POOL_FUSION", {"roundMode": "ceil_mode"}, since=(2, 0)),
    ),
    onnx=("MaxPool",),
)

for _average_pool in (AveragePool1D, AveragePool3D):
    map_operator(_average_pool, onnx=("AveragePool",))
for _max_pool in (MaxPool1D, MaxPool3D):
    map_operator(_max_pool, onnx=("MaxPool",))
