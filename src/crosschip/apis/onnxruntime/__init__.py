"""ONNX Runtime's programming interface in Python, on crosschip's devices.

Import this package in place of `onnxruntime`, or call `install` before a program imports it.
"""

from __future__ import annotations

from crosschip.apis.onnxruntime import capi as capi
from crosschip.apis.onnxruntime import errors as errors
from crosschip.apis.onnxruntime.binding import IOBinding, SessionIOBinding
from crosschip.apis.onnxruntime.description import ModelMetadata, NodeArg
from crosschip.apis.onnxruntime.enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from crosschip.apis.onnxruntime.import_hook import install
from crosschip.apis.onnxruntime.library import (
    VERSION,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from crosschip.apis.onnxruntime.memory import (
    OrtArenaCfg,
    OrtDevice,
    OrtMemoryInfo,
    create_and_register_allocator,
    create_and_register_allocator_v2,
)
from crosschip.apis.onnxruntime.options import RunOptions, SessionOptions
from crosschip.apis.onnxruntime.providers import available_providers as get_available_providers
from crosschip.apis.onnxruntime.session import InferenceSession
from crosschip.apis.onnxruntime.sparse import SparseCooView, SparseCsrView, SparseTensor
from crosschip.apis.onnxruntime.values import OrtValue, OrtValueVector, copy_tensors

__version__ = VERSION

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
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
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
    "set_global_thread_pool_sizes",
    "set_seed",
]
