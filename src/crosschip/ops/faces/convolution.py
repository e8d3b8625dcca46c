"""Names and codes of convolutions in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D

_NHWC = "input and output are NHWC; the weight is [C_out, kernel_h, kernel_w, C_in / group]"

_PAD_MODE = "PAD_MODE 0 is SAME, 1 and 2 are VALID; with PAD, auto_pad is NONE"

_INT8_BIAS = "an int32 bias has no quantization parameters: its scale is input's times weight's"


def _nnrt_parameters(*more: tuple[str, str]) -> dict[str, str]:
    shared = {
        "STRIDES": "strides",
        "PAD": "pads",
        "DILATION": "dilations",
        "PAD_MODE": "auto_pad",
        "ACTIVATION_TYPE": "fuse_code",
    }
    return {**shared, **dict(more)}


faces(
    Conv2D,
    nnadapter=NNAdapter(14),
    nnrt=(
        NNRt(
            8,
            "CONV2D",
            inputs=("input", "filter", "bias"),
            parameters=_nnrt_parameters(("GROUP", "group")),
            translation=f"{_NHWC}; {_PAD_MODE}; {_INT8_BIAS}",
        ),
        NNRt(
            10,
            "DEPTHWISE_CONV2D_NATIVE",
            inputs=("input", "filter", "bias"),
            parameters=_nnrt_parameters(),
            translation=f"{_NHWC}; group is C_in; {_PAD_MODE}; {_INT8_BIAS}",
        ),
    ),
    hdi=(NodeType.CONV2D_FUSION,),
    onnx=("Conv", "ConvInteger", "QLinearConv"),
)

faces(
    Conv2DTranspose,
    nnadapter=NNAdapter(15),
    nnrt=(
        NNRt(
            9,
            "CONV2D_TRANSPOSE",
            inputs=("input", "filter", "bias"),
            parameters=_nnrt_parameters(("OUTPUT_PADDINGS", "output_padding"), ("GROUP", "group")),
            translation=f"{_NHWC}; {_PAD_MODE}; {_INT8_BIAS}",
        ),
    ),
    hdi=(NodeType.CONV2D_TRANSPOSE_FUSION,),
    onnx=("ConvTranspose",),
)

faces(
    DeformableConv2D,
    nnadapter=NNAdapter(18),
    onnx=("DeformConv",),
)
