"""NNAdapter's functions that compile a model for a context's devices."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

from crosschip.apis.buffers import byte_view
from crosschip.apis.nnadapter.context import NNAdapterContext
from crosschip.apis.nnadapter.graph import NNAdapterModel
from crosschip.apis.nnadapter.results import (
    Handle,
    invalid,
    live,
    returns_code,
    returns_nothing,
    returns_value,
)
from crosschip.apis.nnadapter.signature import Signature
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import CacheError, Error
from crosschip.runtime.artifact.loading import load_compiled
from crosschip.runtime.compile.front_door import compile
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.options import CacheOptions, ShapeOptions

logger = logging.getLogger("crosschip.nnadapter")


class Compiled(NamedTuple):
    """A compiled model with its signature.

    Attributes:
        model: the compiled model.
        signature: NNAdapter's types of its inputs and outputs.
    """

    model: CompiledModel
    signature: Signature


class NNAdapterCompilation(Handle):
    """A compilation, before or after it is finished.

    Attributes:
        model: the model to compile; `None` if absent, or if a saved one is used instead.
        context: the devices.
        token: the cache token; empty without a cache.
        saved: the content of a cache file, or the cache folder; `None` without a cache.
        compiled: the result; `None` before the compilation is finished.
    """

    def __init__(
        self,
        model: NNAdapterModel | None,
        context: NNAdapterContext,
        token: str,
        saved: bytes | str | None,
    ) -> None:
        super().__init__()
        self.model = model
        self.context = context
        self.token = token
        self.saved = saved
        self.compiled: Compiled | None = None

    def destroy(self) -> None:
        super().destroy()
        if self.compiled is not None:
            self.compiled.model.close()
        self.model = None


@returns_value
def NNAdapterCompilation_create(
    model: NNAdapterModel | None,
    cache_token: str | None,
    cache_buffer: Any,
    cache_dir: str | None,
    context: NNAdapterContext,
) -> NNAdapterCompilation:
    """Create a compilation of a model, of a cached model, or of both.

    With a token and a buffer, the cached model in the buffer is used. With a token and a folder,
    the file `<token>.nnc` is used if it exists; else the model is compiled and the file is written.
    Otherwise the model is compiled without a cache. If the cached model is damaged or was compiled
    for other devices, this is logged and the model is compiled, if there is one.

    Args:
        model: a finished model; `None` if a cached model is used.
        cache_token: the cache token: letters, digits, dots, underscores and hyphens.
        cache_buffer: the content of a cache file.
        cache_dir: the folder of cache files.
        context: the devices.
    """
    context = live(context, NNAdapterContext)
    source = None if model is None else live(model, NNAdapterModel)
    token, saved = _saved_source(cache_token or "", cache_buffer, cache_dir or "")
    if isinstance(saved, bytes):
        # The buffer replaces the model, which need not be finished.
        source = source if source is not None and source.finished is not None else None
    elif source is None and saved is None:
        raise invalid("there is neither a model nor what was compiled earlier")
    elif source is not None and source.finished is None:
        raise invalid("the model has not been finished")
    return NNAdapterCompilation(source, context, token, saved)


@returns_nothing
def NNAdapterCompilation_destroy(compilation: NNAdapterCompilation | None) -> None:
    """Release a compilation; `None` is ignored."""
    if compilation is not None:
        live(compilation, NNAdapterCompilation).destroy()


@returns_code
def NNAdapterCompilation_finish(compilation: NNAdapterCompilation) -> None:
    """Compile or load the model; may be called once."""
    compilation = live(compilation, NNAdapterCompilation)
    if compilation.compiled is not None:
        raise invalid("the compilation has been finished")
    context = live(compilation.context, NNAdapterContext)
    model = None if compilation.model is None else live(compilation.model, NNAdapterModel).finished
    try:
        compiled = _load(compilation.token, compilation.saved, context)
    except Error as error:
        if model is None:
            raise invalid(str(error)) from error
        logger.info("%s; compiling the model", error)
        compiled = None
    if compiled is None:
        assert model is not None, "checked on creation"
        folder = compilation.saved if isinstance(compilation.saved, str) else False
        compiled = compile(
            model.model,
            context.names,
            shapes=ShapeOptions(ranges=model.ranges, profiles=model.profiles),
            threads=context.threads,
            precision=context.precision,
            properties=context.properties,
            cache=CacheOptions(location=folder, token=compilation.token if folder else False),
        )
    compilation.compiled = Compiled(compiled, Signature.of(compiled.inputs, compiled.outputs))


@returns_value
def NNAdapterCompilation_queryInputsAndOutputs(
    compilation: NNAdapterCompilation,
    input_types: list[NNAdapterOperandType] | None = None,
    output_types: list[NNAdapterOperandType] | None = None,
) -> tuple[int, int]:
    """Return the numbers of inputs and outputs, and store their types.

    Args:
        compilation: a finished compilation.
        input_types: a list with one element per input, to be overwritten with the types; `None`
            to query the numbers only.
        output_types: the same for the outputs.
    """
    signature = result_of(compilation).signature
    types_by_kind = (signature.inputs, signature.outputs)
    for target, types in zip((input_types, output_types), types_by_kind, strict=True):
        if target is not None and len(target) != len(types):
            raise invalid(f"there are {len(target)} places for {len(types)} types")
    for target, types in zip((input_types, output_types), types_by_kind, strict=True):
        if target is not None:
            target[:] = [type_.copy() for type_ in types]
    return len(types_by_kind[0]), len(types_by_kind[1])


def _saved_source(token: str, buffer: Any, folder: str) -> tuple[str, bytes | str | None]:
    """Return the cache token, and the cached content or the cache folder."""
    if not isinstance(token, str) or not isinstance(folder, str):
        raise invalid(f"the token is {token!r} and the folder {folder!r}, but both must be text")
    if not token and (buffer is not None or folder):
        raise invalid("a cache folder or buffer needs a token")
    if buffer is not None:
        return token, byte_view(buffer).tobytes()
    return token, folder or None


def _load(token: str, saved: bytes | str | None, context: NNAdapterContext) -> CompiledModel | None:
    """Load the cached model; return `None` without a cache.

    Raises:
        Error: the cache file does not exist, is damaged, or was compiled for other devices.
    """
    if saved is None:
        return None
    if isinstance(saved, str) and not os.path.isdir(saved):
        raise CacheError(f"there is no folder {saved!r}")
    compiled = load_compiled(saved, token=token)
    devices = {segment.device for segment in compiled.placement.segments}
    if not devices <= set(context.names):
        compiled.close()
        raise CacheError(f"{token}: was compiled for {', '.join(sorted(devices))}")
    return compiled


def result_of(compilation: NNAdapterCompilation) -> Compiled:
    """Return a compilation's result.

    Raises:
        Failure: it has not been finished, or the handle is invalid.
    """
    compilation = live(compilation, NNAdapterCompilation)
    if compilation.compiled is None:
        raise invalid("the compilation has not been finished")
    return compilation.compiled
