"""Uses of the operators that make tensors of values, sizes or other descriptions."""

from uses import Attributes, each, fixed, integers, loose, normal, real, saved, use, whole

X = normal(2, 3, 4, 5)
INT32, INT64, FLOAT32 = 2, 3, 5

use("fill_constant", "float32", {}, shape=[2, 3], dtype=FLOAT32, value=1.5)
use("fill_constant", "int64 in a text", {}, shape=[2], dtype=INT64, value=7.0, str_value="7")
use("fill_constant", "long", {}, shape=[40, 50], dtype=INT32, value=3.0)
use("fill_constant", "bool", {}, shape=[3], dtype=0, value=1.0)
use(
    "fill_constant",
    "ShapeTensor in a parameter",
    {"ShapeTensor": saved(integers(2, 4))},
    dtype=FLOAT32,
    value=1.5,
)
use(
    "fill_constant",
    "ShapeTensor computed",
    {"ShapeTensor": fixed(integers(2, 4))},
    dtype=FLOAT32,
    value=1.5,
)
use(
    "fill_constant",
    "ShapeTensorList",
    {"ShapeTensorList": [fixed(integers(2)), *each(3)]},
    shape=[-1, 3],
    dtype=FLOAT32,
    value=1.5,
)
use("fill_constant", "ValueTensor", {"ValueTensor": fixed(real(2.5))}, shape=[2, 3], dtype=FLOAT32)
use("fill_any_like", "own type", {"X": X}, value=2.5)
use("fill_any_like", "int64", {"X": X}, value=3.0, dtype=INT64)
use("fill_any_like", "fixed shape", {"X": fixed(X)}, value=2.5)
use("fill_zeros_like", "float32", {"X": X})
use("fill_zeros_like", "int64", {"X": whole(3, 4)})
use(
    "fill_constant_batch_size_like",
    "first axis",
    {"Input": X},
    shape=[-1, 7],
    value=2.5,
    dtype=FLOAT32,
)
use(
    "fill_constant_batch_size_like",
    "other axes",
    {"Input": X},
    shape=[7, -1, 2],
    input_dim_idx=2,
    output_dim_idx=1,
    dtype=INT64,
    value=4.0,
)
use(
    "fill_constant_batch_size_like",
    "fixed shape",
    {"Input": fixed(X)},
    shape=[-1, 7],
    value=0.0,
    str_value="1.25",
    dtype=FLOAT32,
)
use(
    "range",
    "int64",
    {s: fixed(integers(v, dtype="int64")) for s, v in (("Start", 2), ("End", 17), ("Step", 3))},
)
use(
    "range",
    "backwards",
    {s: fixed(integers(v)) for s, v in (("Start", 9), ("End", -2), ("Step", -4))},
)
use("range", "saved", {s: saved(integers(v)) for s, v in (("Start", 0), ("End", 5), ("Step", 1))})
use(
    "range",
    "float32",
    {s: fixed(real(v)) for s, v in (("Start", 0.5), ("End", 3.1), ("Step", 0.5))},
)
use("shape", "open", {"Input": loose(X)})
use("shape", "fixed", {"Input": fixed(X)})
use("meshgrid", "two", {"X": [normal(3), normal(4)]}, outputs="Out*2")
use("meshgrid", "three", {"X": [normal(3), normal(4), normal(2)]}, outputs="Out*3")

EACH: Attributes = {
    "bool_values": [1, 0],
    "fp32_values": [0.5, 1.5],
    "int32_values": [3, -4],
    "int64_values": [5, -6],
}
for dtype, name in ((0, "bool"), (INT32, "int32"), (INT64, "int64"), (FLOAT32, "float32")):
    use("assign_value", f"every type, {name}", {}, **EACH, shape=[2], dtype=dtype)

PLACES = whole(3, 4, low=0, high=5)
use("one_hot_v2", "float32", {"X": PLACES}, depth=5, dtype=FLOAT32)
use("one_hot_v2", "depth computed", {"X": PLACES, "depth_tensor": fixed(integers(6))}, dtype=INT64)
LENGTHS = whole(3, 2, low=0, high=6)
use("sequence_mask", "maxlen", {"X": LENGTHS}, outputs="Y", maxlen=7, out_dtype=FLOAT32)
use("sequence_mask", "the longest", {"X": LENGTHS}, outputs="Y", maxlen=-1, out_dtype=INT64)
use(
    "sequence_mask",
    "maxlen computed",
    {"X": LENGTHS.astype("int32"), "MaxLenTensor": fixed(integers(4))},
    outputs="Y",
    out_dtype=INT32,
)
ENDS = {"Start": fixed(real(-1.5)), "Stop": fixed(real(2.25))}
use("linspace", "float32", {**ENDS, "Num": saved(integers(7))}, dtype=FLOAT32)
use("linspace", "computed count", {**ENDS, "Num": fixed(integers(4))}, dtype=FLOAT32)
use("linspace", "one number", {**ENDS, "Num": saved(integers(1))}, dtype=FLOAT32)
WHOLE = {"Start": fixed(integers(1)), "Stop": fixed(integers(-12))}
use("linspace", "int32", {**WHOLE, "Num": saved(integers(6))}, dtype=INT32)
