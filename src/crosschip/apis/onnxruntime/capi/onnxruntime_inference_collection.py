"""ONNX Runtime's module of sessions and values."""

from crosschip.apis.onnxruntime.capi.names import resolve as __getattr__

__all__ = ["__getattr__"]
