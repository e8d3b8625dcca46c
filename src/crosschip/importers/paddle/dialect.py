"""What Paddle 3 calls the operators, slots and attributes of Paddle 2.

Paddle 3 (PIR) writes an operator's inputs and outputs by position, and turned many attributes into
inputs; here every position gets the name that it has in Paddle 2.

Source: paddle/phi/ops/yaml/ops.yaml (the positions) and op_compat.yaml (the names) of Paddle 3.
"""

from __future__ import annotations

from collections.abc import Mapping


class Counterpart:
    """An operator of Paddle 2 that computes what one of Paddle 3 does.

    Args:
        type: its name.
        inputs: the slot, or the attribute, that each input is, in order.
        output: the slot that the first output is; the others are for training.
        attributes: the name of each attribute that is called otherwise, by its name in Paddle 3.
    """

    def __init__(
        self, type: str, inputs: str = "X", output: str = "Out", **attributes: str
    ) -> None:
        self.type = type
        self.inputs = tuple(inputs.split())
        self.output = output
        self.attributes: Mapping[str, str] = attributes


_INTERPOLATION = "X OutSize SizeTensor Scale"

COUNTERPARTS: Mapping[str, Counterpart] = {
    "pd_op.add": Counterpart("elementwise_add", "X Y"),
    "pd_op.assign": Counterpart("assign"),
    "pd_op.batch_norm_": Counterpart(
        "batch_norm", "X Mean Variance Scale Bias", "Y", data_format="data_layout"
    ),
    "pd_op.bilinear_interp": Counterpart(
        "bilinear_interp_v2", _INTERPOLATION, data_format="data_layout"
    ),
    "pd_op.bmm": Counterpart("bmm", "X Y"),
    "pd_op.cast": Counterpart("cast", dtype="out_dtype"),
    "pd_op.clip": Counterpart("clip", "X min max"),
    "pd_op.concat": Counterpart("concat", "X axis"),
    "pd_op.conv2d": Counterpart("conv2d", "Input Filter", "Output"),
    "pd_op.conv2d_transpose": Counterpart("conv2d_transpose", "Input Filter output_size", "Output"),
    "pd_op.depthwise_conv2d": Counterpart("depthwise_conv2d", "Input Filter", "Output"),
    "pd_op.depthwise_conv2d_transpose": Counterpart(
        "depthwise_conv2d_transpose", "Input Filter output_size", "Output"
    ),
    "pd_op.divide": Counterpart("elementwise_div", "X Y"),
    "pd_op.dropout": Counterpart("dropout", "X Seed dropout_prob", mode="dropout_implementation"),
    "pd_op.elementwise_pow": Counterpart("elementwise_pow", "X Y"),
    "pd_op.exp": Counterpart("exp"),
    "pd_op.expand": Counterpart("expand_v2", "X Shape"),
    "pd_op.flatten": Counterpart("flatten_contiguous_range"),
    "pd_op.full": Counterpart("fill_constant", ""),
    "pd_op.full_int_array": Counterpart("full_int_array", ""),
    "pd_op.full_like": Counterpart("fill_any_like", "X value"),
    "pd_op.full_with_tensor": Counterpart("fill_constant", "ValueTensor ShapeTensor"),
    "pd_op.gather": Counterpart("gather", "X Index Axis"),
    "pd_op.hardsigmoid": Counterpart("hard_sigmoid"),
    "pd_op.hardswish": Counterpart("hard_swish"),
    "pd_op.layer_norm": Counterpart("layer_norm", "X Scale Bias", "Y"),
    "pd_op.leaky_relu": Counterpart("leaky_relu", negative_slope="alpha"),
    "pd_op.matmul": Counterpart("matmul_v2", "X Y", transpose_x="trans_x", transpose_y="trans_y"),
    "pd_op.max": Counterpart("reduce_max", "X dim", keepdim="keep_dim"),
    "pd_op.maximum": Counterpart("elementwise_max", "X Y"),
    "pd_op.mean": Counterpart("reduce_mean", "X dim", keepdim="keep_dim"),
    "pd_op.minimum": Counterpart("elementwise_min", "X Y"),
    "pd_op.multiply": Counterpart("elementwise_mul", "X Y"),
    "pd_op.nearest_interp": Counterpart(
        "nearest_interp_v2", _INTERPOLATION, data_format="data_layout"
    ),
    "pd_op.pool2d": Counterpart("pool2d", "X ksize"),
    "pd_op.pow": Counterpart("pow", y="factor"),
    "pd_op.relu": Counterpart("relu"),
    "pd_op.relu6": Counterpart("relu6"),
    "pd_op.reshape": Counterpart("reshape2", "X Shape"),
    "pd_op.scale": Counterpart("scale", "X ScaleTensor"),
    "pd_op.shape": Counterpart("shape", "Input"),
    "pd_op.shape64": Counterpart("shape64", "Input"),
    "pd_op.sigmoid": Counterpart("sigmoid"),
    "pd_op.silu": Counterpart("silu"),
    "pd_op.slice": Counterpart("slice", "Input StartsTensor EndsTensor"),
    "pd_op.softmax": Counterpart("softmax"),
    "pd_op.split": Counterpart("split", "X sections axis"),
    "pd_op.split_with_num": Counterpart("split", "X axis"),
    "pd_op.sqrt": Counterpart("sqrt"),
    "pd_op.squeeze": Counterpart("squeeze2", "X axes"),
    "pd_op.stack": Counterpart("stack", "X", "Y"),
    "pd_op.subtract": Counterpart("elementwise_sub", "X Y"),
    "pd_op.sum": Counterpart("reduce_sum", "X dim", keepdim="keep_dim", dtype="out_dtype"),
    "pd_op.swish": Counterpart("swish"),
    "pd_op.tanh": Counterpart("tanh"),
    "pd_op.transpose": Counterpart("transpose2", perm="axis"),
    "pd_op.unsqueeze": Counterpart("unsqueeze2", "X axes"),
}
