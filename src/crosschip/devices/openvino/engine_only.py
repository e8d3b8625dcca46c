"""Functions of the converters that adapt to OpenVINO and cannot be passes.

A pass rewrites operations of the standard set. These functions need OpenVINO nodes, marks or types,
depend on what OpenVINO fuses, or check sizes that are known only in a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crosschip.devices.openvino import precision
from crosschip.devices.openvino.converters import (
    activation,
    arithmetic,
    creation,
    integers,
    layout,
    matrix,
    padding,
    quantization,
    rearranging,
    recurrent,
    reduction,
    resizing,
    searching,
    suppression,
    table,
)
from crosschip.devices.openvino.graph import Graph

ENGINE_ONLY: Mapping[Callable[..., Any], str] = {
    # Marks on nodes.
    table.exact_quotient: "marks a division, so that OpenVINO does not multiply by the inverse",
    table.mark_never_nan: "marks values that are never NaN, for `keep_nan`",
    table.stored: "marks whole numbers, so that `whole` returns the value before the conversion",
    arithmetic.div: "clears a flag of `Divide` that makes constant folding round down",
    # Whether an activation keeps NaN or infinity depends on the node that OpenVINO fuses it into.
    activation.relu: "chooses between `Relu` and two orders of `Maximum`",
    activation.bounded: "keeps NaN where `Clamp` is not fused",
    activation.gelu: "keeps infinity where `Gelu` is not fused",
    # Quantization, in the forms that OpenVINO fuses.
    quantization.quantize: "writes `FakeQuantize` between operations that compute on bytes",
    quantization.dequantize: "converts addends through int32, and zero points as integers",
    quantization.dequantize_blocks: "packs integers of 4 bits, which OpenVINO keeps packed",
    matrix.matmul_n_bits: "packs integers of 4 bits, which OpenVINO keeps packed",
    precision.as_bytes: "writes a `FakeQuantize`, so that OpenVINO computes on bytes",
    precision.as_weights: "multiplies by 1, so that OpenVINO keeps constants in int8",
    integers.mat_mul_integer: "adds up products of bytes in float32, as far as that is exact",
    integers.conv_integer: "adds up products of bytes in float32, as far as that is exact",
    # Reductions and searches whose operands are known to have no NaN.
    searching.arg_extreme: "finds extremes by reductions of keys without NaN",
    searching.top_k: "orders by keys without NaN, and gathers by indices known to be in range",
    # Sizes and elements known only in a run: checked once for the whole graph.
    Graph.within: "refuses indices out of range by the shapes of inputs, if these suffice",
    layout.reshape: "refuses shapes that do not hold the elements",
    layout.expand: "refuses shapes that do not broadcast",
    rearranging.tile: "gives an empty result the shape of this run, not of the previous one",
    rearranging.reverse_sequence: "refuses lengths beyond the axis",
    creation.one_hot: "counts negative indices from the start, after a conversion that saturates",
    creation.range_: "clamps an end before the start to the start, so that bounds stay known",
    padding.pad: "reflects an axis of dynamic size as often as its size requires",
    reduction.reduce_some: "defines the result for no elements",
    resizing.resize_nearest: "computes sources of pixels as exact quotients",
    suppression.non_max_suppression: "completes the counts where there are no boxes or classes",
    # Recurrent operations.
    recurrent.is_plain: "chooses between OpenVINO's sequence operations and loops over steps",
}
"""The reason of each function."""
