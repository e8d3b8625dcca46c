"""Names and codes of convolutions in other systems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.ir import Array, ModelError, Operand, constant
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput, transpose
from crosschip.mapping.layer_rules import (
    ActivationCode,
    ExplicitPads,
    PaddingMode,
    PadsWithoutMode,
    ProductBias,
)
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    numbers,
    parameter_value,
    refusal,
    slot_operand,
    static_shape,
)
from crosschip.mapping.rules import PassThrough
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)


class ChannelwiseGroups(Rule):
    """Sets `group`, which has no operand, to the number of channels of the input."""

    slot = "group"
    text = "`group` is the number of channels of the input"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        channels = (slot_operand(ctx, "input").type.shape or (None, None))[1]
        if not isinstance(channels, int):
            raise ModelError("input: must have a known number of channels")
        ctx.slots[self.slot] = channels

    def export_operand(self, ctx: Export) -> Operand | None:
        channels = (ctx.operation.inputs[0].type.shape or (None, None))[1]  # type: ignore[union-attr]
        if parameter_value(ctx, self.slot) != channels:
            raise refusal(ctx, self.slot, "has no operand, and is not the number of channels")
        return None


class TransposedFilter(Rule):
    """The filter of a transposed convolution, which NNRt stores with its axes in another order.

    `FilterLayout` transposes it on import, when `group` is known.
    """

    slot = "filter"
    text = "`filter` is [C_out, kernel_h, kernel_w, C_in / group]"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        assert operand is not None, "filter is required"
        count = int(parameter_value(ctx, "group").item())
        if count == 1:
            return transpose(ctx.before, operand, (1, 2, 3, 0))
        array = _per_tensor_elements(operand)
        if array is None:
            raise refusal(ctx, self.slot, "must be constant in the target if there are groups")
        inputs, per_group, height, width = array.shape
        parts = array.reshape(count, inputs // count, per_group, height, width)
        shape = (count * per_group, height, width, inputs // count)
        array = parts.transpose(0, 2, 3, 4, 1).reshape(shape)
        return constant(array, operand.name, operand.type.quantization)


class FilterLayout(Rule):
    """Transposes the filter of a transposed convolution on import; comes after `group`."""

    slot = ""

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        operand = slot_operand(ctx, "filter")
        group = ctx.slots.get("group")
        count = 1 if not isinstance(group, Operand) else int(number(group, "group"))
        if count == 1:
            ctx.slots["filter"] = transpose(ctx.builder, operand, (3, 0, 1, 2))
            return
        array = _per_tensor_elements(operand)
        if array is None or array.shape[0] % count:
            raise ModelError("filter: with groups, must be constant, and C_out a multiple of them")
        out, height, width, per_group = array.shape
        parts = array.reshape(count, out // count, height, width, per_group)
        shape = (count * per_group, out // count, height, width)
        array = parts.transpose(0, 4, 1, 2, 3).reshape(shape)
        ctx.slots["filter"] = constant(array, operand.name, operand.type.quantization)


class KernelSize(Rule):
    """The kernel size, which must agree with the shape of the filter.

    Args:
        axes: the height and width axes of the filter that has been imported so far.
    """

    slot = ""

    def __init__(self, axes: tuple[int, int]) -> None:
        self._axes = axes

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        shape = slot_operand(ctx, "filter").type.shape
        if operand is None or shape is None:
            return
        kernel_size = numbers(operand, "kernelSize").tolist()
        window = [shape[axis] for axis in self._axes] if len(shape) == 4 else kernel_size
        if len(kernel_size) != 2 or any(
            isinstance(a, int) and a != b for a, b in zip(window, kernel_size, strict=True)
        ):
            raise ModelError(f"filter: its windows are {window}, but kernelSize is {kernel_size}")

    def export_operand(self, ctx: Export) -> Operand | None:
        filter = ctx.operation.operand("filter")
        sizes = None if filter is None else static_shape((filter.type.shape or (None,))[2:])
        return constant(np.array(sizes), "kernelSize") if sizes else None


class Channels(Rule):
    """Exports the number of input or output channels.

    Ignored on import: some writers state the channels of one group, others those of all groups.

    Args:
        axis: the axis of the operation's filter that holds the number.
        per_group: whether that axis holds the channels of one group.
    """

    slot = ""

    def __init__(self, axis: int, *, per_group: bool = False) -> None:
        self._axis = axis
        self._per_group = per_group

    def export_operand(self, ctx: Export) -> Operand | None:
        filter = ctx.operation.operand("filter")
        size = ((filter.type.shape if filter else None) or (None,) * 2)[self._axis]
        if not isinstance(size, int):
            return None
        count = int(parameter_value(ctx, "group").item()) if self._per_group else 1
        return constant(np.array(size * count), "channels")


def _per_tensor_elements(operand: Operand) -> Array | None:
    """Return the elements of a constant that is not quantized per channel, else `None`."""
    scales = operand.type.quantization
    if operand.value is None or (scales is not None and scales.axis is not None):
        return None
    return np.asarray(operand.value)


_PARAMETERS: Mapping[str, str | Rule] = {
    "STRIDES": "strides",
    "PAD": PadsWithoutMode(),
    "DILATION": "dilations",
    "PAD_MODE": PaddingMode(),
    "ACTIVATION_TYPE": "fuse_code",
}
_ATTRIBUTES: Mapping[str, str | Rule] = {
    "stride": "strides",
    "dilation": "dilations",
    "padMode": "auto_pad",
    "padList": ExplicitPads(),
    "group": "group",
    "activationType": ActivationCode(),
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
            35,
            "CONV2D_FUSION",
            _INPUTS,
            {
                **_ATTRIBUTES,
                "kernelSize": KernelSize((2, 3)),
                "inChannel": Channels(1, per_group=True),
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
            other_rules=(FilterLayout(), _OUTPUT),
        ),
    ),
    hdi=(
        HDI(
            36,
            "CONV2D_TRANSPOSE_FUSION",
            _TRANSPOSED_INPUTS,
            {
                **_ATTRIBUTES,
                "outputPaddings": "output_padding",
                "kernelSize": KernelSize((1, 2)),
                "inChannel": Channels(0),
                "outChannel": Channels(1, per_group=True),
            },
            (FilterLayout(), _OUTPUT),
        ),
    ),
    onnx=("ConvTranspose",),
)

for _operator in (Conv1D, Conv3D):
    map_operator(_operator, onnx=("Conv", "QLinearConv"))
for _transpose in (Conv1DTranspose, Conv3DTranspose):
    map_operator(_transpose, onnx=("ConvTranspose",))
