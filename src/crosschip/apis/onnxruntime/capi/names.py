"""The names of ONNX Runtime's modules in `capi`, which are the same in all of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crosschip.apis.onnxruntime.errors import CLASSES
from crosschip.apis.onnxruntime.providers import check_and_normalize_provider_args

_NAMES = CLASSES | {check_and_normalize_provider_args.__name__: check_and_normalize_provider_args}


def resolve(name: str) -> Any:
    """Return an exception, or what the interface has by a name.

    Raises:
        AttributeError: there is no such name.
    """
    if name in _NAMES:
        return _NAMES[name]
    return getattr(import_module("crosschip.apis.onnxruntime"), name)
