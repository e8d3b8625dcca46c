"""Calibration of blocks with the whole model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.costs.calibration import LEAST_SHARE, calibrate

SECONDS = st.floats(1e-5, 1.0)
BLOCKS = st.lists(st.tuples(SECONDS, st.integers(1, 10**7)), min_size=1, max_size=20)


@given(BLOCKS, SECONDS, st.integers(0, 10**7))
def test_blocks_and_the_borders_at_the_host_sum_up_to_the_whole(
    blocks: list[tuple[float, int]], whole: float, host_bytes: int
) -> None:
    alone, nbytes = (np.array(column, np.float64) for column in zip(*blocks, strict=True))
    calibration = calibrate(alone, nbytes, whole, host_bytes)
    assert np.all(calibration.seconds > 0)
    assert calibration.border >= 0
    total = calibration.seconds.sum() + calibration.border * host_bytes
    if calibration.border * host_bytes < 0.5 * whole:
        assert total == pytest.approx(max(whole, 0.1 * alone.sum()), rel=0.5)


def test_borders_explain_what_blocks_take_longer_alone() -> None:
    own, nbytes, border = np.array([1e-3, 2e-3, 4e-3]), np.array([1e6, 3e6, 2e6]), 2e-10
    whole = float(own.sum()) + border * 500_000
    calibration = calibrate(own + border * nbytes, nbytes, whole, 500_000)
    np.testing.assert_allclose(calibration.seconds, own, rtol=1e-6)
    assert calibration.border == pytest.approx(border)
    assert calibration.residual == pytest.approx(0, abs=1e-6)


def test_a_whole_that_takes_longer_than_its_blocks_scales_them() -> None:
    alone = np.array([1.0, 3.0])
    calibration = calibrate(alone, np.array([1e6, 1e6]), 5.0, 1000)
    np.testing.assert_allclose(calibration.seconds, [1.25, 3.75])
    assert calibration.border == 0
    assert calibration.residual == pytest.approx(0.25)


def test_borders_leave_a_share_of_each_block() -> None:
    alone = np.array([1.0, 1.0])
    calibration = calibrate(alone, np.array([1.0, 1e9]), 1.0, 0)
    assert calibration.seconds[1] == pytest.approx(calibration.seconds[0] * LEAST_SHARE, rel=0.01)
    assert calibration.seconds.sum() == pytest.approx(1.0)


def test_a_device_that_does_not_run_the_whole_keeps_what_was_measured() -> None:
    alone = np.array([1.0, 3.0])
    calibration = calibrate(alone, np.array([1.0, 1.0]), None, 0)
    np.testing.assert_array_equal(calibration.seconds, alone)
    assert (calibration.border, calibration.residual) == (0.0, 0.0)
