"""Options of TensorFlow Lite's operators."""

from __future__ import annotations

from crosschip.flatbuffer import (
    BOOL,
    FLOAT32,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT32,
    Table,
    deprecated,
    scalar,
    string,
    vector,
)


class Conv2DOptions(Table):
    __slots__ = ()
    padding = scalar(INT8)
    stride_w = scalar(INT32)
    stride_h = scalar(INT32)
    fused_activation_function = scalar(INT8)
    dilation_w_factor = scalar(INT32, 1)
    dilation_h_factor = scalar(INT32, 1)
    quantized_bias_type = scalar(INT8)


class DepthwiseConv2DOptions(Table):
    __slots__ = ()
    padding = scalar(INT8)
    stride_w = scalar(INT32)
    stride_h = scalar(INT32)
    depth_multiplier = scalar(INT32)
    fused_activation_function = scalar(INT8)
    dilation_w_factor = scalar(INT32, 1)
    dilation_h_factor = scalar(INT32, 1)


class ConcatEmbeddingsOptions(Table):
    __slots__ = ()
    num_channels = scalar(INT32)
    num_columns_per_channel = vector(INT32)
    embedding_dim_per_channel = vector(INT32)


class LSHProjectionOptions(Table):
    __slots__ = ()
    type = scalar(INT8)


class Pool2DOptions(Table):
    __slots__ = ()
    padding = scalar(INT8)
    stride_w = scalar(INT32)
    stride_h = scalar(INT32)
    filter_width = scalar(INT32)
    filter_height = scalar(INT32)
    fused_activation_function = scalar(INT8)


class SVDFOptions(Table):
    __slots__ = ()
    rank = scalar(INT32)
    fused_activation_function = scalar(INT8)
    asymmetric_quantize_inputs = scalar(BOOL, False)


class RNNOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)
    asymmetric_quantize_inputs = scalar(BOOL, False)


class FullyConnectedOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)
    weights_format = scalar(INT8)
    keep_num_dims = scalar(BOOL, False)
    asymmetric_quantize_inputs = scalar(BOOL, False)
    quantized_bias_type = scalar(INT8)
    quant_spec = vector(UINT8)


class SoftmaxOptions(Table):
    __slots__ = ()
    beta = scalar(FLOAT32, 0.0)


class ConcatenationOptions(Table):
    __slots__ = ()
    axis = scalar(INT32)
    fused_activation_function = scalar(INT8)


class AddOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)
    pot_scale_int16 = scalar(BOOL, True)


class L2NormOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)


class LocalResponseNormalizationOptions(Table):
    __slots__ = ()
    radius = scalar(INT32)
    bias = scalar(FLOAT32, 0.0)
    alpha = scalar(FLOAT32, 0.0)
    beta = scalar(FLOAT32, 0.0)


class LSTMOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)
    cell_clip = scalar(FLOAT32, 0.0)
    proj_clip = scalar(FLOAT32, 0.0)
    kernel_type = scalar(INT8)
    asymmetric_quantize_inputs = scalar(BOOL, False)


class ResizeBilinearOptions(Table):
    __slots__ = ()
    unused_0 = deprecated()
    unused_1 = deprecated()
    align_corners = scalar(BOOL, False)
    half_pixel_centers = scalar(BOOL, False)


class CallOptions(Table):
    __slots__ = ()
    subgraph = scalar(UINT32)


class ReshapeOptions(Table):
    __slots__ = ()
    new_shape = vector(INT32)


class SkipGramOptions(Table):
    __slots__ = ()
    ngram_size = scalar(INT32)
    max_skip_size = scalar(INT32)
    include_all_ngrams = scalar(BOOL, False)


class SpaceToDepthOptions(Table):
    __slots__ = ()
    block_size = scalar(INT32)


class EmbeddingLookupSparseOptions(Table):
    __slots__ = ()
    combiner = scalar(INT8)


class MulOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)


class PadOptions(Table):
    __slots__ = ()


class GatherOptions(Table):
    __slots__ = ()
    axis = scalar(INT32)
    batch_dims = scalar(INT32)


class BatchToSpaceNDOptions(Table):
    __slots__ = ()


class SpaceToBatchNDOptions(Table):
    __slots__ = ()


class TransposeOptions(Table):
    __slots__ = ()


class ReducerOptions(Table):
    __slots__ = ()
    keep_dims = scalar(BOOL, False)


class SubOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)
    pot_scale_int16 = scalar(BOOL, True)


class DivOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)


class SqueezeOptions(Table):
    __slots__ = ()
    squeeze_dims = vector(INT32)


