"""The header that drivers in C are compiled with."""

from __future__ import annotations

from pathlib import Path

HEADER = Path(__file__).with_name("crosschip_hal.h")
"""Where it is; its folder is what a compiler is told of."""
