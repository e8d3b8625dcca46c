"""Quantized operators of TensorFlow Lite files that are exported: the integers of LiteRT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from tests.importers.tflite.single_operator import CASES, Case, Draw, LiteRT

import crosschip
from crosschip.exporters import Exporter
from crosschip.hal import CompileError
from crosschip.passes import simplify

_SEEDS, _NIGHTLY_SEEDS = 3, 100


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


def _quantized(operator: str, seeds: range) -> Iterator[Case]:
    """Yield the cases of an operator with one quantized input and output at least."""
    for seed in seeds:
        case = CASES[operator](Draw(seed), operator)
        if case.outputs[0].scale and any(each and each.scale for each in case.inputs):
            yield case


def _check(litert: LiteRT, exporter: Exporter, operators: list[str], seeds: range) -> Counter[str]:
    """Compare exported files with LiteRT, and count by operator those that are right."""
    right: Counter[str] = Counter()
    wrong = []
    for case in (case for operator in operators for case in _quantized(operator, seeds)):
        expected = litert.run(case)
        if isinstance(expected, str):
            continue
        model = crosschip.load(case.file())
        try:
            lowered = exporter.lower(simplify(model), {})
            content = exporter.write(lowered, {})
        except CompileError:
            continue
        inputs = dict(zip(model.inputs, case.arrays(), strict=False))
        if len(inputs) < len(model.inputs):  # state
            continue
        results = exporter.run(content, lowered, list(inputs.values()))
        same = all(map(np.array_equal, expected, results))
        right[case.operator] += same
        if not same:
            wrong.append(str(case))
    assert not wrong
    return right
