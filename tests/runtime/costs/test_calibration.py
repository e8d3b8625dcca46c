"""Calibration of blocks with the whole model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.costs.calibration import LEAST_SHARE, SECONDS_PER_BYTE, calibrate

SECONDS = st.floats(1e-5, 1.0)
BLOCKS = st.lists(st.tuples(SECONDS, st.integers(1, 10**7)), min_size=1, max_size=20)


@given(BLOCKS, st.floats(0, 1e-4), SECONDS, st.integers(0, 10**7))
def test_blocks_and_the_boundaries_at_the_host_sum_up_to_the_whole(
    blocks: list[tuple[float, int]], launch: float, whole: float, host_bytes: int
) -> None:
    alone, nbytes = (np.array(column, np.float64) for column in zip(*blocks, strict=True))
    calibration = calibrate(alone, nbytes, launch, whole, host_bytes)
    assert np.all(calibration.seconds > 0)
    assert calibration.boundary_rate >= 0
    boundaries = calibration.launch + calibration.boundary_rate * host_bytes
    assert calibration.seconds.sum() + boundaries == pytest.approx(whole)


@pytest.mark.parametrize("launch", [0.0, 2e-5])
def test_boundaries_explain_what_blocks_take_longer_alone(launch: float) -> None:
    own, nbytes, passes = np.array([1e-3, 2e-3, 4e-3]), np.array([1e6, 3e6, 2e6]), 3.0
    whole = float(own.sum()) + passes * (launch + SECONDS_PER_BYTE * 500_000)
    alone = own + passes * (launch + SECONDS_PER_BYTE * nbytes)
    calibration = calibrate(alone, nbytes, launch, whole, 500_000)
    np.testing.assert_allclose(calibration.seconds, own, rtol=1e-6)
    assert calibration.boundary_rate == pytest.approx(passes * SECONDS_PER_BYTE)
    assert calibration.launch == pytest.approx(passes * launch)
    assert calibration.residual == pytest.approx(0, abs=1e-6)


def test_a_whole_that_takes_longer_than_its_blocks_scales_them() -> None:
    alone = np.array([1.0, 3.0])
    calibration = calibrate(alone, np.array([1e6, 1e6]), 1e-5, 5.0, 1000)
    np.testing.assert_allclose(calibration.seconds, [1.25, 3.75])
    assert (calibration.launch, calibration.boundary_rate) == (0, 0)
    assert calibration.residual == pytest.approx(0.25)


def test_boundaries_leave_a_share_of_each_block() -> None:
    alone = np.array([1.0, 1.0])
    calibration = calibrate(alone, np.array([1.0, 1e11]), 0.0, 1.0, 0)
    first, second = calibration.seconds
    assert second == pytest.approx(first * LEAST_SHARE, rel=0.01)
    assert first + second == pytest.approx(1.0)
