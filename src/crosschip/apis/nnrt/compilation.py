"""NNRt's functions that compile a model."""

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
    """A compiled model with a reference count; the last release closes it.

    Attributes:
        model: the compiled model.
        priority: the priority of runs.
    """

    def __init__(self, model: CompiledModel, priority: Priority) -> None:
        self.model = model
        self.priority = priority
        self._holders = 1

    def hold(self) -> Shared:
        """Increment the reference count."""
        self._holders += 1
        return self

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Run the model; without a priority, do not queue."""
        if self.priority is Priority.NONE:
            return self.model.run(inputs)
        return self.model.submit(inputs, priority=self.priority).result()

    def release(self) -> None:
        """Decrement the reference count; close the model at 0."""
        self._holders -= 1
        if not self._holders:
            self.model.close()


class OH_NNCompilation(Handle):
    """A compilation, before or after it is built.

    Attributes:
        model: the model, whose handle may have been destroyed; `None` for a saved model.
        saved: a compiled model's bytes; `None` for a model, or one in the cache.
        device: the device's number; 0 for the first.
        cache: the cache folder and version; `None` without a cache.
        performance: the performance mode.
        priority: the priority of runs.
        float16: whether float32 operations may compute in float16.
        extensions: device settings, by name.
        built: the compiled model; `None` before the compilation is built.
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
    """Create a compilation of a model, which may be destroyed afterwards."""
    return OH_NNCompilation(live(model, OH_NNModel))


@returns_handle
def OH_NNCompilation_ConstructForCache() -> OH_NNCompilation:
    """Create a compilation for a model that the cache or a buffer will supply."""
    return OH_NNCompilation(None)


@returns_handle
def OH_NNCompilation_ConstructWithOfflineModelFile(modelPath: str) -> OH_NNCompilation:
    """Create a compilation from a file that `CompiledModel.save` wrote."""
    if not isinstance(modelPath, str) or not os.path.isfile(modelPath):
        raise invalid(f"there is no file {modelPath!r}")
    return OH_NNCompilation(None, Path(modelPath).read_bytes())


@returns_handle
def OH_NNCompilation_ConstructWithOfflineModelBuffer(modelBuffer: Any) -> OH_NNCompilation:
    """Create a compilation from the content of such a file."""
    return OH_NNCompilation(None, _content(modelBuffer))


@returns_value
def OH_NNCompilation_ExportCacheToBuffer(compilation: OH_NNCompilation) -> bytes:
    """Return the compiled model as bytes."""
    compilation = live(compilation, OH_NNCompilation)
    if compilation.built is None:
        raise invalid("the compilation has not been built")
    if as_reference():
        raise Failure(Code.OH_NN_UNSUPPORTED, "the source exports nothing")
    return compilation.built.model.to_bytes()


@returns_code
def OH_NNCompilation_ImportCacheFromBuffer(compilation: OH_NNCompilation, buffer: Any) -> None:
    """Set the compiled model from exported bytes, which are copied."""
    _unbuilt(compilation).saved = _content(buffer)


@returns_code
def OH_NNCompilation_AddExtensionConfig(
    compilation: OH_NNCompilation, configName: str, configValue: Any
) -> None:
    """Add a device setting; values with the same name are joined by `|`."""
    compilation = live(compilation, OH_NNCompilation)
    if not isinstance(configName, str) or not configName:
        raise invalid(f"the name of a setting is {configName!r}")
    value = _content(configValue)
    old = compilation.extensions.get(configName)
    compilation.extensions[configName] = value if old is None else old + b"|" + value


@returns_code
def OH_NNCompilation_SetDevice(compilation: OH_NNCompilation, deviceID: int) -> None:
    """Set the device; it is looked up when the compilation is built."""
    _configurable(compilation).device = deviceID


@returns_code
def OH_NNCompilation_SetCache(compilation: OH_NNCompilation, cachePath: str, version: int) -> None:
    """Cache the compiled model in a folder, under a version that the program increases.

    A relative path is resolved now.
    """
    compilation = _configurable(compilation)
    is_path = isinstance(cachePath, str) and cachePath
    if not is_path or not isinstance(version, int) or version < 0:
        raise invalid(f"the folder is {cachePath!r} and the version {version!r}")
    compilation.cache = (os.path.abspath(cachePath), version)


@returns_code
def OH_NNCompilation_SetPerformanceMode(
    compilation: OH_NNCompilation, performanceMode: OH_NN_PerformanceMode
) -> None:
    """Set the performance mode."""
    _check_if_built(compilation, OH_NN_PerformanceMode, performanceMode)
    _configurable(compilation).performance = performanceMode


@returns_code
def OH_NNCompilation_SetPriority(compilation: OH_NNCompilation, priority: OH_NN_Priority) -> None:
    """Set the priority of runs."""
    _check_if_built(compilation, OH_NN_Priority, priority)
    _configurable(compilation).priority = priority


