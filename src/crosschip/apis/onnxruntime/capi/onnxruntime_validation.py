"""ONNX Runtime's module that checks its installation."""

from crosschip.apis.onnxruntime.capi.names import resolve as __getattr__

__all__ = ["__getattr__"]
