"""Random operations on each engine; `tests.devices.sampling` draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.devices.sampling import sample
from tests.lanes import first_or_nightly

if TYPE_CHECKING:
    from tests.devices.conftest import Checker


@pytest.mark.parametrize("batch", first_or_nightly(range(4)))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_operations(check: Checker, batch: int) -> None:
    outcomes = [sample(check.device, seed) for seed in range(200 * batch, 200 * (batch + 1))]
    assert outcomes.count("right") > 100
