"""Functions that compile a model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosschip.apis.buffers import byte_view
from crosschip.apis.nnrt.conformance import as_reference
from crosschip.apis.nnrt.descriptions import member
from crosschip.apis.nnrt.device import name_of
from crosschip.apis.nnrt.enumerations import OH_NN_PerformanceMode, OH_NN_Priority
from crosschip.apis.nnrt.enumerations import OH_NN_ReturnCode as Code
from crosschip.apis.nnrt.graph import OH_NNModel
from crosschip.apis.nnrt.results import (
    Failure,
    Handle,
    forbidden,
    invalid,
    live,
    returns_code,
    returns_handle,
    returns_nothing,
    returns_value,
)
from crosschip.ir import Array, Error, UnsupportedError
from crosschip.runtime.artifact.loading import load_compiled
from crosschip.runtime.compile.front_door import compile
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.configuration import Configuration
from crosschip.runtime.options import CacheOptions
from crosschip.runtime.requests import Priority


class Shared:
    """A compiled model that a compilation and its executors hold; the last one closes it.

    Attributes:
        model: the model.
        priority: the place of its runs among those that wait.
    """

    def __init__(self, model: CompiledModel, priority: Priority) -> None:
        self.model = model
        self.priority = priority
        self._holders = 1

    def hold(self) -> Shared:
        """Return the same, held once more."""
        self._holders += 1
        return self

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the outputs for some inputs; without a priority, nothing waits in a queue."""
        if self.priority is Priority.NONE:
            return self.model.run(inputs)
        return self.model.submit(inputs, priority=self.priority).result()

    def release(self) -> None:
        """Let go of it."""
        self._holders -= 1
        if not self._holders:
            self.model.close()


class OH_NNCompilation(Handle):
    """A model that is compiled, or about to be.

    Attributes:
        model: the model, which may be destroyed meanwhile; `None` if it was compiled earlier.
        saved: what was compiled earlier; `None` if that is in the cache, or there is a model.
        device: the number of the device; 0 for the first.
        cache: the folder and the version of what is kept; `None` if nothing is.
        performance: how much the device gives for speed.
        priority: the place of runs among those that wait.
        float16: whether float32 operations may compute in float16.
        extensions: settings for the device, by name.
        built: what has been compiled; `None` before that.
    """

    def __init__(self, model: OH_NNModel | None, saved: bytes | None = None) -> None:
        super().__init__()
        self.model = model
        self.saved = saved
        self.device = 0
        self.cache: tuple[str, int] | None = None
        self.performance: int = OH_NN_PerformanceMode.OH_NN_PERFORMANCE_NONE
        self.priority: int = OH_NN_Priority.OH_NN_PRIORITY_NONE
        self.float16 = False
        self.extensions: dict[str, bytes] = {}
        self.built: Shared | None = None

    def destroy(self) -> None:
        super().destroy()
        self.model = None
        if self.built is not None:
            self.built.release()


@returns_handle
def OH_NNCompilation_Construct(model: OH_NNModel) -> OH_NNCompilation:
    """Take on a model to compile; the model may be destroyed right after."""
    return OH_NNCompilation(live(model, OH_NNModel))


@returns_handle
def OH_NNCompilation_ConstructForCache() -> OH_NNCompilation:
    """Take on what was compiled earlier, which the cache or a buffer is to hold."""
    return OH_NNCompilation(None)


@returns_handle
def OH_NNCompilation_ConstructWithOfflineModelFile(modelPath: str) -> OH_NNCompilation:
    """Take on what was compiled earlier, in a file that `CompiledModel.save` wrote."""
    if not isinstance(modelPath, str) or not os.path.isfile(modelPath):
        raise invalid(f"there is no file {modelPath!r}")
    return OH_NNCompilation(None, Path(modelPath).read_bytes())


@returns_handle
def OH_NNCompilation_ConstructWithOfflineModelBuffer(modelBuffer: Any) -> OH_NNCompilation:
    """Take on what was compiled earlier, the content of a file."""
    return OH_NNCompilation(None, _content(modelBuffer))


@returns_value
def OH_NNCompilation_ExportCacheToBuffer(compilation: OH_NNCompilation) -> bytes:
    """Return what has been compiled as bytes, to be imported later."""
    compilation = live(compilation, OH_NNCompilation)
    if compilation.built is None:
        raise invalid("the compilation has not been built")
    if as_reference():
        raise Failure(Code.OH_NN_UNSUPPORTED, "the source exports nothing")
    return compilation.built.model.to_bytes()


@returns_code
def OH_NNCompilation_ImportCacheFromBuffer(compilation: OH_NNCompilation, buffer: Any) -> None:
    """Give what was exported; it is copied."""
    _before_build(compilation).saved = _content(buffer)


@returns_code
def OH_NNCompilation_AddExtensionConfig(
    compilation: OH_NNCompilation, configName: str, configValue: Any
) -> None:
    """Give a setting for the device; values of one name are joined by `|`."""
    compilation = live(compilation, OH_NNCompilation)
    if not isinstance(configName, str) or not configName:
        raise invalid(f"the name of a setting is {configName!r}")
    value = _content(configValue)
    old = compilation.extensions.get(configName)
    compilation.extensions[configName] = value if old is None else old + b"|" + value


@returns_code
def OH_NNCompilation_SetDevice(compilation: OH_NNCompilation, deviceID: int) -> None:
    """Choose the device; whether there is one is found when it is built."""
    _setting(compilation).device = deviceID


@returns_code
def OH_NNCompilation_SetCache(compilation: OH_NNCompilation, cachePath: str, version: int) -> None:
    """Keep what is compiled in a folder, under a version that programs count up.

    A relative path is relative to the current directory of this call.
    """
    compilation = _setting(compilation)
    named = isinstance(cachePath, str) and cachePath
    if not named or not isinstance(version, int) or version < 0:
        raise invalid(f"the folder is {cachePath!r} and the version {version!r}")
    compilation.cache = (os.path.abspath(cachePath), version)


