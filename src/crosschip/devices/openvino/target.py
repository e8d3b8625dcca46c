"""The operations that OpenVINO supports, and the passes before conversion."""

from __future__ import annotations

from crosschip.devices.openvino import CAPABILITIES
from crosschip.devices.openvino.converters import converters
from crosschip.devices.openvino.lowering import (
    arithmetic,
    attention,
    chains,
    comparison,
    conversion,
    convolution,
    creation,
    elementwise,
    layout,
    matrix,
    nan,
    quantization,
    reduction,
    sampling,
)
from crosschip.hal import Rule, Support
from crosschip.ir import Operation
from crosschip.lowering.legalization import Target
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.activation import HardSigmoid, HardSwish, PRelu, Softplus
from crosschip.ops.standard.arithmetic import (
    Add,
    Div,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
)
from crosschip.ops.standard.attention import Attention
from crosschip.ops.standard.comparison import Greater, GreaterEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.deformable import DeformableConv2D
from crosschip.ops.standard.layout import Expand, Flatten, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.rearranging import Roll, Tile
from crosschip.ops.standard.reduction import (
    ReduceL1,
    ReduceL2,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from crosschip.ops.standard.sampling import RoiAlign
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Abs, Exp
from crosschip.passes.base import Pass
from crosschip.passes.rewrite_operations import RewriteOperations

_REDUCTIONS = (ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum)

_CONVS = (Conv1D, Conv2D, Conv3D)

_CONV_TRANSPOSES = (Conv1DTranspose, Conv2DTranspose, Conv3DTranspose)

_BROADCASTS = (Add, Div, Max, Min, Mod, Mul, Pow, SquaredDifference, Sub)

_PASSES: tuple[Pass, ...] = (
    # Passes that depend on other operations of the model.
    RewriteOperations(matrix.input_as_matrix, (FullyConnected,)),
    RewriteOperations(
        chains.with_another_axis, (FullyConnected, MatMul), chains.wrongly_chained_products
    ),
    RewriteOperations(reduction.apart_from_scales, _REDUCTIONS, reduction.reduces_scaled_integers),
    RewriteOperations(reduction.apart_from_constants, _REDUCTIONS, reduction.meets_constants),
    RewriteOperations(reduction.apart_from_normalization, (ReduceMean,)),
    RewriteOperations(quantization.nan_as_least, (Quantize,), quantization.quantizes_nan),
    RewriteOperations(convolution.filter_itself, (Dequantize,), convolution.filters_of_pixels),
    # NaN, zeros and infinities.
    RewriteOperations(arithmetic.with_axes_of_constant, _BROADCASTS),
    RewriteOperations(arithmetic.product_of_zero, (Mul,)),
    RewriteOperations(arithmetic.zero_for_zero_divisors, (Div, Mod)),
    RewriteOperations(arithmetic.remainder_of_infinite_divisors, (Mod,)),
    RewriteOperations(nan.nan_of_function, (Exp, HardSigmoid, Softplus), nan.loses_nan),
    RewriteOperations(nan.nan_of_extreme, (Max, Min), nan.loses_nan),
    RewriteOperations(nan.nan_and_infinity_of_reduction, (ReduceMax, ReduceMin)),
    RewriteOperations(comparison.swap_operands, (Greater, GreaterEqual)),
    RewriteOperations(conversion.unlike_zero, (Cast,)),
    # Wrong or missing kernels.
    RewriteOperations(conversion.choice_of_reals, (Cast,)),
    RewriteOperations(elementwise.hard_sigmoid_in_float32, (HardSigmoid,)),
    RewriteOperations(elementwise.zero_of_prelu, (PRelu,)),
    RewriteOperations(elementwise.hard_swish_as_product, (HardSwish,)),
    RewriteOperations(elementwise.softplus_as_series, (Softplus,)),
    RewriteOperations(elementwise.absolute_of_negative, (Abs,), elementwise.reads_concatenation),
    RewriteOperations(layout.input_itself, (Expand, Pad, Roll, Slice, Tile, Unsqueeze)),
    RewriteOperations(layout.as_reshape, (Flatten,)),
    layout.CancelUnsqueezes(),
    RewriteOperations(creation.number_itself, (Fill,)),
    RewriteOperations(sampling.zero_for_no_samples, (RoiAlign,)),
    RewriteOperations(attention.repeat_shared_heads, (Attention,)),
    RewriteOperations(convolution.in_float32, (*_CONVS, *_CONV_TRANSPOSES, DeformableConv2D)),
    RewriteOperations(convolution.without_strided_padding, _CONVS),
    RewriteOperations(convolution.without_lone_column, _CONVS),
)


def _supports(operation: Operation) -> Support:
    outputs = (("output", output) for output in operation.outputs)
    slots = operation.slots if isinstance(operation, Operator) else ()
    parameters = {slot.name for slot in slots if slot.parameter}
    for slot, operand in (*operation.named_inputs(), *outputs):
        if operand.type.shape is None:
            return Support.no(operation, slot, "its rank must be known", Rule.SHAPE)
        # OpenVINO crashes on empty constants, or cannot load what it saved.
        if operand.value is not None and 0 in operand.type.shape and slot not in parameters:
            return Support.no(operation, slot, "is constant, without elements", Rule.SHAPE)
    support = converters.supports(operation)
    if support and any(0 in (output.type.shape or ()) for output in operation.outputs):
        return Support.no(operation, "output", "has no elements", Rule.SHAPE)
    return support


TARGET = Target(
    name="openvino",
    operators=converters.operators,
    capabilities=CAPABILITIES,
    supports=_supports,
    passes=_PASSES,
)
