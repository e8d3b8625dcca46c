"""Uses of the operators that move, split, join and pick from tensors."""

from uses import each, fixed, integers, normal, saved, use, whole

X = normal(2, 3, 4, 5)
ONES = normal(2, 1, 3, 1)


for name in ("reshape", "reshape2"):
    use(name, "rest", {"X": X}, outputs="Out", shape=[0, -1, 5])
    use(name, "all sizes", {"X": fixed(X)}, outputs="Out", shape=[6, 20])
    use(name, "to rank 1", {"X": X}, outputs="Out", shape=[-1])
    use(
        name,
        "Shape in a parameter",
        {"X": X, "Shape": saved(integers(0, 12, -1))},
        outputs="Out",
        shape=[1],
    )
    use(
        name,
        "Shape computed",
        {"X": X, "Shape": fixed(integers(2, 12, 5))},
        outputs="Out",
        shape=[1],
    )
    use(
        name,
        "ShapeTensor in parameters",
        {"X": X, "ShapeTensor": each(0, 60)},
        outputs="Out",
        shape=[0, 60],
    )
    use(
        name,
        "ShapeTensor partly computed",
        {"X": X, "ShapeTensor": [fixed(integers(2)), *each(3, 4, 5)]},
        outputs="Out",
        shape=[-1, 3, 4, 5],
    )
    use(
        name,
        "ShapeTensor computed",
        {"X": X, "ShapeTensor": [fixed(integers(n)) for n in (4, 3, 10)]},
        outputs="Out",
        shape=[-1, -1, -1],
    )

for name in ("transpose", "transpose2"):
    use(name, "rank 4", {"X": X}, outputs="Out", axis=[0, 2, 3, 1])
    use(name, "rank 2", {"X": normal(3, 4)}, outputs="Out", axis=[1, 0])
    use(name, "negative axes", {"X": X}, outputs="Out", axis=[0, -1, 1, -2])

for name in ("flatten", "flatten2"):
    for axis in (0, 1, 2, 4):
        use("flatten2", f"axis {axis}", {"X": X}, written_as=name, outputs="Out", axis=axis)
    use("flatten2", "fixed shape", {"X": fixed(X)}, written_as=name, outputs="Out", axis=2)
use("flatten_contiguous_range", "from 1", {"X": X}, outputs="Out", start_axis=1, stop_axis=-1)
use("flatten_contiguous_range", "middle", {"X": X}, outputs="Out", start_axis=1, stop_axis=2)
use("flatten_contiguous_range", "all", {"X": X}, outputs="Out", start_axis=0, stop_axis=-1)
use("flatten_contiguous_range", "negative", {"X": X}, outputs="Out", start_axis=-3, stop_axis=-2)

for name in ("squeeze", "squeeze2"):
    use("squeeze2", "one axis", {"X": ONES}, written_as=name, outputs="Out", axes=[1])
    use("squeeze2", "two axes", {"X": ONES}, written_as=name, outputs="Out", axes=[-1, 1])
    use("squeeze2", "all", {"X": fixed(ONES)}, written_as=name, outputs="Out", axes=[])
    use("squeeze2", "longer axis", {"X": fixed(ONES)}, written_as=name, outputs="Out", axes=[1, 2])
for name in ("unsqueeze", "unsqueeze2"):
    use("unsqueeze2", "one axis", {"X": X}, written_as=name, outputs="Out", axes=[1])
    use("unsqueeze2", "two axes", {"X": X}, written_as=name, outputs="Out", axes=[0, -1])
    use("unsqueeze2", "not in order", {"X": X}, written_as=name, outputs="Out", axes=[2, 1])
use(
    "unsqueeze2",
    "AxesTensor",
    {"X": X, "AxesTensor": saved(integers(1, 2))},
    outputs="Out",
    axes=[],
)
use("unsqueeze2", "AxesTensorList", {"X": X, "AxesTensorList": each(0, 3)}, outputs="Out", axes=[])

use("concat", "axis 0", {"X": [X, X[:1]]}, axis=0)
use("concat", "axis -1", {"X": [X, X, normal(2, 3, 4, 1)]}, axis=-1)
use("concat", "one", {"X": [X]}, axis=1)
use("concat", "int64", {"X": [whole(2, 3), whole(2, 3, seed=1)]}, axis=1)
use("concat", "AxisTensor", {"X": [X, X], "AxisTensor": saved(integers(2))}, axis=0)
use("stack", "axis 0", {"X": [X, 2 * X]}, axis=0)
use("stack", "axis -1", {"X": [X, 2 * X, 3 * X]}, axis=-1)
use("stack", "axis 1, int64", {"X": [whole(3), whole(3, seed=1)]}, axis=1)
use("unstack", "axis 1", {"X": X}, outputs="Y*3", axis=1, num=3)
use("unstack", "axis -1", {"X": X}, outputs="Y*5", axis=-1, num=5)
use("unstack", "axis 0", {"X": fixed(X)}, outputs="Y*2", axis=0, num=2)
use("split", "num", {"X": X}, outputs="Out*2", num=2, axis=2)
use("split", "sections", {"X": X}, outputs="Out*3", sections=[1, 2, 2], axis=3)
use("split", "rest", {"X": X}, outputs="Out*2", sections=[1, -1], axis=1)
use(
    "split",
    "AxisTensor",
    {"X": X, "AxisTensor": saved(integers(3))},
    outputs="Out*2",
    sections=[1, 4],
    axis=0,
)
use(
    "split",
    "SectionsTensorList",
    {"X": X, "SectionsTensorList": each(1, 2)},
    outputs="Out*2",
    sections=[1, 2],
    axis=1,
)