@returns_code
def OH_NNCompilation_EnableFloat16(compilation: OH_NNCompilation, enableFloat16: bool) -> None:
    """Set whether float32 operations may compute in float16."""
    _configurable(compilation).float16 = bool(enableFloat16)


@returns_code
def OH_NNCompilation_Build(compilation: OH_NNCompilation) -> None:
    """Compile or load the model; may be called once."""
    compilation = live(compilation, OH_NNCompilation)
    if compilation.built is not None:
        failure: Callable[[str], Failure] = invalid if as_reference() else forbidden
        raise failure("the compilation has been built")
    mode = member(OH_NN_PerformanceMode, compilation.performance)
    priority = member(OH_NN_Priority, compilation.priority)
    try:
        device = name_of(compilation.device)
    except Failure as error:
        raise Failure(Code.OH_NN_FAILED, str(error)) from None
    if compilation.model is not None and compilation.saved is not None:
        raise invalid("there is a model, and what was compiled earlier")
    compiled = (
        _compile(compilation, device, mode) if compilation.model is not None else _load(compilation)
    )
    compilation.built = Shared(compiled, Priority(int(priority)))


@returns_nothing
def OH_NNCompilation_Destroy(compilation: OH_NNCompilation | None) -> None:
    """Release a compilation; its executors remain valid. `None` is ignored."""
    if compilation is not None:
        live(compilation, OH_NNCompilation).destroy()


def _unbuilt(compilation: OH_NNCompilation) -> OH_NNCompilation:
    compilation = live(compilation, OH_NNCompilation)
    if compilation.built is not None:
        raise forbidden("the compilation has been built")
    return compilation


def _configurable(compilation: OH_NNCompilation) -> OH_NNCompilation:
    """Return a compilation after checking that it accepts settings.

    In reference mode, one that has been built accepts them, too.
    """
    if as_reference():
        return live(compilation, OH_NNCompilation)
    return _unbuilt(compilation)


def _check_if_built(compilation: OH_NNCompilation, kind: type[Any], value: object) -> None:
    """In reference mode, check a value once the compilation has been built.

    The reference implementation stores values unchecked before that.
    """
    if live(compilation, OH_NNCompilation).built is not None and as_reference():
        member(kind, value)


def _content(buffer: Any) -> bytes:
    content = byte_view(buffer).tobytes() if buffer is not None else b""
    if not content:
        raise invalid("there is nothing in the buffer")
    return content


def _compile(
    compilation: OH_NNCompilation, device: str, mode: OH_NN_PerformanceMode
) -> CompiledModel:
    assert compilation.model is not None, "the caller checks this"
    model = compilation.model.built_model()
    folder, token = _cache_location(compilation) if compilation.cache is not None else (None, "")
    try:
        compiled = compile(
            model,
            [device],
            precision="float16" if compilation.float16 else "float32",
            configuration=Configuration(
                performance=mode.name.removeprefix("OH_NN_PERFORMANCE_").lower()
            ),
            cache=CacheOptions(location=folder or False, token=token or False),
        )
    except UnsupportedError as error:
        if not compilation.float16:
            raise
        code = Code.OH_NN_OPERATION_FORBIDDEN if as_reference() else Code.OH_NN_UNAVALIDABLE_DEVICE
        raise Failure(code, f"in float16: {error}") from error
    if folder is not None:
        for old in _versions(folder) - {token}:
            Path(folder, f"{old}.nnc").unlink(missing_ok=True)
    return compiled


def _load(compilation: OH_NNCompilation) -> CompiledModel:
    if compilation.saved is None and compilation.cache is None:
        raise invalid("there is neither a model, nor a cache, nor what was compiled earlier")
    try:
        if compilation.saved is not None:
            return load_compiled(compilation.saved)
        folder, token = _cache_location(compilation)
        return load_compiled(folder, token=token)
    except (Error, OSError) as error:
        is_offline_reference = compilation.saved is not None and as_reference()
        code = Code.OH_NN_FAILED if is_offline_reference else Code.OH_NN_INVALID_FILE
        raise Failure(code, str(error)) from error


def _cache_location(compilation: OH_NNCompilation) -> tuple[str, str]:
    """Return the cache's folder and the token of its entry.

    Raises:
        Failure: there is no such folder, or it holds a later version.
    """
    assert compilation.cache is not None, "there is a cache"
    folder, version = compilation.cache
    if not os.path.isdir(folder):
        code = Code.OH_NN_INVALID_PARAMETER if as_reference() else Code.OH_NN_INVALID_PATH
        raise Failure(code, f"there is no folder {folder!r}")
    newest = max((int(name.rpartition("_")[2]) for name in _versions(folder)), default=0)
    if newest > version:
        failure: Callable[[str], Failure] = forbidden if as_reference() else invalid
        raise failure(f"version {newest} is kept, which is later than {version}")
    return folder, f"nnrt_{version}"


def _versions(folder: str) -> set[str]:
    return {name[:-4] for name in os.listdir(folder) if re.fullmatch(r"nnrt_\d+\.nnc", name)}
