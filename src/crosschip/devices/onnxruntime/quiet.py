"""Importing ONNX Runtime so that it tells nobody."""

from __future__ import annotations

import os


def import_engine() -> None:
    """Import ONNX Runtime without its telemetry.

    Where its maker builds that in, it writes to the user's cache folder and sends what it collects,
    unless this variable is set before the first import.

    Raises:
        ImportError: ONNX Runtime is not installed.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # noqa: F401
