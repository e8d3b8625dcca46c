"""Functions about the library as a whole."""

from __future__ import annotations

import logging
from typing import Any

from crosschip.apis.onnxruntime.providers import KNOWN_PROVIDERS

VERSION = "1.32.0"
"""The version of ONNX Runtime whose interface this is."""

_SEVERITIES = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def get_all_providers() -> list[str]:
    """Return the names of ONNX Runtime's providers, whether they are available here or not."""
    return [*KNOWN_PROVIDERS]


def get_device() -> str:
    """Return the kind of the default device."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of ONNX Runtime whose interface this is."""
    return VERSION


def get_build_info() -> str:
    """Return what implements the interface."""
    from importlib.metadata import version

    return f"ORT Build Info: crosschip {version('crosschip')}"


def set_default_logger_severity(severity: int) -> None:
    """Set the level of crosschip's logger: 0 (verbose) to 4 (fatal)."""
    logging.getLogger("crosschip").setLevel(_SEVERITIES[min(max(severity, 0), 4)])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Do nothing: crosschip's log has no finer levels."""


def set_seed(seed: int) -> None:
    """Do nothing: models that draw random numbers use the seeds in their operators."""


def enable_telemetry_events() -> None:
    """Do nothing: there is no telemetry."""


def disable_telemetry_events() -> None:
    """Do nothing: there is no telemetry."""


def preload_dlls(*args: Any, **kwargs: Any) -> None:
    """Do nothing: devices load their own libraries."""


def has_collective_ops() -> bool:
    """Return whether there are operators for several machines: no."""
    return False


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Do nothing: the option `intra_op_num_threads` of a session limits its threads."""
