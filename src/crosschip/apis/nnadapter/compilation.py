"""Functions that compile a model for the devices of a context."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

from crosschip.apis.buffers import octets
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
    """The result of a compilation.

    Attributes:
        model: what runs.
        signature: its inputs and outputs.
    """

    model: CompiledModel
    signature: Signature


class NNAdapterCompilation(Handle):
    """A model that is compiled, or about to be.

    Attributes:
        model: the model; `None` if there is none, or it is not to be used.
        context: the devices.
        token: the name of what was compiled earlier; empty if nothing is kept.
        saved: the content of that, or the folder that it is kept in; `None` for neither.
        compiled: what has been compiled; `None` before it is finished.
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
    """Take on a model to compile, or what was compiled earlier, in one of three ways.

    With a token and a buffer, what the buffer holds is used, and the model is not. With a token and
    a folder, `<token>.nnc` in the folder is used if it is there, and the model is not; else the
    model is compiled, and the file written. With neither, or a token alone, the model is compiled.
    What cannot be used (it is damaged, or was compiled for other devices) is told in the log, and
    the model is compiled if there is one.

    Args:
        model: a model that is finished; `None` if it is not needed.
        cache_token: a name for what is kept: letters, digits, dots, underscores and hyphens.
        cache_buffer: the content of a file that was written.
        cache_dir: the folder of such files.
        context: the devices.
    """
    own = live(context, NNAdapterContext)
    source = None if model is None else live(model, NNAdapterModel)
    token, saved = _saved_source(cache_token or "", cache_buffer, cache_dir or "")
    if isinstance(saved, bytes):
        # It is in place of the model, which need not even be finished.
        source = source if source is not None and source.finished is not None else None
    elif source is None and saved is None:
        raise invalid("there is neither a model nor what was compiled earlier")
    elif source is not None and source.finished is None:
        raise invalid("the model has not been finished")
    return NNAdapterCompilation(source, own, token, saved)


@returns_nothing
def NNAdapterCompilation_destroy(compilation: NNAdapterCompilation | None) -> None:
    """Release what was compiled; `None` is nothing to release."""
    if compilation is not None:
        live(compilation, NNAdapterCompilation).destroy()


@returns_code
def NNAdapterCompilation_finish(compilation: NNAdapterCompilation) -> None:
    """Compile; can be done once."""
    own = live(compilation, NNAdapterCompilation)
    if own.compiled is not None:
        raise invalid("the compilation has been finished")
    context = live(own.context, NNAdapterContext)
    model = None if own.model is None else live(own.model, NNAdapterModel).finished
    try:
        compiled = _loaded(own.token, own.saved, context)
    except Error as error:
        if model is None:
            raise invalid(str(error)) from error
        logger.info("%s; compiling the model", error)
        compiled = None
    if compiled is None:
        assert model is not None, "there is one if there is nothing else"
        folder = own.saved if isinstance(own.saved, str) else False
        compiled = compile(
            model.model,
            context.names,
            shapes=ShapeOptions(ranges=model.ranges, profiles=model.profiles),
            threads=context.threads,
            precision=context.precision,
            properties=context.properties,
            cache=CacheOptions(location=folder, token=own.token if folder else False),
        )
    own.compiled = Compiled(compiled, Signature.of(compiled.inputs, compiled.outputs))


@returns_value
def NNAdapterCompilation_queryInputsAndOutputs(
    compilation: NNAdapterCompilation,
    input_types: list[NNAdapterOperandType] | None = None,
    output_types: list[NNAdapterOperandType] | None = None,
) -> tuple[int, int]:
    """The numbers of inputs and outputs of what has been compiled, and their types.

    Args:
        compilation: what has been compiled.
        input_types: a list as long as there are inputs, to write their types into; `None` in the
            first of two calls, which asks for the numbers.
        output_types: the same for the outputs.
    """
    signature = finished(compilation).signature
    types_by_kind = (signature.inputs, signature.outputs)
    for places, types in zip((input_types, output_types), types_by_kind, strict=True):
        if places is not None and len(places) != len(types):
            raise invalid(f"there are {len(places)} places for {len(types)} types")
    for places, types in zip((input_types, output_types), types_by_kind, strict=True):
        if places is not None:
            places[:] = [type_.copy() for type_ in types]
    return len(types_by_kind[0]), len(types_by_kind[1])


def _saved_source(token: str, buffer: Any, folder: str) -> tuple[str, bytes | str | None]:
    """A token, and the content or the folder of what is kept under it."""
    if not isinstance(token, str) or not isinstance(folder, str):
        raise invalid(f"the token is {token!r} and the folder {folder!r}, but both must be text")
    if not token and (buffer is not None or folder):
        raise invalid("what is kept needs a token")
    if buffer is not None:
        return token, octets(buffer).tobytes()
    return token, folder or None


def _loaded(
    token: str, saved: bytes | str | None, context: NNAdapterContext
) -> CompiledModel | None:
    """The model that was compiled earlier; `None` if nothing is kept.

    Raises:
        Error: it is not there, is damaged, or was compiled for other devices.
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


def finished(compilation: NNAdapterCompilation) -> Compiled:
    """The result of a compilation.

    Raises:
        Failure: it has not been finished, or is no such handle.
    """
    own = live(compilation, NNAdapterCompilation)
    if own.compiled is None:
        raise invalid("the compilation has not been finished")
    return own.compiled