use("slice", "axes", {"Input": X}, axes=[1, 3], starts=[1, -4], ends=[3, -1], infer_flags=[1, 1])
use("slice", "beyond the end", {"Input": X}, axes=[2], starts=[-9], ends=[99], infer_flags=[1])
use(
    "slice",
    "removed axis",
    {"Input": X},
    axes=[1, 2],
    starts=[0, 1],
    ends=[1, 3],
    decrease_axis=[0 + 1],
    infer_flags=[1, 1],
)
use(
    "slice",
    "last, removed",
    {"Input": X},
    axes=[3],
    starts=[-1],
    ends=[2**31 - 1],
    decrease_axis=[3],
    infer_flags=[1],
)
use(
    "slice",
    "all axes removed",
    {"Input": fixed(integers(4, 5, 6))},
    axes=[0],
    starts=[1],
    ends=[2],
    decrease_axis=[0],
    infer_flags=[1],
)
use(
    "slice",
    "tensors in parameters",
    {"Input": X, "StartsTensor": saved(integers(1, 0)), "EndsTensor": saved(integers(3, -1))},
    axes=[1, 2],
    starts=[1, 0],
    ends=[3, -1],
    infer_flags=[-1, -1],
)
use(
    "slice",
    "tensors computed",
    {"Input": X, "StartsTensor": fixed(integers(1, 0)), "EndsTensor": fixed(integers(3, -1))},
    axes=[1, 2],
    starts=[-1, -1],
    ends=[-1, -1],
    infer_flags=[-1, -1],
)
use(
    "slice",
    "lists computed",
    {"Input": X, "StartsTensorList": each(1, 0), "EndsTensorList": [fixed(integers(2)), *each(4)]},
    axes=[1, 3],
    starts=[1, 0],
    ends=[-1, 4],
    infer_flags=[-1, -1],
)

use(
    "strided_slice",
    "steps",
    {"Input": X},
    axes=[1, 3],
    starts=[0, 0],
    ends=[3, 5],
    strides=[2, 3],
    infer_flags=[1, 1],
)
use(
    "strided_slice",
    "backwards",
    {"Input": X},
    axes=[2, 3],
    starts=[-1, 4],
    ends=[0, 1],
    strides=[-1, -2],
    infer_flags=[1, 1],
)
use(
    "strided_slice",
    "to the front",
    {"Input": X},
    axes=[3],
    starts=[4],
    ends=[-6],
    strides=[-2],
    infer_flags=[1],
)
use(
    "strided_slice",
    "backwards to -1",
    {"Input": X},
    axes=[3],
    starts=[4],
    ends=[-1],
    strides=[-1],
    infer_flags=[1],
)
use(
    "strided_slice",
    "backwards to -2",
    {"Input": X},
    axes=[3],
    starts=[-1],
    ends=[-4],
    strides=[-1],
    infer_flags=[1],
)
use(
    "strided_slice",
    "beyond both ends",
    {"Input": X},
    axes=[2, 3],
    starts=[-9, 9],
    ends=[9, -9],
    strides=[2, -1],
    infer_flags=[1, 1],
)
use(
    "strided_slice",
    "removed axis",
    {"Input": X},
    axes=[1, 3],
    starts=[1, 0],
    ends=[2, 5],
    strides=[1, 2],
    decrease_axis=[1],
    infer_flags=[1, 1],
)
use(
    "strided_slice",
    "tensors in parameters",
    {
        "Input": X,
        "StartsTensor": saved(integers(0)),
        "EndsTensor": saved(integers(4)),
        "StridesTensor": saved(integers(3)),
    },
    axes=[2],
    starts=[-1],
    ends=[-1],
    strides=[1],
    infer_flags=[-1],
)
use(
    "strided_slice",
    "end computed",
    {"Input": X, "EndsTensor": fixed(integers(4))},
    axes=[3],
    starts=[0],
    ends=[-1],
    strides=[2],
    infer_flags=[-1],
)
use(
    "strided_slice",
    "lists computed",
    {
        "Input": X,
        "StartsTensorList": [fixed(integers(1))],
        "EndsTensorList": each(5),
        "StridesTensorList": each(2),
    },
    axes=[3],
    starts=[-1],
    ends=[5],
    strides=[2],
    infer_flags=[-1],
)

