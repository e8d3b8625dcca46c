"""Compiling models with OpenVINO, and counting the time of their layers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from crosschip.devices.openvino.chains import wrongly_chained_products
from crosschip.devices.openvino.converters import converters
from crosschip.devices.openvino.converters.quantization import (
    dequantized_addends,
    maybe_nan,
    quantized_intermediates,
)
from crosschip.devices.openvino.failures import failure
from crosschip.devices.openvino.graph import Graph
from crosschip.devices.openvino.lowering import REWRITES
from crosschip.devices.openvino.meeting import meeting_constants, scaled_integers
from crosschip.devices.openvino.precision import activations, exact_bytes
from crosschip.devices.openvino.program import Engine, OpenVinoProgram
from crosschip.devices.openvino.sharing import threads
from crosschip.devices.openvino.unchecked import sizes
from crosschip.hal import Options, Profiler
from crosschip.ir import Model
from crosschip.lowering.legalization import legalize


def compile(engine: Engine, model: Model, options: Options) -> OpenVinoProgram:
    """Compile a model of operations that there are converters for.

    Raises:
        DeviceError: OpenVINO failed.
    """
    settings = activations(model)
    if engine.device == "CPU":
        settings |= threads(model, options) | exact_bytes(model)
    config = {**engine.config(options), **settings}
    legal = legalize(model, REWRITES)
    graph = _empty_graph(legal.model)
    graph.requirements.settings = settings
    try:
        for operation in legal.model.operations:
            graph.define(operation, converters.convert(graph, operation))
        built = graph.finish(model.outputs.values())
        graph.requirements.checks = sizes(model).checks
        make = partial(engine.core.compile_model, built, engine.device, config)
        counted = partial(profiler, engine, model, config)
        return OpenVinoProgram(make, graph.requirements, model, graph.kept, counted)
    except RuntimeError as error:
        raise failure("failed to compile", error) from error


def profiler(engine: Engine, model: Model, config: Mapping[str, Any]) -> Profiler:
    """A program that counts the time of its layers, which are named after operations."""
    # Seldom needed: compiling a model is to take no longer for it.
    from crosschip.devices.openvino.profiling import Layers, OpenVinoProfiler

    legal = legalize(model, REWRITES)
    graph = _empty_graph(legal.model)
    layers = Layers(graph)
    try:
        for operation in legal.model.operations:
            values = converters.convert(graph, operation)
            layers.name(legal.source(operation), values)
            graph.define(operation, values)
        built = graph.finish(model.outputs.values())
        graph.requirements.checks = sizes(model).checks
        counting = {**config, "PERF_COUNT": True}
        compiled = engine.core.compile_model(built, engine.device, counting)
    except RuntimeError as error:
        raise failure("failed to compile", error) from error
    program = OpenVinoProgram(lambda: compiled, graph.requirements, model, graph.kept)
    return OpenVinoProfiler(program, layers.executed(compiled), program.mean_seconds)


def _empty_graph(model: Model) -> Graph:
    return Graph(
        model.inputs.values(),
        quantized_intermediates=quantized_intermediates(model),
        meeting_constants=meeting_constants(model),
        scaled=scaled_integers(model),
        dequantized_addends=dequantized_addends(model),
        maybe_nan=maybe_nan(model),
        wrongly_chained=wrongly_chained_products(model),
    )
