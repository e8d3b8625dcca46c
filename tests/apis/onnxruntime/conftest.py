"""Programs that these tests compile are cached in a folder of each test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "cache"))