use("expand_v2", "constant", {"X": fixed(normal(3, 1))}, shape=[2, 3, 4])
use("expand_v2", "kept sizes", {"X": normal(3, 1)}, shape=[2, -1, 4])
use("expand_v2", "Shape in a parameter", {"X": normal(3, 1), "Shape": saved(integers(3, 4))})
use("expand_v2", "Shape computed", {"X": fixed(normal(3, 1)), "Shape": fixed(integers(3, 4))})
use(
    "expand_v2",
    "list computed",
    {"X": fixed(normal(3, 1)), "expand_shapes_tensor": [fixed(integers(2)), *each(3, 4)]},
    shape=[-1, 3, 4],
)
use("expand", "times", {"X": X}, expand_times=[1, 2, 1, 3])
use("expand", "ExpandTimes in a parameter", {"X": X, "ExpandTimes": saved(integers(2, 1, 1, 2))})
use("expand", "ExpandTimes computed", {"X": X, "ExpandTimes": fixed(integers(2, 1, 1, 2))})
use(
    "expand",
    "list computed",
    {"X": normal(2, 3), "expand_times_tensor": [fixed(integers(2)), *each(3)]},
    expand_times=[-1, 3],
)
use("tile", "same rank", {"X": X}, repeat_times=[1, 2, 1, 3])
use("tile", "fewer times", {"X": X}, repeat_times=[2, 3])
use("tile", "more times", {"X": normal(2, 3)}, repeat_times=[2, 1, 3])
use("tile", "RepeatTimes in a parameter", {"X": X, "RepeatTimes": saved(integers(2, 1, 1, 2))})
use("tile", "RepeatTimes computed", {"X": X, "RepeatTimes": fixed(integers(2, 1, 1, 2))})
use(
    "tile",
    "list computed",
    {"X": normal(2, 3), "repeat_times_tensor": [fixed(integers(2)), *each(3)]},
    repeat_times=[-1, 3],
)

use("gather", "axis 0", {"X": X, "Index": integers(1, 0, 1)})
use("gather", "axis 2", {"X": X, "Index": integers(3, 1, dtype="int64")}, axis=2)
use("gather", "a column of indices", {"X": X, "Index": integers(1, 0, 1).reshape(3, 1)})
use("gather", "Axis", {"X": X, "Index": integers(3, 1), "Axis": saved(integers(3))})
use("gather", "saved index", {"X": X, "Index": saved(integers(2, 0))}, axis=1)
TABLE = saved(normal(10, 4))
use("lookup_table_v2", "rank 1", {"W": TABLE, "Ids": integers(2, 0, 9, dtype="int64")})
use("lookup_table_v2", "rank 2", {"W": TABLE, "Ids": whole(3, 5, low=0)})
use("lookup_table_v2", "padding", {"W": TABLE, "Ids": whole(3, 5, low=0, high=4)}, padding_idx=2)
use("lookup_table", "rank 2", {"W": TABLE, "Ids": whole(5, 1, low=0)})
use("lookup_table", "rank 3", {"W": TABLE, "Ids": whole(3, 5, 1, low=0)})
use("lookup_table", "padding", {"W": TABLE, "Ids": whole(3, 5, 1, low=0, high=4)}, padding_idx=2)

use("roll", "one axis", {"X": X}, shifts=[1], axis=[2])
use("roll", "two axes", {"X": X}, shifts=[-1, 2], axis=[1, -1])
use("roll", "flattened", {"X": X}, shifts=[7], axis=[])
use("roll", "ShiftsTensor", {"X": X, "ShiftsTensor": saved(integers(2, dtype="int64"))}, axis=[3])
use(
    "roll",
    "ShiftsTensor computed",
    {"X": X, "ShiftsTensor": fixed(integers(2, dtype="int64"))},
    axis=[3],
)
use("shuffle_channel", "2 groups", {"X": normal(2, 6, 3, 4)}, group=2)
use("shuffle_channel", "3 groups", {"X": normal(2, 6, 3, 4)}, group=3)

VOLUME = normal(2, 3, 4, 3, 5)
for mode in ("constant", "reflect", "replicate", "circular"):
    use(
        "pad3d",
        mode,
        {"X": VOLUME},
        paddings=[1, 2, 0, 1, 1, 2],
        mode=mode,
        value=0.5,
        data_format="NCDHW",
    )
use(
    "pad3d",
    "channels last",
    {"X": VOLUME},
    paddings=[1, 2, 0, 1, 1, 2],
    mode="constant",
    value=0.5,
    data_format="NDHWC",
)
use(
    "pad3d",
    "Paddings",
    {"X": VOLUME, "Paddings": saved(integers(1, 0, 2, 1, 0, 1))},
    paddings=[0] * 6,
)
use(
    "pad3d",
    "Paddings computed",
    {"X": VOLUME, "Paddings": fixed(integers(1, 0, 2, 1, 0, 1))},
    paddings=[0] * 6,
)
