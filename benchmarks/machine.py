"""The machine that the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("crosschip", "numpy", "onnxruntime", "openvino", "jax")


def describe() -> dict[str, str]:
    """The machine and the versions, in words."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load average before": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    found = about.exists() and re.search(r"^model name\s*: (.+)$", about.read_text(), re.MULTILINE)
    return found[1] if found else platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
