"""Random files with one operator: the same results as LiteRT's reference kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from tests.importers.tflite.operator_cases import OPERATORS
from tests.importers.tflite.single_operator import CASES, Case, Draw, LiteRT

import crosschip
from crosschip.ir import Array

_SEEDS, _NIGHTLY_SEEDS, _ENGINE_SEEDS = 3, 270, 40
_TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


def _difference(case: Case, expected: Array, actual: Array) -> str:
    """How an output differs from LiteRT's; empty if it does not."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    if expected.dtype.kind == "f":
        finite = np.abs(expected[np.isfinite(expected)])
        tolerance = _TOLERANCE * max(1.0, float(finite.max(initial=0.0)))
        same = np.isclose(actual, expected, _TOLERANCE, tolerance, equal_nan=True)
    else:
        steps = 1 if case.outputs[0].scale else 0
        same = np.abs(actual.astype(np.int64) - expected.astype(np.int64)) <= steps
    return "" if same.all() else f"{actual[~same][:4]} instead of {expected[~same][:4]}"


def _check(litert: LiteRT, operator: str, seeds: range, device: str) -> Counter[str]:
    """Compare a device with LiteRT on some cases, and count what became of them."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        case = CASES[operator](Draw(seed), operator)
        expected = litert.run(case)
        if isinstance(expected, str):
            outcomes["refused by LiteRT"] += 1
            continue
        model = crosschip.load(case.file())
        inputs = dict(zip(model.inputs, case.arrays(), strict=True))
        with crosschip.compile(
            model, [*dict.fromkeys([device, "reference"])], cache=False
        ) as compiled:
            results = list(compiled.run(inputs).values())
        assert len(results) == len(expected)
        for wanted, actual in zip(expected, results, strict=True):
            difference = _difference(case, wanted, actual)
            assert not difference, f"seed {seed}: {case}: {difference}"
        outcomes["right"] += 1
    return outcomes


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_reference_computes_what_litert_does(operator: str, litert: LiteRT) -> None:
    assert _check(litert, operator, range(_SEEDS), "reference")["right"]


@pytest.mark.nightly
@pytest.mark.parametrize("operator", OPERATORS)
def test_many_files_give_what_litert_does(operator: str, litert: LiteRT) -> None:
    outcomes = _check(litert, operator, range(_NIGHTLY_SEEDS), "reference")
    assert outcomes["right"] >= _NIGHTLY_SEEDS // 2


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "xla"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_engines_compute_what_litert_does(operator: str, device: str, litert: LiteRT) -> None:
    outcomes = _check(litert, operator, range(_ENGINE_SEEDS), device)
    assert outcomes["right"] >= _ENGINE_SEEDS // 2
