"""TensorFlow Lite files of one operator, against LiteRT's reference kernels on the same files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.importers.tflite.integer_cases import INTEGERS
from tests.importers.tflite.layer_cases import LAYERS
from tests.importers.tflite.operator_cases import OPERATORS
from tests.importers.tflite.single_operator import CASES, Case, Draw, LiteRT

import crosschip
from crosschip.ir import Array, UnsupportedError

_ALL = sorted({*OPERATORS, *INTEGERS, *LAYERS})
_SEEDS, _NIGHTLY_SEEDS = 1, 30
_LEAST_OPERATORS = 60


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


def _wrong(litert: LiteRT, seeds: range) -> tuple[list[str], set[str]]:
    """Return the files with wrong answers, and the operators with an answer on the device."""
    wrong, computed = [], set()
    for name in _ALL:
        for seed in seeds:
            case: Case = CASES[name](Draw(seed), name)
            expected = litert.run(case)
            try:
                model = crosschip.load(case.file())
                if isinstance(expected, str) or len(case.arrays()) < len(model.inputs):
                    continue
                with crosschip.compile(model, ["litert", "reference"], cache=False) as compiled:
                    inputs = dict(zip(model.inputs, case.arrays(), strict=True))
                    results = list(compiled.run(inputs).values())
                    devices = set(compiled.placement.devices)
            except UnsupportedError:
                continue
            if "litert" in devices:
                computed.add(name)
            if not all(map(_agree, results, expected)):
                wrong.append(str(case))
    return wrong, computed


def _agree(result: Array, expected: Array) -> bool:
    """Compare reals up to rounding, 8-bit and 16-bit integers up to one step, others exactly."""
    if result.dtype.kind == "f":
        return bool(np.allclose(result, expected, rtol=1e-4, atol=1e-5, equal_nan=True))
    if result.dtype.kind == "b" or result.dtype.itemsize > 2:
        return bool(np.array_equal(result, expected))
    difference = result.astype(np.int64) - expected.astype(np.int64)
    return bool(np.all(np.abs(difference) <= 1))


@pytest.mark.slow
def test_a_file_of_each_operator(litert: LiteRT) -> None:
    wrong, computed = _wrong(litert, range(_SEEDS))
    assert not wrong
    assert len(computed) >= _LEAST_OPERATORS


@pytest.mark.nightly
def test_many_files_of_each_operator(litert: LiteRT) -> None:
    wrong, _ = _wrong(litert, range(_SEEDS, _NIGHTLY_SEEDS))
    assert not wrong
