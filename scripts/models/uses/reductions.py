"""Uses of the operators that reduce, sort, multiply matrices, or normalize."""

import numpy as np

from uses import Attributes, fixed, integers, loose, normal, positive, real, saved, use, whole

X = normal(2, 3, 4, 5)
INT32, INT64, FLOAT32 = 2, 3, 5

for name in ("arg_max", "arg_min"):
    use(name, "axis 1", {"X": X}, axis=1, dtype=INT64)
    use(name, "axis -1, kept, int32", {"X": X}, axis=-1, keepdims=True, dtype=INT32)
    use(name, "flattened", {"X": X}, axis=0, flatten=True, dtype=INT64)
    use(name, "flattened, kept", {"X": X}, axis=0, flatten=True, keepdims=True, dtype=INT64)
    use(name, "dtype left open", {"X": X}, axis=0, dtype=-1)
    use(name, "ties", {"X": whole(4, 6, low=0, high=3).astype(np.float32)}, axis=1)
    use(name, "int64", {"X": whole(4, 6)}, axis=0)

use("cumsum", "axis 1", {"X": X}, axis=1)
use("cumsum", "exclusive", {"X": X}, axis=-1, exclusive=True)
use("cumsum", "backwards", {"X": X}, axis=2, reverse=True)
use("cumsum", "exclusive, backwards", {"X": X}, axis=2, reverse=True, exclusive=True)
use("cumsum", "flattened", {"X": X}, flatten=True)
use("cumsum", "int64", {"X": whole(3, 4)}, axis=0)

for name in ("reduce_max", "reduce_mean", "reduce_sum"):
    use(name, "one axis", {"X": X}, dim=[1])
    use(name, "two axes, kept", {"X": X}, dim=[-1, 1], keep_dim=True)
    use(name, "all", {"X": X}, dim=[0], reduce_all=True)
    use(name, "all, kept", {"X": X}, dim=[0], reduce_all=True, keep_dim=True)
    use(name, "no axes", {"X": X}, dim=[])
    use(name, "every axis", {"X": X}, dim=[0, 1, 2, 3])
for name in ("reduce_max", "reduce_sum"):
    use(name, "int64", {"X": whole(3, 4)}, dim=[1])
use(
    "reduce_sum",
    "int32 to int64",
    {"X": whole(3, 4, dtype="int32")},
    dim=[1],
    in_dtype=INT32,
    out_dtype=INT64,
)
use("reduce_sum", "float32 to float64", {"X": X}, dim=[1], in_dtype=FLOAT32, out_dtype=6)

use("top_k", "k", {"X": normal(3, 7)}, outputs="Out Indices", k=3)
use("top_k", "rank 4", {"X": X}, outputs="Out Indices", k=2)
use("top_k", "K", {"X": normal(3, 7), "K": saved(integers(4))}, outputs="Out Indices", k=1)
use("top_k_v2", "default", {"X": X}, outputs="Out Indices", k=2)
use("top_k_v2", "axis 1", {"X": X}, outputs="Out Indices", k=2, axis=1)
use("top_k_v2", "smallest", {"X": X}, outputs="Out Indices", k=3, axis=-2, largest=False)
use("top_k_v2", "all", {"X": normal(3, 7)}, outputs="Out Indices", k=7, axis=1)
use("top_k_v2", "K", {"X": X, "K": saved(integers(2))}, outputs="Out Indices", k=1)
use("top_k_v2", "K computed", {"X": X, "K": fixed(integers(2))}, outputs="Out Indices", k=-1)
use(
    "top_k_v2",
    "int64",
    {"X": np.random.RandomState(0).permutation(20).reshape(4, 5)},
    outputs="Out Indices",
    k=3,
)
use("top_k_v2", "values only", {"X": X}, outputs="Out", k=2)
use("top_k_v2", "indices only", {"X": X}, outputs="Indices", k=2)

use("bmm", "batches", {"X": normal(2, 3, 4), "Y": normal(2, 4, 5)})
use("bmm", "saved", {"X": fixed(normal(2, 3, 4)), "Y": saved(normal(2, 4, 5))})
TRANSPOSED: dict[str, Attributes] = {
    "matmul": {"transpose_X": True, "transpose_Y": True},
    "matmul_v2": {"trans_x": True, "trans_y": True},
}
for name, both in TRANSPOSED.items():
    use(name, "rank 2", {"X": normal(3, 4), "Y": saved(normal(4, 5))})
    use(
        name,
        "both transposed",
        {"X": normal(2, 4, 3), "Y": fixed(normal(2, 5, 4))},
        **both,
    )
    use(name, "broadcast", {"X": normal(2, 3, 4, 5), "Y": saved(normal(5, 6))})
    use(name, "matrix by vector", {"X": normal(2, 4, 3), "Y": saved(normal(3))})
    use(name, "vectors", {"X": fixed(normal(4)), "Y": fixed(normal(4, seed=1))})
