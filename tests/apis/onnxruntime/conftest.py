"""Programs that these tests compile are cached in a folder of each test; packages are run too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))  # for benchmarks


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "cache"))
