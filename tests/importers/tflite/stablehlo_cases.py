"""What is drawn for StableHLO's operators, and for those on windows and dilated tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flatbuffers import flexbuffers
from tests.importers.tflite.single_operator import Case, Draw, Tensor, cases, const, options

from crosschip.ir import Array

STABLEHLO = (
    *("ATAN2", "DILATE", "REDUCE_WINDOW", "STABLEHLO_ADD", "STABLEHLO_AND", "STABLEHLO_CASE"),
    *("STABLEHLO_COMPOSITE", "STABLEHLO_GATHER", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"),
    *("STABLEHLO_MULTIPLY", "STABLEHLO_PAD", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER"),
    "STABLEHLO_SHIFT_LEFT",
)
_NUMBERS = ("float32", "int8", "int16", "int32", "int64", "uint8")
_FUNCTIONS = {"ADD": 1, "MUL": 2, "MINIMUM": 3, "MAXIMUM": 4, "LOGICAL_AND": 5, "LOGICAL_OR": 6}
"""The functions of windows by the builtin operator that is a region's only one."""


def _finite(draw: Draw, shape: tuple[int, ...], dtype: str) -> Tensor:
    return Tensor(draw.reals(shape)) if dtype == "float32" else draw.tensor(shape, dtype)


@cases("ATAN2")
def atan2(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    inputs = [draw.tensor(shape, "float32"), draw.tensor(shape, "float32")]
    return Case(operator, inputs, [Tensor()], options("ATan2"))


@cases("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
def binary(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice((*_NUMBERS, "uint16", "uint32", "bool"))
    inputs = [_finite(draw, shape, dtype), _finite(draw, shape, dtype)]
    return Case(operator, inputs, [Tensor(dtype=dtype)])


@cases("STABLEHLO_AND")
def and_(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(("bool", "int8", "int32", "int64", "uint8"))
    inputs = [draw.tensor(shape, dtype), draw.tensor(shape, dtype)]
    return Case(operator, inputs, [Tensor(dtype=dtype)])


@cases("STABLEHLO_SHIFT_LEFT")
def shift_left(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(("int8", "int16", "int32"))
    inputs = [draw.tensor(shape, dtype), Tensor(draw.integers(shape, dtype, 0, 7), dtype)]
    return Case(operator, inputs, [Tensor(dtype=dtype)], options("StablehloShiftLeft"))


@cases("DILATE")
def dilate(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(("float32", "int8", "int32", "int64"))
    factors = const([draw.random.randint(1, 3) for _ in shape])
    inputs = [draw.tensor(shape, dtype), factors, draw.tensor((), dtype, constant=True)]
    return Case(operator, inputs, [Tensor(dtype=dtype)], options("Dilate"))


@cases("STABLEHLO_PAD")
def pad(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(), draw.random.choice(("float32", "int8", "int32", "int64"))
    low, high = ([draw.random.randint(-1, 2) for _ in shape] for _ in range(2))
    interior = [draw.random.randint(0, 2) for _ in shape]
    for axis, size in enumerate(shape):
        if (size - 1) * (interior[axis] + 1) + 1 + low[axis] + high[axis] < 1 or size < 3:
            low[axis], high[axis] = abs(low[axis]), abs(high[axis])
    chosen = options(
        "StablehloPad", edgePaddingLow=low, edgePaddingHigh=high, interiorPadding=interior
    )
    inputs = [draw.tensor(shape, dtype), draw.tensor((), dtype)]
    return Case(operator, inputs, [Tensor(dtype=dtype)], chosen)


def _windows(draw: Draw, shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int]]:
    """Return sizes, strides and dilations of windows that lie in a tensor."""
    sizes = [draw.random.randint(1, min(3, size)) for size in shape]
    strides = [draw.random.randint(1, 2) for _ in shape]
    dilations = [
        draw.random.randint(1, max(1, (whole - 1) // max(1, size - 1)))
        for whole, size in zip(shape, sizes, strict=True)
    ]
    return sizes, strides, dilations


def _reduced(draw: Draw, shape: tuple[int, ...]) -> tuple[str, Tensor, Tensor]:
    """Return a function, a tensor and an initial value."""
    function = draw.random.choice(tuple(_FUNCTIONS))
    dtype = "bool" if function.startswith("LOGICAL") else draw.random.choice(_NUMBERS)
    return function, _finite(draw, shape, dtype), _finite(draw, (), dtype)


@cases("REDUCE_WINDOW")
def reduce_window(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    function, input, initial = _reduced(draw, shape)
    windows = [const(numbers, "int64") for numbers in _windows(draw, shape)]
    chosen = options("ReduceWindow", reduceFunction=_FUNCTIONS[function])
    return Case(operator, [input, initial, *windows], [Tensor(dtype=input.dtype)], chosen)


def _region(operator: str, dtype: str) -> Case:
    """Return an operator on two numbers, or the second number if the operator is none."""
    number = Tensor(np.zeros((), dtype), dtype)
    name = operator.title().replace("_", "")
    chosen = options(name) if operator in ("ADD", "MUL") else None
    if operator in ("MAXIMUM", "MINIMUM"):
        chosen = options("MaximumMinimum")
    return Case(operator, [number, number], [number] if operator else [], chosen)


@cases("STABLEHLO_REDUCE_WINDOW")
def stablehlo_reduce_window(draw: Draw, operator: str) -> Case:
    shape = draw.shape(1, 3)
    function, input, initial = _reduced(draw, shape)
    base = [draw.random.randint(1, 2) for _ in shape]
    padding = [[draw.random.randint(0, 2) for _ in "12"] for _ in shape]
    padded = tuple(
        (size - 1) * dilation + 1 + sum(pads)
        for size, dilation, pads in zip(shape, base, padding, strict=True)
    )
    sizes, strides, dilations = _windows(draw, padded)
    chosen = options(
        "StablehloReduceWindow",
        windowDimensions=sizes,
        windowStrides=strides,
        baseDilations=base,
        windowDilations=dilations,
        padding=np.ravel(padding).tolist(),
        bodySubgraphIndex=1,
    )
    inputs, outputs = [input, initial], [Tensor(dtype=input.dtype)]
    return Case(operator, inputs, outputs, chosen, regions=[_region(function, input.dtype)])


def _moved(draw: Draw, vectors: Array) -> tuple[Array, int]:
    """Return index vectors along a random axis, and the axis.

    LiteRT reads beyond the shape of indices that are no vectors.
    """
    axis = draw.random.randrange(vectors.ndim)
    return np.ascontiguousarray(np.moveaxis(vectors, -1, axis)), axis


@dataclass(frozen=True)
class _Slices:
    """Slices of a tensor, one for each vector of a batch of starts.

    Attributes:
        mapped: the axes that the vectors' elements are starts along.
        sizes: those of a slice.
        dropped: the axes of size 1 that slices lack.
        batch: the sizes of the batch.
        starts: the vectors.
        vector_axis: the axis of the vectors' elements.
        rank: the number of axes of the batch and of slices together.
        positions: which of these are the axes of slices.
    """

    mapped: Sequence[int]
    sizes: Sequence[int]
    dropped: Sequence[int]
    batch: Sequence[int]
    starts: Tensor
    vector_axis: int
    rank: int
    positions: Sequence[int]


def _slices(draw: Draw, shape: tuple[int, ...], least: int) -> _Slices:
    """Draw slices of a tensor whose starts are at least some number, and may be out of range."""
    rank, index_dtype = len(shape), draw.random.choice(("int32", "int64"))
    mapped = draw.random.sample(range(rank), draw.random.randint(1, rank))
    sizes = [draw.random.randint(1, size) for size in shape]
    dropped = [axis for axis in range(rank) if sizes[axis] == 1 and draw.chance(0.5)]
    batch = draw.shape(1, 2, 3)
    starts, axis = _moved(draw, draw.integers((*batch, len(mapped)), index_dtype, least, 5))
    count = len(batch) + rank - len(dropped)
    positions = sorted(draw.random.sample(range(count), rank - len(dropped)))
    tensor = Tensor(starts, index_dtype)
    return _Slices(mapped, sizes, dropped, batch, tensor, axis, count, positions)


@cases("STABLEHLO_GATHER")
def gather(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(1, 4), draw.random.choice(("float32", "int8", "int32", "int64"))
    each = _slices(draw, shape, -2)
    chosen = options(
        "StablehloGather",
        offsetDims=each.positions,
        collapsedSliceDims=each.dropped,
        startIndexMap=each.mapped,
        indexVectorDim=each.vector_axis,
        sliceSizes=each.sizes,
    )
    inputs = [draw.tensor(shape, dtype), each.starts]
    return Case(operator, inputs, [Tensor(np.zeros((1,) * each.rank, dtype), dtype)], chosen)


@cases("STABLEHLO_SCATTER")
def scatter(draw: Draw, operator: str) -> Case:
    shape, dtype = draw.shape(1, 3), draw.random.choice(("float32", "int32", "int64"))
    each = _slices(draw, shape, -1)
    window_sizes = iter([size for axis, size in enumerate(each.sizes) if axis not in each.dropped])
    batch_sizes = iter(each.batch)
    update = tuple(
        next(window_sizes if axis in each.positions else batch_sizes) for axis in range(each.rank)
    )
    regions = ("", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
    chosen = options(
        "StablehloScatter",
        updateWindowDims=each.positions,
        insertedWindowDims=each.dropped,
        scatterDimsToOperandDims=each.mapped,
        indexVectorDim=each.vector_axis,
        updateComputationSubgraphIndex=1,
    )
    inputs = [_finite(draw, shape, dtype), each.starts]
    inputs.append(_finite(draw, update, dtype))
    region = _region(draw.random.choice(regions), dtype)
    return Case(operator, inputs, [Tensor(dtype=dtype)], chosen, regions=[region])


def _branch(draw: Draw, operator: str, shape: tuple[int, ...]) -> Case:
    constant = Tensor(draw.reals(shape), constant=True)
    input = Tensor(np.zeros(shape, np.float32))
    return Case(operator, [input, constant], [input], options(operator.title()))


@cases("STABLEHLO_COMPOSITE")
def composite(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    region = _branch(draw, draw.random.choice(("ADD", "MUL", "SUB")), shape)
    attributes = np.frombuffer(flexbuffers.Dumps({"axis": 1}), np.uint8)
    chosen = options(
        "StableHLOComposite",
        name="odml.any",
        decompositionSubgraphIndex=1,
        compositeAttributes=attributes,
    )
    return Case(operator, [Tensor(draw.reals(shape))], [Tensor()], chosen, regions=[region])


@cases("STABLEHLO_CASE")
def case(draw: Draw, operator: str) -> Case:
    shape, count = draw.shape(), draw.random.randint(1, 4)
    regions = [_branch(draw, ("ADD", "MUL", "SUB")[n % 3], shape) for n in range(count)]
    chosen = options("StablehloCase", branchSubgraphIndices=list(range(1, count + 1)))
    index = Tensor(np.array(draw.random.randint(-1, count), np.int32), "int32")
    inputs = [index, Tensor(draw.reals(shape))]
    return Case(operator, inputs, [Tensor()], chosen, regions=regions)
