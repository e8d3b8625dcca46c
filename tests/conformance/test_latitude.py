"""The latitude that definitions leave to a device: no more than they say, and no less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from crosschip.conformance.latitude import latitude
from crosschip.conformance.trial import Run, wrong_outputs
from crosschip.conformance.unspecified import RULES
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.ops import operator_named, operators
from crosschip.ops.definition.slots import Fuse

NAN, INF = np.nan, np.inf
Change = Callable[[list[Array]], None]


@dataclass(frozen=True, eq=False)
class Use:
    """An operator on arrays."""

    model: Model
    inputs: Sequence[Array]

    def fault(self, change: Change) -> str:
        """The fault that the kit finds with what the reference makes, changed."""
        expected = ReferenceProgram(self.model).run(self.inputs)
        left = latitude(self.model, self.inputs, expected)
        run = Run(list(self.inputs), expected, "", False, frozenset(), left)
        made = [array.copy() for array in expected]
        change(made)
        return wrong_outputs(self.model, run, made, Options())


def use(name: str, *arrays: Any, **named: Any) -> Use:
    b = Builder(name)
    inputs = [np.asarray(array, np.float32) for array in arrays]
    types = [TensorType(ElementType.FLOAT32, array.shape) for array in inputs]
    operands = [b.input(f"x{index}", type_) for index, type_ in enumerate(types)]
    for index, made in enumerate(b.add_all(operator_named(name), *operands, **named)):
        b.output(f"y{index}", made)
    return Use(b.build(), inputs)


def set_to(value: float, *place: int, output: int = 0) -> Change:
    def change(made: list[Array]) -> None:
        made[output][place] = value

    return change


POOL = use("MAX_POOL_2D", [[[[1, NAN, 3, -INF]]]], kernel_shape=(1, 2), strides=(1, 2))
PLACES = use(
    "MAX_POOL_2D", [[[[1, NAN, 3, 2]]]], kernel_shape=(1, 2), strides=(1, 2), return_indices=True
)
CELLS = use("ADAPTIVE_MAX_POOL_2D", [[[[1, NAN, 3, 2]]]], output_shape=(1, 2))
SOFT = use("SOFTMAX", [[1, NAN], [1, 2]], axis=1)
LOGARITHM = use("LOG_SOFTMAX", [[1, NAN], [1, 2]], axis=1)
FUSED = use("ADD", [NAN, 2], [1, 1], fuse_code=Fuse.RELU6)
ALONE = use("RELU", [NAN, 2])
FILTERS = use("CONV_2D", np.ones((1, 1, 2, 2)), np.array([1, INF]).reshape(2, 1, 1, 1))
TURNED = use("CONV_2D_TRANSPOSE", np.ones((1, 1, 2, 2)), np.array([1, INF]).reshape(1, 2, 1, 1))
IMAGES = use("RESIZE_LINEAR", [[[[1, 2]], [[NAN, 1]]]], shape=(1, 3))
MATRICES = use("DET", [[[1, INF], [0, 1]], [[2, 0], [0, 1]]])
SCALES = use("BATCH_NORMALIZATION", np.ones((1, 2, 1)), [1, INF], [0, 0], [0, 0], [1, 1])
NO_VARIANCE = use(
    "BATCH_NORMALIZATION", np.ones((1, 2, 1)), [1, 1], [0, 0], [0, 0], [0, 1], epsilon=0.0
)
STEPS = use(
    *("RNN", [[[NAN], [1]]], np.ones((1, 1, 1)), np.ones((1, 1, 1))),
)
PRODUCTS = use("REDUCE_PROD", [[1e30, 1e30, 0], [2, 3, 4]], axes=(1,), keepdim=False)
GATE = use("SWISH", [-20])
LARGE = use("EXP", [88.5, 87.0])
REMAINDERS = use("MOD", [2**60, 7], [3, 4])
CHANNELS = use("AVERAGE_POOL_2D", np.zeros((1, 0, 2, 2)), kernel_shape=(1, 1))

POWER = use("CELU", [-0.01], alpha=10.0)
SCALED_POWER = use("ELU", [-0.001], alpha=10.0)
BOXES = use(
    "NON_MAX_SUPPRESSION", [[[0, 0, 1, NAN], [0, 0, 1, 1]]], [[[1, 2]]], background_label=-1
)
INSIDE_OUT = use(
    "NON_MAX_SUPPRESSION", [[[0, 0, 1, 1], [2, 0, 1, 1]]], [[[1, 2]]], background_label=-1
)
INDICES = use(
    *("NON_MAX_SUPPRESSION_INDICES", [[[0, 0, 1, INF], [0, 0, 1, 1]]], [[[1, 2]]]),
    max_output_boxes_per_class=2,
)
ROWS = use("SEARCH_SORTED", [[1, 2, 3], [2, 1, 3]], [[NAN, 2], [1, 2]])

NEAR = use("GROUP_NORMALIZATION", [[1.0, 1.05]], groups=1, epsilon=0.0)
ALLOWED: list[tuple[Use, Change]] = [
    (NEAR, set_to(1.00006, 0, 1)),
    (POOL, set_to(1, 0, 0, 0, 0)),
    (POOL, set_to(-INF, 0, 0, 0, 0)),
    (POOL, set_to(float(np.finfo(np.float32).min), 0, 0, 0, 0)),
    (PLACES, set_to(0, 0, 0, 0, 0, output=1)),
    (CELLS, set_to(1, 0, 0, 0, 0)),
    (SOFT, set_to(0, 0, 1)),
    (LOGARITHM, set_to(-INF, 0, 0)),
    (FUSED, set_to(0, 0)),
    (FUSED, set_to(6, 0)),
    (FILTERS, set_to(7, 0, 1, 0, 0)),
    (TURNED, set_to(7, 0, 1, 0, 0)),
    (IMAGES, set_to(7, 0, 1, 0, 2)),
    (MATRICES, set_to(7, 0)),
    (SCALES, set_to(7, 0, 1, 0)),
    (NO_VARIANCE, set_to(NAN, 0, 0, 0)),
    (STEPS, set_to(7, 0, 0, 0, 0)),
    (PRODUCTS, set_to(NAN, 0)),
    (GATE, set_to(-1e-6, 0)),
    (LARGE, set_to(INF, 0)),
    (REMAINDERS, set_to(0, 0)),
    (POWER, set_to(-0.0099958, 0)),
    (SCALED_POWER, set_to(-0.0099942, 0)),
    (BOXES, set_to(7, 0, 1)),
    (INSIDE_OUT, set_to(7, 0, 1)),
    (INDICES, set_to(0, 0, 2)),
    (ROWS, set_to(3, 0, 0)),
    (ROWS, set_to(3, 1, 1)),
]

FORBIDDEN: list[tuple[Use, Change]] = [
    (NEAR, set_to(1.01, 0, 1)),
    (POOL, set_to(0, 0, 0, 0, 0)),
    (POOL, set_to(NAN, 0, 0, 0, 1)),
    (POOL, set_to(-INF, 0, 0, 0, 1)),
    (PLACES, set_to(3, 0, 0, 0, 1, output=1)),
    (CELLS, set_to(2, 0, 0, 0, 0)),
    (SOFT, set_to(1, 0, 1)),
    (SOFT, set_to(0, 1, 1)),
    (LOGARITHM, set_to(0, 0, 0)),
    (FUSED, set_to(3, 0)),
    (FUSED, set_to(NAN, 1)),
    (ALONE, set_to(0, 0)),
    (FILTERS, set_to(7, 0, 0, 0, 0)),
    (TURNED, set_to(7, 0, 0, 0, 0)),
    (IMAGES, set_to(7, 0, 0, 0, 2)),
    (MATRICES, set_to(7, 1)),
    (SCALES, set_to(7, 0, 0, 0)),
    (NO_VARIANCE, set_to(NAN, 0, 1, 0)),
    (STEPS, set_to(7, 0, 0, 1, 0)),
    (PRODUCTS, set_to(NAN, 1)),
    (GATE, set_to(-1e-5, 0)),
    (LARGE, set_to(INF, 1)),
    (REMAINDERS, set_to(0, 1)),
    (LARGE, set_to(1e38, 0)),
    (POWER, set_to(-0.010005, 0)),
    (ROWS, set_to(0, 0, 1)),
]


@pytest.mark.parametrize(("used", "change"), ALLOWED)
def test_what_a_definition_leaves(used: Use, change: Change) -> None:
    assert not used.fault(change)


@pytest.mark.parametrize(("used", "change"), FORBIDDEN)
def test_what_a_definition_does_not_leave(used: Use, change: Change) -> None:
    assert "elements are wrong" in used.fault(change)


@pytest.mark.parametrize("used", dict.fromkeys(use for use, _ in (*ALLOWED, *FORBIDDEN)))
def test_the_reference_is_right(used: Use) -> None:
    assert not used.fault(lambda made: None)


@pytest.mark.parametrize("name", operators())
def test_what_a_docstring_leaves_open_has_a_rule(name: str) -> None:
    says_so = "unspecified" in (operator_named(name).__doc__ or "")
    assert not says_so or name in RULES, (
        f"{name}'s docstring leaves something unspecified: add a function that says what "
        "to RULES in src/crosschip/conformance/unspecified.py"
    )


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_is_unspecified(name: str) -> None:
    assert (RULES[name].__doc__ or "").startswith("Unspecified: ")


KEPT = use("RESHAPE", np.zeros((0, 2)), shape=(0, -1))
MOVED = use("RESHAPE", np.zeros((2, 0)), shape=(2, -1))


SUMS = use("MAT_MUL", np.zeros((2, 0)), np.zeros((0, 3)))
NO_SUMS = use("MAT_MUL", np.zeros((2, 0)), np.zeros((0, 0)))


@pytest.mark.parametrize(
    ("used", "refusable"), [(SUMS, True), (NO_SUMS, False), (KEPT, True), (MOVED, False)]
)
def test_what_a_device_may_refuse(used: Use, refusable: bool) -> None:
    expected = ReferenceProgram(used.model).run(used.inputs)
    left = latitude(used.model, used.inputs, expected)
    assert (left.refusable, left.everything) == (refusable, False)


@pytest.mark.parametrize(("used", "everything"), [(CHANNELS, True), (POOL, False)])
def test_an_error_where_nothing_is_specified(used: Use, everything: bool) -> None:
    expected = ReferenceProgram(used.model).run(used.inputs)
    assert latitude(used.model, used.inputs, expected).everything is everything
