"""Conversion of OpenVINO's errors to `DeviceError`."""

from __future__ import annotations

from crosschip.ir import DeviceError


def failure(what: str, error: Exception) -> DeviceError:
    """Return an error that says what failed, with the first line of OpenVINO's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    noise = ("Exception from", "Caught exception", "Check '", "While validating")
    messages = [line for line in lines if not line.startswith(noise)] or lines or [repr(error)]
    return DeviceError(f"openvino {what}: {messages[0]}")