class SequenceRNNOptions(Table):
    __slots__ = ()
    time_major = scalar(BOOL, False)
    fused_activation_function = scalar(INT8)
    asymmetric_quantize_inputs = scalar(BOOL, False)


class StridedSliceOptions(Table):
    __slots__ = ()
    begin_mask = scalar(INT32)
    end_mask = scalar(INT32)
    ellipsis_mask = scalar(INT32)
    new_axis_mask = scalar(INT32)
    shrink_axis_mask = scalar(INT32)
    offset = scalar(BOOL, False)


class ExpOptions(Table):
    __slots__ = ()


class TopKV2Options(Table):
    __slots__ = ()


class SplitOptions(Table):
    __slots__ = ()
    num_splits = scalar(INT32)


class LogSoftmaxOptions(Table):
    __slots__ = ()


class CastOptions(Table):
    __slots__ = ()
    in_data_type = scalar(INT8)
    out_data_type = scalar(INT8)


class DequantizeOptions(Table):
    __slots__ = ()


class MaximumMinimumOptions(Table):
    __slots__ = ()


class ArgMaxOptions(Table):
    __slots__ = ()
    output_type = scalar(INT8)


class LessOptions(Table):
    __slots__ = ()


class NegOptions(Table):
    __slots__ = ()


class PadV2Options(Table):
    __slots__ = ()


class GreaterOptions(Table):
    __slots__ = ()


class GreaterEqualOptions(Table):
    __slots__ = ()


class LessEqualOptions(Table):
    __slots__ = ()


class SelectOptions(Table):
    __slots__ = ()


class SliceOptions(Table):
    __slots__ = ()


class TransposeConvOptions(Table):
    __slots__ = ()
    padding = scalar(INT8)
    stride_w = scalar(INT32)
    stride_h = scalar(INT32)
    fused_activation_function = scalar(INT8)
    quantized_bias_type = scalar(INT8)


class SparseToDenseOptions(Table):
    __slots__ = ()
    validate_indices = scalar(BOOL, False)


class TileOptions(Table):
    __slots__ = ()


class ExpandDimsOptions(Table):
    __slots__ = ()


class EqualOptions(Table):
    __slots__ = ()


class NotEqualOptions(Table):
    __slots__ = ()


class ShapeOptions(Table):
    __slots__ = ()
    out_type = scalar(INT8)


class PowOptions(Table):
    __slots__ = ()


class ArgMinOptions(Table):
    __slots__ = ()
    output_type = scalar(INT8)


class FakeQuantOptions(Table):
    __slots__ = ()
    min = scalar(FLOAT32, 0.0)
    max = scalar(FLOAT32, 0.0)
    num_bits = scalar(INT32)
    narrow_range = scalar(BOOL, False)


class PackOptions(Table):
    __slots__ = ()
    values_count = scalar(INT32)
    axis = scalar(INT32)


class LogicalOrOptions(Table):
    __slots__ = ()


class OneHotOptions(Table):
    __slots__ = ()
    axis = scalar(INT32)


class LogicalAndOptions(Table):
    __slots__ = ()


class LogicalNotOptions(Table):
    __slots__ = ()


class UnpackOptions(Table):
    __slots__ = ()
    num = scalar(INT32)
    axis = scalar(INT32)


class FloorDivOptions(Table):
    __slots__ = ()


class SquareOptions(Table):
    __slots__ = ()


class ZerosLikeOptions(Table):
    __slots__ = ()


class FillOptions(Table):
    __slots__ = ()


class BidirectionalSequenceLSTMOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)
    cell_clip = scalar(FLOAT32, 0.0)
    proj_clip = scalar(FLOAT32, 0.0)
    merge_outputs = scalar(BOOL, False)
    time_major = scalar(BOOL, True)
    asymmetric_quantize_inputs = scalar(BOOL, False)


class BidirectionalSequenceRNNOptions(Table):
    __slots__ = ()
    time_major = scalar(BOOL, False)
    fused_activation_function = scalar(INT8)
    merge_outputs = scalar(BOOL, False)
    asymmetric_quantize_inputs = scalar(BOOL, False)


class UnidirectionalSequenceLSTMOptions(Table):
    __slots__ = ()
    fused_activation_function = scalar(INT8)
    cell_clip = scalar(FLOAT32, 0.0)
    proj_clip = scalar(FLOAT32, 0.0)
    time_major = scalar(BOOL, False)
    asymmetric_quantize_inputs = scalar(BOOL, False)
    diagonal_recurrent_tensors = scalar(BOOL, False)


class FloorModOptions(Table):
    __slots__ = ()


class RangeOptions(Table):
    __slots__ = ()


class ResizeNearestNeighborOptions(Table):
    __slots__ = ()
    align_corners = scalar(BOOL, False)
    half_pixel_centers = scalar(BOOL, False)


