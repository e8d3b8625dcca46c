"""Decompositions against references: random cases, and the uses in which they once differed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conformance.decomposed import DecomposedDevice

from crosschip.conformance import case_of, random_cases
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge
from crosschip.conformance.trial import Failed, attempt, build, runs_of
from crosschip.conformance.variations import Variation
from crosschip.hal import Options
from crosschip.ir import ElementType, Quantization
from crosschip.ops import operator_named
from crosschip.ops.definition.examples import Example, example, model_input, random

SOME = 600
BYTES = Quantization((0.05,))


def test_nothing_fails_that_is_decomposed() -> None:
    device = DecomposedDevice()
    results = [judge(case_of(c.id), device, Claims()) for c in random_cases(SOME, 1)]
    failed = [r for r in results if r.verdict not in (Verdict.PASS, Verdict.UNSUPPORTED)]
    assert not [f"{result.id}: {result.detail}" for result in failed]
    assert sum(result.verdict is Verdict.PASS for result in results) > SOME * 3 / 4


def integers(*numbers: Any) -> Any:
    return model_input(np.array(numbers))


def fault(operator: str, arguments: Example, *runs: Example, named: bool) -> str:
    """The first fault of the decomposition on an example, then on other samples."""
    variation = Variation("", arguments, named, runs)
    model = build(operator_named(operator), variation)
    device = DecomposedDevice()
    if not device.supports(model.operations[0], Options()):
        return "declined"
    try:
        attempt(device, model, runs_of(model, variation, 0, Options()), Options())
    except Failed as failed:
        return str(failed)
    return ""


QUANTIZED = random(2, 3, dtype=ElementType.UINT8, low=0, high=200, quantization=BYTES)
HALF = model_input(np.array([[0, 90], [80, 0]], np.float16))


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        ("CLIP", example(input=random(3), max=-np.inf)),
        ("CLIP", example(input=random(3), min=np.inf)),
        ("QUANTIZE", example(input=QUANTIZED, scale=(0.25,))),
        ("QUANTIZE", example(input=QUANTIZED, scale=(0.25,), dtype=ElementType.FLOAT8E5M2)),
        (
            "POW",
            example(input0=integers(3), input1=integers(39), fuse_code=1),
        ),
        ("LRN", example(input=HALF, alpha=10.0, beta=-2.0)),
        ("REDUCE_L2", example(input=model_input(np.full(2, 300, np.float16)))),
        ("REDUCE_LOG_SUM", example(input=model_input(np.full(2, 60000, np.float16)))),
        ("TILE", example(input=random(*(2,) + (1,) * 17), repeats=(1,) * 17 + (3,))),
        (
            "ADAPTIVE_MAX_POOL_2D",
            example(input=random(1, 2, 3, 3), output_shape=(2, 0), return_indices=True),
        ),
        (
            "BATCH_NORMALIZATION",
            example(
                input=random(
                    2,
                    3,
                    dtype=ElementType.INT32,
                    low=-400,
                    high=0,
                    quantization=Quantization((1.0,)),
                ),
                quantization=Quantization((0.001,), (13,)),
                **{
                    slot: random(3, dtype=ElementType.BFLOAT16, low=0.5)
                    for slot in ("scale", "bias", "mean", "variance")
                },
            ),
        ),
        (
            "LESS",
            example(input0=model_input([3.0]), input1=model_input(np.array([60], np.uint8), BYTES)),
        ),
        (
            "GRID_SAMPLE",
            example(input=random(1, 2, 3, 3), grid=random(1, 2, 0, 2)),
        ),
        (
            "GROUP_NORMALIZATION",
            example(input=random(2, 0, 6), groups=2),
        ),
        (
            "YOLO_BOX",
            example(
                input=random(1, 14, 0, 2),
                imgsize=model_input(np.array([[40, 60]], np.int32)),
                anchors=(4, 4, 8, 8),
                class_num=2,
                conf_thresh=0.1,
                downsample_ratio=8,
            ),
        ),
        (
            "YOLO_BOX",
            example(
                input=model_input(np.full((1, 7, 1, 1), np.nan, np.float32)),
                imgsize=model_input(np.array([[40, 60]], np.int32)),
                anchors=(4, 4),
                class_num=2,
                conf_thresh=0.1,
                downsample_ratio=8,
            ),
        ),
    ],
)
def test_an_example_is_decomposed_into_the_same(operator: str, arguments: Example) -> None:
    assert fault(operator, arguments, named=False) == ""


@pytest.mark.parametrize(
    ("operator", "arguments", "other"),
    [
        ("UNSQUEEZE", example(input=random(2, 3, 4), axes=(0,)), example(input=random(2, 0, 4))),
        (
            "DEPTH_TO_SPACE",
            example(input=random(1, 4, 2, 3), block_size=2),
            example(input=random(1, 4, 0, 3)),
        ),
        (
            "BATCH_TO_SPACE_ND",
            example(input=random(4, 2, 1, 3), block_shape=(2, 2), crops=(0, 0, 0, 0)),
            example(input=random(4, 0, 1, 3)),
        ),
        (
            "GROUP_NORMALIZATION",
            example(input=random(2, 4, 3), groups=2),
            example(input=random(2, 4, 0)),
        ),
        ("TILE", example(input=random(2, 3), repeats=(3, 2)), example(input=random(2, 0))),
        ("HARDMAX", example(input=random(2, 3), axis=1), example(input=random(2, 0))),
        # What follows is refused.
        ("SQUEEZE", example(input=random(1, 4), axes=(0,)), example(input=random(2, 4))),
        ("CROP", example(input=random(3), shape=(2,), axis=0), example(input=random(1))),
        ("SPLIT", example(input=random(3), axis=0, split=(1, 2)), example(input=random(4))),
        (
            "SPLIT",
            example(input=random(3), axis=0, split=integers(1, 2)),
            example(split=integers(4, -1)),
        ),
        ("UNSTACK", example(input=random(2, 3), axis=0, num=2), example(input=random(4, 3))),
        (
            "ONE_HOT",
            example(
                indices=model_input([0]),
                depth=integers(2),
                on_value=model_input([1]),
                off_value=model_input([0]),
            ),
            example(depth=integers(-1)),
        ),
        (
            "REVERSE_SEQUENCE",
            example(input=random(3, 2), lengths=integers(1, 2)),
            example(lengths=integers(-1, 2)),
        ),
        (
            "BATCH_TO_SPACE_ND",
            example(input=random(4, 1, 2, 2), block_shape=(2, 2), crops=(2, 1, 0, 0)),
            example(input=random(4, 1, 1, 2)),
        ),
        (
            "PRELU",
            example(input=random(2, 3), slope=random(3)),
            example(input=random(2, 1), slope=random(3)),
        ),
        (
            "BIAS_ADD",
            example(input=random(2, 3), bias=random(3)),
            example(input=random(2, 1), bias=random(3)),
        ),
        (
            "TILE",
            example(input=random(2, 3), repeats=integers(1, 2)),
            example(repeats=integers(2, 0)),
        ),
    ],
)
def test_other_sizes_are_decomposed_into_the_same(
    operator: str, arguments: Example, other: Example
) -> None:
    """Also where the definition refuses them."""
    assert fault(operator, arguments, other, named=True) == ""


@pytest.mark.parametrize("lengths", [(-1, 3), (1, 4)])
def test_lengths_of_sequences_that_do_not_fit_are_refused(lengths: tuple[int, int]) -> None:
    arguments = example(
        input=random(3, 2, 4),
        weight=random(1, 5, 4),
        recurrence_weight=random(1, 5, 5),
        sequence_lengths=integers(1, 3),
    )
    other = example(sequence_lengths=integers(*lengths))
    assert fault("RNN", arguments, other, named=False) == ""


@pytest.mark.parametrize(
    "other", [example(weight=random(2, 5, 4)), example(initial_hidden=random(1, 1, 5))]
)
def test_tensors_of_networks_that_do_not_fit_are_refused(other: Example) -> None:
    arguments = example(
        input=model_input(np.ones((3, 2, 4), np.float32)),
        weight=random(1, 5, 4),
        recurrence_weight=model_input(np.ones((1, 5, 5), np.float32)),
        initial_hidden=random(1, 2, 5),
    )
    assert fault("RNN", arguments, other, named=True) == ""


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (
            "DEFORMABLE_CONV_2D",
            example(
                input=random(1, 1, 3, 3),
                offset=random(1, 2, 3, 3),
                filter=random(1, 1, 1, 1),
                group=integers(1),
                strides=(0, 0),
            ),
        ),
        (
            "GRU",
            example(
                input=random(3, 4),
                weight=random(1, 15, 4),
                recurrence_weight=random(1, 15, 5),
                activations=integers(0, 1),
            ),
        ),
        (
            "PRIOR_BOX",
            example(
                input=random(1, 1, 2, 2),
                image=random(1, 1, 4, 4),
                min_sizes=(),
                max_sizes=model_input(np.array([2.0], np.float32)),
            ),
        ),
        (
            "SPACE_TO_BATCH_ND",
            example(input=random(1, 1, 2), block_shape=integers(2, 2), pads=(1, 0, 0, 0)),
        ),
        ("AVERAGE_POOL_2D", example(input=random(1, 0, 3, 3), kernel_shape=(2, 2))),
    ],
)
def test_what_may_break_a_rule_is_not_decomposed(operator: str, arguments: Example) -> None:
    """A parameter is computed, so that inference has not come to the rule."""
    assert fault(operator, arguments, named=False) == "declined"
