"""The folders where crosschip keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """`CROSSCHIP_CACHE_DIR`, or the platform's folder for caches."""
    configured = os.environ.get("CROSSCHIP_CACHE_DIR")
    return Path(configured) if configured else platformdirs.user_cache_path("crosschip")
