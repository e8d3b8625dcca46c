"""Names and codes of convolutions in other systems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.ir import Array, ModelError, Operand, constant
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput, transposed
from crosschip.mapping.nodes import Activated, Sides
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import (
    Padding,
    PaddingMode,
    ProductBias,
    filled,
    number,
    numbers,
    shape_known,
    value_in,
)
from crosschip.mapping.translation import Export, Import, Passed, Rule, refusal
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)


class ChannelwiseGroups(Rule):
    """A group for each channel of the input."""

    slot = "group"
    text = "`group` is the number of channels of the input"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        channels = (filled(use, "input").type.shape or (None, None))[1]
        if not isinstance(channels, int):
            raise ModelError("input: must have a known number of channels")
        use.slots[self.slot] = channels

    def export_operand(self, use: Export) -> Operand | None:
        channels = (use.operation.inputs[0].type.shape or (None, None))[1]  # type: ignore[union-attr]
        if value_in(use, self.slot) != channels:
            raise refusal(use, self.slot, "has no operand there, and is not that of the channels")
        return None


class TransposedFilter(Rule):
    """The filter of a transposed convolution: [C_out, kernel_h, kernel_w, C_in / group] there."""

    slot = "filter"
    text = "`filter` is [C_out, kernel_h, kernel_w, C_in / group]"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        operand = use.operation.operand(self.slot)
        assert operand is not None, "there is a filter"
        count = int(value_in(use, "group").item())
        if count == 1:
            return transposed(use.before, operand, (1, 2, 3, 0))
        array = _constant(operand)
        if array is None:
            raise refusal(use, self.slot, "must be constant there, as there are groups")
        inputs, per_group, height, width = array.shape
        parts = array.reshape(count, inputs // count, per_group, height, width)
        turned = parts.transpose(0, 2, 3, 4, 1)
        shape = (count * per_group, height, width, inputs // count)
        return constant(turned.reshape(shape), operand.name, operand.type.quantization)


class TurnedFilter(Rule):
    """The filter of a transposed convolution, once the groups are known."""

    slot = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        operand = filled(use, "filter")
        group = use.slots.get("group")
        count = 1 if not isinstance(group, Operand) else int(number(group, "group"))
        if count == 1:
            use.slots["filter"] = transposed(use.builder, operand, (3, 0, 1, 2))
            return
        array = _constant(operand)
        if array is None or array.shape[0] % count:
            raise ModelError("filter: with groups, must be constant, and C_out a multiple of them")
        out, height, width, per_group = array.shape
        parts = array.reshape(count, out // count, height, width, per_group)
        turned = parts.transpose(0, 4, 1, 2, 3)
        shape = (count * per_group, out // count, height, width)
        use.slots["filter"] = constant(
            turned.reshape(shape), operand.name, operand.type.quantization
        )

    def export_operand(self, use: Export) -> Operand | None:
        return None


class KernelSize(Rule):
    """The size of a filter's windows, which the filter tells, too.

    Args:
        places: where it is in the shape of the filter that has been found.
    """

    slot = ""

    def __init__(self, places: tuple[int, int]) -> None:
        self._places = places

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        shape = filled(use, "filter").type.shape
        if operand is None or shape is None:
            return
        kernel_size = numbers(operand, "kernelSize").tolist()
        window = [shape[place] for place in self._places] if len(shape) == 4 else kernel_size
        if len(kernel_size) != 2 or any(
            isinstance(a, int) and a != b for a, b in zip(window, kernel_size, strict=True)
        ):
            raise ModelError(f"filter: its windows are {window}, but kernelSize is {kernel_size}")

    def export_operand(self, use: Export) -> Operand | None:
        filter = use.operation.operand("filter")
        sizes = None if filter is None else shape_known((filter.type.shape or (None,))[2:])
        return constant(np.array(sizes), "kernelSize") if sizes else None


class Channels(Rule):
    """The number of channels of the input or the output, which the filter tells, too.

    Args:
        place: where it is in the shape of the operation's filter.
        grouped: whether it is that of one group there.
    """

    slot = ""

    def __init__(self, place: int, *, grouped: bool = False) -> None:
        self._place = place
        self._grouped = grouped

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return  # some write the number of a group, some that of all

    def export_operand(self, use: Export) -> Operand | None:
        filter = use.operation.operand("filter")
        size = ((filter.type.shape if filter else None) or (None,) * 2)[self._place]
        if not isinstance(size, int):
            return None
        count = int(value_in(use, "group").item()) if self._grouped else 1
        return constant(np.array(size * count), "channels")


def _constant(operand: Operand) -> Array | None:
    """The elements of a constant with one scale at most."""
    scales = operand.type.quantization
    if operand.value is None or (scales is not None and scales.axis is not None):
        return None
    return np.asarray(operand.value)


_PARAMETERS: Mapping[str, str | Rule] = {
    "STRIDES": "strides",
    "PAD": Padding(),
    "DILATION": "dilations",
    "PAD_MODE": PaddingMode(),
    "ACTIVATION_TYPE": "fuse_code",
}
_ATTRIBUTES: Mapping[str, str | Rule] = {
    "stride": "strides",
    "dilation": "dilations",
    "padMode": "auto_pad",
    "padList": Sides(),
    "group": "group",
    "activationType": Activated(),
}
_INPUTS = (ChannelsLast("input"), ChannelsLast("filter", always=True), ProductBias("filter"))
_TRANSPOSED_INPUTS = (ChannelsLast("input"), TransposedFilter(), ProductBias("filter"))
_OUTPUT = ChannelsLastOutput()


map_operator(
    Conv2D,
    nnadapter=NNAdapter(14),
    nnrt=(
        NNRt(
            8,
            "CONV2D",
            inputs=_INPUTS,
            parameters={**_PARAMETERS, "GROUP": "group"},
            other_rules=(_OUTPUT,),
        ),
        NNRt(
            10,
            "DEPTHWISE_CONV2D_NATIVE",
            inputs=_INPUTS,
            parameters=_PARAMETERS,
            other_rules=(ChannelwiseGroups(), _OUTPUT),
        ),
    ),
    hdi=(
        HDI(
            *(35, "CONV2D_FUSION", _INPUTS),
            {
                **_ATTRIBUTES,
                "kernelSize": KernelSize((2, 3)),
                "inChannel": Channels(1, grouped=True),
                "outChannel": Channels(0),
            },
            (_OUTPUT,),
        ),
    ),
    onnx=("Conv", "QLinearConv"),
)

map_operator(
    Conv2DTranspose,
    nnadapter=NNAdapter(15),
    nnrt=(
        NNRt(
            9,
            "CONV2D_TRANSPOSE",
            inputs=_TRANSPOSED_INPUTS,
            parameters={**_PARAMETERS, "OUTPUT_PADDINGS": "output_padding", "GROUP": "group"},
            other_rules=(TurnedFilter(), _OUTPUT),
        ),
    ),
    hdi=(
        HDI(
            *(36, "CONV2D_TRANSPOSE_FUSION", _TRANSPOSED_INPUTS),
            {
                **_ATTRIBUTES,
                "outputPaddings": "output_padding",
                "kernelSize": KernelSize((1, 2)),
                "inChannel": Channels(0),
                "outChannel": Channels(1, grouped=True),
            },
            (TurnedFilter(), _OUTPUT),
        ),
    ),
    onnx=("ConvTranspose",),
)

for _operator in (Conv1D, Conv3D):
    map_operator(_operator, onnx=("Conv", "QLinearConv"))
for _transposed in (Conv1DTranspose, Conv3DTranspose):
    map_operator(_transposed, onnx=("ConvTranspose",))
