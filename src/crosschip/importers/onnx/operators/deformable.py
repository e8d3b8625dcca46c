"""Deformable convolutions."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports
from crosschip.importers.onnx.operators.convolution import group_of
from crosschip.importers.onnx.windows import kernel_of, windows_of
from crosschip.ir import Operand, UnsupportedError
from crosschip.ops.standard.deformable import DeformableConv2D


@imports("DeformConv")
def deform_conv(node: Node) -> Operand:
    kernel = kernel_of(node, node[1])
    if len(kernel) != 2:
        raise UnsupportedError(f"images of {len(kernel)} axes; only those of 2 can be expressed")
    offset_group = node.integer("offset_group")
    windows = windows_of(node, kernel)
    return node.add(
        DeformableConv2D,
        input=node[0],
        offset=node[2],
        mask=node.optional(4),
        filter=node[1],
        bias=node.optional(3),
        pads=windows.pads,
        strides=windows.strides,
        group=group_of(node),
        deformable_group=offset_group,
        dilations=windows.dilations,
    )
