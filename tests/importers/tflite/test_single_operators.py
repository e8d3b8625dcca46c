"""Random files with one operator: the same results as LiteRT's reference kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tests.importers.tflite.custom_cases import CUSTOM
from tests.importers.tflite.integer_cases import INTEGERS
from tests.importers.tflite.layer_cases import LAYERS
from tests.importers.tflite.lookup_cases import LOOKUPS
from tests.importers.tflite.operator_cases import OPERATORS
from tests.importers.tflite.random_cases import RANDOM
from tests.importers.tflite.single_operator import CASES, Case, Draw, LiteRT
from tests.importers.tflite.stablehlo_cases import STABLEHLO

import crosschip
from crosschip.ir import Array

_SEEDS, _NIGHTLY_SEEDS, _ENGINE_SEEDS = 3, 270, 40
_TOLERANCE = 2e-5
ALL_OPERATORS = [*OPERATORS, *INTEGERS, *LAYERS, *LOOKUPS, *RANDOM, *STABLEHLO, *CUSTOM]


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


def _difference(expected: Array, actual: Array, steps: int) -> str:
    """How an output differs from LiteRT's by more than some steps; empty if it does not."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    if expected.dtype.kind == "f":
        # LiteRT clamps the results of arithmetic to finite numbers, with any activation.
        largest = float(np.finfo(expected.dtype).max)
        clamped = (np.abs(expected) == largest) & np.isinf(actual)
        expected = np.where(clamped, np.copysign(np.inf, expected), expected)
        finite = np.abs(expected[np.isfinite(expected)])
        tolerance = _TOLERANCE * max(1.0, float(finite.max(initial=0.0)))
        same = np.isclose(actual, expected, _TOLERANCE, tolerance, equal_nan=True)
    else:
        same = np.abs(actual.astype(np.int64) - expected.astype(np.int64)) <= steps
    return "" if same.all() else f"{actual[~same][:4]} instead of {expected[~same][:4]}"


def _initial_state(model: crosschip.Model) -> dict[str, Array]:
    """Zeros for the inputs that stand for variables."""
    return {
        name: np.zeros(operand.type.static_shape or (), operand.type.element_type.dtype)
        for name, operand in model.inputs.items()
        if name.startswith("past.")
    }


def run_case(case: Case, devices: Sequence[str]) -> list[Array]:
    """Return the outputs of a file on devices."""
    model = crosschip.load(case.file())
    fed = (name for name in model.inputs if not name.startswith("past."))
    inputs = dict(zip(fed, case.arrays(), strict=True)) | _initial_state(model)
    with crosschip.compile(model, devices, cache=False) as compiled:
        outputs = compiled.run(inputs)
    return [value for name, value in outputs.items() if not name.startswith("present.")]


def _check(litert: LiteRT, operator: str, seeds: range, device: str) -> Counter[str]:
    """Compare a device with LiteRT on some cases, and count what became of them."""
    outcomes: Counter[str] = Counter()
    devices = list(dict.fromkeys([device, "reference"]))
    for seed in seeds:
        case = CASES[operator](Draw(seed), operator)
        expected = litert.run(case)
        if isinstance(expected, str):
            outcomes["refused by LiteRT"] += 1
            continue
        # The reference computes in LiteRT's integers; engines round once.
        steps = 1 if device != "reference" and case.outputs[0].scale else 0
        results = run_case(case, devices)
        assert len(results) == len(expected)
        for wanted, actual in zip(expected, results, strict=True):
            difference = _difference(wanted, actual, steps)
            assert not difference, f"seed {seed}: {case}: {difference}"
        outcomes["right"] += 1
    return outcomes


@pytest.mark.parametrize("operator", ALL_OPERATORS)
def test_the_reference_computes_what_litert_does(operator: str, litert: LiteRT) -> None:
    assert _check(litert, operator, range(_SEEDS), "reference")["right"]


@pytest.mark.nightly
@pytest.mark.parametrize("operator", ALL_OPERATORS)
def test_many_files_give_what_litert_does(operator: str, litert: LiteRT) -> None:
    outcomes = _check(litert, operator, range(_NIGHTLY_SEEDS), "reference")
    assert outcomes["right"] >= _NIGHTLY_SEEDS // 2


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "xla"])
@pytest.mark.parametrize("operator", ALL_OPERATORS)
def test_engines_compute_what_litert_does(operator: str, device: str, litert: LiteRT) -> None:
    outcomes = _check(litert, operator, range(_ENGINE_SEEDS), device)
    assert outcomes["right"] >= _ENGINE_SEEDS // 2