class LeakyReluOptions(Table):
    __slots__ = ()
    alpha = scalar(FLOAT32, 0.0)


class SquaredDifferenceOptions(Table):
    __slots__ = ()


class MirrorPadOptions(Table):
    __slots__ = ()
    mode = scalar(INT8)


class AbsOptions(Table):
    __slots__ = ()


class SplitVOptions(Table):
    __slots__ = ()
    num_splits = scalar(INT32)


class UniqueOptions(Table):
    __slots__ = ()
    idx_out_type = scalar(INT8, 2)


class ReverseV2Options(Table):
    __slots__ = ()


class AddNOptions(Table):
    __slots__ = ()


class GatherNdOptions(Table):
    __slots__ = ()


class CosOptions(Table):
    __slots__ = ()


class WhereOptions(Table):
    __slots__ = ()


class RankOptions(Table):
    __slots__ = ()


class ReverseSequenceOptions(Table):
    __slots__ = ()
    seq_dim = scalar(INT32)
    batch_dim = scalar(INT32)


class MatrixDiagOptions(Table):
    __slots__ = ()


class QuantizeOptions(Table):
    __slots__ = ()


class MatrixSetDiagOptions(Table):
    __slots__ = ()


class HardSwishOptions(Table):
    __slots__ = ()


class IfOptions(Table):
    __slots__ = ()
    then_subgraph_index = scalar(INT32)
    else_subgraph_index = scalar(INT32)


class WhileOptions(Table):
    __slots__ = ()
    cond_subgraph_index = scalar(INT32)
    body_subgraph_index = scalar(INT32)


class DepthToSpaceOptions(Table):
    __slots__ = ()
    block_size = scalar(INT32)


class NonMaxSuppressionV4Options(Table):
    __slots__ = ()


class NonMaxSuppressionV5Options(Table):
    __slots__ = ()


class ScatterNdOptions(Table):
    __slots__ = ()


class SelectV2Options(Table):
    __slots__ = ()


class DensifyOptions(Table):
    __slots__ = ()


class SegmentSumOptions(Table):
    __slots__ = ()


class BatchMatMulOptions(Table):
    __slots__ = ()
    adj_x = scalar(BOOL, False)
    adj_y = scalar(BOOL, False)
    asymmetric_quantize_inputs = scalar(BOOL, False)


class CumsumOptions(Table):
    __slots__ = ()
    exclusive = scalar(BOOL, False)
    reverse = scalar(BOOL, False)


class CallOnceOptions(Table):
    __slots__ = ()
    init_subgraph_index = scalar(INT32)


class BroadcastToOptions(Table):
    __slots__ = ()


class Rfft2dOptions(Table):
    __slots__ = ()


class Conv3DOptions(Table):
    __slots__ = ()
    padding = scalar(INT8)
    stride_d = scalar(INT32)
    stride_w = scalar(INT32)
    stride_h = scalar(INT32)
    fused_activation_function = scalar(INT8)
    dilation_d_factor = scalar(INT32, 1)
    dilation_w_factor = scalar(INT32, 1)
    dilation_h_factor = scalar(INT32, 1)


class HashtableOptions(Table):
    __slots__ = ()
    table_id = scalar(INT32)
    key_dtype = scalar(INT8)
    value_dtype = scalar(INT8)


class HashtableFindOptions(Table):
    __slots__ = ()


class HashtableImportOptions(Table):
    __slots__ = ()


class HashtableSizeOptions(Table):
    __slots__ = ()


class VarHandleOptions(Table):
    __slots__ = ()
    container = string()
    shared_name = string()


class ReadVariableOptions(Table):
    __slots__ = ()


class AssignVariableOptions(Table):
    __slots__ = ()


class RandomOptions(Table):
    __slots__ = ()
    seed = scalar(INT64)
    seed2 = scalar(INT64)


class BucketizeOptions(Table):
    __slots__ = ()
    boundaries = vector(FLOAT32)


class GeluOptions(Table):
    __slots__ = ()
    approximate = scalar(BOOL, False)


class DynamicUpdateSliceOptions(Table):
    __slots__ = ()


class UnsortedSegmentProdOptions(Table):
    __slots__ = ()


class UnsortedSegmentMaxOptions(Table):
    __slots__ = ()


class UnsortedSegmentMinOptions(Table):
    __slots__ = ()


class UnsortedSegmentSumOptions(Table):
    __slots__ = ()


class ATan2Options(Table):
    __slots__ = ()


class SignOptions(Table):
    __slots__ = ()


class BitcastOptions(Table):
    __slots__ = ()


class BitwiseXorOptions(Table):
    __slots__ = ()


