"""What is drawn for each operator: types, shapes, options, and values."""

from __future__ import annotations

import numpy as np
from tests.importers.tflite.single_operator import CASES, Case, Draw, Tensor, cases, const, options

_UNARY = (
    *("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG"),
    *("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT"),
    *("SQUARE", "TANH"),
)
_QUANTIZED_UNARY = {
    "ABS": ("int8", "int16"),
    "EXP": ("int8",),
    "HARD_SWISH": ("int8", "uint8"),
    "LOG": ("int8",),
    "LOGISTIC": ("int8", "uint8", "int16"),
    "RELU": ("int8", "uint8", "int16"),
    "RELU6": ("int8", "uint8", "int16"),
    "RELU_N1_TO_1": ("int8", "uint8"),
    "RSQRT": ("int8",),
    "TANH": ("int8", "uint8", "int16"),
}
_UNIT = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}
"""The only quantization of LOGISTIC's output."""

_SYMMETRIC = {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)}
"""The only quantization of TANH's output."""

_FUSED = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}


@cases(*_UNARY)
def unary(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    if operator in _QUANTIZED_UNARY and draw.chance(0.4):
        dtype = draw.random.choice(_QUANTIZED_UNARY[operator])
        fixed = {"LOGISTIC": _UNIT, "TANH": _SYMMETRIC}.get(operator)
        output = draw.output(dtype)
        if fixed is not None:
            scale, zero = fixed[dtype]
            output = Tensor(None, dtype, scale=(scale,), zero_point=(zero,))
        version = 1 if operator in ("HARD_SWISH", "RELU_N1_TO_1") else 2
        return Case(operator, [draw.quantized(shape, dtype)], [output], version=version)
    dtypes = {"ABS": ["int32"], "NEG": ["int32", "int64"], "SIGN": ["int32"]}.get(operator, [])
    dtype = draw.random.choice(["float32", "float32", *dtypes])
    version = 5 if operator == "ABS" and dtype == "int32" else 1
    return Case(operator, [draw.tensor(shape, dtype)], [Tensor(dtype=dtype)], version=version)


def _pair(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that are broadcast."""
    shape = draw.shape()
    other = tuple(1 if draw.chance(0.3) else size for size in shape)
    other = other[draw.random.randint(0, len(other)) :] if draw.chance(0.3) else other
    return (shape, other) if draw.chance(0.5) else (other, shape)


@cases(*_FUSED)
def arithmetic(draw: Draw, operator: str) -> Case:
    first, second = _pair(draw)
    chosen = options(_FUSED[operator], fusedActivationFunction=draw.random.choice([0, 0, 1, 2, 3]))
    constant = draw.chance(0.3)
    if draw.chance(0.35) and operator != "DIV":
        dtype = draw.random.choice(["int8", "uint8"])
        inputs = [draw.quantized(first, dtype), draw.quantized(second, dtype, constant=constant)]
        return Case(operator, inputs, [draw.output(dtype)], chosen, 2)
    dtype = draw.random.choice(["float32", "float32", "int32", "int64"])
    if dtype == "int64" and operator == "DIV":
        dtype = "int32"
    left, right = draw.tensor(first, dtype), draw.tensor(second, dtype, constant=constant)
    if operator == "DIV" and dtype == "int32" and right:
        right = Tensor(np.where(right.elements == 0, 1, right.elements), dtype, constant)
    return Case(operator, [left, right], [Tensor(dtype=dtype)], chosen, 1)


@cases("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW", "FLOOR_DIV", "FLOOR_MOD")
def binary(draw: Draw, operator: str) -> Case:
    first, second = _pair(draw)
    whole = operator not in ("POW",)
    dtype = draw.random.choice(["float32", "float32", "int32"] if whole else ["float32"])
    left, right = draw.tensor(first, dtype), draw.tensor(second, dtype)
    if operator == "POW":
        left = Tensor(np.abs(draw.reals(first)), dtype)
        right = Tensor(draw.reals(second, -2, 2), dtype)
    elif operator.startswith("FLOOR"):
        left = Tensor(np.nan_to_num(left.elements, posinf=3, neginf=-3), dtype)
        clean = np.nan_to_num(right.elements, posinf=3, neginf=-3)
        right = Tensor(np.where(clean == 0, 1, clean).astype(dtype), dtype)
    elif dtype == "float32":
        left, right = Tensor(np.nan_to_num(left.elements)), Tensor(np.nan_to_num(right.elements))
    version = 1 if operator == "POW" else 2
    return Case(operator, [left, right], [Tensor(dtype=dtype)], version=version)


@cases("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def comparison(draw: Draw, operator: str) -> Case:
    first, second = _pair(draw)
    dtype = draw.random.choice(["float32", "int32", "int64"])
    inputs = [draw.tensor(first, dtype), draw.tensor(second, dtype)]
    return Case(operator, inputs, [Tensor(dtype="bool")])


@cases("LOGICAL_AND", "LOGICAL_OR")
def logical(draw: Draw, operator: str) -> Case:
    first, second = _pair(draw)
    inputs = [draw.tensor(first, "bool"), draw.tensor(second, "bool")]
    return Case(operator, inputs, [Tensor(dtype="bool")])


@cases("LOGICAL_NOT")
def logical_not(draw: Draw, operator: str) -> Case:
    return Case(operator, [draw.tensor(draw.shape(), "bool")], [Tensor(dtype="bool")])


@cases("SELECT_V2")
def select_v2(draw: Draw, operator: str) -> Case:
    first, second = _pair(draw)
    first = (2, *first)  # LiteRT makes a scalar of tensors of one element
    dtype = draw.random.choice(["float32", "int32", "int8", "int64"])
    inputs = [draw.tensor(first, "bool"), draw.tensor(second, dtype), draw.tensor(first, dtype)]
    return Case(operator, inputs, [Tensor(dtype=dtype)])


@cases("SELECT")
def select(draw: Draw, operator: str) -> Case:
    shape = (2, *draw.shape(0, 3))
    condition = shape if draw.chance(0.6) else shape[:1]
    inputs = [draw.tensor(condition, "bool"), draw.tensor(shape, "float32")]
    return Case(operator, [*inputs, draw.tensor(shape, "float32")], [Tensor()])


@cases("WHERE")
def where(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["bool", "float32", "int32"])
    return Case(operator, [draw.tensor(draw.shape(), dtype)], [Tensor(dtype="int64")])


@cases("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")
def reduction(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    chosen = options("Reducer", keepDims=draw.chance(0.5))
    axes = const(draw.axes(len(shape)))
    if draw.chance(0.3) and operator in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        dtype = draw.random.choice(["int8", "uint8"])
        input = draw.quantized(shape, dtype)
        output = draw.output(dtype, input if operator.startswith("REDUCE") else None)
        if operator == "SUM":
            # Beyond the range, and along all axes of several, LiteRT's kernel gives other sums.
            shape, axes = (2, *shape[1:]), const([len(shape) - 1] if len(shape) > 1 else [0])
            input = draw.quantized(shape, dtype)
            count = int(np.prod(shape)) * 2
            output = Tensor(None, dtype, scale=(input.scale[0] * count,), zero_point=(0,))
        return Case(
            operator,
            [input, axes],
            [output],
            chosen,
            2,
            optimized=operator == "SUM" and dtype == "int8",
        )
    dtype = "float32" if operator == "MEAN" else draw.random.choice(["float32", "int32"])
    input = draw.tensor(shape, dtype)
    if dtype == "float32":
        input = Tensor(np.nan_to_num(input.elements, posinf=2, neginf=-2))
    return Case(operator, [input, axes], [Tensor(dtype=dtype)], chosen)


@cases("REDUCE_ANY", "REDUCE_ALL")
def logical_reduction(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    chosen = options("Reducer", keepDims=draw.chance(0.5))
    inputs = [draw.tensor(shape, "bool"), const(draw.axes(len(shape)))]
    return Case(operator, inputs, [Tensor(dtype="bool")], chosen)


@cases("ARG_MAX", "ARG_MIN")
def arg_extremum(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    dtype = draw.random.choice(["float32", "int8", "int32"])
    output = draw.random.choice(["int32", "int64"])
    code = 2 if output == "int32" else 4
    name = "ArgMax" if operator == "ARG_MAX" else "ArgMin"
    input = Tensor(draw.reals(shape)) if dtype == "float32" else draw.tensor(shape, dtype)
    axis = const(draw.random.randrange(-len(shape), len(shape)))
    return Case(operator, [input, axis], [Tensor(dtype=output)], options(name, outputType=code))


@cases("CUMSUM")
def cumsum(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    chosen = options("Cumsum", exclusive=draw.chance(0.5), reverse=draw.chance(0.5))
    dtype = draw.random.choice(["float32", "int32"])
    input = Tensor(draw.reals(shape)) if dtype == "float32" else draw.tensor(shape, dtype)
    axis = const(draw.random.randrange(len(shape)))
    return Case(operator, [input, axis], [Tensor(dtype=dtype)], chosen)


_MOVED = ("float32", "int32", "int64", "int8", "uint8", "bool")


@cases("RESHAPE")
def reshape(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    dtype = draw.random.choice(_MOVED)
    sizes = list(shape)
    draw.random.shuffle(sizes)
    if draw.chance(0.5):
        sizes[draw.random.randrange(len(sizes))] = -1
    chosen = options("Reshape", newShape=sizes)
    return Case(operator, [draw.tensor(shape, dtype), const(sizes)], [Tensor(dtype=dtype)], chosen)


@cases("TRANSPOSE")
def transpose(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(_MOVED)
    axes = draw.random.sample(range(len(shape)), len(shape))
    return Case(operator, [draw.tensor(shape, dtype), const(axes)], [Tensor(dtype=dtype)])


@cases("SQUEEZE")
def squeeze(draw: Draw, operator: str) -> Case:
    shape = tuple(1 if draw.chance(0.4) else size for size in draw.shape())
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    axes = draw.random.sample(ones, draw.random.randint(0, len(ones)))
    chosen = options("Squeeze", squeezeDims=axes)
    return Case(operator, [draw.tensor(shape, "float32")], [Tensor()], chosen)


@cases("EXPAND_DIMS")
def expand_dims(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(_MOVED)
    axis = const(draw.random.randrange(-len(shape) - 1, len(shape) + 1))
    return Case(operator, [draw.tensor(shape, dtype), axis], [Tensor(dtype=dtype)])


@cases("SHAPE")
def shape_(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["int32", "int64"])
    chosen = options("Shape", outType=2 if dtype == "int32" else 4)
    return Case(operator, [draw.tensor(draw.shape(), "float32")], [Tensor(dtype=dtype)], chosen)


@cases("BROADCAST_TO")
def broadcast_to(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    input = tuple(1 if draw.chance(0.4) else size for size in shape)
    dtype = draw.random.choice(["float32", "int32", "bool"])
    inputs = [draw.tensor(input, dtype), const(shape)]
    return Case(operator, inputs, [Tensor(dtype=dtype)], version=2)


@cases("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def blocks(draw: Draw, operator: str) -> Case:
    size = draw.random.randint(1, 3)
    batch, height, width, channels = draw.shape(4, 4, 3)
    if operator == "DEPTH_TO_SPACE":
        shape = batch, height, width, channels * size * size
        chosen = options("DepthToSpace", blockSize=size)
    else:
        shape = batch, height * size, width * size, channels
        chosen = options("SpaceToDepth", blockSize=size)
    return Case(operator, [draw.tensor(shape, "float32")], [Tensor()], chosen)


@cases("SPACE_TO_BATCH_ND")
def space_to_batch(draw: Draw, operator: str) -> Case:
    rank = draw.random.choice([1, 2])
    block = [draw.random.randint(1, 3) for _ in range(rank)]
    pads, image = [], []
    for size in block:
        before, after = draw.random.randint(0, 2), draw.random.randint(0, 2)
        inner = size * draw.random.randint(2, 4) - before - after
        if inner < 1:
            before, after, inner = 0, 0, size * 2
        pads.append([before, after])
        image.append(inner)
    shape = (draw.random.randint(1, 2), *image, draw.random.randint(1, 3))
    return Case(operator, [draw.tensor(shape, "float32"), const(block), const(pads)], [Tensor()])


@cases("BATCH_TO_SPACE_ND")
def batch_to_space(draw: Draw, operator: str) -> Case:
    rank = draw.random.choice([1, 2])
    block = [draw.random.randint(1, 3) for _ in range(rank)]
    image = [draw.random.randint(2, 4) for _ in range(rank)]
    crops = [[draw.random.randint(0, 1), draw.random.randint(0, 1)] for _ in range(rank)]
    batch = draw.random.randint(1, 2) * int(np.prod(block))
    shape = (batch, *image, draw.random.randint(1, 3))
    return Case(operator, [draw.tensor(shape, "float32"), const(block), const(crops)], [Tensor()])


@cases("REVERSE_V2")
def reverse(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(["float32", "int32", "int64", "bool"])
    axis = const([draw.random.randrange(len(shape))])
    return Case(operator, [draw.tensor(shape, dtype), axis], [Tensor(dtype=dtype)])


@cases("REVERSE_SEQUENCE")
def reverse_sequence(draw: Draw, operator: str) -> Case:
    shape = draw.shape(2, 4)
    time, batch = draw.random.sample(range(len(shape)), 2)
    lengths = draw.integers((shape[batch],), "int32", 1, shape[time])
    chosen = options("ReverseSequence", seqDim=time, batchDim=batch)
    inputs = [draw.tensor(shape, "float32"), Tensor(lengths, "int32")]
    return Case(operator, inputs, [Tensor()], chosen)


@cases("TILE")
def tile(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(["float32", "int32", "int64", "bool"])
    repeats = [draw.random.randint(1, 3) for _ in shape]
    return Case(operator, [draw.tensor(shape, dtype), const(repeats)], [Tensor(dtype=dtype)])


@cases("SLICE")
def slice_(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(_MOVED)
    begin = [draw.random.randrange(size) for size in shape]
    size = [
        -1 if draw.chance(0.2) else draw.random.randint(1, whole - start)
        for whole, start in zip(shape, begin, strict=True)
    ]
    constant = draw.chance(0.7)
    parts = [Tensor(np.array(each, np.int32), "int32", constant) for each in (begin, size)]
    return Case(operator, [draw.tensor(shape, dtype), *parts], [Tensor(dtype=dtype)])


@cases("STRIDED_SLICE")
def strided_slice(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(1, 4), draw.random.choice(["float32", "int32", "bool"])
    begin, end, strides, shrink = [], [], [], 0
    for axis, size in enumerate(shape):
        start = draw.random.randrange(size)
        if draw.chance(0.25):
            begin.append(start)
            end.append(start + 1)
            strides.append(1)
            shrink |= 1 << axis
        elif draw.chance(0.3):
            begin.append(size - 1)
            end.append(-size - 1)
            strides.append(-draw.random.randint(1, 2))
        else:
            begin.append(start if draw.chance(0.7) else start - size)
            end.append(draw.random.randint(start + 1, size + 2))
            strides.append(draw.random.randint(1, 3))
    masks = draw.random.randrange(2 ** len(shape)) & ~shrink if draw.chance(0.4) else 0
    ends = draw.random.randrange(2 ** len(shape)) & ~shrink if draw.chance(0.4) else 0
    for axis in range(len(shape)):
        if strides[axis] < 0 and not ends >> axis & 1 and masks >> axis & 1:
            masks &= ~(1 << axis)
    chosen = options("StridedSlice", beginMask=masks, endMask=ends, shrinkAxisMask=shrink)
    inputs = [draw.tensor(shape, dtype), const(begin), const(end), const(strides)]
    return Case(operator, inputs, [Tensor(dtype=dtype)], chosen)


@cases("SPLIT")
def split(draw: Draw, operator: str) -> Case:
    shape = list(draw.shape())
    count, axis = draw.random.randint(1, 3), draw.random.randrange(len(shape))
    shape[axis] = count * draw.random.randint(1, 3)
    chosen = options("Split", numSplits=count)
    inputs = [const(axis), draw.tensor(shape, "float32")]
    return Case(operator, inputs, [Tensor()] * count, chosen)


@cases("SPLIT_V")
def split_v(draw: Draw, operator: str) -> Case:
    shape = list(draw.shape())
    axis = draw.random.randrange(len(shape))
    sizes = [draw.random.randint(1, 3) for _ in range(draw.random.randint(1, 3))]
    shape[axis] = sum(sizes)
    if draw.chance(0.3):
        sizes[draw.random.randrange(len(sizes))] = -1
    chosen = options("SplitV", numSplits=len(sizes))
    inputs = [draw.tensor(shape, "float32"), const(sizes), const(axis)]
    return Case(operator, inputs, [Tensor()] * len(sizes), chosen)


@cases("PACK")
def pack(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(1, 3), draw.random.choice(["float32", "int32", "int64"])
    count = draw.random.randint(1, 3)
    chosen = options("Pack", valuesCount=count, axis=draw.random.randrange(len(shape) + 1))
    inputs = [draw.tensor(shape, dtype) for _ in range(count)]
    return Case(operator, inputs, [Tensor(dtype=dtype)], chosen)


@cases("UNPACK")
def unpack(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(1, 4), draw.random.choice(["float32", "int32"])
    axis = draw.random.randrange(len(shape))
    chosen = options("Unpack", num=shape[axis], axis=axis)
    outputs = [Tensor(dtype=dtype)] * shape[axis]
    return Case(operator, [draw.tensor(shape, dtype)], outputs, chosen)


@cases("CONCATENATION")
def concatenation(draw: Draw, operator: str) -> Case:
    shape = list(draw.shape())
    axis = draw.random.randrange(len(shape))
    shapes = []
    for _ in range(draw.random.randint(1, 3)):
        shape[axis] = draw.random.randint(1, 4)
        shapes.append(tuple(shape))
    chosen = options("Concatenation", axis=axis - (len(shape) if draw.chance(0.3) else 0))
    if draw.chance(0.3):
        first = draw.quantized(shapes[0], "int8")
        inputs = [first, *(draw.quantized(each, "int8", like=first) for each in shapes[1:])]
        return Case(operator, inputs, [draw.output("int8", first)], chosen, 2)
    dtype = draw.random.choice(["float32", "int32", "int64"])
    inputs = [draw.tensor(each, dtype) for each in shapes]
    return Case(operator, inputs, [Tensor(dtype=dtype)], chosen)


@cases("PAD", "PADV2")
def pad(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    pads = const([[draw.random.randint(0, 2), draw.random.randint(0, 2)] for _ in shape])
    if draw.chance(0.3) and operator == "PAD":
        input = draw.quantized(shape, draw.random.choice(["int8", "uint8"]))
        return Case(operator, [input, pads], [draw.output(input.dtype, input)], version=2)
    dtype = draw.random.choice(["float32", "int32", "int64"])
    value = [const(draw.random.randint(-3, 3), dtype)] if operator == "PADV2" else []
    return Case(operator, [draw.tensor(shape, dtype), pads, *value], [Tensor(dtype=dtype)])


@cases("MIRROR_PAD")
def mirror_pad(draw: Draw, operator: str) -> Case:
    shape, mode = draw.shape(1, 4), draw.random.randrange(2)
    pads = const([[draw.random.randint(0, size - 1 + mode) for _ in "12"] for size in shape])
    chosen = options("MirrorPad", mode=mode)
    return Case(operator, [draw.tensor(shape, "float32"), pads], [Tensor()], chosen)


@cases("GATHER")
def gather(draw: Draw, operator: str) -> Case:
    shape = draw.shape(1, 4)
    axis = draw.random.randrange(len(shape))
    batch = draw.random.randint(0, axis) if draw.chance(0.4) else 0
    indices_shape = (*shape[:batch], *draw.shape(1, 2, 3))
    indices = draw.integers(
        indices_shape, draw.random.choice(["int32", "int64"]), 0, shape[axis] - 1
    )
    dtype = draw.random.choice(["float32", "int32", "int64", "int8", "bool"])
    chosen = options("Gather", axis=axis, batchDims=batch)
    inputs = [draw.tensor(shape, dtype), Tensor(indices, str(indices.dtype))]
    return Case(operator, inputs, [Tensor(dtype=dtype)], chosen)


@cases("GATHER_ND")
def gather_nd(draw: Draw, operator: str) -> Case:
    shape = draw.shape(1, 4)
    depth = draw.random.randint(1, len(shape))
    rows = draw.shape(1, 2, 3)
    columns = [draw.integers(rows, "int32", 0, size - 1) for size in shape[:depth]]
    indices = np.stack(columns, axis=-1)
    inputs = [draw.tensor(shape, "float32"), Tensor(indices, "int32")]
    return Case(operator, inputs, [Tensor()])


@cases("SCATTER_ND")
def scatter_nd(draw: Draw, operator: str) -> Case:
    shape = draw.shape(1, 3)
    depth = draw.random.randint(1, len(shape))
    count = draw.random.randint(1, 4)
    columns = [draw.integers((count,), "int32", 0, size - 1) for size in shape[:depth]]
    updates = Tensor(draw.reals((count, *shape[depth:])))
    inputs = [Tensor(np.stack(columns, axis=-1), "int32"), updates, const(shape)]
    return Case(operator, inputs, [Tensor()])


@cases("ONE_HOT")
def one_hot(draw: Draw, operator: str) -> Case:
    shape = draw.shape(1, 3)
    depth = draw.random.randint(1, 5)
    indices = Tensor(draw.integers(shape, "int32", 0, depth), "int32")
    chosen = options("OneHot", axis=draw.random.randint(-1, len(shape)))
    dtype = draw.random.choice(["float32", "int32"])
    inputs = [indices, const(depth), const(2, dtype), const(-1, dtype)]
    return Case(operator, inputs, [Tensor(dtype=dtype)], chosen)


@cases("EMBEDDING_LOOKUP")
def embedding_lookup(draw: Draw, operator: str) -> Case:
    shape = draw.shape(2, 3)
    ids = Tensor(draw.integers(draw.shape(1, 1), "int32", 0, shape[0] - 1), "int32")
    return Case(operator, [ids, draw.tensor(shape, "float32", constant=True)], [Tensor()])


@cases(
    "UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN"
)
def unsorted_segment(draw: Draw, operator: str) -> Case:
    shape = draw.shape(1, 3)
    count = draw.random.randint(1, 4)
    ids = Tensor(draw.integers(shape[:1], "int32", -1, count - 1), "int32")
    dtype = draw.random.choice(["float32", "int32"])
    input = Tensor(draw.reals(shape)) if dtype == "float32" else draw.tensor(shape, dtype)
    return Case(operator, [input, ids, const(count)], [Tensor(dtype=dtype)])


@cases("FILL")
def fill(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["float32", "int32", "int64", "bool"])
    return Case(operator, [const(draw.shape()), draw.tensor((), dtype)], [Tensor(dtype=dtype)])


@cases("ZEROS_LIKE")
def zeros_like(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["float32", "int32", "int64"])
    return Case(operator, [draw.tensor(draw.shape(), dtype)], [Tensor(dtype=dtype)])


@cases("RANGE")
def range_(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["float32", "int32"])
    start, count, step = (
        draw.random.randint(-4, 4),
        draw.random.randint(1, 5),
        draw.random.choice([-2, -1, 1, 3]),
    )
    values = [start, start + count * step, step]
    return Case(operator, [const(each, dtype) for each in values], [Tensor(dtype=dtype)])


@cases("CAST")
def cast(draw: Draw, operator: str) -> Case:
    source = draw.random.choice(["float32", "int32", "int64", "int8", "uint8", "bool", "int16"])
    target = draw.random.choice(["float32", "int32", "int64", "int8", "uint8", "bool", "int16"])
    shape = draw.shape()
    low = 0 if target == "uint8" else -4
    input = Tensor(draw.reals(shape, low, 4)) if source == "float32" else draw.tensor(shape, source)
    return Case(operator, [input], [Tensor(dtype=target)])


@cases("QUANTIZE")
def quantize(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["int8", "uint8", "int16"])
    shape = draw.shape()
    if draw.chance(0.5):
        return Case(operator, [draw.quantized(shape, "int8")], [draw.output("int8")], version=2)
    return Case(operator, [Tensor(draw.reals(shape))], [draw.output(dtype)], version=2)


@cases("DEQUANTIZE")
def dequantize(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["int8", "uint8", "int16"])
    return Case(operator, [draw.quantized(draw.shape(), dtype)], [Tensor()], version=3)


@cases("SOFTMAX")
def softmax(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    if draw.chance(0.3):
        output = Tensor(None, "int8", scale=(1 / 256,), zero_point=(-128,))
        return Case(
            operator, [draw.quantized(shape, "int8")], [output], options("Softmax", beta=1.0), 2
        )
    chosen = options("Softmax", beta=draw.random.choice([1.0, 0.5, 2.0]))
    return Case(operator, [Tensor(draw.reals(shape))], [Tensor()], chosen)


@cases("LOG_SOFTMAX", "L2_NORMALIZATION")
def normalization(draw: Draw, operator: str) -> Case:
    return Case(operator, [Tensor(draw.reals(draw.shape()))], [Tensor()])


@cases("LOCAL_RESPONSE_NORMALIZATION")
def local_response(draw: Draw, operator: str) -> Case:
    chosen = options(
        "LocalResponseNormalization",
        radius=draw.random.randint(0, 3),
        bias=draw.random.uniform(0.5, 2),
        alpha=draw.random.uniform(0.1, 1),
        beta=draw.random.uniform(0.3, 1),
    )
    # The reference kernel leaves out the last channel of each window.
    image = Tensor(draw.reals(draw.shape(4, 4)))
    return Case(operator, [image], [Tensor()], chosen, optimized=True)


@cases("LEAKY_RELU")
def leaky_relu(draw: Draw, operator: str) -> Case:
    chosen = options("LeakyRelu", alpha=draw.random.uniform(0, 1))
    if draw.chance(0.4):
        dtype = draw.random.choice(["int8", "uint8", "int16"])
        return Case(
            operator, [draw.quantized(draw.shape(), dtype)], [draw.output(dtype)], chosen, 2
        )
    return Case(operator, [draw.tensor(draw.shape(), "float32")], [Tensor()], chosen)


@cases("PRELU")
def prelu(draw: Draw, operator: str) -> Case:
    shape = draw.shape(2, 4)
    slope = tuple(1 for _ in shape[1:-1]) + shape[-1:]
    slopes = Tensor(draw.reals(slope, 0, 1), constant=draw.chance(0.7))
    return Case(operator, [Tensor(draw.reals(shape)), slopes], [Tensor()])


@cases("GELU")
def gelu(draw: Draw, operator: str) -> Case:
    chosen = options("Gelu", approximate=draw.chance(0.5))
    return Case(operator, [Tensor(draw.reals(draw.shape()))], [Tensor()], chosen)


@cases("TOPK_V2")
def top_k(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    count = const(draw.random.randint(1, shape[-1]))
    return Case(operator, [Tensor(draw.reals(shape)), count], [Tensor(), Tensor(dtype="int32")])


@cases("UNIQUE")
def unique(draw: Draw, operator: str) -> Case:
    shape = (draw.random.randint(1, 9),)
    outputs = [Tensor(dtype="int32"), Tensor(dtype="int32")]
    return Case(
        operator,
        [Tensor(draw.integers(shape, "int32", 0, 4), "int32")],
        outputs,
        options("Unique", idxOutType=2),
    )


def _image(draw: Draw, channels: int) -> tuple[int, int, int, int]:
    random = draw.random
    return random.randint(1, 2), random.randint(3, 8), random.randint(3, 8), channels


@cases("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool(draw: Draw, operator: str) -> Case:
    random = draw.random
    chosen = options(
        "Pool2D",
        padding=random.randrange(2),
        strideW=random.randint(1, 3),
        strideH=random.randint(1, 3),
        filterWidth=random.randint(1, 3),
        filterHeight=random.randint(1, 3),
        fusedActivationFunction=random.choice([0, 0, 1, 3]),
    )
    shape = _image(draw, random.randint(1, 4))
    if draw.chance(0.4) and operator != "L2_POOL_2D":
        input = draw.quantized(shape, random.choice(["int8", "uint8"]))
        return Case(operator, [input], [draw.output(input.dtype, input)], chosen, 2)
    return Case(operator, [Tensor(draw.reals(shape))], [Tensor()], chosen)


@cases("CONV_2D", "DEPTHWISE_CONV_2D")
def convolution(draw: Draw, operator: str) -> Case:
    random = draw.random
    depthwise = operator == "DEPTHWISE_CONV_2D"
    channels, count = random.randint(1, 4), random.randint(1, 4)
    kernel = random.randint(1, 3), random.randint(1, 3)
    shared = {
        "padding": random.randrange(2),
        "strideW": random.randint(1, 2),
        "strideH": random.randint(1, 2),
        "fusedActivationFunction": random.choice([0, 0, 1, 2, 3]),
        "dilationWFactor": 1,
        "dilationHFactor": 1,
    }
    if depthwise:
        filter_shape = (1, *kernel, channels * count)
        chosen = options("DepthwiseConv2D", depthMultiplier=count, **shared)
    else:
        filter_shape = (count, *kernel, channels)
        chosen = options("Conv2D", **shared)
    outputs = channels * count if depthwise else count
    image = _image(draw, channels)
    if draw.chance(0.5):
        input = draw.quantized(image, "int8")
        axis = 3 if depthwise else 0
        scales = tuple(draw.scale() for _ in range(outputs))
        filter_ = draw.numpy.integers(-127, 128, filter_shape).astype(np.int8)
        weights = Tensor(filter_, "int8", True, scales, (0,) * outputs, axis)
        bias_scale = tuple(float(np.float32(input.scale[0]) * np.float32(s)) for s in scales)
        bias = Tensor(
            draw.numpy.integers(-5000, 5000, outputs).astype(np.int32),
            "int32",
            True,
            bias_scale,
            (0,) * outputs,
        )
        output = Tensor(
            None, "int8", scale=(draw.scale() * 16,), zero_point=(draw.zero_point("int8"),)
        )
        return Case(operator, [input, weights, bias], [output], chosen, 3)
    filter_reals = Tensor(draw.reals(filter_shape), constant=draw.chance(0.8))
    bias = Tensor(draw.reals((outputs,)), constant=True)
    return Case(operator, [Tensor(draw.reals(image)), filter_reals, bias], [Tensor()], chosen)


@cases("FULLY_CONNECTED")
def fully_connected(draw: Draw, operator: str) -> Case:
    random = draw.random
    rows, size, units = random.randint(1, 3), random.randint(1, 6), random.randint(1, 5)
    chosen = options("FullyConnected", fusedActivationFunction=random.choice([0, 0, 1, 3]))
    bias: Tensor | None
    if draw.chance(0.4):
        input = draw.quantized((rows, size), "int8")
        scale = draw.scale()
        weights = Tensor(
            draw.numpy.integers(-127, 128, (units, size)).astype(np.int8),
            "int8",
            True,
            (scale,),
            (0,),
        )
        product = float(np.float32(input.scale[0]) * np.float32(scale))
        bias = Tensor(
            draw.numpy.integers(-5000, 5000, units).astype(np.int32),
            "int32",
            True,
            (product,),
            (0,),
        )
        output = Tensor(
            None, "int8", scale=(draw.scale() * 8,), zero_point=(draw.zero_point("int8"),)
        )
        return Case(operator, [input, weights, bias], [output], chosen, 4)
    bias = Tensor(draw.reals((units,)), constant=True) if draw.chance(0.7) else None
    inputs = [Tensor(draw.reals((rows, size))), Tensor(draw.reals((units, size)), constant=True)]
    return Case(operator, [*inputs, bias], [Tensor()], chosen)


@cases("BATCH_MATMUL")
def batch_matmul(draw: Draw, operator: str) -> Case:
    batch = draw.shape(0, 2, 3)
    rows, inner, columns = draw.shape(3, 3, 4)
    adjoint_x, adjoint_y = draw.chance(0.3), draw.chance(0.3)
    left = (*batch, inner, rows) if adjoint_x else (*batch, rows, inner)
    right = (*batch, columns, inner) if adjoint_y else (*batch, inner, columns)
    chosen = options("BatchMatMul", adjX=adjoint_x, adjY=adjoint_y)
    return Case(operator, [Tensor(draw.reals(left)), Tensor(draw.reals(right))], [Tensor()], chosen)


@cases("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(draw: Draw, operator: str) -> Case:
    name = "ResizeBilinear" if operator == "RESIZE_BILINEAR" else "ResizeNearestNeighbor"
    align = draw.chance(0.3)
    chosen = options(name, alignCorners=align, halfPixelCenters=not align and draw.chance(0.5))
    size = const([draw.random.randint(1, 10), draw.random.randint(1, 10)])
    image = Tensor(draw.reals(_image(draw, draw.random.randint(1, 3))))
    return Case(operator, [image, size], [Tensor()], chosen, 3)


@cases("TRANSPOSE_CONV")
def transpose_conv(draw: Draw, operator: str) -> Case:
    random = draw.random
    channels, count = random.randint(1, 3), random.randint(1, 3)
    kernel = random.randint(1, 3), random.randint(1, 3)
    strides = random.randint(1, 3), random.randint(1, 3)
    padding = random.randrange(2)
    batch, height, width, _ = _image(draw, channels)
    sizes = [
        side * stride if padding == 0 else (side - 1) * stride + extent
        for side, stride, extent in zip((height, width), strides, kernel, strict=True)
    ]
    chosen = options("TransposeConv", padding=padding, strideH=strides[0], strideW=strides[1])
    inputs = [
        const([batch, *sizes, count]),
        Tensor(draw.reals((count, *kernel, channels)), constant=True),
        Tensor(draw.reals((batch, height, width, channels))),
    ]
    return Case(operator, inputs, [Tensor()], chosen)


@cases("MATRIX_DIAG")
def matrix_diag(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["float32", "int32", "int64", "int8"])
    return Case(operator, [draw.tensor(draw.shape(1, 3), dtype)], [Tensor(dtype=dtype)])


@cases("MATRIX_SET_DIAG")
def matrix_set_diag(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(["float32", "int32"])
    shape = draw.shape(2, 4)
    diagonal = draw.tensor((*shape[:-2], min(shape[-2:])), dtype)
    return Case(operator, [draw.tensor(shape, dtype), diagonal], [Tensor(dtype=dtype)])


@cases("SEGMENT_SUM")
def segment_sum(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(1, 3), draw.random.choice(["float32", "int32"])
    numbers = np.cumsum(draw.integers(shape[:1], "int32", 0, 1)).astype(np.int32)
    input = Tensor(draw.reals(shape)) if dtype == "float32" else draw.tensor(shape, dtype)
    segments = Tensor(numbers - numbers[0], "int32", constant=True)
    return Case(operator, [input, segments], [Tensor(dtype=dtype)])


OPERATORS = tuple(CASES)
"""All operators of which cases are drawn."""
