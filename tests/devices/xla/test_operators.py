"""Operators whose converters do more than name a JAX function, compared with the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.ir import Array, Builder, DeviceError, ElementType, Operand
from crosschip.ir.types import NARROW_INTEGERS, NARROW_TYPES
from crosschip.ops.numerics.casting import cast
from crosschip.ops.standard.adaptive_pooling import AdaptiveAveragePool2D
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import OneHot
from crosschip.ops.standard.deformable import DeformableConv2D
from crosschip.ops.standard.detection import DetectionPostProcess, YoloBox
from crosschip.ops.standard.indexing import Gather, ScatterND, SparseToDense
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.sampling import GridSample, RoiAlign
from crosschip.ops.standard.searching import SearchSorted

if TYPE_CHECKING:
    from tests.devices.conftest import Checker
    from tests.devices.xla.conftest import Once

NARROW = sorted(NARROW_TYPES, key=str)
REAL = ElementType.FLOAT32


def test_narrow_types_are_moved(once: Once) -> None:
    """Quirk `joined-int2`."""
    given = [cast(np.arange(12, dtype=np.float32).reshape(3, 4) - 4, each) for each in NARROW]

    def build(b: Builder, *inputs: Operand) -> tuple[Operand, ...]:
        made: list[Operand] = []
        for x, array in zip(inputs, given, strict=True):
            joined = b.add(Concat, [x, b.constant(array[:2])], 0)
            padded = b.add(Pad, b.add(Transpose, joined, (1, 0)), (1, 0, 0, 2))
            picked = b.add(Gather, padded, np.array([2, 0]))
            made += [joined, padded, picked, b.add(Cast, x, REAL)]
        return tuple(made)

    once(build, *given)


@pytest.mark.parametrize("saturate", [True, False])
def test_casts_to_narrow_types(once: Once, saturate: bool) -> None:
    random = np.random.default_rng(0)
    reals = random.normal(size=200) * np.where(np.arange(200) % 2, 300, 3)
    whole = reals.astype(np.int32)
    few = random.integers(0, 2, 20).astype(np.float32)

    def build(b: Builder, few: Operand, whole: Operand, *more: Operand) -> tuple[Operand, ...]:
        made = [b.add(Cast, few, each) for each in NARROW]
        for x in (whole, *more):
            # Of reals beyond the range of integers, any will do.
            types = NARROW if x is whole else [e for e in NARROW if e not in NARROW_INTEGERS]
            made += [b.add(Cast, x, each, saturate) for each in types]
        return tuple(made)

    once(build, few, whole, reals, *(reals.astype(each) for each in (np.float32, np.float16)))


def test_integers_of_four_bits_stand_for_reals(once: Once) -> None:
    def build(b: Builder, x: Any) -> Any:
        kept = b.add(Quantize, x, 0, (0.5, 0.25), (1.0, -2.0), ElementType.INT4)
        return kept, b.add(Dequantize, kept)

    once(build, (2, 5))


def candidates() -> list[Array]:
    """Return boxes, scores and anchors of 40 candidates, some of them equal."""
    random = np.random.default_rng(7)
    anchors = random.uniform(0.1, 0.9, (40, 4))
    scores = random.uniform(0, 1, (1, 40, 4)).round(1)
    boxes = random.normal(size=(1, 40, 4))
    return [array.astype(np.float32) for array in (boxes, scores, anchors)]


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize(("most", "classes"), [(3, 4), (30, 3)])
def test_objects_of_a_detector(once: Once, regular: bool, most: int, classes: int) -> None:
    once(
        lambda b, *xs: b.add_all(
            DetectionPostProcess,
            *xs,
            num_classes=classes,
            max_detections=most,
            max_classes_per_detection=2,
            detections_per_class=8,
            nms_iou_threshold=0.3,
            nms_score_threshold=0.2,
            use_regular_nms=regular,
        ),
        *candidates(),
    )


def test_regions_with_as_many_samples_as_they_need(check: Checker, once: Once) -> None:
    regions = np.array([[0, 0, 7.5, 3], [1, 1, 1.2, 1.1], [-3, 2, 30, 9]], np.float32)
    images = np.array([1, 0, 1])
    model = check.built(
        lambda b, *xs: b.add(RoiAlign, *xs, 3, 2),
        [np.zeros((2, 3, 9, 8), np.float32), regions, images],
    )
    pixels = np.ones((2, 3, 9, 8), np.float32)
    once(lambda b, *xs: b.add(RoiAlign, *xs, 3, 2), (2, 3, 9, 8), regions, images)
    with pytest.raises(DeviceError, match="rois: their cells have more than 1048576 samples"):
        check.outputs_of(check.device, model, [pixels, regions * 1e4, images])
    with pytest.raises(DeviceError, match=r"batch_indices: one is not in \[0, 2\)"):
        check.outputs_of(check.device, model, [pixels, regions, images + 1])


def test_a_pixel_that_is_nan_is_in_its_own_cells_only(once: Once) -> None:
    image = np.ones((1, 1, 5, 7), np.float32)
    image[0, 0, 2, 3] = np.nan
    once(lambda b, x: b.add(AdaptiveAveragePool2D, x, (3, 5)), image)


def test_an_index_that_is_nan_is_none(check: Checker) -> None:
    indices = np.array([np.nan, -1, 2.9, np.inf], np.float32)
    model = check.built(
        lambda b, x: b.add(OneHot, x, 3, b.constant(np.array(5)), b.constant(np.array(1))),
        [indices],
    )
    expected = [[1, 1, 1], [1, 1, 5], [1, 1, 5], [1, 1, 1]]
    np.testing.assert_array_equal(check.outputs_of(check.device, model, [indices])[0], expected)


def test_places_of_float64_are_as_fine(once: Once) -> None:
    random = np.random.default_rng(3)
    image, offset, filters, grid = (
        random.normal(size=shape)
        for shape in ((1, 2, 5, 6), (1, 8, 4, 5), (3, 2, 2, 2), (1, 4, 4, 2))
    )
    fine = 1e-12
    once(
        lambda b, *xs: b.add(DeformableConv2D, *xs[:2], filter=xs[2]),
        image,
        offset,
        filters,
        tolerance=fine,
    )
    once(lambda b, *xs: b.add(GridSample, *xs), image, grid, tolerance=fine)


def test_nothing_is_picked_and_nothing_found(once: Once) -> None:
    sizes = np.array([[32, 32]])
    for empty in ((1, 0, 3, 2), (1, 2, 0, 2)):
        once(lambda b, *xs: b.add(GridSample, *xs), (1, 2, 4, 4), empty)
    for empty in ((1, 14, 0, 2), (1, 14, 2, 0)):
        once(lambda b, *xs: b.add_all(YoloBox, *xs, (8, 8, 9, 9), 2, 0.1, 8), *(empty, sizes))


def test_whole_tensors_are_written(once: Once) -> None:
    places = np.zeros((2, 0), np.int64)
    once(lambda b, *xs: b.add(ScatterND, *xs, reduction=1), (3,), places, (2, 3))
    one = np.zeros((1, 0), np.int32)
    once(lambda b, *xs: b.add(SparseToDense, *xs, shape=()), one, (1,))


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("sequence", [(4,), (0,), (2, 4), (1, 4), (2, 0)])
def test_places_in_ascending_sequences(once: Once, sequence: tuple[int, ...], right: bool) -> None:
    random = np.random.default_rng(5)
    ascending = np.sort(random.integers(0, 5, sequence), -1).astype(np.float32)
    values = random.integers(0, 5, (2, 6)).astype(np.float32)
    once(lambda b, *xs: b.add(SearchSorted, *xs, right), ascending, values)
