"""Execution providers, and the devices that stand for them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from crosschip.devices.onnxruntime import OnnxRuntimeDevice
from crosschip.runtime.discovery import origins

CPU = "CPUExecutionProvider"
_OPENVINO = "OpenVINOExecutionProvider"
_ENDING = "ExecutionProvider"
AUTO = "auto"

_ENGINES = [name for name in ("onnxruntime", "openvino") if find_spec(name) is not None]
"""The installed engines of the processor, looked up before `install` changes `onnxruntime`."""

_NAMES = {"CUDA": "CUDA", "TensorRT": "Tensorrt", "NVTensorRTRTX": "NvTensorRTRTX"}
"""Providers whose names differ from those of the device's instances, by instance."""

Provider = tuple[str, dict[str, str]]


@dataclass
class _Choice:
    """The devices of all sessions.

    Attributes:
        devices: the argument of `install`; `None` to follow the providers.
    """

    devices: Any = None


CHOICE = _Choice()


def processor_device() -> str:
    """Return the device that stands for `CPUExecutionProvider`."""
    return next(iter(_ENGINES), "reference")


def available_providers() -> list[str]:
    """Return the providers that sessions may use, in the order of ONNX Runtime: the fastest first.

    These are the providers of ONNX Runtime that a device of crosschip stands for.
    """
    return [name for name in _devices_by_provider() if name.endswith(_ENDING)]


def _devices_by_provider() -> dict[str, str]:
    """Return the device for each provider that is available."""
    by_name: dict[str, str] = {}
    if "onnxruntime" in _ENGINES:
        for instance in OnnxRuntimeDevice.probe():
            if instance.name != "CPU" and not instance.problem:
                name = f"{_NAMES.get(instance.name, instance.name)}{_ENDING}"
                by_name[name] = f"onnxruntime:{instance.name}"
    if "openvino" in _ENGINES:
        by_name[_OPENVINO] = "openvino"
    by_name[CPU] = processor_device()
    return by_name


def normalize(providers: Any, provider_options: Any) -> list[Provider]:
    """Return the providers of a session's arguments that are available, with their options.

    Raises:
        ValueError: the arguments are malformed.
    """
    available = [*_devices_by_provider()]
    names = [name for name, _ in _pairs(providers, provider_options) if _is_device(name)]
    checked = check_and_normalize_provider_args(providers, provider_options, available + names)
    pairs = zip(*checked, strict=True)
    return [(name, options) for name, options in pairs if name in available or name in names]


def check_and_normalize_provider_args(
    providers: Any, provider_options: Any, available_provider_names: Sequence[str]
) -> tuple[list[str], list[dict[str, str]]]:
    """Return the names of providers and their options; warn of unavailable and repeated ones.

    Raises:
        ValueError: the arguments are malformed.
    """
    names: dict[str, dict[str, str]] = {}
    for name, options in _pairs(providers, provider_options):
        if name not in available_provider_names:
            listed = ", ".join(available_provider_names)
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names."
                f"Available providers: '{listed}'",
                stacklevel=5,
            )
        if name in names:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=5)
        else:
            names[name] = options
    return [*names], [*names.values()]


def _pairs(providers: Any, provider_options: Any) -> list[Provider]:
    if providers is None:
        return []
    if not isinstance(providers, Sequence) or isinstance(providers, str):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is None:
        pairs = [(p, {}) if isinstance(p, str) else p for p in providers]
        if not all(_is_pair(pair) for pair in pairs):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    else:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError(
                "'providers' and 'provider_options' should be the same length if both are given."
            )
        if not all(isinstance(name, str) for name in providers):
            raise ValueError(
                "Only string values for 'providers' are supported if 'provider_options' is given."
            )
        if not all(isinstance(options, dict) for options in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        pairs = list(zip(providers, provider_options, strict=True))
    return [(name, {str(k): str(v) for k, v in options.items()}) for name, options in pairs]


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], dict)
    )


def _is_device(name: str) -> bool:
    return name == AUTO or name.partition(":")[0] in origins()


def devices_of(providers: Sequence[Provider]) -> Any:
    """Return the `devices` argument of `crosschip.compile` for providers.

    As in ONNX Runtime, the processor runs what the other providers do not. The last device is
    `reference`, which runs all standard operators.
    """
    if CHOICE.devices is not None:
        return CHOICE.devices
    if any(name == AUTO for name, _ in providers):
        return AUTO
    by_provider = _devices_by_provider() if providers else {}
    devices: dict[str, None] = {}
    for name, options in providers:
        device = by_provider.get(name, name)
        kind = options.get("device_type", "CPU").partition("_")[0]
        if name == _OPENVINO and kind != "CPU":
            device = f"openvino:{kind}"
        devices[device] = None
    return [*(devices | dict.fromkeys((processor_device(), "reference")))]


def with_processor(providers: Sequence[Provider]) -> Mapping[str, dict[str, str]]:
    """Return the providers of a session with the processor's, which ONNX Runtime always adds."""
    return dict(providers) | ({} if CPU in dict(providers) else {CPU: {}})
