"""Deformable convolutions."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import padding
from crosschip.ops.standard.deformable import DeformableConv2D


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
        fuse_code=op.fuse_code(),
        output="Output",
    )
