"""Quantized operators of TensorFlow Lite files that are exported: the integers of LiteRT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.importers.tflite.integer_cases import INTEGERS
from tests.importers.tflite.layer_cases import LAYERS
from tests.importers.tflite.operator_cases import OPERATORS
from tests.importers.tflite.single_operator import CASES, Case, Draw, LiteRT

import crosschip
from crosschip.exporters import exporters
from crosschip.hal import CompileError
from crosschip.ir import Array
from crosschip.passes import simplify

TOOLS = Path(__file__).parents[2] / "build" / "tosa" / "bin"
_SEEDS, _NIGHTLY_SEEDS = 3, 60
_BYTES = ("int8", "uint8")
_ALL = sorted({*OPERATORS, *INTEGERS, *LAYERS})
_LAYERS = ["CONV_2D (quantized)", "FULLY_CONNECTED (quantized)", "AVERAGE_POOL_2D (quantized)"]
_SAMPLE = [*_LAYERS, "ADD", "MUL", "SOFTMAX", "LOGISTIC", "MEAN", "PAD"]
_ON_REALS = {
    *("LSTM (quantized)", "UNIDIRECTIONAL_SEQUENCE_LSTM (quantized)", "DIV", "L2_NORMALIZATION"),
    "LOG_SOFTMAX",
}
"""What TOSA files compute on reals, a step off."""


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (TOOLS / "tosa_reference_model").exists():
        pytest.skip("`make tosa` installs Arm's tools")
    monkeypatch.setenv("TOSA_TOOLS_BIN_DIR", str(TOOLS))


def _quantized(operator: str, seeds: range, types: Collection[str]) -> Iterator[Case]:
    """Yield the cases of an operator with a quantized input and an output of some types."""
    for seed in seeds:
        case = CASES[operator](Draw(seed), operator)
        output = case.outputs[0]
        has_scales = output.scale and any(each and each.scale for each in case.inputs)
        if has_scales and output.dtype in types:
            yield case


def _check(
    litert: LiteRT,
    format: str,
    operators: Sequence[str],
    seeds: range,
    types: Collection[str],
) -> Counter[str]:
    """Compare exported files with LiteRT, and count by operator those that are right."""
    exporter = exporters()[format]
    right: Counter[str] = Counter()
    wrong = []
    for case in (case for name in operators for case in _quantized(name, seeds, types)):
        expected = litert.run(case)
        if isinstance(expected, str):
            continue
        model = crosschip.load(case.file())
        arrays = case.arrays()
        if len(arrays) < len(model.inputs):  # state
            continue
        try:
            lowered = exporter.lower(simplify(model), {})
            content = exporter.write(lowered, {})
        except CompileError:
            continue
        # The run of TensorFlow Lite's exporter takes optimized kernels, which are a step off.
        results: Sequence[Array] | str = (
            litert.run_content(case, content)
            if format == "tflite"
            else exporter.run(content, lowered, arrays)
        )
        same = all(map(np.array_equal, expected, results))
        right[case.operator] += same
        if not same:
            wrong.append(str(case))
    assert not wrong
    return right


def test_tensorflow_lite(litert: LiteRT) -> None:
    types = (*_BYTES, "int16")
    right = _check(litert, "tflite", _SAMPLE, range(_SEEDS), types)
    assert len(right) == len(_SAMPLE)


@pytest.mark.usefixtures("tools")
def test_tosa(litert: LiteRT) -> None:
    right = _check(litert, "tosa", _SAMPLE, range(_SEEDS), _BYTES)
    assert len(right) == len(_SAMPLE)


@pytest.mark.nightly
def test_all_operators_as_tensorflow_lite(litert: LiteRT) -> None:
    types = (*_BYTES, "int16")
    right = _check(litert, "tflite", _ALL, range(_NIGHTLY_SEEDS), types)
    assert len(right) >= 40


@pytest.mark.nightly
@pytest.mark.usefixtures("tools")
def test_all_operators_on_bytes_as_tosa(litert: LiteRT) -> None:
    operators = sorted({*_ALL} - _ON_REALS)
    right = _check(litert, "tosa", operators, range(_NIGHTLY_SEEDS), _BYTES)
    assert len(right) >= 40