@returns_code
def OH_NNCompilation_SetPerformanceMode(
    compilation: OH_NNCompilation, performanceMode: OH_NN_PerformanceMode
) -> None:
    """Say how much the device is to give for speed."""
    _checked_late(compilation, OH_NN_PerformanceMode, performanceMode)
    _setting(compilation).performance = performanceMode


@returns_code
def OH_NNCompilation_SetPriority(compilation: OH_NNCompilation, priority: OH_NN_Priority) -> None:
    """Set the place of runs among those that wait."""
    _checked_late(compilation, OH_NN_Priority, priority)
    _setting(compilation).priority = priority


@returns_code
def OH_NNCompilation_EnableFloat16(compilation: OH_NNCompilation, enableFloat16: bool) -> None:
    """Say whether float32 operations may compute in float16."""
    _setting(compilation).float16 = bool(enableFloat16)


@returns_code
def OH_NNCompilation_Build(compilation: OH_NNCompilation) -> None:
    """Compile; can be done once."""
    compilation = live(compilation, OH_NNCompilation)
    if compilation.built is not None:
        again: Callable[[str], Failure] = invalid if as_reference() else forbidden
        raise again("the compilation has been built")
    mode = member(OH_NN_PerformanceMode, compilation.performance)
    priority = member(OH_NN_Priority, compilation.priority)
    try:
        device = name_of(compilation.device)
    except Failure as error:
        raise Failure(Code.OH_NN_FAILED, str(error)) from None
    if compilation.model is not None and compilation.saved is not None:
        raise invalid("there is a model, and what was compiled earlier")
    compiled = (
        _compile(compilation, device, mode)
        if compilation.model is not None
        else _loaded(compilation)
    )
    compilation.built = Shared(compiled, Priority(int(priority)))


@returns_nothing
def OH_NNCompilation_Destroy(compilation: OH_NNCompilation | None) -> None:
    """Release a compilation; executors made of it stay. `None` is nothing to release."""
    if compilation is not None:
        live(compilation, OH_NNCompilation).destroy()


def _before_build(compilation: OH_NNCompilation) -> OH_NNCompilation:
    compilation = live(compilation, OH_NNCompilation)
    if compilation.built is not None:
        raise forbidden("the compilation has been built")
    return compilation


def _setting(compilation: OH_NNCompilation) -> OH_NNCompilation:
    """Return a compilation that takes settings; as the source has it, one that is built takes them too."""
    if as_reference():
        return live(compilation, OH_NNCompilation)
    return _before_build(compilation)


def _checked_late(compilation: OH_NNCompilation, kind: type[Any], value: object) -> None:
    """Values are stored unchecked before building; the source checks them after that."""
    if live(compilation, OH_NNCompilation).built is not None and as_reference():
        member(kind, value)


def _content(buffer: Any) -> bytes:
    held = byte_view(buffer).tobytes() if buffer is not None else b""
    if not held:
        raise invalid("there is nothing in the buffer")
    return held


def _compile(own: OH_NNCompilation, device: str, mode: OH_NN_PerformanceMode) -> CompiledModel:
    assert own.model is not None, "else it was compiled earlier"
    model = own.model.whole()
    folder, token = _place(own) if own.cache is not None else (None, "")
    try:
        compiled = compile(
            model,
            [device],
            precision="float16" if own.float16 else "float32",
            configuration=Configuration(
                performance=mode.name.removeprefix("OH_NN_PERFORMANCE_").lower()
            ),
            cache=CacheOptions(location=folder or False, token=token or False),
        )
    except UnsupportedError as error:
        if not own.float16:
            raise
        lacking = (
            Code.OH_NN_OPERATION_FORBIDDEN if as_reference() else Code.OH_NN_UNAVALIDABLE_DEVICE
        )
        raise Failure(lacking, f"in float16: {error}") from error
    if folder is not None:
        for old in _versions(folder) - {token}:
            Path(folder, f"{old}.nnc").unlink(missing_ok=True)
    return compiled


def _loaded(own: OH_NNCompilation) -> CompiledModel:
    if own.saved is None and own.cache is None:
        raise invalid("there is neither a model, nor a cache, nor what was compiled earlier")
    try:
        if own.saved is not None:
            return load_compiled(own.saved)
        folder, token = _place(own)
        return load_compiled(folder, token=token)
    except (Error, OSError) as error:
        offline = own.saved is not None and as_reference()
        code = Code.OH_NN_FAILED if offline else Code.OH_NN_INVALID_FILE
        raise Failure(code, str(error)) from error


def _place(own: OH_NNCompilation) -> tuple[str, str]:
    """Return the folder of the cache, and the name of what is kept there.

    Raises:
        Failure: there is no such folder, or a later version is kept in it.
    """
    assert own.cache is not None, "there is a cache"
    folder, version = own.cache
    if not os.path.isdir(folder):
        code = Code.OH_NN_INVALID_PARAMETER if as_reference() else Code.OH_NN_INVALID_PATH
        raise Failure(code, f"there is no folder {folder!r}")
    newest = max((int(name.rpartition("_")[2]) for name in _versions(folder)), default=0)
    if newest > version:
        refuse: Callable[[str], Failure] = forbidden if as_reference() else invalid
        raise refuse(f"version {newest} is kept, which is later than {version}")
    return folder, f"nnrt_{version}"


def _versions(folder: str) -> set[str]:
    return {name[:-4] for name in os.listdir(folder) if re.fullmatch(r"nnrt_\d+\.nnc", name)}
