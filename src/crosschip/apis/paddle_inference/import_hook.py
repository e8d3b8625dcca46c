"""Redirection of `import paddle.inference` to crosschip, in a process without Paddle."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from crosschip.apis.paddle_inference.config import Config
from crosschip.ir import InputError

VERSION = "3.3.1"
"""The Paddle version that this interface follows."""

_NAME = "paddle"
_ABSENT = ("cinn", "cuda", "custom_device", "distribute", "ipu", "mkldnn", "rocm", "xpu")


class _Paddle(ModuleType):
    """The module `paddle`: its inference interface and little else."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self.__name__}.{name}: crosschip stands for paddle.inference alone; "
            f"install paddlepaddle for the rest of Paddle"
        )


def install(devices: Any = None) -> None:
    """Make `import paddle` and `paddle.inference` load crosschip in this process.

    Args:
        devices: the `devices` argument of `crosschip.compile` where a configuration names no
            device; `None` for `"auto"`, the fastest by measurement.

    Raises:
        InputError: Paddle itself has already been imported.
    """
    Config.devices = "auto" if devices is None else devices
    loaded = sys.modules.get(_NAME)
    if loaded is None:
        _register_modules()
    elif not isinstance(loaded, _Paddle):
        raise InputError("paddle has been imported already; call install() before that")


def _register_modules() -> None:
    from crosschip.apis import paddle_inference

    absent = {f"is_compiled_with_{name}": _return_false for name in _ABSENT}
    device = _module("device", get_device=lambda: "cpu", **absent)
    version = _module("version", full_version=VERSION, commit=VERSION)
    parts = {"device": device, "version": version, "inference": paddle_inference}
    package = _module("", __version__=VERSION, __path__=[], **absent, **parts)
    sys.modules[_NAME] = package
    sys.modules |= {f"{_NAME}.{name}": part for name, part in parts.items()}


def _module(name: str, **attributes: Any) -> ModuleType:
    module = _Paddle(f"{_NAME}.{name}" if name else _NAME)
    vars(module).update(attributes)
    return module


def _return_false(*args: object) -> bool:
    return False
