"""Uses of operators that PaddlePaddle's exporter to ONNX converts besides, and of their like."""

import numpy as np

from uses import Attributes, fixed, integers, normal, positive, saved, use, whole

X = normal(2, 3, 4, 5)
FLOAT32 = 5
changed: Attributes
WIDE = np.array([[-50, -1e-4, 0, 1e-6, 0.7, 30], [-1, -0.3, 1e-3, 2, 5, 80]], np.float32)

for name in ("log2", "log10"):
    use(name, "rank 2", {"X": positive(2, 3)})
use("log1p", "wide", {"X": np.abs(WIDE)})
use("expm1", "wide", {"X": WIDE})
use("logsigmoid", "wide", {"X": WIDE})
use("tanh_shrink", "rank 4", {"X": X})
use("stanh", "default", {"X": X})
use("stanh", "scales", {"X": X}, scale_a=0.5, scale_b=2.0)
use("trunc", "float32", {"X": 3 * X})
STRANGE = np.array([[0, np.nan, 1], [np.inf, -np.inf, -1]], np.float32)
use("isfinite_v2", "float32", {"X": STRANGE})
SHARES = np.array([[0, 0.2, 0.5], [0.9, 1, 0.3]], np.float32)
use("logit", "eps", {"X": SHARES}, eps=0.01)
use("atan2", "everywhere", {"X1": normal(20), "X2": normal(20, seed=1)})
AXES = np.array([0, 0, 1, -1, 0], np.float32), np.array([1, -1, 0, 0, 0], np.float32)
use("atan2", "on the axes", {"X1": AXES[0], "X2": AXES[1]})
use("brelu", "bounds", {"X": 10 * X}, t_min=-3.0, t_max=8.0)
for name in ("elementwise_fmax", "elementwise_fmin"):
    use(name, "NaN", {"X": STRANGE, "Y": STRANGE.T.reshape(2, 3).copy()})
    use(name, "int64", {"X": whole(3, 4), "Y": whole(3, 4, seed=1)})
use("label_smooth", "all alike", {"X": positive(3, 4)}, epsilon=0.1)
PRIOR = {"X": positive(3, 4), "PriorDist": fixed(positive(1, 4, seed=1))}
use("label_smooth", "prior", PRIOR, epsilon=0.2)
LERP = {"X": X, "Y": normal(2, 3, 4, 5, seed=1), "Weight": fixed(np.array(0.3, np.float32))}
use("lerp", "weight", LERP)
COLUMNS = [normal(3, 6), normal(3, 6, seed=1)]
for name in ("partial_sum", "partial_concat"):
    use(name, "from the second", {"X": COLUMNS}, start_index=1, length=3)
    use(name, "all", {"X": COLUMNS}, start_index=0, length=-1)

use("dot", "lists", {"X": fixed(normal(6)), "Y": fixed(normal(6, seed=1))})
use("dot", "rows", {"X": normal(3, 6), "Y": normal(3, 6, seed=1)})
use("mv", "matrix", {"X": normal(3, 6), "Vec": fixed(normal(6, seed=1))})
PRODUCT = {"Input": fixed(normal(3, 4)), "X": normal(3, 5), "Y": fixed(normal(5, 4, seed=1))}
use("addmm", "factors", PRODUCT, Alpha=2.0, Beta=0.5)
for setting, order in (("2", 2.0), ("1", 1.0), ("infinite", float("inf")), ("3", 3.0)):
    use("dist", setting, {"X": normal(3, 4), "Y": normal(3, 4, seed=1)}, p=order)
use(
    "einsum",
    "products",
    {"Operands": [normal(2, 3, 4), fixed(normal(4, 5))]},
    equation="bij,jk->bik",
)
use("einsum", "trace", {"Operands": [fixed(normal(4, 4))]}, equation="ii->i")
PAIR = [normal(2, 3, 4), normal(2, 5, 4, seed=1)]
use("einsum", "attention", {"Operands": PAIR}, equation="bqd,bkd->bqk")
use("inverse", "batches", {"Input": fixed(normal(2, 4, 4) + 3 * np.eye(4, dtype=np.float32))})

