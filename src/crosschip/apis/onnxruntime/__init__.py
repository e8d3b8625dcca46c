"""ONNX Runtime's programming interface in Python, on crosschip's devices.

Import this package in place of `onnxruntime`, or call `install` before a program imports it.
"""

from __future__ import annotations

import logging
from typing import Any

from crosschip.apis.onnxruntime import errors as errors
from crosschip.apis.onnxruntime.binding import IOBinding
from crosschip.apis.onnxruntime.description import ModelMetadata, NodeArg
from crosschip.apis.onnxruntime.enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtMemType,
    OrtSparseFormat,
)
from crosschip.apis.onnxruntime.import_hook import install
from crosschip.apis.onnxruntime.memory import (
    OrtArenaCfg,
    OrtMemoryInfo,
    create_and_register_allocator,
    create_and_register_allocator_v2,
)
from crosschip.apis.onnxruntime.options import RunOptions, SessionOptions
from crosschip.apis.onnxruntime.providers import available_providers as get_available_providers
from crosschip.apis.onnxruntime.session import InferenceSession
from crosschip.apis.onnxruntime.sparse import SparseCooView, SparseCsrView, SparseTensor
from crosschip.apis.onnxruntime.values import OrtDevice, OrtValue, OrtValueVector, copy_tensors

__version__ = "1.32.0"
"""The version of ONNX Runtime whose interface this is."""

SessionIOBinding = IOBinding

_SEVERITIES = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def get_all_providers() -> list[str]:
    """Return the names of the providers that sessions may use."""
    return get_available_providers()


def get_device() -> str:
    """Return the kind of the default device."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of ONNX Runtime whose interface this is."""
    return __version__


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


__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtSparseFormat",
    "OrtValue",
    "OrtValueVector",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseCooView",
    "SparseCsrView",
    "SparseTensor",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "install",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
