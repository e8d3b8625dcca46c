"""Uses of operators that Paddle Lite does not convert for NNAdapter, but the set has."""

import numpy as np

from uses import Attributes, fixed, integers, normal, positive, real, saved, use, whole

X = normal(2, 3, 4, 5)
INT64, FLOAT32 = 3, 5
UNIT = np.tanh(X)

for name in ("asinh", "atan", "ceil", "cosh", "erf", "sign", "sinh", "softsign", "tan", "mish"):
    use(name, "rank 4", {"X": X})
for name in ("acos", "asin", "atanh"):
    use(name, "rank 4", {"X": UNIT})
use("acosh", "rank 4", {"X": 1 + positive(2, 3)})
use("reciprocal", "rank 4", {"X": positive(2, 3)})
STRANGE = np.array([[0, np.nan, 1], [np.inf, -np.inf, -1]], np.float32)
use("isnan_v2", "float32", {"X": STRANGE})
use("isinf_v2", "float32", {"X": STRANGE})
for name in ("celu", "elu"):
    use(name, "default", {"X": X})
    use(name, "alpha", {"X": X}, alpha=0.3)
use("selu", "default", {"X": X})
use("selu", "scale and alpha", {"X": X}, scale=1.25, alpha=0.5)
use("mish", "threshold", {"X": X}, threshold=0.25)
use("thresholded_relu", "default", {"X": 2 * X})
use("thresholded_relu", "threshold", {"X": X}, threshold=0.25)
use("hard_shrink", "default", {"X": X})
use("hard_shrink", "threshold", {"X": X}, threshold=0.75)
use("softshrink", "default", {"X": X})
WIDTH: Attributes = {"lambda": 0.75}
use("softshrink", "lambda", {"X": X}, **WIDTH)

DIVISOR = whole(3, 4, low=1, high=5) * np.where(whole(3, 4, seed=1) < 0, -1, 1)
use("elementwise_mod", "int64", {"X": whole(3, 4), "Y": DIVISOR})
use("elementwise_mod", "float32", {"X": X, "Y": saved(real(0.75))})
for name in ("logical_or", "logical_xor"):
    use(name, "same shapes", {"X": normal(4, 5) > 0, "Y": normal(4, 5, seed=1) > 0})

for name in ("reduce_min", "reduce_prod"):
    use(name, "one axis", {"X": X}, dim=[1])
    use(name, "two axes, kept", {"X": X}, dim=[-1, 1], keep_dim=True)
    use(name, "all", {"X": X}, dim=[0], reduce_all=True)
for name in ("reduce_all", "reduce_any"):
    use(name, "one axis", {"X": X > -1}, dim=[1])
    use(name, "all, kept", {"X": X > -1}, dim=[0], reduce_all=True, keep_dim=True)
use("logsumexp", "one axis", {"X": X}, axis=[1])
use("logsumexp", "all, kept", {"X": X}, axis=[0], reduce_all=True, keepdim=True)

# Paddle 3 has taken the place of the second attribute by the first.
use(
    "assign_value",
    "float32",
    {},
    values=[1.5, 2.5],
    fp32_values=[1.5, 2.5],
    shape=[2, 1],
    dtype=FLOAT32,
)
use("assign_value", "int64", {}, values=[7, -7, 2], int64_values=[7, -7, 2], shape=[3], dtype=INT64)
use("assign_value", "bool", {}, values=[True, False], bool_values=[1, 0], shape=[2], dtype=0)
use("index_select", "axis 1", {"X": X, "Index": integers(2, 0, 2)}, dim=1)
use("gather_nd", "one index", {"X": X, "Index": integers(1, 0).reshape(2, 1)})
use("gather_nd", "three indices", {"X": X, "Index": integers(1, 2, 3, 0, 0, 1).reshape(2, 3)})
use(
    "scatter_nd_add",
    "twice",
    {
        "X": fixed(normal(4, 3)),
        "Index": integers(1, 3, 1).reshape(3, 1),
        "Updates": normal(3, 3, seed=1),
    },
)
use(
    "take_along_axis",
    "axis 1",
    {"Input": normal(3, 4), "Index": whole(3, 2, low=0, high=4)},
    Axis=1,
)
use("where_index", "rank 2", {"Condition": normal(3, 4) > 0})
use("expand_as_v2", "like another", {"X": normal(3, 1), "Y": normal(3, 4)}, target_shape=[-1, 4])
use("expand_as_v2", "fixed shape", {"X": fixed(normal(3, 1))}, target_shape=[2, 3, 4])
use("pixel_shuffle", "channels first", {"X": normal(2, 8, 3, 4)}, upscale_factor=2)
use(
    "pixel_shuffle",
    "channels last",
    {"X": normal(2, 3, 4, 8)},
    upscale_factor=2,
    data_format="NHWC",
)
use("tril_triu", "lower", {"X": normal(2, 4, 4)}, lower=True)
use("tril_triu", "upper", {"X": normal(2, 4, 5)}, lower=False, diagonal=1)
use("determinant", "batches", {"Input": normal(2, 3, 3)})

BOTH = "Out Mask"
use(
    "max_pool2d_with_index",
    "windows",
    {"X": normal(2, 3, 7, 9)},
    outputs=BOTH,
    ksize=[3, 2],
    strides=[2, 2],
    paddings=[1, 1],
)
use(
    "max_pool2d_with_index",
    "adaptive",
    {"X": normal(2, 3, 7, 9)},
    outputs=BOTH,
    ksize=[3, 2],
    adaptive=True,
)
use(
    "max_pool2d_with_index",
    "everything",
    {"X": normal(2, 3, 7, 9)},
    outputs=BOTH,
    ksize=[1, 1],
    global_pooling=True,
)
CUBIC: Attributes = {"interp_method": "bicubic", "align_corners": False, "data_layout": "NCHW"}
use("bicubic_interp_v2", "size", {"X": normal(1, 2, 5, 6)}, **CUBIC, out_h=7, out_w=11)
use("bicubic_interp_v2", "scale", {"X": normal(1, 2, 5, 6)}, **CUBIC, scale=[2.0, 1.5])
use(
    "bicubic_interp_v2",
    "aligned corners",
    {"X": normal(1, 2, 5, 6)},
    **CUBIC | {"align_corners": True},
    out_h=7,
    out_w=11,
)