class RightShiftOptions(Table):
    __slots__ = ()


class DilateOptions(Table):
    __slots__ = ()


class ReduceWindowOptions(Table):
    __slots__ = ()
    reduce_function = scalar(INT32)


BUILTIN_OPTIONS: dict[int, type[Table]] = {
    1: Conv2DOptions,
    2: DepthwiseConv2DOptions,
    3: ConcatEmbeddingsOptions,
    4: LSHProjectionOptions,
    5: Pool2DOptions,
    6: SVDFOptions,
    7: RNNOptions,
    8: FullyConnectedOptions,
    9: SoftmaxOptions,
    10: ConcatenationOptions,
    11: AddOptions,
    12: L2NormOptions,
    13: LocalResponseNormalizationOptions,
    14: LSTMOptions,
    15: ResizeBilinearOptions,
    16: CallOptions,
    17: ReshapeOptions,
    18: SkipGramOptions,
    19: SpaceToDepthOptions,
    20: EmbeddingLookupSparseOptions,
    21: MulOptions,
    22: PadOptions,
    23: GatherOptions,
    24: BatchToSpaceNDOptions,
    25: SpaceToBatchNDOptions,
    26: TransposeOptions,
    27: ReducerOptions,
    28: SubOptions,
    29: DivOptions,
    30: SqueezeOptions,
    31: SequenceRNNOptions,
    32: StridedSliceOptions,
    33: ExpOptions,
    34: TopKV2Options,
    35: SplitOptions,
    36: LogSoftmaxOptions,
    37: CastOptions,
    38: DequantizeOptions,
    39: MaximumMinimumOptions,
    40: ArgMaxOptions,
    41: LessOptions,
    42: NegOptions,
    43: PadV2Options,
    44: GreaterOptions,
    45: GreaterEqualOptions,
    46: LessEqualOptions,
    47: SelectOptions,
    48: SliceOptions,
    49: TransposeConvOptions,
    50: SparseToDenseOptions,
    51: TileOptions,
    52: ExpandDimsOptions,
    53: EqualOptions,
    54: NotEqualOptions,
    55: ShapeOptions,
    56: PowOptions,
    57: ArgMinOptions,
    58: FakeQuantOptions,
    59: PackOptions,
    60: LogicalOrOptions,
    61: OneHotOptions,
    62: LogicalAndOptions,
    63: LogicalNotOptions,
    64: UnpackOptions,
    65: FloorDivOptions,
    66: SquareOptions,
    67: ZerosLikeOptions,
    68: FillOptions,
    69: BidirectionalSequenceLSTMOptions,
    70: BidirectionalSequenceRNNOptions,
    71: UnidirectionalSequenceLSTMOptions,
    72: FloorModOptions,
    73: RangeOptions,
    74: ResizeNearestNeighborOptions,
    75: LeakyReluOptions,
    76: SquaredDifferenceOptions,
    77: MirrorPadOptions,
    78: AbsOptions,
    79: SplitVOptions,
    80: UniqueOptions,
    81: ReverseV2Options,
    82: AddNOptions,
    83: GatherNdOptions,
    84: CosOptions,
    85: WhereOptions,
    86: RankOptions,
    87: ReverseSequenceOptions,
    88: MatrixDiagOptions,
    89: QuantizeOptions,
    90: MatrixSetDiagOptions,
    91: HardSwishOptions,
    92: IfOptions,
    93: WhileOptions,
    94: DepthToSpaceOptions,
    95: NonMaxSuppressionV4Options,
    96: NonMaxSuppressionV5Options,
    97: ScatterNdOptions,
    98: SelectV2Options,
    99: DensifyOptions,
    100: SegmentSumOptions,
    101: BatchMatMulOptions,
    102: CumsumOptions,
    103: CallOnceOptions,
    104: BroadcastToOptions,
    105: Rfft2dOptions,
    106: Conv3DOptions,
    107: HashtableOptions,
    108: HashtableFindOptions,
    109: HashtableImportOptions,
    110: HashtableSizeOptions,
    111: VarHandleOptions,
    112: ReadVariableOptions,
    113: AssignVariableOptions,
    114: RandomOptions,
    115: BucketizeOptions,
    116: GeluOptions,
    117: DynamicUpdateSliceOptions,
    118: UnsortedSegmentProdOptions,
    119: UnsortedSegmentMaxOptions,
    120: UnsortedSegmentMinOptions,
    121: UnsortedSegmentSumOptions,
    122: ATan2Options,
    123: SignOptions,
    124: BitcastOptions,
    125: BitwiseXorOptions,
    126: RightShiftOptions,
}
"""Options by their code in the first union."""