use("size", "rank 4", {"Input": X})
use("eye", "square", {}, num_rows=3, num_columns=3, dtype=FLOAT32)
use("eye", "wide", {}, num_rows=2, num_columns=4, dtype=FLOAT32)
for setting, shift in (("middle", 0), ("above", 1), ("below", -2)):
    use("diag_v2", f"matrix, {setting}", {"X": fixed(normal(3))}, offset=shift, padding_value=0.5)
    use("diag_v2", f"list, {setting}", {"X": normal(4, 5)}, offset=shift)
    use("diagonal", setting, {"Input": fixed(X)}, offset=shift, axis1=1, axis2=3)
    use("diagonal", f"{setting}, turned", {"Input": fixed(X)}, offset=shift, axis1=-1, axis2=0)
    use("trace", setting, {"Input": fixed(X)}, offset=shift, axis1=-1, axis2=0)
use("index_sample", "rows", {"X": normal(3, 5), "Index": whole(3, 4, low=0, high=5)})
use("repeat_interleave", "three times", {"X": normal(2, 3)}, Repeats=3, dim=1)
TIMES = fixed(integers(2, 0, 3))
use("repeat_interleave", "computed", {"X": normal(2, 3), "RepeatsTensor": TIMES}, Repeats=0, dim=1)
LABELS = whole(4, 1, low=0, high=5)
CROSS = "Softmax Loss"
for setting, changed in (
    ("labels", {}),
    ("one ignored", {"ignore_index": int(LABELS[2, 0])}),
):
    inputs = {"Logits": normal(4, 5), "Label": LABELS}
    more: Attributes = {"axis": -1, **changed}
    use("softmax_with_cross_entropy", setting, inputs, outputs=CROSS, **more)
SOFT = {"Logits": normal(2, 3, 4), "Label": positive(2, 3, 4)}
use("softmax_with_cross_entropy", "shares", SOFT, outputs=CROSS, soft_label=True, axis=1)
STATISTICS = {
    "BatchSize": saved(positive(4, seed=1)),
    "BatchSum": saved(normal(4, seed=2)),
    "BatchSquareSum": saved(positive(4, seed=3)),
}
use("data_norm", "columns", {"X": normal(3, 4), **STATISTICS}, outputs="Y")

WRITTEN = {"Input": fixed(normal(4, 3)), "Index": whole(2, 3, low=0, high=4)}
PUT = WRITTEN | {
    "Index": fixed(np.array([[0, 1, 2], [3, 3, 0]])),
    "Value": fixed(normal(2, 3, seed=1)),
}
for how in ("assign", "add", "mul"):
    use("put_along_axis", how, PUT, outputs="Result", Axis=0, Reduce=how)
use("masked_select", "rank 2", {"X": normal(3, 4), "Mask": normal(3, 4, seed=1) > 0}, outputs="Y")
PLACES = [fixed(np.array([0, 2, 1])), fixed(np.array([3, 0, 3]))]
for accumulate in (False, True):
    use(
        "index_put",
        "added up" if accumulate else "written",
        {"x": fixed(normal(3, 4)), "indices": PLACES, "value": fixed(normal(3, seed=1))},
        accumulate=accumulate,
    )
use("cumprod", "axis 1", {"X": normal(3, 4)}, dim=1)
use("frobenius_norm", "two axes", {"X": X}, dim=[2, 3], keep_dim=True)
use("frobenius_norm", "all", {"X": X}, dim=[0], reduce_all=True)
use("squared_l2_norm", "rank 2", {"X": normal(3, 4)})
ORDERED = np.sort(whole(3, 6), 1)
for right in (False, True):
    use(
        "searchsorted",
        "after equals" if right else "before equals",
        {"SortedSequence": ORDERED, "Values": whole(3, 4, seed=1)},
        right=right,
        out_int32=right,
    )
ALIKE = normal(3, 4)
for name in ("allclose", "isclose"):
    both = {"Input": ALIKE, "Other": ALIKE + np.float32(1e-6) * (ALIKE > 0)}
    use(name, "nearly", both, rtol="1e-05", atol="1e-08")
    use(name, "not finite", {"Input": STRANGE, "Other": STRANGE}, equal_nan=True)
