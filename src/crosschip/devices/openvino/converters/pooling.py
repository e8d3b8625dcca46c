"""Pooling of images."""

from __future__ import annotations

from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.kits.limits import windows_in_image
from crosschip.devices.openvino.converters.table import FLOAT_TYPES, converts
from crosschip.devices.openvino.converters.windows import window_arguments
from crosschip.devices.openvino.graph import TYPES, Graph
from crosschip.hal import Refusal
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard.pooling import (
    AveragePool,
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    MaxPool,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    Pool,
)

_BYTES = {ElementType.INT8, ElementType.UINT8}


def _rounding_type(op: Pool) -> str:
    if not op.ceil_mode or op.auto_pad.keeps_size:
        return "floor"
    return "ceil_torch" if op.inside else "ceil"


def _check_average_pool(op: AveragePool) -> Refusal | None:
    if max(op.dilations) > 1:
        return Refusal("dilations", f"{list(op.dilations)}")
    if op.ceil_mode and op.count_include_pad:
        return Refusal(
            "count_include_pad", "with ceil_mode, what is beyond the padding would count too"
        )
    return windows_in_image(op)


@converts(AveragePool1D, AveragePool2D, AveragePool3D, limit=_check_average_pool, nonempty=True)
def average_pool(g: Graph, op: AveragePool) -> Node:
    return ops.avg_pool(
        g[op.input],
        kernel_shape=op.kernel_shape,
        exclude_pad=not op.count_include_pad,
        rounding_type=_rounding_type(op),
        **window_arguments(op),
    )


def _check_max_pool(op: MaxPool) -> Refusal | None:
    """Refuse indices in cases that OpenVINO's reference code, which computes them, lacks."""
    if op.return_indices and op.auto_pad.keeps_size and op.input.type.static_shape is None:
        return Refusal(
            "auto_pad", f"{op.auto_pad.name}, with indices into an image of unknown size"
        )
    stored = op.input.type.element_type
    if op.return_indices and stored in _BYTES | {ElementType.BFLOAT16}:
        return Refusal("input", f"{stored}, with indices")
    return windows_in_image(op)


@converts(
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    types=FLOAT_TYPES | INDICES | _BYTES,
    limit=_check_max_pool,
    nonempty=True,
)
def max_pool(g: Graph, op: MaxPool) -> list[Output]:
    pooled = ops.max_pool(
        g[op.input],
        kernel_shape=op.kernel_shape,
        dilations=op.dilations,
        rounding_type=_rounding_type(op),
        index_element_type=TYPES[op.return_indices_dtype],
        axis=2,
        **window_arguments(op),
    )
    return [pooled.output(index) for index in range(len(op.outputs))]
