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
    SeparateActivation,
)
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    refusal,
)
from crosschip.mapping.rules import FixedValue, Ignored, Selector
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


_WINDOWS: Mapping[str, str | Rule] = {
    "KERNEL_SIZE": "kernel_shape",
    "STRIDE": "strides",
    "PAD_MODE": PaddingMode(),
    "PAD": PadsWithoutMode(),
    "ACTIVATION_TYPE": "fuse_code",
    "ROUND_MODE": "ceil_mode",
    "GLOBAL": Selector("GLOBAL", "false", lambda value: not value, np.array([False])),
}

_WHOLE_IMAGE: Mapping[str, str | Rule] = {
    **{name: Ignored() for name in _WINDOWS},
    "ACTIVATION_TYPE": SeparateActivation(),
    "GLOBAL": Selector("GLOBAL", "true", bool, np.array([True])),
}


def _nnrt(code: int, name: str) -> NNRt:
    return NNRt(
        *(code, name, (ChannelsLast("input"),), _WINDOWS),
        other_rules=(ChannelsLastOutput(), _INSIDE),
    )


def _global(code: int, name: str) -> NNRt:
    return NNRt(
        *(code, name, (ChannelsLast("input"),), _WHOLE_IMAGE),
        other_rules=(ChannelsLastOutput(), FixedValue("output_shape", (1, 1))),
    )


class FormatOfImage(Rule):
    """The number of the order of the image's axes, which its tensor tells, too."""

    slot = ""

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        return  # some always write 0, whatever the tensor says

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(np.array(int(ctx.channels_last)), "format")


_FORMAT: Mapping[str, str | Rule] = {"format": FormatOfImage(), "activationType": ActivationCode()}
_WHOLE = Selector("global", "true", bool, np.array(True))
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
    attributes = {**windows, **rounding, **_FORMAT}
    return HDI(
        *(code, name, (ChannelsLast("input"),), attributes),
        other_rules=(ChannelsLastOutput(), _INSIDE, *more_rules),
        since=since,
    )


def _global_node(code: int, name: str) -> HDI:
    return HDI(
        *(code, name, (ChannelsLast("input"),), {"global": _WHOLE, **_FORMAT}),
        other_rules=(ChannelsLastOutput(), FixedValue("output_shape", (1, 1))),
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

map_operator(
    AdaptiveAveragePool2D,
    nnadapter=NNAdapter(1),
    nnrt=(_global(2, "AVG_POOL"),),
    hdi=(_global_node(17, "AVGPOOL_FUSION"),),
    onnx=("GlobalAveragePool",),
)

map_operator(
    AdaptiveMaxPool2D,
    nnadapter=NNAdapter(2, optional_outputs=1),
    nnrt=(_global(21, "MAX_POOL"),),
    hdi=(_global_node(92, "MAX_POOL_FUSION"),),
    onnx=("GlobalMaxPool",),
)
