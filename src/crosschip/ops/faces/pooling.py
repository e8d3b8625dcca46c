"""Names and codes of pooling in other systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crosschip.ir import Operand
from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, refusal
from crosschip.ops.faces.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.ops.faces.rules import ActivationAfter, Case, Fixed, Padding, PaddingMode, Told
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


_WINDOWS: Mapping[str, str | Rule] = {
    "KERNEL_SIZE": "kernel_shape",
    "STRIDE": "strides",
    "PAD_MODE": PaddingMode(),
    "PAD": Padding(),
    "ACTIVATION_TYPE": "fuse_code",
    "ROUND_MODE": "ceil_mode",
    "GLOBAL": Case("GLOBAL", "false", lambda value: not value, np.array([False])),
}

_WHOLE_IMAGE: Mapping[str, str | Rule] = {
    **{name: Told() for name in _WINDOWS},
    "ACTIVATION_TYPE": ActivationAfter(),
    "GLOBAL": Case("GLOBAL", "true", bool, np.array([True])),
}


def _nnrt(code: int, name: str) -> NNRt:
    return NNRt(
        *(code, name, (ChannelsLast("input"),), _WINDOWS),
        given=(ChannelsLastOutput(), _INSIDE),
    )


def _global(code: int, name: str) -> NNRt:
    return NNRt(
        *(code, name, (ChannelsLast("input"),), _WHOLE_IMAGE),
        given=(ChannelsLastOutput(), Fixed("output_shape", (1, 1))),
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
    nnrt=(_global(2, "AVG_POOL"),),
    onnx=("GlobalAveragePool",),
)

faces(
    AdaptiveMaxPool2D,
    nnadapter=NNAdapter(2, optional_outputs=1),
    nnrt=(_global(21, "MAX_POOL"),),
    onnx=("GlobalMaxPool",),
)
