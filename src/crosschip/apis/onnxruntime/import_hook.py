"""Redirection of `import onnxruntime` to crosschip."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from crosschip.apis.onnxruntime import errors
from crosschip.apis.onnxruntime.providers import CHOICE, check_and_normalize_provider_args
from crosschip.devices import onnxruntime as device
from crosschip.devices.onnxruntime.quiet import import_engine, loaded_engine
from crosschip.ir import InputError

_NAME = "onnxruntime"
_PARTS = (
    "capi",
    "capi._pybind_state",
    "capi.onnxruntime_pybind11_state",
    "capi.onnxruntime_inference_collection",
    "capi.onnxruntime_validation",
)
"""The modules that programs import from, besides the package."""


class _Redirected(ModuleType):
    """A module of ONNX Runtime with the names of this package."""


def install(devices: Any = None) -> None:
    """Make `import onnxruntime` load crosschip in this process.

    Tools such as `onnxruntime.quantization` come from the ONNX Runtime that is installed, and use
    crosschip's sessions.

    Args:
        devices: the `devices` argument of `crosschip.compile` for all sessions; `None` to follow
            the providers that they name.

    Raises:
        InputError: the program has already imported ONNX Runtime.
    """
    CHOICE.devices = devices
    loaded = sys.modules.get(_NAME)
    if isinstance(loaded, _Redirected):
        return
    if loaded is not None and loaded is not loaded_engine():
        raise InputError("onnxruntime has been imported already; call install() before that")
    spec = find_spec(_NAME)
    if spec is not None:
        # Before the name is taken, since the device runs on the real one.
        import_engine()
        for module in iter_modules(device.__path__, f"{device.__name__}."):
            if not module.ispkg:
                import_module(module.name)
    for name in [name for name in sys.modules if name.partition(".")[0] == _NAME]:
        del sys.modules[name]
    _register_modules(spec)


def _register_modules(spec: Any) -> None:
    from crosschip.apis import onnxruntime as api

    names: Mapping[str, Any] = (
        {name: getattr(api, name) for name in api.__all__}
        | errors.CLASSES
        | {check_and_normalize_provider_args.__name__: check_and_normalize_provider_args}
    )
    paths = list(spec.submodule_search_locations or ()) if spec is not None else []
    package = _module(_NAME, names, paths)
    package.__spec__ = spec
    package.__version__ = api.__version__  # type: ignore[attr-defined]
    for part in _PARTS:
        module = _module(f"{_NAME}.{part}", names, [] if part == "capi" else None)
        owner = sys.modules[module.__name__.rpartition(".")[0]]
        setattr(owner, part.rpartition(".")[2], module)


def _module(name: str, names: Mapping[str, Any], paths: list[str] | None) -> ModuleType:
    module = _Redirected(name)
    vars(module).update(names)
    if paths is not None:
        module.__path__ = paths
    sys.modules[name] = module
    return module
