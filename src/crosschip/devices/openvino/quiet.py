"""Import of OpenVINO without telemetry."""

from __future__ import annotations

import sys

_TELEMETRY = "openvino_telemetry"


def import_engine() -> None:
    """Import OpenVINO without its telemetry.

    With the package `openvino_telemetry`, the import sends a message and writes files to the user's
    home; the package is hidden meanwhile.

    Importing it sends a message, and leaves files in the user's home, if the package
    `openvino_telemetry` can be imported; so for that moment it cannot.

    Raises:
        ImportError: OpenVINO is not installed.
    """
    hidden = _TELEMETRY not in sys.modules
    if hidden:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment] # makes its import fail
    try:
        import openvino  # noqa: F401
    finally:
        if hidden:
            del sys.modules[_TELEMETRY]
