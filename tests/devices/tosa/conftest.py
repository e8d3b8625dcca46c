"""Arm's reference model, which `make tosa` installs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.modelling import ROOT

from crosschip.devices.kits.tosa.reference_model import TOOLS_VARIABLE
from crosschip.devices.tosa import TosaDevice

TOOLS = ROOT / "build" / "tosa" / "bin"


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (TOOLS / "tosa_reference_model").exists():
        pytest.skip("`make tosa` installs Arm's tools")
    monkeypatch.setenv(TOOLS_VARIABLE, str(TOOLS))


@pytest.fixture
def device(tools: None) -> Iterator[TosaDevice]:
    with TosaDevice() as opened:
        yield opened
