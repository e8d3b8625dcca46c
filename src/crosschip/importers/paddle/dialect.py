"""The operators, slots and attributes of Paddle 2 that correspond to those of Paddle 3.

Paddle 3 (PIR) identifies an operator's inputs and outputs by position, and has inputs for many
attributes of Paddle 2. The table gives the name in Paddle 2 of each position.

Source: paddle/phi/ops/yaml/ops.yaml (the positions) and op_compat.yaml (the names) of Paddle 3.
"""

from __future__ import annotations

from collections.abc import Mapping


class Counterpart:
    """The operator of Paddle 2 that computes the same as one of Paddle 3.

    Args:
        type: its type in Paddle 2; the type in Paddle 3 if Paddle 2 has no equal operator.
        inputs: the slot or attribute of each input, in order; a last name that ends in `*` takes
            all remaining inputs.
        outputs: the slot of each output, likewise; further outputs are for training only.
        attributes: the names of renamed attributes, by their names in Paddle 3.
    """

    def __init__(
        self, type: str, inputs: str = "X", outputs: str = "Out", **attributes: str
    ) -> None:
        self.type = type
        self.inputs = tuple(inputs.split())
        self.outputs = tuple(outputs.split())
        self.attributes: Mapping[str, str] = attributes


_INTERPOLATION = "X OutSize SizeTensor Scale"

_LINEAR = ("X Scale ZeroPoint InAccum InState", "Y OutState OutAccum OutScale")
_MOVING = ("X InScale InAccum InState", "Out OutScale OutState OutAccum")

_UNARY = """
    abs acos acosh asin asinh assign atan atanh bitwise_not ceil celu channel_shuffle cos cosh
    cumprod elu erf exp expm1 flip floor gelu is_empty log log10 log1p log2 log_softmax
    logical_not logit logsigmoid logsumexp lrn maxout meshgrid p_norm partial_concat
    partial_sum pixel_shuffle pixel_unshuffle reciprocal relu relu6 rsqrt selu shuffle_channel
    sigmoid sign silu sin sinh softmax softplus softsign sqrt square squared_l2_norm stanh
    swish tan tanh tanh_shrink temporal_shift thresholded_relu trunc
"""
"""The operators with equal names in Paddle 2 and 3, input `X` and output `Out`."""
_BINARY = """
    bitwise_and bitwise_or bitwise_xor bmm dist dot elementwise_pow equal equal_all
    greater_equal greater_than im2sequence kron less_equal less_than logical_and logical_or
    logical_xor not_equal
"""
"""The operators with equal names in Paddle 2 and 3, inputs `X` and `Y`, and output `Out`."""

