"""Uses of operators that sort, turn, cut out and put in, and that Paddle Lite leaves to itself."""

import numpy as np

from uses import Attributes, each, fixed, integers, loose, normal, use, whole

X = normal(2, 3, 4, 5)
INT32, INT64, FLOAT32 = 2, 3, 5

use("argsort", "default", {"X": X}, outputs="Out Indices")
use("argsort", "descending", {"X": X}, outputs="Out Indices", axis=1, descending=True)
use("argsort", "ties", {"X": whole(3, 6, low=0, high=3)}, outputs="Out Indices", axis=-1)
use("argsort", "first axis", {"X": X}, outputs="Out Indices", axis=0)

use("flip", "two axes", {"X": X}, axis=[1, -1])
use("flip", "the first", {"X": whole(3, 4)}, axis=[0])
use("flip", "none", {"X": X}, axis=[])
use("reverse", "two axes", {"X": X}, axis=[2, 0])
use("unbind", "axis 1", {"X": X}, outputs="Out*3", axis=1)
use("unbind", "last axis", {"X": whole(4, 2)}, outputs="Out*2", axis=-1)

BOX, PLACE = integers(2, 2, 3), integers(0, 1, 2)
IMAGE = normal(2, 4, 6)
use("crop", "attributes", {"X": fixed(IMAGE)}, shape=[2, 2, 3], offsets=[0, 1, 2])
use("crop", "like another", {"X": IMAGE, "Y": fixed(normal(2, 2, 3))}, offsets=[0, 1, 2])
use("crop", "offsets computed", {"X": fixed(IMAGE), "Offsets": fixed(PLACE)}, shape=[2, 2, 3])
use("crop_tensor", "attributes", {"X": IMAGE}, shape=[-1, 2, 3], offsets=[0, 1, 2])
use(
    "crop_tensor",
    "all computed",
    {"X": loose(IMAGE), "Shape": fixed(BOX), "Offsets": fixed(PLACE)},
)
use(
    "crop_tensor",
    "shape in parameters",
    {"X": IMAGE, "ShapeTensor": each(2, 2, 3)},
    offsets=[0, 1, 2],
)
use("pad", "float32", {"X": normal(2, 3)}, paddings=[0, 0, 1, 2], pad_value=0.5)
use("pad", "int64", {"X": whole(2, 3)}, paddings=[2, 0, 0, 1], pad_value=3.0)

ROWS, UPDATES = fixed(normal(5, 3)), fixed(normal(3, 3, seed=1))
use("scatter", "overwritten", {"X": ROWS, "Ids": fixed(integers(4, 0, 2)), "Updates": UPDATES})
use(
    "scatter",
    "added up",
    {"X": ROWS, "Ids": fixed(integers(1, 4, 1, dtype="int64")), "Updates": UPDATES},
    overwrite=False,
)
use(
    "scatter",
    "indices with two axes",
    {"X": ROWS, "Ids": fixed(integers(4, 0, 2).reshape(3, 1)), "Updates": UPDATES},
)

LIST = whole(9, low=0, high=4)
use("unique", "as they come", {"X": LIST}, outputs="Out Index", dtype=INT64)
ALL = "Out Indices Index Counts"
WANTED: Attributes = {
    "return_index": True,
    "return_inverse": True,
    "return_counts": True,
    "is_sorted": True,
}
use("unique", "sorted", {"X": LIST}, outputs=ALL, dtype=INT32, axis=[], **WANTED)
ENTRIES = fixed(np.array([[2, 1, 2], [0, 1, 0]], np.float32))
use("unique", "columns", {"X": ENTRIES}, outputs=ALL, dtype=INT64, axis=[1], **WANTED)
use("unique_with_counts", "int64", {"X": LIST}, outputs="Out Index Count", dtype=INT64)

STEPS: Attributes = {"infer_flags": [1] * 3, "axes": [0, 2, 0], "strides": [1, 2, 2]}
use(
    "strided_slice",
    "an axis twice",
    {"Input": fixed(whole(6, 3, 5))},
    starts=[1, 0, 2],
    ends=[3, 9, 6],
    **STEPS,
)
PARTS = [fixed(normal(2, width, seed=width)) for width in (2, 3)]
use("concat", "axis computed", {"X": PARTS, "AxisTensor": fixed(integers(1))})
use("concat", "axis computed, from the last", {"X": PARTS, "AxisTensor": fixed(integers(-1))})
use("unsqueeze2", "axes computed", {"X": X, "AxesTensor": fixed(integers(1, -1))})
use("unsqueeze2", "axis computed", {"X": loose(X), "AxesTensor": fixed(integers(-2))})

WHOLE: Attributes = {"steps": [1, 1], "axes": [0, 1], "starts": [0, 0], "ends": [4, 5]}
PART: Attributes = {"steps": [1, 2], "axes": [0, 2], "starts": [1, 0], "ends": [-1, 99]}
SCALAR: Attributes = {"shape": [1], "fp32_values": [1.5], "values": [1.5], "dtype": FLOAT32}
TABLE, BLOCK = fixed(normal(4, 5)), fixed(normal(4, 3, 5))
use("set_value", "whole", {"Input": TABLE, "ValueTensor": fixed(normal(5, seed=1))}, **WHOLE)
use("set_value", "part", {"Input": BLOCK, "ValueTensor": fixed(normal(2, 3, 3))}, **PART)
use("set_value", "part, one number", {"Input": BLOCK}, **PART, **SCALAR)
use(
    "set_value",
    "an axis removed",
    {"Input": BLOCK, "ValueTensor": fixed(normal(4, 5, seed=1))},
    axes=[1],
    starts=[1],
    ends=[2],
    steps=[1],
    decrease_axes=[1],
)
