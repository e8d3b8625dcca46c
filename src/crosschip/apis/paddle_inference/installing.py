"""Letting `import paddle.inference` find this package, in a process that has no Paddle."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from crosschip.apis.paddle_inference.config import Config
from crosschip.ir import InputError

VERSION = "3.3.1"
"""The version of Paddle whose interface this is."""

_NAME = "paddle"
_ABSENT = ("cinn", "cuda", "custom_device", "distribute", "ipu", "mkldnn", "rocm", "xpu")


class _Paddle(ModuleType):
    """The package `paddle`, of which there is the interface for inference and little else."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self.__name__}.{name}: crosschip stands for paddle.inference alone; "
            f"install paddlepaddle for the rest of Paddle"
        )


def install(devices: Any = None) -> None:
    """Let `import paddle` and `paddle.inference` find crosschip in this process.

    Args:
        devices: what `crosschip.compile` takes as devices where a program's configuration names
            none; `None` for the fastest by measurement, `"auto"`.

    Raises:
        InputError: Paddle itself has been imported already.
    """
    Config.devices = "auto" if devices is None else devices
    there = sys.modules.get(_NAME)
    if there is None:
        _put()
    elif not isinstance(there, _Paddle):
        raise InputError("paddle has been imported already; call install() before that")


def _put() -> None:
    from crosschip.apis import paddle_inference

    absent = {f"is_compiled_with_{what}": _no for what in _ABSENT}
    device = _module("device", get_device=_processor, **absent)
    version = _module("version", full_version=VERSION, commit=VERSION)
    parts = {"device": device, "version": version, "inference": paddle_inference}
    package = _module("", __version__=VERSION, __path__=[], **absent, **parts)
    sys.modules[_NAME] = package
    sys.modules |= {f"{_NAME}.{name}": part for name, part in parts.items()}


def _module(name: str, **attributes: Any) -> ModuleType:
    module = _Paddle(f"{_NAME}.{name}" if name else _NAME)
    vars(module).update(attributes)
    return module


def _no(*args: object) -> bool:
    return False


def _processor() -> str:
    return "cpu"
