"""The random files with other element types, and quantized: the same results as LiteRT."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.importers.tflite.all_cases import NAMES
from tests.importers.tflite.comparison import Verdict, compare, litert_calls
from tests.importers.tflite.single_operator import CASES, Case, Draw, LiteRT, Tensor

from crosschip.importers.tflite.operators import TABLE
from crosschip.ir import Array

PAGE = Path(__file__).parents[3] / "docs" / "tensorflow-lite-operators.md"
Change = Callable[[Tensor | None], Tensor | None]

TYPES = (
    *("float32", "float16", "float64", "bfloat16", "int8", "uint8", "int16", "uint16", "int32"),
    *("uint32", "int64", "uint64", "bool"),
)
QUANTIZED = ("int8", "uint8", "int16")
_SEEDS = 3
_SAMPLE = ("MAXIMUM", "RESHAPE", "STRIDED_SLICE", "STABLEHLO_GATHER", "TOPK_V2", "REDUCE_PROD")
"""The operators of the default run."""

_NEEDS_SCALES = {
    *("AVERAGE_POOL_2D", "BATCH_MATMUL", "DIV", "ELU", "EXP", "GELU", "HARD_SWISH", "LEAKY_RELU"),
    *("MAX_POOL_2D", "MEAN", "PRELU", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "SUM"),
    *("RESIZE_BILINEAR", "STABLEHLO_COMPOSITE", "TANH"),
}
"""The operators of which LiteRT's kernels for small integers are those for quantized tensors."""

_FAULTS = {
    "CAST": set(TYPES),  # conversions of reals out of range are undefined
    "MATRIX_DIAG": {"float16", "float64", "bfloat16", "uint16", "uint64", "bool"},
    "MATRIX_SET_DIAG": {"float16", "float64", "bfloat16", "uint16", "uint64", "bool"},
    "NOT_EQUAL": {"int16"},
    "REDUCE_WINDOW": {"bool"},  # sums of bytes
    "STABLEHLO_REDUCE_WINDOW": {"bool"},
    "custom.aeq.hadamard_rotation": {"int32"},
}
"""The types for which LiteRT's kernels read beyond tensors or give numbers of other types."""

_INEXACT = {
    "DIV": {"int16"},  # LiteRT makes several steps of a quotient below half a step
    "PRELU": {"int16"},  # LiteRT reads the low bytes of the slopes
    "SUM": {"int8", "int16"},  # LiteRT gives other sums along all axes
    "SVDF": {"int8"},  # LiteRT reads the state and the weights in time as int16
    "TRANSPOSE_CONV": {"int8"},  # its filters must be symmetric
}
"""The types for which quantized results are not LiteRT's to the last bit."""

_FIXED = {
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"int8": (1 / 16, 127), "uint8": (1 / 16, 255)},
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
}
"""The only quantization of an operator's output."""


def _converted(array: Array, dtype: str) -> Array:
    if dtype == "bool":
        return np.not_equal(array, 0)
    if dtype == "bfloat16":
        return array.astype(ml_dtypes.bfloat16)
    with np.errstate(over="ignore", invalid="ignore"):  # states of random generators are large
        if dtype.startswith("float"):
            return array.astype(dtype)
        whole = np.round(np.nan_to_num(array.astype(np.float64), posinf=5, neginf=-5))
        return np.abs(whole).astype(dtype) if dtype.startswith("u") else whole.astype(dtype)


def with_type(case: Case, dtype: str) -> Case | None:
    """Return a case with another type of data; `None` if parameters have the type of the data."""
    inputs = [each for each in case.inputs if each is not None]
    if not inputs or any(each.scale for each in inputs):
        return None
    data = case.outputs[0].dtype
    data = data if any(each.dtype == data for each in inputs) else inputs[0].dtype
    parameters = [each for each in inputs[1:] if each.constant and each.dtype != "float32"]
    if any(each.dtype == data for each in parameters) or dtype == data:
        return None
    if case.operator in ("ARG_MAX", "ARG_MIN", "BUCKETIZE") and data != "float32":
        return None

    def change(tensor: Tensor | None) -> Tensor | None:
        if tensor is None or tensor.dtype != data:
            return tensor
        array = None if tensor.array is None else _converted(tensor.array, dtype)
        return replace(tensor, array=array, dtype=dtype)

    return _changed(case, change, change)


