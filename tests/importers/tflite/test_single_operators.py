"""Random files with one operator: the same results as LiteRT's reference kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.importers.tflite.all_cases import NAMES
from tests.importers.tflite.comparison import Verdict, compare, litert_calls
from tests.importers.tflite.single_operator import CASES, Draw, LiteRT

_SEEDS, _NIGHTLY_SEEDS, _ENGINE_SEEDS = 3, 270, 40


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


def _check(litert: LiteRT, operator: str, seeds: range, *devices: str) -> Counter[Verdict]:
    """Compare devices with LiteRT on files, a third with two sizes, and count the verdicts."""
    verdicts: Counter[Verdict] = Counter()
    for seed in seeds:
        case = CASES[operator](Draw(seed), operator)
        calls = litert_calls(litert, case, sizes=2 if seed % 3 == 2 else 1)
        if not calls:
            continue
        comparison = compare(case, calls, devices)
        assert comparison.verdict is not Verdict.WRONG, f"seed {seed}: {case}: {comparison.reason}"
        verdicts[comparison.verdict] += 1
    return verdicts


@pytest.mark.parametrize("operator", NAMES)
def test_the_reference_computes_what_litert_does(operator: str, litert: LiteRT) -> None:
    assert _check(litert, operator, range(_SEEDS), "reference")[Verdict.RIGHT]


@pytest.mark.nightly
@pytest.mark.parametrize("operator", NAMES)
def test_many_files_give_what_litert_does(operator: str, litert: LiteRT) -> None:
    verdicts = _check(litert, operator, range(_NIGHTLY_SEEDS), "reference")
    assert verdicts[Verdict.RIGHT] >= _NIGHTLY_SEEDS // 2


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "xla"])
@pytest.mark.parametrize("operator", NAMES)
def test_engines_compute_what_litert_does(operator: str, device: str, litert: LiteRT) -> None:
    verdicts = _check(litert, operator, range(_ENGINE_SEEDS), device, "reference")
    assert verdicts[Verdict.RIGHT] >= _ENGINE_SEEDS // 2
