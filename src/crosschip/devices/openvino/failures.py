"""OpenVINO's errors as the driver contract's."""

from __future__ import annotations

from crosschip.ir import DeviceError


def failure(what: str, error: Exception) -> DeviceError:
    """The error that says what the engine did not do, in its own words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    noise = ("Exception from", "Caught exception", "Check '", "While validating")
    messages = [line for line in lines if not line.startswith(noise)] or lines or [repr(error)]
    return DeviceError(f"openvino {what}: {messages[0]}")
