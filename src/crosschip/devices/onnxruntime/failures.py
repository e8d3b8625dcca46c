"""Conversion of ONNX Runtime's errors to `DeviceError`."""

from __future__ import annotations

from crosschip.ir import DeviceError


def failure(what: str, error: Exception) -> DeviceError:
    """Return an error that says what failed, with the first line of ONNX Runtime's message.

    ONNX Runtime's exceptions have no base class, so callers catch all exceptions of its calls.
    """
    text = str(error).strip().removeprefix("[ONNXRuntimeError] : ") or type(error).__name__
    return DeviceError(f"onnxruntime {what}: {text.splitlines()[0]}")
