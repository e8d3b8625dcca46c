"""Import of ONNX Runtime without telemetry."""

from __future__ import annotations

import os
from types import ModuleType

_SWITCH = "ORT_DISABLE_TELEMETRY"
_OLDEST = (1, 26)

_engine: ModuleType | None = None


def loaded_engine() -> ModuleType | None:
    """Return ONNX Runtime if `import_engine` has imported it."""
    return _engine


def import_engine() -> ModuleType:
    """Import ONNX Runtime without its telemetry, and check its version.

    Later calls return the same module, also after another one has taken its name. Builds with
    telemetry write to the user's cache folder and send data, unless an environment
    variable is set during the first import. The environment is restored afterwards.

    Raises:
        ImportError: ONNX Runtime is not installed, or too old.
    """
    global _engine
    if _engine is not None:
        require(_engine.__version__)
        return _engine
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "1" if before is None else before
    try:
        import onnxruntime
    finally:
        if before is None:
            del os.environ[_SWITCH]
    require(onnxruntime.__version__)
    _engine = onnxruntime
    return _engine


def require(version: str) -> None:
    """Raise `ImportError` if a version is too old.

    Raises:
        ImportError: it is not; the message says which one is.
    """
    oldest = ".".join(map(str, _OLDEST))
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise ImportError(f"version {version} is installed, but {oldest} or later is needed")