COUNTERPARTS: Mapping[str, Counterpart] = {
    **{f"pd_op.{name}": Counterpart(name) for name in _UNARY.split()},
    **{f"pd_op.{name}": Counterpart(name, "X Y") for name in _BINARY.split()},
    "pd_op.add": Counterpart("elementwise_add", "X Y"),
    "pd_op.add_n": Counterpart("sum"),
    "pd_op.addmm": Counterpart("addmm", "Input X Y", beta="Beta", alpha="Alpha"),
    "pd_op.affine_channel": Counterpart("affine_channel", "X Scale Bias"),
    "pd_op.affine_grid": Counterpart("affine_grid", "Theta OutputShape", "Output"),
    "pd_op.all": Counterpart("reduce_all", axis="dim", keepdim="keep_dim"),
    "pd_op.allclose": Counterpart("allclose", "Input Other rtol atol"),
    "pd_op.amax": Counterpart("reduce_amax", axis="dim", keepdim="keep_dim"),
    "pd_op.amin": Counterpart("reduce_amin", axis="dim", keepdim="keep_dim"),
    "pd_op.anchor_generator": Counterpart("anchor_generator", "Input", "Anchors Variances"),
    "pd_op.any": Counterpart("reduce_any", axis="dim", keepdim="keep_dim"),
    "pd_op.arange": Counterpart("range", "Start End Step"),
    "pd_op.argmax": Counterpart("arg_max", "X axis"),
    "pd_op.argmin": Counterpart("arg_min", "X axis"),
    "pd_op.argsort": Counterpart("argsort", "X", "Out Indices"),
    "pd_op.array_length": Counterpart("lod_array_length"),
    "pd_op.array_read": Counterpart("read_from_array", "X I"),
    "pd_op.array_to_tensor": Counterpart("tensor_array_to_tensor", "X", "Out OutIndex"),
    "pd_op.array_write_": Counterpart("pd_op.array_write_", "Array X I"),
    "pd_op.assign_value": Counterpart("assign_value", ""),
    "pd_op.assign_value_": Counterpart("assign_value", ""),
    "pd_op.atan2": Counterpart("atan2", "X1 X2"),
    "pd_op.batch_norm_": Counterpart(
        "batch_norm", "X Mean Variance Scale Bias", "Y", data_format="data_layout"
    ),
    "pd_op.bicubic_interp": Counterpart(
        "bicubic_interp_v2", _INTERPOLATION, data_format="data_layout"
    ),
    "pd_op.bilinear_interp": Counterpart(
        "bilinear_interp_v2", _INTERPOLATION, data_format="data_layout"
    ),
    "pd_op.box_coder": Counterpart("box_coder", "PriorBox PriorBoxVar TargetBox", "OutputBox"),
    "pd_op.cast": Counterpart("cast", dtype="out_dtype"),
    "pd_op.clip": Counterpart("clip", "X min max"),
    "pd_op.collect_fpn_proposals": Counterpart(
        "collect_fpn_proposals",
        "MultiLevelRois MultiLevelScores MultiLevelRoIsNum",
        "FpnRois RoisNum",
        post_nms_topn="post_nms_topN",
    ),
    "pd_op.concat": Counterpart("concat", "X axis"),
    "pd_op.conv2d": Counterpart("conv2d", "Input Filter", "Output"),
    "pd_op.conv2d_transpose": Counterpart("conv2d_transpose", "Input Filter output_size", "Output"),
    "pd_op.conv3d": Counterpart("conv3d", "Input Filter", "Output"),
    "pd_op.create_array": Counterpart("pd_op.create_array", ""),
    "pd_op.crf_decoding": Counterpart(
        "crf_decoding", "Emission Transition Label Length", "ViterbiPath"
    ),
    "pd_op.crop": Counterpart("crop_tensor", "X Shape Offsets"),
    "pd_op.cross": Counterpart("cross", "X Y", axis="dim"),
    "pd_op.cross_entropy_with_softmax": Counterpart(
        "softmax_with_cross_entropy", "Logits Label", "Softmax Loss"
    ),
    "pd_op.ctc_align": Counterpart("ctc_align", "Input InputLength", "Output OutputLength"),
    "pd_op.cumsum": Counterpart("cumsum", "X axis"),
    "pd_op.deformable_conv": Counterpart("deformable_conv", "Input Offset Filter Mask", "Output"),
    "pd_op.depthwise_conv2d": Counterpart("depthwise_conv2d", "Input Filter", "Output"),
    "pd_op.depthwise_conv2d_transpose": Counterpart(
        "depthwise_conv2d_transpose", "Input Filter output_size", "Output"
    ),
    "pd_op.dequantize_linear": Counterpart("dequantize_linear", *_LINEAR),
    "pd_op.dequantize_linear_": Counterpart("dequantize_linear", *_LINEAR),
    "pd_op.det": Counterpart("determinant", "Input"),
    "pd_op.diag": Counterpart("diag_v2"),
    "pd_op.diagonal": Counterpart("diagonal", "Input"),
    "pd_op.distribute_fpn_proposals": Counterpart(
        "distribute_fpn_proposals", "FpnRois RoisNum", "MultiFpnRois MultiLevelRoIsNum RestoreIndex"
    ),
    "pd_op.divide": Counterpart("elementwise_div", "X Y"),
    "pd_op.dropout": Counterpart("dropout", "X Seed dropout_prob", mode="dropout_implementation"),
    "pd_op.einsum": Counterpart("einsum", "Operands"),
    "pd_op.embedding": Counterpart("lookup_table_v2", "Ids W"),
    "pd_op.empty": Counterpart("empty", "ShapeTensor"),
    "pd_op.expand": Counterpart("expand_v2", "X Shape"),
    "pd_op.expand_as": Counterpart("expand_as_v2", "X Y"),
    "pd_op.eye": Counterpart("eye", "num_rows num_columns"),
    "pd_op.fake_channel_wise_dequantize_max_abs": Counterpart(
        "fake_channel_wise_dequantize_max_abs", "X Scales*"
    ),
    "pd_op.fake_channel_wise_quantize_abs_max": Counterpart(
        "fake_channel_wise_quantize_abs_max", "X", "Out OutScale"
    ),
    "pd_op.fake_channel_wise_quantize_dequantize_abs_max": Counterpart(
        "fake_channel_wise_quantize_dequantize_abs_max", "X", "Out OutScale"
    ),
    "pd_op.fake_dequantize_max_abs": Counterpart("fake_dequantize_max_abs", "X Scale"),
    "pd_op.fake_quantize_abs_max": Counterpart("fake_quantize_abs_max", "X", "Out OutScale"),
    "pd_op.fake_quantize_dequantize_abs_max": Counterpart(
        "fake_quantize_dequantize_abs_max", "X", "Out OutScale"
    ),
    "pd_op.fake_quantize_dequantize_moving_average_abs_max": Counterpart(
        "fake_quantize_dequantize_moving_average_abs_max", *_MOVING
    ),
    "pd_op.fake_quantize_dequantize_moving_average_abs_max_": Counterpart(
        "fake_quantize_dequantize_moving_average_abs_max", *_MOVING
    ),
    "pd_op.fake_quantize_moving_average_abs_max": Counterpart(
        "fake_quantize_moving_average_abs_max", *_MOVING
    ),
    "pd_op.fake_quantize_moving_average_abs_max_": Counterpart(
        "fake_quantize_moving_average_abs_max", *_MOVING
    ),
    "pd_op.fake_quantize_range_abs_max": Counterpart(
        "fake_quantize_range_abs_max", "X InScale Iter", "Out OutScale OutScales"
    ),
    "pd_op.fake_quantize_range_abs_max_": Counterpart(
        "fake_quantize_range_abs_max", "X InScale Iter", "Out OutScale OutScales"
    ),
    "pd_op.flatten": Counterpart("flatten_contiguous_range"),
    "pd_op.floor_divide": Counterpart("elementwise_floordiv", "X Y"),
    "pd_op.fmax": Counterpart("elementwise_fmax", "X Y"),
    "pd_op.fmin": Counterpart("elementwise_fmin", "X Y"),
    "pd_op.frobenius_norm": Counterpart("frobenius_norm", "X dim"),
    "pd_op.full": Counterpart("fill_constant", ""),
    "pd_op.full_batch_size_like": Counterpart("fill_constant_batch_size_like", "Input"),
    "pd_op.full_int_array": Counterpart("full_int_array", ""),
    "pd_op.full_like": Counterpart("fill_any_like", "X value"),
    "pd_op.full_with_tensor": Counterpart("fill_constant", "ValueTensor ShapeTensor"),
    "pd_op.gather": Counterpart("gather", "X Index Axis"),
    "pd_op.gather_nd": Counterpart("gather_nd", "X Index"),
    "pd_op.gather_tree": Counterpart("gather_tree", "Ids Parents"),
    "pd_op.generate_proposals": Counterpart(
        "generate_proposals_v2",
        "Scores BboxDeltas ImShape Anchors Variances",
        "RpnRois RpnRoiProbs RpnRoisNum",
        pre_nms_top_n="pre_nms_topN",
        post_nms_top_n="post_nms_topN",
    ),
    "pd_op.grid_sample": Counterpart("grid_sampler", "X Grid", "Output"),
    "pd_op.group_norm": Counterpart(
        "group_norm", "X Scale Bias", "Y Mean Variance", data_format="data_layout"
    ),
    "pd_op.gru_unit": Counterpart(
        "gru_unit", "Input HiddenPrev Weight Bias", "Gate ResetHiddenPrev Hidden"
    ),
    "pd_op.hardshrink": Counterpart("hard_shrink"),
    "pd_op.hardsigmoid": Counterpart("hard_sigmoid"),
    "pd_op.hardswish": Counterpart("hard_swish"),
    "pd_op.hardtanh": Counterpart("brelu"),
    "pd_op.heaviside": Counterpart("elementwise_heaviside", "X Y"),
    "pd_op.if": Counterpart("if", "Cond", "Out*"),
    "pd_op.increment": Counterpart("increment", value="step"),
    "pd_op.index_add": Counterpart("index_add", "X Index AddValue"),
    "pd_op.index_put": Counterpart("index_put", "x indices value", "out"),
    "pd_op.index_sample": Counterpart("index_sample", "X Index"),
    "pd_op.index_select": Counterpart("index_select", "X Index", axis="dim"),
    "pd_op.instance_norm": Counterpart(
        "instance_norm", "X Scale Bias", "Y SavedMean SavedVariance"
    ),
    "pd_op.inverse": Counterpart("inverse", "Input", "Output"),
    "pd_op.isclose": Counterpart("isclose", "Input Other rtol atol"),
    "pd_op.isfinite": Counterpart("isfinite_v2"),
    "pd_op.isinf": Counterpart("isinf_v2"),
    "pd_op.isnan": Counterpart("isnan_v2"),
    "pd_op.kthvalue": Counterpart("kthvalue", "X", "Out Indices"),
    "pd_op.label_smooth": Counterpart("label_smooth", "X PriorDist"),
    "pd_op.layer_norm": Counterpart("layer_norm", "X Scale Bias", "Y Mean Variance"),
    "pd_op.leaky_relu": Counterpart("leaky_relu", negative_slope="alpha"),
    "pd_op.legacy_reshape": Counterpart("reshape", "X Shape"),
    "pd_op.lerp": Counterpart("lerp", "X Y Weight"),
    "pd_op.linear_interp": Counterpart(
        "linear_interp_v2", _INTERPOLATION, data_format="data_layout"
    ),
    "pd_op.linspace": Counterpart("linspace", "Start Stop Num"),
    "pd_op.lookup_table_dequant": Counterpart("lookup_table_dequant", "W Ids"),
    "pd_op.masked_fill": Counterpart("pd_op.masked_fill", "X Mask Value"),
    "pd_op.masked_select": Counterpart("masked_select", "X Mask", "Y"),
    "pd_op.matmul": Counterpart("matmul_v2", "X Y", transpose_x="trans_x", transpose_y="trans_y"),
    "pd_op.matrix_nms": Counterpart("matrix_nms", "BBoxes Scores", "Out Index RoisNum"),
    "pd_op.max": Counterpart("reduce_max", "X dim", keepdim="keep_dim"),
    "pd_op.max_pool2d_with_index": Counterpart(
        "max_pool2d_with_index", "X", "Out Mask", kernel_size="ksize"
    ),
    "pd_op.max_pool3d_with_index": Counterpart(
        "max_pool3d_with_index", "X", "Out Mask", kernel_size="ksize"
    ),
    "pd_op.maximum": Counterpart("elementwise_max", "X Y"),
    "pd_op.mean": Counterpart("reduce_mean", "X dim", keepdim="keep_dim"),
    "pd_op.mean_all": Counterpart("mean"),
    "pd_op.min": Counterpart("reduce_min", "X dim", keepdim="keep_dim"),
    "pd_op.minimum": Counterpart("elementwise_min", "X Y"),
    "pd_op.mish": Counterpart("mish", **{"lambda": "threshold"}),
    "pd_op.multiclass_nms3": Counterpart(
        "multiclass_nms3", "BBoxes Scores RoisNum", "Out Index NmsRoisNum"
    ),
    "pd_op.multiply": Counterpart("elementwise_mul", "X Y"),
    "pd_op.mv": Counterpart("mv", "X Vec"),
    "pd_op.nearest_interp": Counterpart(
        "nearest_interp_v2", _INTERPOLATION, data_format="data_layout"
    ),
    "pd_op.nms": Counterpart("nms", "Boxes", "KeepBoxesIdxs", threshold="iou_threshold"),
    "pd_op.nonzero": Counterpart("where_index", "Condition"),
    "pd_op.numel": Counterpart("size", "Input"),
    "pd_op.one_hot": Counterpart("one_hot_v2", "X depth_tensor"),
    "pd_op.pad": Counterpart("pad", "X pad_value"),
    "pd_op.pad3d": Counterpart("pad3d", "X Paddings", pad_value="value"),
    "pd_op.pool2d": Counterpart("pool2d", "X ksize"),
    "pd_op.pool3d": Counterpart("pool3d", kernel_size="ksize"),
    "pd_op.pow": Counterpart("pow", y="factor"),
    "pd_op.prelu": Counterpart("prelu", "X Alpha"),
    "pd_op.prior_box": Counterpart("prior_box", "Input Image", "Boxes Variances"),
    "pd_op.prod": Counterpart("reduce_prod", "X dim", keepdim="keep_dim"),
    "pd_op.put_along_axis": Counterpart(
        "put_along_axis",
        "Input Index Value",
        "Result",
        axis="Axis",
        reduce="Reduce",
        include_self="Include_self",
    ),
    "pd_op.quantize_linear": Counterpart("quantize_linear", *_LINEAR),
    "pd_op.quantize_linear_": Counterpart("quantize_linear", *_LINEAR),
    "pd_op.remainder": Counterpart("elementwise_mod", "X Y"),
    "pd_op.repeat_interleave": Counterpart("repeat_interleave", repeats="Repeats", axis="dim"),
    "pd_op.repeat_interleave_with_tensor_index": Counterpart(
        "repeat_interleave", "X RepeatsTensor", axis="dim"
    ),
    "pd_op.reshape": Counterpart("reshape2", "X Shape"),
    "pd_op.reverse": Counterpart("reverse", "X axis"),
    "pd_op.rnn": Counterpart(
        "rnn", "Input PreState WeightList SequenceLength", "Out DropoutState State"
    ),
    "pd_op.roi_align": Counterpart("roi_align", "X ROIs RoisNum"),
    "pd_op.roll": Counterpart("roll", "X ShiftsTensor"),
    "pd_op.round": Counterpart("pd_op.round"),
    "pd_op.scale": Counterpart("scale", "X ScaleTensor"),
    "pd_op.scatter": Counterpart("scatter", "X Ids Updates"),
    "pd_op.scatter_nd_add": Counterpart("scatter_nd_add", "X Index Updates"),
    "pd_op.searchsorted": Counterpart("searchsorted", "SortedSequence Values"),
    "pd_op.sequence_mask": Counterpart("sequence_mask", "X MaxLenTensor", "Y"),
    "pd_op.set_value": Counterpart(
        "set_value", "Input StartsTensorList EndsTensorList StepsTensorList"
    ),
    "pd_op.set_value_with_tensor": Counterpart(
        "set_value", "Input ValueTensor StartsTensorList EndsTensorList StepsTensorList"
    ),
    "pd_op.shape": Counterpart("shape", "Input"),
    "pd_op.shape64": Counterpart("shape64", "Input"),
    "pd_op.share_data_": Counterpart("share_data"),
    "pd_op.slice": Counterpart("slice", "Input StartsTensor EndsTensor"),
    "pd_op.softshrink": Counterpart("softshrink", threshold="lambda"),
    "pd_op.split": Counterpart("split", "X sections axis"),
    "pd_op.split_with_num": Counterpart("split", "X axis"),
    "pd_op.squeeze": Counterpart("squeeze2", "X axes"),
    "pd_op.stack": Counterpart("stack", "X", "Y"),
    "pd_op.strided_slice": Counterpart(
        "pd_op.strided_slice", "Input StartsTensor EndsTensor StridesTensor"
    ),
    "pd_op.subtract": Counterpart("elementwise_sub", "X Y"),
    "pd_op.sum": Counterpart("reduce_sum", "X dim", keepdim="keep_dim", dtype="out_dtype"),
    "pd_op.swiglu": Counterpart("pd_op.swiglu", "X Y"),
    "pd_op.take_along_axis": Counterpart("take_along_axis", "Input Index", "Result", axis="Axis"),
    "pd_op.tile": Counterpart("tile", "X RepeatTimes"),
    "pd_op.topk": Counterpart("top_k_v2", "X K", "Out Indices"),
    "pd_op.trace": Counterpart("pd_op.trace", "Input"),
    "pd_op.transpose": Counterpart("transpose2", perm="axis"),
    "pd_op.tril": Counterpart("tril_triu"),
    "pd_op.tril_indices": Counterpart("tril_indices", "", "out"),
    "pd_op.trilinear_interp": Counterpart(
        "trilinear_interp_v2", _INTERPOLATION, data_format="data_layout"
    ),
    "pd_op.triu": Counterpart("pd_op.triu"),
    "pd_op.triu_indices": Counterpart("triu_indices", "", "out"),
    "pd_op.unbind": Counterpart("unbind", "X", "Out"),
    "pd_op.unfold": Counterpart("unfold", "X", "Y"),
    "pd_op.unique": Counterpart("unique", "X", "Out Indices Index Counts"),
    "pd_op.unsqueeze": Counterpart("unsqueeze2", "X axes"),
    "pd_op.unstack": Counterpart("unstack", "X", "Y"),
    "pd_op.where": Counterpart("where", "Condition X Y"),
    "pd_op.while": Counterpart("while", "Condition X*", "Out*"),
    "pd_op.yolo_box": Counterpart("yolo_box", "X ImgSize", "Boxes Scores"),
}
