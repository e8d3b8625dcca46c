"""Paddle Lite's settings for NNAdapter's devices, and the compile options they stand for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosschip.apis.buffers import byte_view
from crosschip.apis.nnadapter.context import NNAdapterContext, NNAdapterContext_create
from crosschip.apis.nnadapter.device import (
    NNAdapterDevice,
    NNAdapterDevice_acquire,
    NNAdapterDevice_release,
)
from crosschip.apis.paddle.session import Shapes
from crosschip.apis.results import check
from crosschip.ir import InputError
from crosschip.runtime.artifact.container import looks_like_cache_entry
from crosschip.runtime.artifact.loading import load_compiled
from crosschip.runtime.cache.store import Memory, check_token
from crosschip.runtime.options import CacheOptions, ShapeOptions

logger = logging.getLogger("crosschip.paddle_lite")

ShapeInfo = Mapping[str, Sequence[Sequence[int]]]


class NNAdapterSettings:
    """The NNAdapter settings that both configurations share."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._properties = ""
        self._callback: Callable[[int, object], int] | None = None
        self._cache_dir = ""
        self._cache_buffers: dict[str, bytes] = {}
        self._shape_info: ShapeInfo = {}

    def check_nnadapter_device_name(self, device_name: str) -> bool:
        """Return whether a device exists, by NNAdapter's or crosschip's name."""
        code, device = NNAdapterDevice_acquire(device_name)
        if not code:
            NNAdapterDevice_release(device)
        return not code

    def set_nnadapter_device_names(self, device_names: Sequence[str]) -> None:
        """Set the devices in order of preference; CPU devices run what all of them decline.

        Raises:
            InputError: a name is no string.
        """
        if isinstance(device_names, str) or not all(isinstance(n, str) for n in device_names):
            raise InputError(
                f"set_nnadapter_device_names: {device_names!r} is no list of names of devices"
            )
        self._names = list(device_names)

    def nnadapter_device_names(self) -> list[str]:
        """Return the names of the devices that were set."""
        return list(self._names)

    def set_nnadapter_context_properties(self, context_properties: str) -> None:
        """Set device properties as `KEY=VALUE;KEY=VALUE`; a key begins with the device's name.

        See `crosschip.apis.nnadapter.NNAdapterContext_create`. Creating the predictor fails if a
        device does not support a property.
        """
        self._properties = check_text("set_nnadapter_context_properties", context_properties)

    def nnadapter_context_properties(self) -> str:
        """Return the device properties."""
        return self._properties

    def set_nnadapter_context_callback(self, callback: Callable[[int, object], int] | None) -> None:
        """Set the function that a device may call, as `callback(event_id, user_data)`.

        None of crosschip's own devices calls it.

        Raises:
            InputError: it is not callable.
        """
        if callback is not None and not callable(callback):
            raise InputError(f"set_nnadapter_context_callback: {callback!r} cannot be called")
        self._callback = callback

    def nnadapter_context_callback(self) -> Callable[[int, object], int] | None:
        """Return the function that a device may call."""
        return self._callback

    def set_nnadapter_model_cache_dir(self, model_cache_dir: str) -> None:
        """Cache compiled models in a folder, as `<token>.nnc`."""
        self._cache_dir = check_text("set_nnadapter_model_cache_dir", model_cache_dir)

    def nnadapter_model_cache_dir(self) -> str:
        """Return the folder of the cache."""
        return self._cache_dir

    def set_nnadapter_model_cache_buffers(
        self, model_cache_token: str, model_cache_buffer: Any
    ) -> None:
        """Add a compiled model, which is used if its token is the model's; several may be added.

        Args:
            model_cache_token: the name of the cache file, without `.nnc`.
            model_cache_buffer: the content of the file.

        Raises:
            InputError: the token or the buffer is invalid or empty, or the token was added
                before.
        """
        check_token(model_cache_token)
        content = byte_view(model_cache_buffer).tobytes()
        if not content or model_cache_token in self._cache_buffers:
            problem = "was given before" if content else "has an empty buffer"
            raise InputError(f"set_nnadapter_model_cache_buffers: {model_cache_token!r} {problem}")
        self._cache_buffers[model_cache_token] = content

    def set_nnadapter_dynamic_shape_info(self, dynamic_shape_info: ShapeInfo) -> None:
        """Set the shapes to compile for in advance: by input name, equally many for each input.

        A size of -1 is a dynamic dimension.

        Raises:
            InputError: the value is no mapping to lists of shapes.
        """
        is_valid = isinstance(dynamic_shape_info, Mapping) and all(
            isinstance(size, int) for shapes in dynamic_shape_info.values()
            for shape in shapes for size in shape
        )  # fmt: skip
        if not is_valid:
            raise InputError(
                f"set_nnadapter_dynamic_shape_info: {dynamic_shape_info!r} is no shapes by input"
            )
        self._shape_info = {
            name: [tuple(shape) for shape in shapes] for name, shapes in dynamic_shape_info.items()
        }

    def nnadapter_dynamic_shape_info(self) -> ShapeInfo:
        """Return the shapes to compile for in advance."""
        return self._shape_info

    def dynamic_shapes(self) -> Shapes:
        """Return each input's shape, -1 where the shapes to compile for differ or are dynamic."""
        return {
            name: tuple(
                sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True)
            )
            for name, shapes in self._shape_info.items()
            if shapes
        }

    def context(self) -> NNAdapterContext:
        """Return a context of the devices with their properties.

        Raises:
            Error: a device does not exist, or does not support a property.
        """
        devices: list[NNAdapterDevice] = []
        for name in self._names:
            code, device = NNAdapterDevice_acquire(name)
            check(code)
            assert device is not None
            devices.append(device)
        code, context = NNAdapterContext_create(devices, self._properties, self._callback)
        check(code)
        assert context is not None
        return context

    def cache_arguments(self) -> Mapping[str, Any]:
        """Return the arguments of `crosschip.compile` for the cache and the shapes."""
        arguments: dict[str, Any] = {}
        if self._cache_buffers:
            models = {
                token: _plain(token, content) for token, content in self._cache_buffers.items()
            }
            arguments["cache"] = CacheOptions(Memory(models), token=True)
        elif self._cache_dir:
            Path(self._cache_dir).mkdir(parents=True, exist_ok=True)
            arguments["cache"] = CacheOptions(self._cache_dir, token=True)
        input_shapes = [shapes for shapes in self._shape_info.values() if shapes]
        if input_shapes and not any(-1 in shape for shapes in input_shapes for shape in shapes):
            arguments["shapes"] = ShapeOptions(profiles=self._shape_info)
        return arguments


def check_text(name: str, value: object) -> str:
    """Return a setting's value after checking that it is a string.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, str):
        raise InputError(f"{name}: {value!r} is no text")
    return value


def _plain(token: str, content: bytes) -> bytes:
    """Return a compiled model in the portable format, converted from a cache entry if needed."""
    if not looks_like_cache_entry(content):
        return content
    with load_compiled(content, token=token) as compiled:
        return compiled.to_bytes()
