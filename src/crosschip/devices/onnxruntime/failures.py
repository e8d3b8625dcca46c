"""The errors that tell of ONNX Runtime's failures, in its own words."""

from __future__ import annotations

from crosschip.ir import DeviceError


def failure(what: str, error: Exception) -> DeviceError:
    """The error that says what the engine did not do, in its own words.

    The engine's exceptions have no base class, so callers catch whatever its calls raise.
    """
    text = str(error).strip().removeprefix("[ONNXRuntimeError] : ") or type(error).__name__
    return DeviceError(f"onnxruntime {what}: {text.splitlines()[0]}")
