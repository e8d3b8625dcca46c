"""ONNX Runtime's module through which its Python code reaches its library."""

from crosschip.apis.onnxruntime.capi.names import resolve as __getattr__

__all__ = ["__getattr__"]
