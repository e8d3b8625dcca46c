"""Results that are small beside what they are made of, and results that are just small."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.bisect.planted import Fault, Planted
from tests.modelling import float32, model_of

from crosschip.bisect import Report, find_failing_operators
from crosschip.ir import Builder, Model, Operand
from crosschip.ops.standard.activation import Sigmoid
from crosschip.ops.standard.arithmetic import Mul, Sub
from crosschip.ops.standard.layout import Transpose

SHAPE = (1, 8, 4)


def image(*, size: float) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0).uniform(0.5, 1.0, SHAPE)
    return {"x0": (random * size).astype(np.float32)}


def network(make: Callable[[Builder, Operand], Operand]) -> Model:
    return model_of(lambda b, x: b.add(Transpose, make(b, x), (0, 2, 1)), float32(*SHAPE))


def search(model: Model, kind: str, off: float, size: float) -> Report:
    """Of a device whose result for one channel of one operation is off."""
    (name,) = (operation.name for operation in model.operations if operation.type == kind)
    device = Planted(faults=[Fault((name,), size=off)])
    return find_failing_operators(model, device, inputs=image(size=size))


def probabilities(b: Builder, x: Operand) -> Operand:
    """Sigmoids of about -12."""
    return b.add(Sigmoid, b.add(Mul, x, np.float32(-12)))


def differences(b: Builder, x: Operand) -> Operand:
    return b.add(Sub, x, np.full(SHAPE, 0.75, np.float32))


def tiny(b: Builder, x: Operand) -> Operand:
    return b.add(Mul, x, np.float32(1e-10))


@pytest.mark.parametrize("off", [1.5e-7, -1.5e-7])
@pytest.mark.parametrize(
    ("make", "kind", "size"), [(probabilities, "SIGMOID", 1.0), (differences, "SUB", 1.0)]
)
def test_a_spacing_of_the_numbers_that_an_operation_goes_through_is_no_error(
    make: Callable[[Builder, Operand], Operand], kind: str, size: float, off: float
) -> None:
    report = search(network(make), kind, off, size)
    assert report.failing_operators == []
    assert report.error == 0
    assert report.explained


@pytest.mark.parametrize(
    ("make", "kind", "off"),
    [(probabilities, "SIGMOID", 1e-5), (differences, "SUB", 1e-4), (tiny, "MUL", 1e-12)],
)
def test_more_than_that_is_one_however_small_the_result(
    make: Callable[[Builder, Operand], Operand], kind: str, off: float
) -> None:
    """An error of 1e-12 is large where a result is a product of 1e-10."""
    (culprit,) = search(network(make), kind, off, 1.0).failing_operators
    assert [operation.type for operation in culprit.operations] == [kind]
    assert culprit.difference is not None
    assert culprit.difference.largest == pytest.approx(off, rel=0.1)
    assert culprit.difference.explained < off / 2


def test_a_report_names_its_units() -> None:
    report = search(network(tiny), "MUL", 1e-12, 1.0)
    document = report.document()
    assert "relative to that of the exact output" in document["error_unit"]
    (culprit,) = document["culprits"]
    assert culprit["largest_difference"] == pytest.approx(1e-12, rel=0.1)
    assert 0 < culprit["explained_by_rounding"] < 1e-13
