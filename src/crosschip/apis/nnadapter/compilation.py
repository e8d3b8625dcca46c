"""Functions that compile a model for the devices of a context."""

from __future__ import annotations

from typing import Any, NamedTuple

from crosschip.apis.nnadapter.context import NNAdapterContext
from crosschip.apis.nnadapter.enumerations import NNAdapterResultCode
from crosschip.apis.nnadapter.graph import NNAdapterModel
from crosschip.apis.nnadapter.results import (
    Failure,
    Handle,
    invalid,
    live,
    returns_code,
    returns_nothing,
    returns_value,
)
from crosschip.apis.nnadapter.signature import Signature
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.compiler import compile


class Compiled(NamedTuple):
    """What has been compiled.

    Attributes:
        model: what runs.
        signature: its inputs and outputs.
    """

    model: CompiledModel
    signature: Signature


class NNAdapterCompilation(Handle):
    """A model that is compiled, or about to be.

    Attributes:
        model: the model; `None` once it is destroyed.
        context: the devices.
        folder: where its programs are kept; `None` for nowhere.
        compiled: what has been compiled; `None` before it is finished.
    """

    def __init__(
        self, model: NNAdapterModel, context: NNAdapterContext, folder: str | None
    ) -> None:
        super().__init__()
        self.model: NNAdapterModel | None = model
        self.context = context
        self.folder = folder
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
    """Take on a model to compile.

    With a token and a folder, compiled programs are kept in the folder, by their content. What was
    compiled earlier is not used in place of a model yet.

    Args:
        model: a model that is finished.
        cache_token: a name for what is kept.
        cache_buffer: what was kept.
        cache_dir: the folder that it is kept in.
        context: the devices.
    """
    own = live(context, NNAdapterContext)
    if (cache_buffer is not None or cache_dir) and not cache_token:
        raise invalid("what is kept needs a token")
    if cache_buffer is not None or (model is None and cache_dir):
        code = NNAdapterResultCode.NNADAPTER_FEATURE_NOT_SUPPORTED
        raise Failure(code, "a model is needed: what was compiled earlier cannot take its place")
    source = live(model, NNAdapterModel)
    if source.finished is None:
        raise invalid("the model has not been finished")
    return NNAdapterCompilation(source, own, cache_dir or None)


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
    model = live(own.model, NNAdapterModel).finished
    assert model is not None, "only finished models are taken on"
    compiled = compile(
        model.model,
        context.names,
        cache=own.folder or False,
        threads=context.threads,
        properties=context.properties,
        ranges=model.ranges,
        profiles=model.profiles,
    )
    own.compiled = Compiled(compiled, Signature.of(model.model))


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
    found = (signature.inputs, signature.outputs)
    for places, types in zip((input_types, output_types), found, strict=True):
        if places is not None and len(places) != len(types):
            raise invalid(f"there are {len(places)} places for {len(types)} types")
    for places, types in zip((input_types, output_types), found, strict=True):
        if places is not None:
            places[:] = [type_.copy() for type_ in types]
    return len(found[0]), len(found[1])


def finished(compilation: NNAdapterCompilation) -> Compiled:
    """What has been compiled.

    Raises:
        Failure: it has not, or is no such handle.
    """
    own = live(compilation, NNAdapterCompilation)
    if own.compiled is None:
        raise invalid("the compilation has not been finished")
    return own.compiled