use("equal_all", "same", {"X": whole(3, 4), "Y": whole(3, 4)})
use("equal_all", "different", {"X": whole(3, 4), "Y": whole(3, 4, seed=1)})
use("maxout", "axis 1", {"X": normal(2, 6, 4, 5)}, groups=3, axis=1)
use("affine_grid", "edges", {"Theta": normal(2, 2, 3)}, output_shape=[2, 3, 4, 5])
use(
    "affine_grid",
    "middles",
    {"Theta": normal(2, 2, 3)},
    output_shape=[2, 3, 4, 5],
    align_corners=False,
)


for name in ("reduce_amax", "reduce_amin"):
    use(name, "one axis", {"X": X}, dim=[1])
use("reduce_sum", "bool", {"X": normal(3, 4) > 0}, dim=[1])
use("channel_shuffle", "groups", {"X": normal(2, 6, 3, 4)}, groups=3)
use(
    "elementwise_heaviside",
    "zeros",
    {"X": np.sign(normal(3, 4)).round() * (X[0, 0, :3, :4] > 0), "Y": normal(3, 4)},
)
use("cross", "axis 1", {"X": normal(2, 3, 4), "Y": normal(2, 3, 4, seed=1)}, dim=1)
use("cross", "the first", {"X": fixed(normal(3, 4)), "Y": fixed(normal(3, 4, seed=1))}, dim=9)
use("kron", "matrices", {"X": normal(2, 3), "Y": fixed(normal(4, 5))})
use("kron", "of other ranks", {"X": fixed(normal(3)), "Y": fixed(normal(2, 4, 5))})
use("kthvalue", "second", {"X": normal(3, 5)}, outputs="Out Indices", k=2, axis=1)
use(
    "kthvalue",
    "third, kept",
    {"X": normal(2, 5, 3)},
    outputs="Out Indices",
    k=3,
    axis=-2,
    keepdim=True,
)
ADDED = {"X": fixed(normal(4, 3, 2)), "Index": fixed(integers(2, 0, 2, dtype="int64"))}
use("index_add", "axis 0", ADDED | {"AddValue": fixed(normal(3, 3, 2, seed=1))}, axis=0)
use("index_add", "axis 1", ADDED | {"AddValue": fixed(normal(4, 3, 2, seed=1))}, axis=1)
use("tril_indices", "below", {}, rows=3, cols=4, offset=-1, dtype=3)
use("triu_indices", "above", {}, row=3, col=4, offset=1, dtype=3)
use("trace", "open sizes", {"Input": normal(4, 5)}, offset=1)

VOLUME = normal(1, 4, 5, 6, 7)
FILTER = saved(normal(6, 2, 3, 2, 3))
OUTPUT = "Output"
use("conv3d", "groups", {"Input": VOLUME, "Filter": FILTER}, outputs=OUTPUT, groups=2)
use(
    "conv3d",
    "everything",
    {"Input": VOLUME, "Filter": FILTER},
    outputs=OUTPUT,
    groups=2,
    strides=[2, 1, 2],
    paddings=[1, 2, 0],
    dilations=[2, 1, 2],
)
use(
    "conv3d",
    "same, channels last",
    {"Input": normal(1, 5, 6, 7, 4), "Filter": saved(normal(6, 4, 3, 2, 3))},
    outputs=OUTPUT,
    strides=[2, 2, 1],
    padding_algorithm="SAME",
    data_format="NDHWC",
)
for kind in ("avg", "max"):
    use("pool3d", f"{kind}, windows", {"X": VOLUME}, pooling_type=kind, ksize=[3, 2, 3],
        strides=[2, 2, 1], paddings=[1, 0, 1])  # fmt: skip
    use("pool3d", f"{kind}, global", {"X": VOLUME}, pooling_type=kind, ksize=[1, 1, 1],
        global_pooling=True)  # fmt: skip
