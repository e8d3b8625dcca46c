"""Sampling of images at grid points and in regions, and generation of grids."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.decompositions.volumes import sample_volumes
from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode
from crosschip.ops.standard.slicing import Slice

_KERNELS = {
    "bilinear": Kernel.BILINEAR,
    "linear": Kernel.BILINEAR,
    "nearest": Kernel.NEAREST,
    "bicubic": Kernel.BICUBIC,
    "cubic": Kernel.BICUBIC,
}
_PADDINGS = {
    "zeros": PadMode.CONSTANT,
    "border": PadMode.EDGE,
    "reflection": PadMode.REFLECT,
}
_ROI_MODES = {"avg": RoiMode.AVERAGE, "max": RoiMode.MAX}


@imports("GridSample")
def grid_sample(node: Node) -> Operand:
    kernel = only("mode", node.text("mode"), *_KERNELS)
    padding = only("padding_mode", node.text("padding_mode"), *_PADDINGS)
    align_corners = node.flag("align_corners")
    if node[0].type.shape is not None and len(node[0].type.shape) == 5:
        return sample_volumes(node, kernel, padding, align_corners=align_corners)
    return node.add(
        GridSample,
        node[0],
        node[1],
        align_corners=align_corners,
        mode=_KERNELS[kernel],
        pad_mode=_PADDINGS[padding],
    )


@imports("RoiAlign")
def roi_align(node: Node) -> Operand:
    """Import RoiAlign; before opset 16, regions are not aligned."""
    coordinates = "output_half_pixel"
    if node.opset >= 16:
        coordinates = node.text("coordinate_transformation_mode")
    name = "coordinate_transformation_mode"
    only(name, coordinates, "half_pixel", "output_half_pixel")
    return node.add(
        RoiAlign,
        node[0],
        node[1],
        node[2],
        output_height=node.integer("output_height"),
        output_width=node.integer("output_width"),
        sampling_ratio=node.integer("sampling_ratio"),
        spatial_scale=node.real("spatial_scale"),
        aligned=coordinates == "half_pixel",
        mode=_ROI_MODES[only("mode", node.text("mode"), *_ROI_MODES)],
    )


@imports("AffineGrid")
def affine_grid(node: Node) -> Operand:
    """Import AffineGrid: `theta @ (x, y, 1)` or (x, y, z, 1) for all pixels, from -1 to 1."""
    align_corners = node.flag("align_corners")
    theta, size = node[0], node[1]
    count = size.type.static_shape
    if count not in ((4,), (5,)):
        raise UnsupportedError("it must be known whether images have 2 or 3 axes")
    rank = count[0] - 2
    dtype = theta.type.element_type
    image = node.add(Slice, size, axes=(0,), starts=(2,), ends=(2 + rank,))
    columns = []
    for axis in reversed(range(rank)):
        length = node.add(Reshape, node.add(Gather, image, np.array([axis]), 0), ())
        coordinates = _pixel_centers(node, length, dtype, align_corners=align_corners)
        along = node.add(Reshape, coordinates, (-1,) + (1,) * (rank - axis))
        last = node.constant(np.ones(1, np.int64))
        shape = node.add(Concat, parts=[image, last], axis=0)
        columns.append(node.add(Expand, along, shape))
    ones = node.add(Fill, node.add(ShapeOf, columns[0]), np.ones(1, dtype.dtype))
    homogeneous = node.add(Concat, parts=[*columns, ones], axis=-1)
    flat = node.add(Reshape, homogeneous, (-1, rank + 1))
    grid = node.add(MatMul, flat, theta, transpose_y=True)
    batch = node.add(Slice, size, axes=(0,), starts=(0,), ends=(1,))
    last = node.constant(np.array([rank]))
    return node.add(Reshape, grid, node.add(Concat, parts=[batch, image, last], axis=0))


def _pixel_centers(
    node: Node, length: Operand, dtype: ElementType, *, align_corners: bool
) -> Operand:
    """Return coordinates from -1 to 1: of pixel centers, or with the outer pixels at the ends."""
    zero, one = np.array(0), np.array(1)
    pixels = node.add(Cast, node.add(Range, zero, length, one), dtype)
    count = node.add(Cast, length, dtype)
    doubled = node.add(Mul, pixels, 2.0)
    if align_corners:
        return node.add(Sub, node.add(Div, doubled, node.add(Sub, count, 1.0)), 1.0)
    return node.add(Sub, node.add(Div, node.add(Add, doubled, 1.0), count), 1.0)


@imports(f"{DOMAIN}.GridSample")
def contributed_grid_sample(node: Node) -> Operand:
    return node.on_reals("GridSample", node.inputs, opset=16)
