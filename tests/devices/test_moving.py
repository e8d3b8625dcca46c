"""Operators that move elements by blocks, to and from places, and over the edge, on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.test_types import COMPUTED, TOLERANCES, Example, sizes, values

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import ModelError
from crosschip.ops.standard.blocks import (
    BatchToSpaceND,
    ChannelShuffle,
    DepthOrder,
    DepthToSpace,
    SpaceToBatchND,
    SpaceToDepth,
)
from crosschip.ops.standard.creation import FillLike, OneHot, Range
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
    SparseToDense,
)
from crosschip.ops.standard.joining import Meshgrid, Stack, Unstack
from crosschip.ops.standard.layout import Expand, Flatten
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu
from crosschip.ops.standard.searching import NonZero, Unique
from crosschip.ops.standard.slicing import Crop, StridedSlice

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE = (2, 8, 4, 6)
MATRIX = (3, 4)


def places(*rows: Any) -> Any:
    return np.array(rows)


EXAMPLES: dict[str, Example] = {
    "CHANNEL_SHUFFLE": (lambda b, x: b.add(ChannelShuffle, x, 4), (IMAGE,)),
    "DEPTH_TO_SPACE DCR": (lambda b, x: b.add(DepthToSpace, x, 2), (IMAGE,)),
    "DEPTH_TO_SPACE CRD": (lambda b, x: b.add(DepthToSpace, x, 2, DepthOrder.CRD), (IMAGE,)),
    "SPACE_TO_DEPTH": (lambda b, x: b.add(SpaceToDepth, x, 2), (IMAGE,)),
    "BATCH_TO_SPACE_ND": (
        lambda b, x: b.add(BatchToSpaceND, x, (1, 2), (0, 1, 2, 0)),
        (IMAGE,),
    ),
    "SPACE_TO_BATCH_ND": (
        lambda b, x: b.add(SpaceToBatchND, x, (2, 3), (1, 1, 0, 3)),
        (IMAGE,),
    ),
    "PAD": (lambda b, x: b.add(Pad, x, (1, 0, 2, 3)), (MATRIX,)),
    "PAD cropped": (lambda b, x: b.add(Pad, x, (-1, 0, 2, -3)), (MATRIX,)),
    **{
        f"PAD {mode.name}": (lambda b, x, mode=mode: b.add(Pad, x, (1, 0, 2, 1), mode), (MATRIX,))
        for mode in PadMode
    },
    "TILE": (lambda b, x: b.add(Tile, x, (2, 3)), (MATRIX,)),
    "TILE on the last axes": (lambda b, x: b.add(Tile, x, (2, 3)), ((2, 2, 2, 2),)),
    "ROLL": (lambda b, x: b.add(Roll, x, (5, -1), (1, 0)), (MATRIX,)),
    "REVERSE_SEQUENCE": (
        lambda b, x: b.add(ReverseSequence, x, b.constant(np.array([2, 0, 3, 1]))),
        ((3, 4, 2),),
    ),
    "TRILU": (lambda b, x: b.add(Trilu, x, 1, False), ((2, 3, 4),)),
    "TRILU upper": (lambda b, x: b.add(Trilu, x, -1), ((2, 3, 4),)),
    "ONE_HOT of int32": (
        lambda b, x, y: b.add(
            OneHot, b.constant(np.array([[1, -1], [9, -9]], np.int32)), np.array([4]), x, y
        ),
        ((1,), (1,)),
    ),
    "STACK": (lambda b, x, y: b.add(Stack, [x, y], axis=1), (MATRIX, MATRIX)),
    "UNSTACK": (lambda b, x: b.add_all(Unstack, x, 1), (MATRIX,)),
    "MESHGRID": (lambda b, x, y: b.add_all(Meshgrid, [x, y]), ((3,), (2,))),
    "CROP": (lambda b, x: b.add(Crop, x, (2, 3), 2, (1, 2)), (IMAGE,)),
    "STRIDED_SLICE": (
        lambda b, x: b.add(StridedSlice, x, (1, 0), (0, 4), (1, 2), shrink_axis_mask=1),
        (MATRIX,),
    ),
    "GATHER_ND": (lambda b, x: b.add(GatherND, x, places([0, 1], [2, -1])), (MATRIX,)),
    "GATHER_ND rows": (lambda b, x: b.add(GatherND, x, places([[2]], [[0]])), (MATRIX,)),
    "GATHER_ELEMENTS": (
        lambda b, x: b.add(GatherElements, x, places([0, 3], [1, -1], [2, 2]), 1),
        (MATRIX,),
    ),
    "SCATTER_ELEMENTS": (
        lambda b, x, y: b.add(ScatterElements, x, places([0, 3], [1, -1]), y, 1),
        (MATRIX, (2, 2)),
    ),
    **{
        f"SCATTER_ND {how.name}": (
            lambda b, x, y, how=how: b.add(ScatterND, x, places([0], [-1]), y, how),
            (MATRIX, (2, 4)),
        )
        for how in Scatter
    },
    **{
        f"SCATTER_ELEMENTS {how.name}": (
            lambda b, x, y, how=how: b.add(ScatterElements, x, places([0, 0]), y, 1, how),
            (MATRIX, (1, 2)),
        )
        for how in (Scatter.ADD, Scatter.MUL, Scatter.MAX, Scatter.MIN)
    },
    "SPARSE_TO_DENSE": (
        lambda b, x: b.add(SparseToDense, b.constant(places([0, 1], [2, 0])), x, (3, 2)),
        ((2,),),
    ),
    "FILL_LIKE": (lambda b, x, y: b.add(FillLike, x, y), (MATRIX, (1,))),
    "ONE_HOT": (
        lambda b, x, y: b.add(OneHot, b.constant(places(1, -1, 9)), 4, x, y, 0),
        ((1,), (1,)),
    ),
    "NON_ZERO": (lambda b, x: b.add(NonZero, x), (MATRIX,)),
    "UNIQUE": (lambda b, x: b.add_all(Unique, x), ((9,),)),
    "UNIQUE of rows": (lambda b, x: b.add_all(Unique, x, 0), (MATRIX,)),
    "UNIQUE unsorted": (lambda b, x: b.add_all(Unique, x, 1, False), (MATRIX,)),
    "lists PAD": (lambda b, x: b.add(Pad, x, (1, 2)), ((5,),)),
    "lists TILE": (lambda b, x: b.add(Tile, x, (3,)), ((5,),)),
    "lists ROLL": (lambda b, x: b.add(Roll, x, (2,), (0,)), ((5,),)),
    "lists GATHER_ND": (lambda b, x: b.add(GatherND, x, places([3], [-1])), ((5,),)),
    "lists SCATTER_ND": (
        lambda b, x, y: b.add(ScatterND, x, places([3], [-1]), y),
        ((5,), (2,)),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_claims(check: Checker, name: str) -> None:
    """Whatever element type a device claims, it computes right, with sizes known and unknown."""
    build, shapes = EXAMPLES[name]
    for element_type in COMPUTED:
        arrays = [values(element_type, shape, seed) for seed, shape in enumerate(shapes)]
        if check.device.name == "openvino":
            arrays = [sizes(array) for array in arrays]
        for typing in (check.static, check.symbolic):
            try:
                model = check.built(build, arrays, typing)
            except ModelError:
                continue
            if all(check.device.query(model, Options()).answers):
                expected = check.outputs_of(ReferenceDevice(), model, arrays)
                check.compare(model, arrays, expected, TOLERANCES.get(element_type, 0))


def test_flattening_nothing(check: Checker) -> None:
    """With the sizes known only at run time, a 0 must not be taken for something else."""
    for shape, start, end in (((2, 3, 4, 0), 1, 2), ((2, 3, 0), 0, 1), ((0, 3, 4), 1, 2)):
        arrays = [np.zeros(shape, np.float32)]

        def flattened(b: Any, x: Any, start: int = start, end: int = end) -> Any:
            return b.add(Flatten, x, start, end)

        model = check.built(flattened, arrays, check.symbolic)
        check.compare(model, arrays, check.outputs_of(ReferenceDevice(), model, arrays), 0)


def test_nothing_is_not_given_to_openvino(check: Checker) -> None:
    """It would crash, or make something of it."""
    if check.device.name == "openvino":
        nothing = np.zeros((0, 3), np.float32)
        check.declines(lambda b, x: b.add(Flatten, x, 0), nothing, why="FLATTEN.input: is empty")
        check.declines(lambda b, x: b.add(Expand, x, (2, 1, 1)), nothing, why="is empty")
        check.declines(lambda b, x: b.add(Gather, x, places(1), 1), nothing, why="is empty")
        unique = lambda b, x: b.add_all(Unique, x)  # noqa: E731
        check.declines(unique, nothing, why="UNIQUE.input")
        check.declines(unique, (2, 3), typing=check.symbolic, why="UNIQUE.input")


def test_padding_wider_than_the_input_is_declined(check: Checker) -> None:
    for mode, most in ((PadMode.REFLECT, 2), (PadMode.WRAP, 3), (PadMode.EDGE, 3)):
        check.declines(
            lambda b, x, mode=mode, most=most: b.add(Pad, x, (0, most + 1), mode),
            (3,),
            why="mode" if mode is PadMode.WRAP else "PAD.pads: ",
        )
        check.declines(lambda b, x, mode=mode: b.add(Pad, x, (-1, 1), mode), (3,), why="PAD.")


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_computed_numbers(check: Checker, dtype: type[np.integer]) -> None:
    """Parameters, and the bounds of a range, that are inputs of the model."""
    repeats, start, end, step = (np.array(n, dtype) for n in ([2, 3], 9, 0, -2))
    known = {"symbolic_too": False, "rankless_too": False}
    check(lambda b, *parts: b.add(Range, *parts), start, end, step, rankless_too=False)
    reals = [np.array(n, np.float32) for n in (0.5, 4, 0.7)]
    if check.device.name == "openvino":
        why = "TILE.repeats: is computed at run time"
        check.declines(lambda b, x, n: b.add(Tile, x, n), (2, 2), repeats, why=why)
    else:
        check(lambda b, x, n: b.add(Tile, x, n), (2, 2), repeats, **known)
        check(lambda b, *parts: b.add(Range, *parts), *reals)
        check(lambda b, x, n: b.add(Pad, x, n), (2, 2), np.array([1, 0, 0, 2], dtype), **known)
