"""Options of StableHLO's and of later operators in TensorFlow Lite files."""

from __future__ import annotations

from crosschip.flatbuffer import (
    BOOL,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT32,
    Table,
    scalar,
    string,
    vector,
)
from crosschip.flatbuffer.schemas.tflite.options import DilateOptions, ReduceWindowOptions


class StablehloConcatenateOptions(Table):
    __slots__ = ()
    dimension = scalar(INT64)


class StablehloBroadcastInDimOptions(Table):
    __slots__ = ()
    broadcast_dimensions = vector(INT64)


class StablehloSliceOptions(Table):
    __slots__ = ()
    start_indices = vector(INT64)
    limit_indices = vector(INT64)
    strides = vector(INT64)


class StablehloConvolutionOptions(Table):
    __slots__ = ()
    window_strides = vector(INT64)
    padding = vector(INT64)
    lhs_dilation = vector(INT64)
    rhs_dilation = vector(INT64)
    window_reversal = vector(BOOL)
    input_batch_dimension = scalar(INT64)
    input_feature_dimension = scalar(INT64)
    input_spatial_dimensions = vector(INT64)
    kernel_input_feature_dimension = scalar(INT64)
    kernel_output_feature_dimension = scalar(INT64)
    kernel_spatial_dimensions = vector(INT64)
    output_batch_dimension = scalar(INT64)
    output_feature_dimension = scalar(INT64)
    output_spatial_dimensions = vector(INT64)
    feature_group_count = scalar(INT64)
    batch_group_count = scalar(INT64)
    precision_config = vector(UINT32)


class StablehloCustomCallOptions(Table):
    __slots__ = ()
    call_target_name = string()
    has_side_effect = scalar(BOOL, False)
    backend_config = string()
    api_version = scalar(INT32)
    called_computations = vector(INT32)
    custom_attributes = vector(UINT8)


class StablehloReduceOptions(Table):
    __slots__ = ()
    dimensions = vector(INT64)
    body_subgraph_index = scalar(INT32)


class StablehloScatterOptions(Table):
    __slots__ = ()
    indices_are_sorted = scalar(BOOL, False)
    update_window_dims = vector(INT64)
    inserted_window_dims = vector(INT64)
    scatter_dims_to_operand_dims = vector(INT64)
    index_vector_dim = scalar(INT64)
    unique_indices = scalar(BOOL, False)
    update_computation_subgraph_index = scalar(INT32)


class StablehloCompareOptions(Table):
    __slots__ = ()
    comparison_direction = scalar(UINT32)
    compare_type = scalar(UINT32)


class StablehloDynamicSliceOptions(Table):
    __slots__ = ()
    slice_sizes = vector(INT64)


class StablehloPadOptions(Table):
    __slots__ = ()
    edge_padding_low = vector(INT64)
    edge_padding_high = vector(INT64)
    interior_padding = vector(INT64)


class StablehloIotaOptions(Table):
    __slots__ = ()
    iota_dimension = scalar(INT64)


class StablehloDotGeneralOptions(Table):
    __slots__ = ()
    lhs_batching_dimensions = vector(INT64)
    rhs_batching_dimensions = vector(INT64)
    lhs_contracting_dimensions = vector(INT64)
    rhs_contracting_dimensions = vector(INT64)
    precision_config = vector(UINT32)


class StablehloReduceWindowOptions(Table):
    __slots__ = ()
    window_dimensions = vector(INT64)
    window_strides = vector(INT64)
    base_dilations = vector(INT64)
    window_dilations = vector(INT64)
    padding = vector(INT64)
    body_subgraph_index = scalar(INT32)


class StablehloSortOptions(Table):
    __slots__ = ()
    dimension = scalar(INT64)
    is_stable = scalar(BOOL, False)
    comparator_subgraph_index = scalar(INT32)


class StablehloWhileOptions(Table):
    __slots__ = ()
    cond_subgraph_index = scalar(INT32)
    body_subgraph_index = scalar(INT32)


class StablehloGatherOptions(Table):
    __slots__ = ()
    offset_dims = vector(INT64)
    collapsed_slice_dims = vector(INT64)
    start_index_map = vector(INT64)
    index_vector_dim = scalar(INT64)
    slice_sizes = vector(INT64)
    indices_are_sorted = scalar(BOOL, False)


class StablehloTransposeOptions(Table):
    __slots__ = ()
    permutation = vector(INT64)


class StablehloRngBitGeneratorOptions(Table):
    __slots__ = ()
    algorithm = scalar(INT8)


class StableHLOCompositeOptions(Table):
    __slots__ = ()
    name = string()
    decomposition_subgraph_index = scalar(INT32)
    composite_attributes = vector(UINT8)
    composite_attributes_format = scalar(INT8)
    version = scalar(INT32)


class StablehloShiftLeftOptions(Table):
    __slots__ = ()


class StablehloCaseOptions(Table):
    __slots__ = ()
    branch_subgraph_indices = vector(INT32)


BUILTIN_OPTIONS2: dict[int, type[Table]] = {
    1: StablehloConcatenateOptions,
    2: StablehloBroadcastInDimOptions,
    3: StablehloSliceOptions,
    4: StablehloConvolutionOptions,
    5: StablehloCustomCallOptions,
    6: StablehloReduceOptions,
    7: StablehloScatterOptions,
    8: StablehloCompareOptions,
    9: StablehloDynamicSliceOptions,
    10: StablehloPadOptions,
    11: StablehloIotaOptions,
    12: StablehloDotGeneralOptions,
    13: StablehloReduceWindowOptions,
    14: StablehloSortOptions,
    15: StablehloWhileOptions,
    16: StablehloGatherOptions,
    17: StablehloTransposeOptions,
    18: DilateOptions,
    19: StablehloRngBitGeneratorOptions,
    20: ReduceWindowOptions,
    21: StableHLOCompositeOptions,
    22: StablehloShiftLeftOptions,
    23: StablehloCaseOptions,
}
"""Options by their code in the second union."""
