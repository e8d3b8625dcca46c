"""`Preprocess` against OpenCV, Pillow and, if installed, torchvision: over 1,000 random cases."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lanes import first_or_nightly
from tests.preprocessing.oracles import (
    Case,
    by_opencv,
    by_pillow,
    by_torchvision,
    cases,
    has_ties,
    normalized,
)

BATCHES = 23
PER_BATCH = 50


def errors(case: Case) -> tuple[float, float]:
    """Return how far a result is from the nearest library's, and how far it may be.

    In steps of uint8. A result may differ by a step, or by what the libraries differ from each
    other at that pixel.
    """
    results = [each for oracle in (by_opencv, by_pillow, by_torchvision) for each in oracle(case)]
    ours = case.settings.apply(case.picture)
    scale = normalized(case, np.ones_like(results[0])) - normalized(case, np.zeros_like(results[0]))
    distances = np.stack([np.abs(ours - normalized(case, each)) / scale for each in results])
    spread = np.max(results, 0) - np.min(results, 0)
    allowed = np.maximum(
        1, spread.transpose(2, 0, 1)[None] if case.settings.layout == "NCHW" else spread[None]
    )
    nearest = distances.min(0)
    worst = (nearest - allowed).argmax()
    return float(nearest.flat[worst]), float(allowed.flat[worst])


@pytest.mark.parametrize("batch", first_or_nightly(range(BATCHES), first=6))
def test_same_pixels_as_the_libraries(batch: int) -> None:
    compared = 0
    for case in cases(batch, PER_BATCH):
        if not has_ties(case):
            compared += 1
            error, allowed = errors(case)
            assert error <= allowed + 1e-3, (case.picture.shape, case.settings)
    assert compared > PER_BATCH / 2
