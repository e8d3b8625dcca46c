"""ONNX Runtime's module of exceptions and classes."""

from crosschip.apis.onnxruntime.capi.names import resolve as __getattr__

__all__ = ["__getattr__"]
