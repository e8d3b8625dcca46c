"""Import of OpenVINO without telemetry."""

from __future__ import annotations

import sys

_TELEMETRY = "openvino_telemetry"


def import_engine() -> None:
    """Import OpenVINO without its telemetry.

    If the package `openvino_telemetry` can be imported, the import of OpenVINO sends a message and
    writes files to the user's home. The package is therefore hidden during the import.

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
