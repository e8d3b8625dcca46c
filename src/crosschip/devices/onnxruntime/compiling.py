"""Compilation of models with ONNX Runtime.

ONNX Runtime optimizes the model for this processor, and a session is created from the result, which
is also what is saved: a loaded program computes the same bits. Models with subgraphs or string
constants, from control flow or extension operations, are saved unoptimized, since ONNX Runtime
cannot read all that it writes of these; they are optimized when a session is created. So are models
for other providers, whose optimized form depends on the provider.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence

from crosschip.devices.kits.onnx import control
from crosschip.devices.kits.onnx.graph import OPSET, Graph
from crosschip.devices.kits.onnx.model import OnnxModel
from crosschip.devices.onnxruntime.embedding import (
    Payloads,
    embed,
    is_precise,
    payloads_of,
    survives_writing,
    types_in,
)
from crosschip.devices.onnxruntime.lowering import copy_shared_weights, lower
from crosschip.devices.onnxruntime.precision import has_bytes, multiplies_bytes, saturates
from crosschip.devices.onnxruntime.program import OnnxRuntimeProgram
from crosschip.devices.onnxruntime.providers import Provider
from crosschip.devices.onnxruntime.saved import Facts
from crosschip.devices.onnxruntime.session import NotTaken, Settings
from crosschip.devices.onnxruntime.unchecked import sizes
from crosschip.hal import CompileError, Options, Profiler
from crosschip.ir import ElementType, Extension, Model, Operand, TensorType
from crosschip.passes.rewrite_operations import sources


def compile(
    model: Model, options: Options, *, spinning: bool, provider: Provider | None = None
) -> OnnxRuntimeProgram:
    """Compile a model all of whose operations have converters.

    Raises:
        CompileError: the provider leaves operations to the processor.
        DeviceError: ONNX Runtime failed.
    """
    payloads = payloads_of(model)
    facts = Facts(
        precise=_is_precise(model, payloads),
        optimize=provider is not None or not _survives_writing(model, payloads),
        sums_separate=multiplies_bytes(model),
        checks=sizes(model).checks,
        declared=_declared(model),
    )
    settings = Settings.of(options, spinning, facts, provider)
    trim_heap()
    onnx_model = _onnx_model(model, payloads, precise=facts.precise)
    if not facts.optimize:
        onnx_model = settings.optimized(onnx_model)
        trim_heap()
    try:
        return OnnxRuntimeProgram(onnx_model, settings, model, facts)
    except NotTaken as error:
        labels = {node.rpartition(".")[0] for node in error.nodes}
        operations = [operation for operation in model.operations if operation.name in labels]
        raise CompileError(str(error), operations) from error
    finally:
        trim_heap()


def _is_precise(model: Model, payloads: Payloads) -> bool:
    """Return whether products of bytes must be computed without saturation.

    That takes twice as long, and is possible only if all operations can be.
    """
    return has_bytes(model) and saturates() and all(map(is_precise, payloads.values()))


def _survives_writing(model: Model, payloads: Payloads) -> bool:
    holds_graphs = any(operation.bodies for operation in model.operations)
    return not holds_graphs and all(map(survives_writing, payloads.values()))


def _onnx_model(model: Model, payloads: Payloads, *, precise: bool) -> OnnxModel:
    opset, types = _opset(payloads), types_in(payloads)
    graph = Graph(model.inputs.values(), opset=opset, types=types, branches=True)
    lowered = lower(model)
    if precise:
        lowered = copy_shared_weights(lowered)
    originals = sources(model, lowered)
    for operation in lowered.operations:
        if isinstance(operation, Extension):
            graph.label = operation.name
            graph.define(operation, embed(graph, operation, payloads[operation]))
        else:
            control.add_operation(graph, operation, originals[operation].name)
    return graph.finish([*model.outputs.values(), *_unproven(model)])


def _opset(payloads: Payloads) -> int:
    """Return the version of the standard operators for a graph with these extensions."""
    if not payloads:
        return OPSET
    # Imported late: reads all of ONNX's schemas.
    from crosschip.devices.onnxruntime.extensions import opset_of

    return opset_of(payloads)


def _declared(model: Model) -> list[tuple[int, str, TensorType]]:
    """Return the outputs whose types only the model's file declares: index, name and type."""
    return [
        (index, operand.name, operand.type)
        for index, operand in enumerate([*model.outputs.values(), *_unproven(model)])
        if isinstance(model.producers.get(operand), Extension)
        and operand.type.element_type is not ElementType.OBJECT
    ]


def _unproven(model: Model) -> Sequence[Operand]:
    """Return the inner operands that extensions produce and other operations read.

    Only the model's file declares their shapes, on which conversion relies: they become outputs, so
    that their shapes can be checked.
    """
    outputs = set(model.outputs.values())
    read = {
        operand
        for operation in model.operations
        if not isinstance(operation, Extension)
        for operand in operation.inputs
        if operand is not None and operand.type.shape is not None
    }
    return [
        operand
        for operation in model.operations
        if isinstance(operation, Extension)
        for operand in operation.outputs
        if operand in read and operand not in outputs
    ]


def profiler(
    source: Model, compiled: OnnxModel, make: Callable[[str], OnnxRuntimeProgram]
) -> Profiler:
    """Return the profiler of a program.

    Args:
        source: the source model.
        compiled: the ONNX model that runs.
        make: creates a program that records node times, given the prefix of the record's path.
    """
    # Imported late: rarely needed.
    from crosschip.devices.onnxruntime.profiling import Nodes, OnnxRuntimeProfiler

    programs: list[OnnxRuntimeProgram] = []

    def recording(record: str) -> OnnxRuntimeProgram:
        programs.append(make(record))
        return programs[0]

    payloads = payloads_of(source)
    onnx_model = _onnx_model(source, payloads, precise=_is_precise(source, payloads))
    nodes = Nodes(source, onnx_model.proto, compiled.proto)
    return OnnxRuntimeProfiler(recording, lambda: programs[0].end_recording(), nodes)


def trim_heap() -> None:
    """Return free memory to the system.

    The GNU C library keeps freed memory. ONNX Runtime copies all weights more than once to compile
    a model, so that more than their size would stay allocated. Other C libraries are not called.
    Source: https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
