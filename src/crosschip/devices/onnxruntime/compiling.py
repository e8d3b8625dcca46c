"""Compiling models with ONNX Runtime.

Compiling is two steps: ONNX Runtime optimizes the model for this processor, and a session is made
of the result. The result is what is saved, and loading is the second step alone, so that a loaded
program computes what the compiled one did, bit for bit. ONNX Runtime does not read all that it
writes of models with graphs in nodes or constants of strings: such a model, which control flow or
extension operations may bring, is saved as it is, and optimized whenever a session is made of it.
So is one that another provider than the processor's runs: what is optimized is for that one alone.
"""

from __future__ import annotations

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
from crosschip.devices.onnxruntime.lowering import PASS
from crosschip.devices.onnxruntime.memory import trim_heap
from crosschip.devices.onnxruntime.precision import has_bytes, multiplies_bytes, saturates
from crosschip.devices.onnxruntime.program import OnnxRuntimeProgram
from crosschip.devices.onnxruntime.provided import NotTaken
from crosschip.devices.onnxruntime.providers import Provider
from crosschip.devices.onnxruntime.saved import Facts
from crosschip.devices.onnxruntime.session import Settings
from crosschip.devices.onnxruntime.unchecked import sizes
from crosschip.hal import CompileError, Options, Profiler
from crosschip.ir import ElementType, Extension, Model, Operand, TensorType
from crosschip.passes.rewrite_operations import sources


def compile(
    model: Model, options: Options, *, spinning: bool, provider: Provider | None = None
) -> OnnxRuntimeProgram:
    """Compile a model of operations that there are converters for.

    Raises:
        CompileError: the provider leaves operations to the processor.
        DeviceError: ONNX Runtime failed.
    """
    payloads = payloads_of(model)
    facts = Facts(
        precise=_is_precise(model, payloads),
        optimize=provider is not None or not _survives_writing(model, payloads),
        apart=multiplies_bytes(model),
        checks=sizes(model).checks,
        declared=_declared(model),
    )
    settings = Settings.of(options, spinning, facts, provider)
    trim_heap()
    onnx_model = _onnx_model(model, payloads)
    if not facts.optimize:
        onnx_model = settings.optimized(onnx_model)
        trim_heap()
    try:
        return OnnxRuntimeProgram(onnx_model, settings, model, facts)
    except NotTaken as error:
        labels = {node.rpartition(".")[0] for node in error.nodes}
        named = [operation for operation in model.operations if operation.name in labels]
        raise CompileError(str(error), named) from error
    finally:
        trim_heap()


def _is_precise(model: Model, payloads: Payloads) -> bool:
    """Tell whether ONNX Runtime must be asked for products of bytes that never saturate.

    They take it twice as long, and it can be asked only where it can compute them.
    """
    return has_bytes(model) and saturates() and all(map(is_precise, payloads.values()))


def _survives_writing(model: Model, payloads: Payloads) -> bool:
    holds_graphs = any(operation.bodies for operation in model.operations)
    return not holds_graphs and all(map(survives_writing, payloads.values()))


def _onnx_model(model: Model, payloads: Payloads) -> OnnxModel:
    opset, types = _opset(payloads), types_in(payloads)
    graph = Graph(model.inputs.values(), opset=opset, types=types, branches=True)
    lowered = PASS.rewrite(model)
    originals = sources(model, lowered)
    for operation in lowered.operations:
        if isinstance(operation, Extension):
            graph.label = operation.name
            graph.define(operation, embed(graph, operation, payloads[operation]))
        else:
            control.add_operation(graph, operation, originals[operation].name)
    return graph.finish([*model.outputs.values(), *_unproven(model)])


def _opset(payloads: Payloads) -> int:
    """The version of the standard operators for a graph that holds all of these."""
    if not payloads:
        return OPSET
    # Most models have none, and to judge them takes all of ONNX's schemas.
    from crosschip.devices.onnxruntime.extensions import opset_of

    return opset_of(payloads)


def _declared(model: Model) -> list[tuple[int, str, TensorType]]:
    """The outputs of the ONNX model that nothing but the model's file vouches for."""
    return [
        (index, operand.name, operand.type)
        for index, operand in enumerate([*model.outputs.values(), *_unproven(model)])
        if isinstance(model.producers.get(operand), Extension)
        and operand.type.element_type is not ElementType.OBJECT
    ]


def _unproven(model: Model) -> Sequence[Operand]:
    """The operands inside the model that extensions make and operations of other kinds read.

    Nothing but the model's file vouches for their shapes, on which the conversion of what reads
    them relies: they are outputs, too, so that they can be checked.
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
    """The profiler of a program.

    Args:
        source: what it was compiled from.
        compiled: what it runs.
        make: makes one that records its nodes' times, from the beginning of the record's path.
    """
    # Seldom needed: compiling a model is to take no longer for it.
    from crosschip.devices.onnxruntime.profiling import Nodes, OnnxRuntimeProfiler

    made: list[OnnxRuntimeProgram] = []

    def recording(record: str) -> OnnxRuntimeProgram:
        made.append(make(record))
        return made[0]

    written = _onnx_model(source, payloads_of(source))
    nodes = Nodes(source, written.proto, compiled.proto)
    return OnnxRuntimeProfiler(recording, lambda: made[0].end_recording(), nodes)