use("matmul", "alpha", {"X": normal(3, 4), "Y": saved(normal(4, 5))}, alpha=0.125)
use(
    "matmul",
    "alpha, transposed",
    {"X": normal(2, 3, 4), "Y": normal(2, 5, 4)},
    alpha=-2.0,
    transpose_Y=True,
)
use("matmul_v2", "vector by matrix", {"X": fixed(normal(3)), "Y": fixed(normal(2, 3, 4))})
use("mul", "rank 2", {"X": normal(3, 4), "Y": saved(normal(4, 5))})
use("mul", "2 column axes", {"X": normal(2, 3, 4), "Y": saved(normal(12, 5))})
use("mul", "2 row axes", {"X": normal(2, 3, 4), "Y": saved(normal(4, 5))}, x_num_col_dims=2)
use(
    "mul",
    "rank 3 by rank 3",
    {"X": normal(2, 3, 4), "Y": saved(normal(2, 2, 5))},
    x_num_col_dims=2,
    y_num_col_dims=2,
)
WEIGHT, BIAS = saved(normal(12, 5, seed=1)), saved(normal(5, seed=2))
use("fc", "rank 2", {"Input": normal(3, 12), "W": WEIGHT, "Bias": BIAS})
PADDED = saved(normal(16, 9, seed=7))
use(
    "fc",
    "padded weights",
    {"Input": normal(3, 12), "W": PADDED, "Bias": BIAS},
    padding_weights=True,
)
use("fc", "no bias", {"Input": normal(3, 12), "W": WEIGHT})
use("fc", "flattened", {"Input": normal(2, 3, 4), "W": WEIGHT, "Bias": BIAS}, in_num_col_dims=1)
use("fc", "2 row axes", {"Input": normal(2, 3, 12), "W": WEIGHT, "Bias": BIAS}, in_num_col_dims=2)
use("fc", "relu", {"Input": normal(3, 12), "W": WEIGHT, "Bias": BIAS}, activation_type="relu")
use("fc", "bias of two axes", {"Input": normal(3, 12), "W": WEIGHT, "Bias": saved(normal(1, 5))})

STATISTICS = {
    "Scale": saved(normal(3, seed=1)),
    "Bias": saved(normal(3, seed=2)),
    "Mean": saved(normal(3, seed=3)),
    "Variance": saved(positive(3, seed=4)),
}
LAST = {slot: saved(positive(5, seed=9)) for slot in STATISTICS}
use("batch_norm", "default", {"X": X, **STATISTICS}, outputs="Y", is_test=True)
use("batch_norm", "epsilon", {"X": X, **STATISTICS}, outputs="Y", is_test=True, epsilon=0.001)
use("batch_norm", "rank 2", {"X": normal(4, 3), **STATISTICS}, outputs="Y", is_test=True)
use("batch_norm", "rank 3", {"X": normal(2, 3, 7), **STATISTICS}, outputs="Y", is_test=True)
use(
    "batch_norm",
    "rank 5",
    {"X": normal(2, 3, 2, 2, 3), **STATISTICS},
    outputs="Y",
    is_test=True,
    data_layout="NCHW",
)
use("batch_norm", "channels last", {"X": X, **LAST}, outputs="Y", is_test=True, data_layout="NHWC")
use("batch_norm", "global statistics", {"X": X, **STATISTICS}, outputs="Y", use_global_stats=True)

use(
    "layer_norm",
    "last axis",
    {"X": X, "Scale": saved(normal(5)), "Bias": saved(normal(5))},
    outputs="Y",
    begin_norm_axis=3,
    epsilon=0.001,
)
use(
    "layer_norm",
    "two axes",
    {"X": X, "Scale": saved(normal(20)), "Bias": saved(normal(20))},
    outputs="Y",
    begin_norm_axis=2,
)
use(
    "layer_norm",
    "default",
    {"X": X, "Scale": saved(normal(60)), "Bias": saved(normal(60))},
    outputs="Y",
)
use("layer_norm", "bare", {"X": X}, outputs="Y", begin_norm_axis=3)
use("layer_norm", "scale only", {"X": X, "Scale": saved(normal(5))}, outputs="Y", begin_norm_axis=3)
use("layer_norm", "open sizes", {"X": loose(X)}, outputs="Y", begin_norm_axis=2)

CHANNELS = {"Scale": saved(normal(6, seed=1)), "Bias": saved(normal(6, seed=2))}
IMAGE = normal(2, 6, 4, 5)
use("instance_norm", "default", {"X": IMAGE, **CHANNELS}, outputs="Y")
use("instance_norm", "epsilon", {"X": IMAGE, **CHANNELS}, outputs="Y", epsilon=0.01)
use("instance_norm", "bare", {"X": IMAGE}, outputs="Y")
use("instance_norm", "rank 3", {"X": normal(2, 6, 7), **CHANNELS}, outputs="Y")
use("group_norm", "2 groups", {"X": IMAGE, **CHANNELS}, outputs="Y", groups=2)
use("group_norm", "3 groups", {"X": IMAGE, **CHANNELS}, outputs="Y", groups=3, epsilon=0.01)
use("group_norm", "bare", {"X": IMAGE}, outputs="Y", groups=6)
use("group_norm", "scale only", {"X": IMAGE, "Scale": CHANNELS["Scale"]}, outputs="Y", groups=1)
use(
    "group_norm",
    "channels last",
    {"X": normal(2, 4, 5, 6), **CHANNELS},
    outputs="Y",
    groups=3,
    data_layout="NHWC",
)
use("lrn", "default", {"X": IMAGE}, outputs="Out")
use("lrn", "3 channels", {"X": 5 * IMAGE}, outputs="Out", n=3, k=1.5, alpha=0.1, beta=0.5)
use("lrn", "channels last", {"X": 5 * IMAGE}, outputs="Out", n=3, alpha=0.1, data_format="NHWC")
use("norm", "axis 1", {"X": X}, outputs="Out", axis=1, epsilon=1e-10)
use("norm", "axis -1", {"X": X}, outputs="Out", axis=-1, epsilon=0.1)
use("norm", "rank 2", {"X": normal(3, 4) * real(1e-3)}, outputs="Out", axis=0)