use("pool3d", "avg, padding counts", {"X": VOLUME}, pooling_type="avg", ksize=[3, 2, 3],
    strides=[2, 2, 1], paddings=[1, 1, 1], exclusive=False)  # fmt: skip
use("pool3d", "adaptive", {"X": VOLUME}, pooling_type="avg", ksize=[2, 3, 2], adaptive=True)
use("max_pool3d_with_index", "windows", {"X": VOLUME}, outputs="Out", ksize=[3, 2, 3],
    strides=[2, 2, 1], paddings=[1, 0, 1])  # fmt: skip
LINEAR: Attributes = {"interp_method": "linear", "data_layout": "NCHW", "align_mode": 0}
for setting, changed in (
    ("size", {"out_w": 9, "align_corners": False}),
    ("aligned corners", {"out_w": 4, "align_corners": True}),
    ("scale, from the edge", {"scale": [1.5], "align_corners": False, "align_mode": 1}),
):
    use("linear_interp_v2", setting, {"X": normal(2, 3, 6)}, **{**LINEAR, **changed})
TRILINEAR: Attributes = {
    **LINEAR,
    "interp_method": "trilinear",
    "out_d": 7,
    "out_h": 4,
    "out_w": 9,
}
use("trilinear_interp_v2", "size", {"X": VOLUME}, **TRILINEAR, align_corners=False)
use("trilinear_interp_v2", "aligned corners", {"X": VOLUME}, **TRILINEAR, align_corners=True)
for setting, changed in (
    ("windows", {"kernel_sizes": [3, 2], "paddings": [1, 0, 1, 0]}),
    ("strides", {"kernel_sizes": [2, 2], "strides": [2, 3], "dilations": [1, 2]}),
):
    settings: Attributes = {"strides": [1, 1], "dilations": [1, 1], "paddings": [0] * 4, **changed}
    use("unfold", setting, {"X": normal(2, 3, 5, 6)}, outputs="Y", **settings)
use("temporal_shift", "segments", {"X": normal(6, 8, 3, 4)}, seg_num=3, shift_ratio=0.25)
use("pixel_unshuffle", "blocks", {"X": normal(2, 3, 4, 6)}, downscale_factor=2)
QUANTIZED = np.random.RandomState(0).uniform(0, 1, (5, 4)).astype(np.float32)
INDICES = {"W": saved(QUANTIZED), "Ids": whole(3, 1, low=0, high=5)}
use("lookup_table_dequant", "rows", INDICES, padding_idx=-1)
use("lookup_table_dequant", "padding", INDICES, padding_idx=2)
NUMBERS = fixed(normal(4, 5))
COMPUTED: Attributes = {"axes": [0, 1], "starts": [], "ends": [], "steps": [], "dtype": FLOAT32}
BOX = {
    "StartsTensorList": [fixed(integers(1)), fixed(integers(-4))],
    "EndsTensorList": [fixed(integers(3)), fixed(integers(9))],
    "StepsTensorList": [saved(integers(1)), saved(integers(2))],
}
use(
    "set_value",
    "computed bounds",
    {"Input": NUMBERS, "ValueTensor": fixed(normal(2, 2, seed=1)), **BOX},
    **COMPUTED,
)
use(
    "set_value",
    "open sizes, a row",
    {"Input": normal(4, 5), "ValueTensor": fixed(normal(5, seed=1))},
    axes=[0],
    starts=[-2],
    ends=[-1],
    steps=[1],
    decrease_axes=[0],
    dtype=FLOAT32,
)
use("select_input", "of three", {"X": [X, X + 1, X + 2], "Mask": fixed(integers(2))})
MASK = fixed(normal(4, 1) > 0)
ROWS = normal(4, 2)
use("split_lod_tensor", "rows", {"X": ROWS, "Mask": MASK}, outputs="OutTrue OutFalse", level=0)
TRUE = int(MASK.array.sum())
PARTS = {"X": ROWS, "Mask": MASK, "InTrue": normal(TRUE, 2), "InFalse": normal(4 - TRUE, 2, seed=1)}
use("merge_lod_tensor", "rows", PARTS, level=0)
use("empty", "shape", {}, shape=[0, 2], dtype=FLOAT32)
