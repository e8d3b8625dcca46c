"""Faults of copies of the reference device, one for each class of condition that the kit covers.

Each needs one to three conditions of type, data, size, rank, parameter, constant, saved form or
open sizes. They are none that the kit has cases for by name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.conformance.planted import Fault, Seen, off_by_one, without_nan

from crosschip.ir import Array, TensorType
from crosschip.ops.definition import quantized
from crosschip.ops.definition.slots import Fuse


def _recomputed(change: Callable[[Array], Array]) -> Callable[[Seen], list[Array]]:
    """The outputs with their elements changed by a function."""
    return lambda seen: [change(output) for output in seen.outputs]


def _through_float64(array: Array) -> Array:
    with np.errstate(all="ignore"):
        wide = np.clip(array.astype(np.float64), -(2.0**62), 2.0**62)
        return wide.astype(array.dtype)


def _in_int32(array: Array) -> Array:
    return array.astype(np.int32).astype(array.dtype)


def _is(seen: Seen, *types: str) -> bool:
    return bool(seen.outputs) and str(seen.outputs[0].dtype) in types


def _is_constant(seen: Seen, slot: str) -> bool:
    operand = seen.operation.operand(slot)
    return operand is not None and operand.value is not None


def _stored_away(reals: Array, type_: TensorType) -> Array:
    assert type_.quantization is not None, "the fault is of quantized outputs"
    steps = reals / type_.quantization.scale[0]
    rounded = np.sign(steps) * np.floor(np.abs(steps) + 0.5) + type_.quantization.zero_point[0]
    clipped = np.clip(rounded, *quantized.limits(type_.element_type))
    return np.asarray(clipped.astype(type_.element_type.dtype))


def _quantized_sum(seen: Seen, *types: str) -> bool:
    return (
        _is(seen, *types)
        and seen.operation.outputs[0].type.quantization is not None
        and seen.fuse_code is Fuse.NONE
    )


def _without_denormals(array: Array) -> Array:
    """An array with 0 in the place of denormal numbers."""
    return np.where(np.abs(array) < np.finfo(np.float32).tiny, np.float32(0), array)


def _flushed(formula: Callable[..., Array], *slots: str) -> Callable[[Seen], list[Array]]:
    """A formula of tensors in which denormal numbers count as 0."""

    def spoil(seen: Seen) -> list[Array]:
        with np.errstate(all="ignore"):
            return [formula(*(_without_denormals(seen.arrays[slot]) for slot in slots))]

    return spoil


def _as_int64(formula: Callable[[Array, Array], Array]) -> Callable[[Seen], list[Array]]:
    """A formula of two tensors whose integers count as signed ones."""
    return lambda s: [
        formula(s.input0.astype(np.int64), s.input1.astype(np.int64)).astype(s.outputs[0].dtype)
    ]


def _in_float64(formula: Callable[[Array, Array], Array]) -> Callable[[Seen], list[Array]]:
    """A formula of two tensors whose integers are rounded to float64."""
    return lambda s: [formula(s.input0.astype(np.float64), s.input1.astype(np.float64))]


def _reads(seen: Seen, *types: str) -> bool:
    """Tell whether a run succeeds whose two inputs have one of these types."""
    return bool(seen.outputs) and str(seen.input0.dtype) in types


def _steps_over_the_end(seen: Seen, steps: tuple[int, ...] | None) -> bool:
    """Tell whether elements are read backwards in steps of which several fit into an axis."""
    return (
        bool(seen.outputs)
        and min(steps or (1,)) < -1
        and seen.input.itemsize == 1
        and seen.outputs[0].size > 1
    )


def _stored_reals(seen: Seen, formula: Callable[[Array, Array], Array]) -> list[Array]:
    """Quantized results of a formula of two quantized tensors, with ties away from zero."""
    operands = [operand for operand in seen.operation.inputs[:2] if operand is not None]
    first, second = (
        quantized.reals(seen.arrays[name], operand.type.quantization)
        for name, operand in zip(("input0", "input1"), operands, strict=True)
        if operand.type.quantization
    )
    return [_stored_away(formula(first, second), seen.operation.outputs[0].type)]


CONJUNCTIONS: dict[str, Fault] = {
    "int64_sum_in_int32": Fault("ADD", lambda s: _is(s, "int64"), _recomputed(_in_int32)),
    "int64_product_in_float64": Fault(
        "MUL", lambda s: _is(s, "int64"), _recomputed(_through_float64)
    ),
    "uint64_difference_in_float64": Fault(
        "SUB", lambda s: _is(s, "uint64"), _recomputed(_through_float64)
    ),
    "int64_reduced_in_float64": Fault(
        "REDUCE_MAX", lambda s: _is(s, "int64"), _recomputed(_through_float64)
    ),
    "uint32_maximum_in_int32": Fault(
        "MAX",
        lambda s: _is(s, "uint32"),
        _recomputed(lambda a: np.minimum(a, np.uint32(2**31 - 1))),
    ),
    "transposed_matrix_under_a_batch": Fault(
        "MAT_MUL",
        lambda s: bool(s.outputs) and s.transpose_y and s.x.ndim == 3 and s.y.ndim == 2,
        off_by_one,
    ),
    "step_below_minus_one": Fault(
        "STRIDED_SLICE", lambda s: bool(s.outputs) and min(s.strides, default=1) < -1, off_by_one
    ),
    "bias_groups_and_relu6": Fault(
        "CONV_2D",
        lambda s: (
            bool(s.outputs) and s.bias is not None and s.group > 1 and s.fuse_code is Fuse.RELU6
        ),
        off_by_one,
    ),
    "batch_of_five_in_half": Fault(
        "CONV_2D",
        lambda s: _is(s, "float16") and s.outputs[0].shape[0] >= 5,
        off_by_one,
    ),
    "vector_tail": Fault(
        "RELU", lambda s: bool(s.outputs) and s.outputs[0].shape[-1:] > (32,), off_by_one
    ),
    "long_reduction_of_weights": Fault(
        "FULLY_CONNECTED", lambda s: bool(s.outputs) and s.weight.shape[1] > 16, off_by_one
    ),
    "negative_axis_in_half": Fault(
        "SOFTMAX", lambda s: _is(s, "float16") and s.axis < 0, off_by_one
    ),
    "integers_without_keepdim": Fault(
        "REDUCE_SUM", lambda s: _is(s, "int32", "int64") and not s.keepdim, off_by_one
    ),
    "narrow_indices_on_an_inner_axis": Fault(
        "GATHER",
        lambda s: bool(s.outputs) and s.indices.dtype == np.int32 and s.axis % s.input.ndim > 0,
        off_by_one,
    ),
    "edge_padding_of_bytes": Fault(
        "PAD", lambda s: _is(s, "uint8", "int8") and s.mode == 3, off_by_one
    ),
    "rounded_up_and_strided": Fault(
        "AVERAGE_POOL_2D",
        lambda s: bool(s.outputs) and s.ceil_mode and s.count_include_pad,
        off_by_one,
    ),
    "dilated_windows": Fault(
        "MAX_POOL_2D",
        lambda s: bool(s.outputs) and max(s.dilations) > 1 and s.outputs[0].shape[0] > 1,
        off_by_one,
    ),
    "constant_scale_and_open_sizes": Fault(
        "LAYER_NORMALIZATION",
        lambda s: bool(s.outputs) and s.open and _is_constant(s, "scale"),
        off_by_one,
    ),
    "constant_of_a_loaded_program": Fault(
        "SUB", lambda s: bool(s.outputs) and s.loaded and _is_constant(s, "input1"), off_by_one
    ),
    "rank_five": Fault("TRANSPOSE", lambda s: bool(s.outputs) and s.input.ndim == 5, off_by_one),
    "backwards_over_integers": Fault(
        "CUM_SUM", lambda s: _is(s, "int32", "int64") and s.reverse, off_by_one
    ),
    "equality_in_float64": Fault(
        "EQUAL",
        lambda s: bool(s.outputs) and s.input0.dtype == np.int64,
        lambda s: [s.input0.astype(np.float64) == s.input1.astype(np.float64)],
    ),
    "slopes_of_channels_in_half": Fault(
        "PRELU", lambda s: _is(s, "float16") and s.slope.size > 1, off_by_one
    ),
    "nan_is_lost": Fault("MIN", lambda s: _is(s, "float32", "float16"), without_nan),
    "infinity_is_lost": Fault(
        "SUB",
        lambda s: _is(s, "float32"),
        _recomputed(lambda a: np.clip(a, -3e38, 3e38)),
    ),
    "output_padding_and_groups": Fault(
        "CONV_2D_TRANSPOSE",
        lambda s: bool(s.outputs) and s.group > 1 and max(s.strides) > 1,
        off_by_one,
    ),
    "backward_and_loaded": Fault(
        "LSTM", lambda s: bool(s.outputs) and s.loaded and s.direction == 1, off_by_one
    ),
    "unsigned_zero_point": Fault(
        "MUL",
        lambda s: (
            _is(s, "uint8") and s.operation.outputs[0].type.quantization is not None and s.open
        ),
        off_by_one,
    ),
    "mean_over_all_axes_of_one_row": Fault(
        "REDUCE_MEAN",
        lambda s: bool(s.outputs) and not s.axes and s.input.shape[:1] == (1,),
        off_by_one,
    ),
    "ties_of_int8_away_from_zero": Fault(
        "ADD", lambda s: _quantized_sum(s, "int8"), lambda s: _stored_reals(s, np.add)
    ),
    "ties_of_uint8_away_from_zero": Fault(
        "ADD", lambda s: _quantized_sum(s, "uint8"), lambda s: _stored_reals(s, np.add)
    ),
    "quantized_away_from_zero": Fault(
        "QUANTIZE",
        lambda s: _is(s, "int8", "int16") and len(s.scale) == 1 and not np.isnan(s.input).any(),
        lambda s: [_stored_away(s.input, s.operation.outputs[0].type)],
    ),
    "smallest_and_unsorted": Fault(
        "TOP_K",
        lambda s: bool(s.outputs) and not s.largest and s.input.dtype.kind in "iu",
        off_by_one,
    ),
    "uint64_less_as_int64": Fault("LESS", lambda s: _reads(s, "uint64"), _as_int64(np.less)),
    "uint64_greater_as_int64": Fault(
        "GREATER_EQUAL", lambda s: _reads(s, "uint64"), _as_int64(np.greater_equal)
    ),
    "uint64_equality_in_float64": Fault(
        "EQUAL", lambda s: _reads(s, "uint64"), _in_float64(np.equal)
    ),
    "int64_order_in_float64": Fault(
        "GREATER", lambda s: _reads(s, "int64"), _in_float64(np.greater)
    ),
    "uint64_minimum_as_int64": Fault("MIN", lambda s: _is(s, "uint64"), _as_int64(np.minimum)),
    "int64_moved_in_float64": Fault(
        "TRANSPOSE", lambda s: _is(s, "int64"), _recomputed(_through_float64)
    ),
    "denormal_factor_is_0": Fault(
        "MUL",
        lambda s: _is(s, "float32") and s.fuse_code is Fuse.NONE,
        _flushed(np.multiply, "input0", "input1"),
    ),
    "denormal_divisor_is_0": Fault(
        "DIV",
        lambda s: _is(s, "float32") and s.fuse_code is Fuse.NONE,
        _flushed(np.divide, "input0", "input1"),
    ),
    "logarithm_of_denormal_is_infinite": Fault(
        "LOG", lambda s: _is(s, "float32"), _flushed(np.log, "input")
    ),
    "negative_of_0_is_0": Fault(
        "NEG", lambda s: _is(s, "float32"), _recomputed(lambda a: a + np.float32(0))
    ),
    "magnitude_of_0_is_negative": Fault(
        "ABS", lambda s: _is(s, "float32"), _recomputed(lambda a: np.where(a == 0, -a, a))
    ),
    "sign_of_0_is_lost_in_moves": Fault(
        "RESHAPE", lambda s: _is(s, "float32"), _recomputed(lambda a: a + np.float32(0))
    ),
    "dilation_bias_and_relu": Fault(
        "CONV_2D",
        lambda s: (
            bool(s.outputs)
            and s.bias is not None
            and max(s.dilations) > 1
            and s.fuse_code is not Fuse.NONE
        ),
        off_by_one,
    ),
    "transposed_bias_groups_and_fused": Fault(
        "CONV_2D_TRANSPOSE",
        lambda s: (
            bool(s.outputs) and s.bias is not None and s.group > 1 and s.fuse_code is not Fuse.NONE
        ),
        off_by_one,
    ),
    "rounded_up_padded_and_fused": Fault(
        "AVERAGE_POOL_2D",
        lambda s: (
            bool(s.outputs) and s.ceil_mode and s.fuse_code is not Fuse.NONE and max(s.strides) > 1
        ),
        off_by_one,
    ),
    "several_axes_without_keepdim": Fault(
        "REDUCE_MAX", lambda s: bool(s.outputs) and len(s.axes) > 1 and not s.keepdim, off_by_one
    ),
    "several_negative_axes_without_keepdim": Fault(
        "REDUCE_L2",
        lambda s: bool(s.outputs) and len(s.axes) > 1 and max(s.axes) < 0 and not s.keepdim,
        off_by_one,
    ),
    "negative_indices_on_a_later_axis": Fault(
        "GATHER",
        lambda s: bool(s.outputs) and (s.indices < 0).any() and s.axis % s.input.ndim > 0,
        off_by_one,
    ),
    "negative_indices_of_elements_on_a_later_axis": Fault(
        "GATHER_ELEMENTS",
        lambda s: bool(s.outputs) and (s.indices < 0).any() and s.axis % s.input.ndim > 0,
        off_by_one,
    ),
    "bytes_in_steps_backwards": Fault(
        "STRIDED_SLICE", lambda s: _steps_over_the_end(s, s.strides), off_by_one
    ),
    "ties_of_int16_away_from_zero": Fault(
        "ADD", lambda s: _quantized_sum(s, "int16"), lambda s: _stored_reals(s, np.add)
    ),
    "ties_of_products_away_from_zero": Fault(
        "MUL",
        lambda s: _quantized_sum(s, "uint8", "int16"),
        lambda s: _stored_reals(s, np.multiply),
    ),
    "bytes_quantized_away_from_zero": Fault(
        "QUANTIZE",
        lambda s: _is(s, "uint8") and len(s.scale) == 1 and not np.isnan(s.input).any(),
        lambda s: [_stored_away(s.input, s.operation.outputs[0].type)],
    ),
}
"""The faults by name."""
