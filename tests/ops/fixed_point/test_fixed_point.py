"""Quantized operators of TensorFlow Lite: the same integers as LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.importers.tflite.single_operator import Case, LiteRT
from tests.ops.fixed_point.quantized_cases import TYPES, draw_case

import crosschip
from crosschip.importers import tflite
from crosschip.ir import Arithmetic, Array
from crosschip.ops.definition.serialization import from_bytes, to_bytes

_SEEDS, _NIGHTLY_SEEDS, _ENGINE_SEEDS = 2, 300, 10
_ALL = [(operator, dtype) for operator, dtypes in TYPES.items() for dtype in dtypes]

_TABLES = ("EXP", "GELU", "LOG", "RSQRT", "SOFTMAX")

_COARSE = {(name, "int16") for name in (*_TABLES, "RESIZE_BILINEAR", "REDUCE_PROD")} | {
    ("REDUCE_PROD", "int8")
}
"""Results of LiteRT that are further than a step from those on reals.

It interpolates functions of 16 bits in a table, has 10 bits after the binary point for positions,
and rounds after each factor of a product.
"""


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


def _run(case: Case, devices: list[str]) -> Array:
    model = tflite.load(case.file())
    inputs = dict(zip(model.inputs, case.arrays(), strict=True))
    with crosschip.compile(model, devices, cache=False) as compiled:
        outputs: list[Array] = list(compiled.run(inputs).values())
    return outputs[0]


def _check(litert: LiteRT, operator: str, dtype: str, seeds: int, device: str, steps: int) -> None:
    """Compare a device with LiteRT; at least half of the files must be ones that LiteRT runs."""
    compared = 0
    for seed in range(seeds):
        case = draw_case(operator, dtype, seed)
        expected = litert.run(case)
        if isinstance(expected, str):
            continue
        actual = _run(case, list(dict.fromkeys([device, "reference"])))
        assert actual.dtype == expected[0].dtype
        assert actual.shape == expected[0].shape
        difference = np.abs(actual.astype(np.int64) - expected[0].astype(np.int64))
        assert difference.max(initial=0) <= steps, f"seed {seed}: {case}"
        compared += 1
    assert compared >= seeds / 2


@pytest.mark.parametrize(("operator", "dtype"), _ALL)
def test_the_reference_computes_litert_integers(operator: str, dtype: str, litert: LiteRT) -> None:
    _check(litert, operator, dtype, _SEEDS, "reference", 0)


def test_the_arithmetic_is_saved_and_shown() -> None:
    model = tflite.load(draw_case("ADD", "int8", 0).file())
    loaded = from_bytes(to_bytes(model), "saved")
    for each in (model, loaded):
        (output,) = each.outputs.values()
        assert output.type.quantization is not None
        assert output.type.quantization.arithmetic is Arithmetic.FIXED_POINT
        assert "fixed point" in str(output.type.quantization)


@pytest.mark.nightly
@pytest.mark.parametrize(("operator", "dtype"), _ALL)
def test_many_files_give_litert_integers(operator: str, dtype: str, litert: LiteRT) -> None:
    _check(litert, operator, dtype, _NIGHTLY_SEEDS, "reference", 0)


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "xla"])
@pytest.mark.parametrize(("operator", "dtype"), sorted({*_ALL} - _COARSE))
def test_engines_are_within_one_step(
    operator: str, dtype: str, device: str, litert: LiteRT
) -> None:
    _check(litert, operator, dtype, _ENGINE_SEEDS, device, 1)
