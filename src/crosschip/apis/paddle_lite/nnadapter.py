"""The settings for NNAdapter's devices: `set_nnadapter_…` and what they come to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosschip.apis.buffers import octets
from crosschip.apis.nnadapter.context import NNAdapterContext, NNAdapterContext_create
from crosschip.apis.nnadapter.device import (
    NNAdapterDevice,
    NNAdapterDevice_acquire,
    NNAdapterDevice_release,
)
from crosschip.apis.paddle.session import Shapes
from crosschip.apis.results import check
from crosschip.ir import InputError
from crosschip.runtime.artifact.container import is_authenticated
from crosschip.runtime.artifact.loading import load_compiled
from crosschip.runtime.cache.store import Memory, check_token
from crosschip.runtime.options import CacheOptions, ShapeOptions

logger = logging.getLogger("crosschip.paddle_lite")

ShapeInfo = Mapping[str, Sequence[Sequence[int]]]


class NNAdapterSettings:
    """The settings that configurations of both kinds have for NNAdapter's devices."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._properties = ""
        self._callback: Callable[[int, object], int] | None = None
        self._cache_dir = ""
        self._cache_buffers: dict[str, bytes] = {}
        self._shape_info: ShapeInfo = {}

    def check_nnadapter_device_name(self, device_name: str) -> bool:
        """Tell whether a device is there, by NNAdapter's name for it or crosschip's own."""
        code, device = NNAdapterDevice_acquire(device_name)
        if not code:
            NNAdapterDevice_release(device)
        return not code

    def set_nnadapter_device_names(self, device_names: Sequence[str]) -> None:
        """Choose devices, in the order of preference; processors run what they all decline.

        Raises:
            InputError: they are no texts.
        """
        if isinstance(device_names, str) or not all(isinstance(n, str) for n in device_names):
            raise InputError(
                f"set_nnadapter_device_names: {device_names!r} is no list of names of devices"
            )
        self._names = list(device_names)

    def nnadapter_device_names(self) -> list[str]:
        """The devices that were chosen."""
        return list(self._names)

    def set_nnadapter_context_properties(self, context_properties: str) -> None:
        """Set what devices take, as `KEY=VALUE;KEY=VALUE`, each key beginning with a device's name.

        See `crosschip.apis.nnadapter.NNAdapterContext_create`; the predictor is refused if a device
        does not take a setting.
        """
        self._properties = text_of("set_nnadapter_context_properties", context_properties)

    def nnadapter_context_properties(self) -> str:
        """What devices take."""
        return self._properties

    def set_nnadapter_context_callback(self, callback: Callable[[int, object], int] | None) -> None:
        """Set what a device may ask the program with, as `callback(event_id, user_data)`.

        No device of crosschip's own asks.

        Raises:
            InputError: it cannot be called.
        """
        if callback is not None and not callable(callback):
            raise InputError(f"set_nnadapter_context_callback: {callback!r} cannot be called")
        self._callback = callback

    def nnadapter_context_callback(self) -> Callable[[int, object], int] | None:
        """What a device may ask the program with."""
        return self._callback

    def set_nnadapter_model_cache_dir(self, model_cache_dir: str) -> None:
        """Keep what is compiled in a folder, as `<token>.nnc`, and use it if it is there."""
        self._cache_dir = text_of("set_nnadapter_model_cache_dir", model_cache_dir)

    def nnadapter_model_cache_dir(self) -> str:
        """The folder where what is compiled is kept."""
        return self._cache_dir

    def set_nnadapter_model_cache_buffers(
        self, model_cache_token: str, model_cache_buffer: Any
    ) -> None:
        """Use what was compiled earlier if it has the model's token; may be called for several.

        Args:
            model_cache_token: the name of the file that was kept, without `.nnc`.
            model_cache_buffer: its content.

        Raises:
            InputError: it is no token or no buffer, one is empty, or the token was given before.
        """
        check_token(model_cache_token)
        content = octets(model_cache_buffer).tobytes()
        if not content or model_cache_token in self._cache_buffers:
            why = "was given before" if content else "has an empty buffer"
            raise InputError(f"set_nnadapter_model_cache_buffers: {model_cache_token!r} {why}")
        self._cache_buffers[model_cache_token] = content

    def set_nnadapter_dynamic_shape_info(self, dynamic_shape_info: ShapeInfo) -> None:
        """Compile at once for shapes of inputs: by name, as many for each input.

        A size of -1 stays open.

        Raises:
            InputError: they are no lists of shapes.
        """
        sound = isinstance(dynamic_shape_info, Mapping) and all(
            isinstance(size, int) for shapes in dynamic_shape_info.values()
            for shape in shapes for size in shape
        )  # fmt: skip
        if not sound:
            raise InputError(
                f"set_nnadapter_dynamic_shape_info: {dynamic_shape_info!r} is no shapes by input"
            )
        self._shape_info = {
            name: [tuple(shape) for shape in shapes] for name, shapes in dynamic_shape_info.items()
        }

    def nnadapter_dynamic_shape_info(self) -> ShapeInfo:
        """The shapes to compile for."""
        return self._shape_info

    def opened_shapes(self) -> Shapes:
        """The shapes of inputs, open where those to compile for differ or are open."""
        return {
            name: tuple(
                sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True)
            )
            for name, shapes in self._shape_info.items()
            if shapes
        }

    def context(self) -> NNAdapterContext:
        """The devices with their settings.

        Raises:
            Error: a device is not there, or does not take a setting.
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
        """The arguments of `crosschip.compile` that say what is kept, and what to compile for."""
        arguments: dict[str, Any] = {}
        if self._cache_buffers:
            models = {token: _plain(token, held) for token, held in self._cache_buffers.items()}
            arguments["cache"] = CacheOptions(Memory(models), token=True)
        elif self._cache_dir:
            Path(self._cache_dir).mkdir(parents=True, exist_ok=True)
            arguments["cache"] = CacheOptions(self._cache_dir, token=True)
        known = [shapes for shapes in self._shape_info.values() if shapes]
        if known and not any(-1 in shape for shapes in known for shape in shapes):
            arguments["shapes"] = ShapeOptions(profiles=self._shape_info)
        return arguments


def text_of(name: str, value: object) -> str:
    """A text that a setting is given.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, str):
        raise InputError(f"{name}: {value!r} is no text")
    return value


def _plain(token: str, content: bytes) -> bytes:
    """Return a compiled model as a file that is shipped, though it may be a cache's."""
    if not is_authenticated(content):
        return content
    with load_compiled(content, token=token) as compiled:
        return compiled.to_bytes()
