"""The C header for devices written in C."""

from __future__ import annotations

from pathlib import Path

HEADER = Path(__file__).with_name("crosschip_hal.h")
"""The path of the header; its folder is a compiler's include path."""
