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
    table.mark_never_nan: "marks what is never NaN, for `keep_nan`",
    table.stored: "marks whole numbers, so that `whole` takes what they were converted from",
    arithmetic.div: "clears a flag of `Divide` that makes it round down what is known",
    # What OpenVINO fuses an activation into decides whether it keeps NaN or infinity.
    activation.relu: "chooses between `Relu` and two orders of `Maximum`",
    activation.bounded: "keeps NaN where `Clamp` is not fused",
    activation.gelu: "keeps infinity where `Gelu` is not fused",
    # Quantization, as OpenVINO finds it.
    quantization.quantize: "writes `FakeQuantize` between operations that compute on bytes",
    quantization.dequantize: "converts by int32 what is only added, and zero points as integers",
    quantization.dequantize_blocks: "packs integers of 4 bits, which OpenVINO keeps small",
    matrix.matmul_n_bits: "packs integers of 4 bits, which OpenVINO keeps small",
    precision.as_bytes: "writes `FakeQuantize`, by which OpenVINO knows that numbers are bytes",
    precision.as_weights: "multiplies by 1, by which OpenVINO keeps constants in int8",
    integers.mat_mul_integer: "adds up products of bytes in float32, as far as that is exact",
    integers.conv_integer: "adds up products of bytes in float32, as far as that is exact",
    # Reductions and searches whose operands are known to have no NaN.
    searching.arg_extreme: "finds extremes by reductions of keys without NaN",
    searching.top_k: "orders by keys without NaN, and gathers by indices known to be in range",
    # What is known only in a run: sizes are looked at once for the whole graph, runs are refused.
    Graph.within: "refuses indices out of range by the shapes of inputs, if these tell",
    layout.reshape: "refuses shapes that do not hold the elements",
    layout.expand: "refuses shapes that do not broadcast",
    rearranging.tile: "gives an empty result the shape of this run, and not of the one before",
    rearranging.reverse_sequence: "refuses lengths beyond the axis",
    creation.one_hot: "counts negative indices from the start, after a conversion that saturates",
    creation.range_: "moves an end on the other side of the start there, whose bounds stay known",
    padding.pad: "mirrors an axis whose size shows in a run as often as it takes",
    reduction.reduce_some: "says what no elements give",
    resizing.resize_nearest: "computes sources of pixels as exact quotients",
    suppression.non_max_suppression: "completes the counts where there are no boxes or classes",
    # Networks that OpenVINO runs as loops of its own.
    recurrent.is_plain: "decides between OpenVINO's networks and loops over its steps",
}
"""By function."""