def quantized_case(case: Case, dtype: str, seed: int) -> Case | None:
    """Return a case of reals with one quantization of all tensors; `None` if it has no reals."""
    if not any(each and each.dtype == "float32" for each in case.inputs):
        return None
    if any(each and each.scale for each in case.inputs):
        return None
    limits, numbers = np.iinfo(dtype), np.random.default_rng(seed)
    scale = float(np.float32(2.0 ** numbers.uniform(-6, -3)))
    zero = 0 if dtype == "int16" else int(numbers.integers(limits.min, limits.max + 1))

    def change(tensor: Tensor | None) -> Tensor | None:
        if tensor is None or tensor.dtype != "float32":
            return tensor
        array = tensor.array
        if array is not None:
            array = numbers.integers(limits.min, limits.max + 1, array.shape).astype(dtype)
        return replace(tensor, array=array, dtype=dtype, scale=(scale,), zero_point=(zero,))

    def change_output(tensor: Tensor | None) -> Tensor | None:
        changed = change(tensor)
        fixed = _FIXED.get(case.operator, {}).get(dtype)
        if changed is None or fixed is None:
            return changed
        return replace(changed, scale=fixed[:1], zero_point=(int(fixed[1]),))

    return _changed(case, change, change_output)


def _changed(case: Case, change: Change, change_output: Change) -> Case:
    """Return a case with changed tensors, also in its regions."""
    regions = [_changed(region, change, change_output) for region in case.regions]
    outputs = [each for each in map(change_output, case.outputs) if each is not None]
    return replace(case, inputs=[*map(change, case.inputs)], outputs=outputs, regions=regions)


def check(litert: LiteRT, cases: Iterable[tuple[int, Case]]) -> int:
    """Compare cases that LiteRT runs; return how many."""
    count = 0
    for seed, case in cases:
        calls = litert_calls(litert, case, sizes=1)
        if calls:
            comparison = compare(case, calls, ["reference"])
            assert comparison.verdict is Verdict.RIGHT, f"seed {seed}: {case}: {comparison.reason}"
            count += 1
    return count


def cases_of_types(operator: str) -> Iterator[tuple[int, Case]]:
    """Yield cases with other types, by their seeds."""
    left_out = _FAULTS.get(operator, set()) | (
        set(QUANTIZED) if operator in _NEEDS_SCALES else set()
    )
    for seed in range(_SEEDS):
        for dtype in TYPES:
            case = with_type(CASES[operator](Draw(seed), operator), dtype)
            if case is not None and dtype not in left_out:
                yield seed, case


def quantized_cases(operator: str) -> Iterator[tuple[int, Case]]:
    """Yield cases with quantized tensors, by their seeds."""
    for seed in range(_SEEDS):
        for dtype in QUANTIZED:
            case = quantized_case(CASES[operator](Draw(seed), operator), dtype, seed)
            if case is not None and dtype not in _INEXACT.get(operator, set()):
                yield seed, case


def test_the_page_has_all_operators() -> None:
    rows = re.findall(r"^\| ([\w.]+)( \(custom\))? \|", PAGE.read_text("utf-8"), re.MULTILINE)
    names = {f"custom.{name}" if custom else name for name, custom in rows} - {"Operator"}
    assert names == set(TABLE.names()), "run: PYTHONPATH=. python scripts/write_tflite_operators.py"


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


@pytest.mark.parametrize("operator", _SAMPLE)
def test_other_types_give_what_litert_does(operator: str, litert: LiteRT) -> None:
    assert check(litert, cases_of_types(operator))


@pytest.mark.nightly
@pytest.mark.parametrize("operator", NAMES)
def test_all_types_give_what_litert_does(operator: str, litert: LiteRT) -> None:
    check(litert, cases_of_types(operator))


@pytest.mark.nightly
@pytest.mark.parametrize("operator", NAMES)
def test_quantized_files_give_what_litert_does(operator: str, litert: LiteRT) -> None:
    check(litert, quantized_cases(operator))
