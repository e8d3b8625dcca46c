"""What LiteRT's kernels compute wrongly, as of 2.3.0: each fault still occurs on LiteRT itself.

The cases of the other tests avoid them, by their sizes or by another kernel as the oracle. A fault
that LiteRT mends fails here: remove its record, and what avoids it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from tests.importers.tflite.comparison import inputs_of
from tests.importers.tflite.layer_cases import PatchedCase
from tests.importers.tflite.single_operator import Case, Draw, LiteRT, Tensor, const, options
from tests.importers.tflite.test_weights import blockwise

import crosschip
from crosschip.ir import Array


@dataclass(frozen=True)
class Fault:
    """A wrong result of LiteRT.

    Attributes:
        symptom: what the kernel does, as the end of a sentence that begins with the operator.
        case: draws a file that shows it.
        right: the output by the operator's definition; `None` for what `reference` computes.
    """

    symptom: str
    case: Callable[[], Case]
    right: Array | None


def _quantized(values: object, dtype: str, scale: float, zero_point: int = 0) -> Tensor:
    return Tensor(np.array(values, dtype), dtype, scale=(scale,), zero_point=(zero_point,))


def _output(dtype: str, scale: float, zero_point: int = 0) -> Tensor:
    return Tensor(None, dtype, scale=(scale,), zero_point=(zero_point,))


def _sum() -> Case:
    input = _quantized([[-5, -7], [-3, -1]], "int8", 0.5)
    return Case("SUM", [input, const([1])], [_output("int8", 0.5)], options("Reducer"), 2)


def _normalization() -> Case:
    chosen = options("LocalResponseNormalization", radius=1, bias=1.0, alpha=1.0, beta=1.0)
    image = Tensor(np.ones((1, 1, 1, 3), np.float32))
    return Case("LOCAL_RESPONSE_NORMALIZATION", [image], [Tensor()], chosen)


def _infinity() -> Case:
    input = Tensor(np.array([np.inf, 1], np.float32))
    chosen = options("Add")
    return Case("ADD", [input, Tensor(np.ones(2, np.float32))], [Tensor()], chosen)


def _quotient() -> Case:
    inputs = [_quantized([0, 100], "int8", 0.5), _quantized([90, 1], "int8", 0.5)]
    return Case("DIV", inputs, [_output("int8", 1.0)], options("Div"), 2)


def _blocks() -> Case:
    case = blockwise(Draw(0))
    assert isinstance(case, PatchedCase)
    return PatchedCase(
        case.operator, case.inputs, case.outputs, case.options, case.version, patch=case.patch
    )


def _boxes() -> Case:
    """Return a suppression of two boxes, of which the one with the greater score has no area."""
    corners = Tensor(np.array([[0, 0, 1, 1], [2, 2, 2, 2]], np.float32))
    scores = Tensor(np.array([0.1, 0.9], np.float32))
    limits = [Tensor(np.array(each, np.float32), constant=True) for each in (0.5, 0.0)]
    count = Tensor(np.array(3, np.int32), "int32", True)
    outputs = [Tensor(dtype="int32"), Tensor(dtype="int32")]
    chosen = options("NonMaxSuppressionV4")
    return Case("NON_MAX_SUPPRESSION_V4", [corners, scores, count, *limits], outputs, chosen)


def _crash() -> Case:
    """Return a layer in both directions with hybrid weights and the time first."""
    weights = Tensor(np.ones((2, 2), np.int8), "int8", True, (0.5,), (0,))
    bias = Tensor(np.zeros(2, np.float32), constant=True)
    state = Tensor(np.zeros((1, 2), np.float32), variable=True)
    direction = [weights, weights, bias, state]
    inputs = [Tensor(np.ones((3, 1, 2), np.float32)), *direction, *direction, None, None, None]
    chosen = options("BidirectionalSequenceRNN", timeMajor=True, fusedActivationFunction=1)
    return Case("BIDIRECTIONAL_SEQUENCE_RNN", inputs, [Tensor(), Tensor()], chosen, 2)


FAULTS = {
    "sum of signed bytes": Fault(
        "in its reference kernel reads signed bytes as unsigned ones",
        _sum,
        np.array([-12, -4], np.int8),
    ),
    "window of channels": Fault(
        "in its reference kernel leaves out the last channel of each window",
        _normalization,
        np.array([1 / 3, 1 / 4, 1 / 3], np.float32).reshape(1, 1, 1, 3),
    ),
    "clamped infinity": Fault(
        "and other arithmetic with an activation clamp infinities to the largest number",
        _infinity,
        np.array([np.inf, 2], np.float32),
    ),
    "small quotient": Fault(
        "of integers shifts by more than 31 bits where a quotient is less than half a step",
        _quotient,
        np.array([0, 100], np.int8),
    ),
    "scales of blocks": Fault(
        "in its reference kernel takes the scales of blocks for 0", _blocks, None
    ),
    "boxes without area": Fault(
        "selects a box without an area again and again", _boxes, np.array([1, 0, 0], np.int32)
    ),
    "both directions": Fault(
        "with hybrid weights and the time first ends the process", _crash, None
    ),
}


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


@pytest.mark.parametrize("name", FAULTS)
def test_litert_has_the_fault(name: str, litert: LiteRT) -> None:
    fault = FAULTS[name]
    case = fault.case()
    wrong = litert.run(case)
    model = crosschip.load(case.file())
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        ours = next(iter(compiled.run(inputs_of(model, case.arrays())).values()))
    if fault.right is not None:
        np.testing.assert_allclose(ours, fault.right, rtol=1e-6)
    assert isinstance(wrong, str) or not np.allclose(wrong[0], ours, rtol=1e-3, atol=1e-3)
