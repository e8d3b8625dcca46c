"""Compilation of models with OpenVINO, and of models whose layers are profiled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from crosschip.devices.openvino.converters import converters
from crosschip.devices.openvino.failures import failure
from crosschip.devices.openvino.graph import Graph
from crosschip.devices.openvino.lowering.quantization import (
    dequantized_addends,
    quantized_intermediates,
)
from crosschip.devices.openvino.precision import activations, exact_bytes
from crosschip.devices.openvino.program import Engine, OpenVinoProgram
from crosschip.devices.openvino.sharing import threads
from crosschip.devices.openvino.target import TARGET
from crosschip.devices.openvino.unchecked import sizes
from crosschip.hal import CompileError, Options, Profiler
from crosschip.ir import Model
from crosschip.passes.base import run
from crosschip.passes.rewrite_operations import sources


def compile(engine: Engine, model: Model, options: Options) -> OpenVinoProgram:
    """Compile a model all of whose operations have converters.

    Raises:
        DeviceError: OpenVINO failed.
    """
    settings = activations(model)
    if engine.device == "CPU":
        settings |= threads(model, options) | exact_bytes(model)
    config = {**engine.config(options), **settings}
    # Unsupported operations were decomposed by the runtime.
    legal = run(model, TARGET.passes)
    graph = _empty_graph(model)
    graph.requirements.settings = settings
    try:
        for operation in legal.operations:
            graph.define(operation, converters.convert(graph, operation))
        built = graph.finish(legal.outputs.values())
        graph.requirements.checks = sizes(model).checks
        make = partial(engine.core.compile_model, built, engine.device, config)
        counted = partial(profiler, engine, model, config)
        return OpenVinoProgram(make, graph.requirements, model, graph.constant_arrays, counted)
    except CompileError as error:
        by_name = {operation.name: source for operation, source in sources(model, legal).items()}
        raise CompileError(str(error), [by_name[name] for name in error.operations]) from error
    except RuntimeError as error:
        raise failure("failed to compile", error) from error


def profiler(engine: Engine, model: Model, config: Mapping[str, Any]) -> Profiler:
    """Return a profiler that measures the layers of a model, named after its operations."""
    # Imported late: rarely needed.
    from crosschip.devices.openvino.profiling import Layers, OpenVinoProfiler

    legal = run(model, TARGET.passes)
    originals = sources(model, legal)
    graph = _empty_graph(model)
    layers = Layers(graph)
    try:
        for operation in legal.operations:
            values = converters.convert(graph, operation)
            layers.name(originals[operation], values)
            graph.define(operation, values)
        built = graph.finish(legal.outputs.values())
        graph.requirements.checks = sizes(model).checks
        counting = {**config, "PERF_COUNT": True}
        compiled = engine.core.compile_model(built, engine.device, counting)
    except RuntimeError as error:
        raise failure("failed to compile", error) from error
    program = OpenVinoProgram(lambda: compiled, graph.requirements, model, graph.constant_arrays)
    return OpenVinoProfiler(program, layers.executed(compiled), program.mean_seconds)


def _empty_graph(model: Model) -> Graph:
    return Graph(
        model.inputs.values(),
        quantized_intermediates=quantized_intermediates(model),
        dequantized_addends=dequantized_addends(model),
    )
