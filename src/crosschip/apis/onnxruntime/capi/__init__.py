"""The modules that programs import from ONNX Runtime's package `capi`."""

from __future__ import annotations

from crosschip.apis.onnxruntime.capi import (
    _pybind_state as _pybind_state,
)
from crosschip.apis.onnxruntime.capi import (
    onnxruntime_inference_collection as onnxruntime_inference_collection,
)
from crosschip.apis.onnxruntime.capi import (
    onnxruntime_pybind11_state as onnxruntime_pybind11_state,
)
from crosschip.apis.onnxruntime.capi import (
    onnxruntime_validation as onnxruntime_validation,
)
