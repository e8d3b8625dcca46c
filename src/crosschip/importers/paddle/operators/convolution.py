"""Convolutions."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.fusing import fused
from crosschip.importers.paddle.images import Images, padding, volume_padding
from crosschip.importers.paddle.table import imports
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Transpose
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.slicing import Slice


@imports("conv2d", "depthwise_conv2d")
def conv2d(op: Context) -> None:
    images = Images(op)
    auto_pad, pads = padding(op)
    # Paddle takes a padding of SAME to mean that the filter is not dilated either.
    dilations = (1, 1) if auto_pad is AutoPad.SAME else op.integers("dilations", (1, 1))
    images.make(
        Conv2D,
        images.input("Input"),
        op.input("Filter"),
        op.optional_input("Bias"),
        auto_pad=auto_pad,
        pads=pads,
        strides=op.integers("strides", (1, 1)),
        group=op.integer("groups", 1),
        dilations=dilations,
        fuse_code=fused(op),
        output="Output",
    )


@imports("conv2d_transpose", "depthwise_conv2d_transpose")
def conv2d_transpose(op: Context) -> None:
    images = Images(op)
    image, filter = images.input("Input"), op.input("Filter")
    strides = op.integers("strides", (1, 1))
    auto_pad, pads = padding(op)
    dilations = op.integers("dilations", (1, 1))
    if auto_pad is AutoPad.SAME:
        auto_pad, dilations = AutoPad.NONE, (1, 1)
        pads = _taken_off(image, filter, strides)
    images.make(
        Conv2DTranspose,
        image,
        filter,
        op.optional_input("Bias"),
        auto_pad=auto_pad,
        pads=pads,
        strides=strides,
        group=op.integer("groups", 1),
        dilations=dilations,
        output_padding=op.integers("output_padding", ()) or (0, 0),
        output_shape=op.integers("output_size", ()) or None,
        fuse_code=fused(op),
        output="Output",
    )


def _taken_off(image: Operand, filter: Operand, strides: tuple[int, ...]) -> tuple[int, ...]:
    """The pixels that Paddle takes off a transposed convolution that is padded SAME.

    It is what a convolution of the input would have been padded with, not one of the output.
    """
    if image.type.shape is None or filter.type.shape is None or len(strides) != 2:
        raise UnsupportedError("padding_algorithm 'SAME': the axes of the inputs must be known")
    pads: list[int] = []
    for size, window, stride in zip(
        image.type.shape[2:], filter.type.shape[2:], strides, strict=False
    ):
        if not isinstance(window, int) or (stride != 1 and not isinstance(size, int)):
            raise UnsupportedError(
                f"padding_algorithm 'SAME' with strides {list(strides)} on an image {image.type}: "
                f"its sizes must be known"
            )
        if stride < 1:
            raise ModelError(f"strides: {list(strides)} are not positive")
        over = (size - 1) % stride + 1 if isinstance(size, int) else 1
        total = max(window - over, 0)
        pads += [total // 2, total - total // 2]
    return tuple(pads)


@imports("deformable_conv")
def deformable_conv(op: Context) -> None:
    _, pads = padding(op)
    op.make(
        DeformableConv2D,
        op.input("Input"),
        op.input("Offset"),
        op.input("Mask"),
        op.input("Filter"),
        op.optional_input("Bias"),
        pads=pads,
        strides=op.integers("strides", (1, 1)),
        group=op.integer("groups", 1),
        deformable_group=op.integer("deformable_groups", 1),
        dilations=op.integers("dilations", (1, 1)),
        fuse_code=fused(op),
        output="Output",
    )


@imports("conv3d", "depthwise_conv3d")
def conv3d(op: Context) -> None:
    """Of each plane of the filter a convolution of the planes that it is laid over; their sum."""
    images = Images(op)
    x, filter = images.input("Input"), op.input("Filter")
    sizes, kernel = x.type.shape, filter.type.static_shape
    strides, dilations = op.integers("strides", (1, 1, 1)), op.integers("dilations", (1, 1, 1))
    if sizes is None or not isinstance(sizes[2], int) or kernel is None:
        raise UnsupportedError(
            f"Input: the depth of {x.type}, and the filter's sizes must be known"
        )
    algorithm, pads = volume_padding(op)
    if algorithm is AutoPad.SAME:
        dilations = (1, 1, 1)
    front, back = _depth_pads(algorithm, pads, sizes[2], kernel[2], strides[0])
    padded = op.add(Pad, x, (0, 0, 0, 0, front, back, 0, 0, 0, 0)) if front or back else x
    count = (sizes[2] + front + back - dilations[0] * (kernel[2] - 1) - 1) // strides[0] + 1
    if count < 1:
        raise ModelError(f"Input: {x.type} is less deep than the filter {filter.type}")
    planes = op.add(Transpose, padded, (0, 2, 1, 3, 4))
    total: Operand | None = None
    for depth in range(kernel[2]):
        first = depth * dilations[0]
        own = op.add(
            Slice, planes, (1,), (first,), (first + (count - 1) * strides[0] + 1,), (strides[0],)
        )
        own = op.add(Flatten, own, 0, 1)
        weights = op.add(Squeeze, op.add(Slice, filter, (2,), (depth,), (depth + 1,)), (2,))
        plane_result = op.add(
            Conv2D,
            own,
            weights,
            auto_pad=algorithm,
            pads=pads[2:] if algorithm is AutoPad.NONE else (0, 0, 0, 0),
            strides=strides[1:],
            group=op.integer("groups", 1),
            dilations=dilations[1:],
        )
        total = plane_result if total is None else op.add(Add, total, plane_result)
    if total is None:
        raise ModelError(f"Filter: {filter.type} has no planes")
    volumes = op.add(Reshape, total, (-1, count, *_known(total)))
    images.make(Transpose, volumes, (0, 2, 1, 3, 4), output="Output")


def _known(images: Operand) -> tuple[int, ...]:
    """The sizes of images but the first; 0, which keeps it, cannot stand for one here."""
    sizes = (images.type.shape or ())[1:]
    known = tuple(size for size in sizes if isinstance(size, int))
    if len(known) != len(sizes):
        raise UnsupportedError(f"Input: the sizes of the planes must be known, not {images.type}")
    return known


def _depth_pads(
    algorithm: AutoPad, pads: tuple[int, ...], size: int, window: int, stride: int
) -> tuple[int, int]:
    """The planes that are added in front and at the back."""
    if algorithm is AutoPad.NONE:
        return pads[0], pads[1]
    if algorithm is AutoPad.VALID:
        return 0, 0
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2
