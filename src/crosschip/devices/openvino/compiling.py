"""Compilation of models with OpenVINO, and of models whose layers are profiled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

from crosschip.devices.openvino.converters import converters
from crosschip.devices.openvino.converters.recurrent import is_plain
from crosschip.devices.openvino.graph import Graph
from crosschip.devices.openvino.lowering.quantization import (
    dequantized_addends,
    quantized_intermediates,
)
from crosschip.devices.openvino.precision import activations, exact_bytes
from crosschip.devices.openvino.program import Engine, OpenVinoProgram
from crosschip.devices.openvino.request import failure
from crosschip.devices.openvino.target import TARGET
from crosschip.devices.openvino.unchecked import size_checks
from crosschip.hal import CompileError, Options, Profiler
from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Model, Operation
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.recurrent import Recurrent
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
        graph.requirements.checks = size_checks(model).checks
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
        graph.requirements.checks = size_checks(model).checks
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


_STEP = 13_000.0
"""The overhead of several threads in each step of a loop, in nanoseconds."""
_MULTIPLY_ADD = 0.01
_ELEMENT = 0.7
"""The time of one thread per output element, in nanoseconds."""


def threads(model: Model, options: Options) -> dict[str, Any]:
    """Return the setting for one thread per run, if several threads are estimated to be slower."""
    count = options.threads_each or os.cpu_count() or 1
    steps = sum(map(_steps, model.operations))
    gain = sum(map(_nanoseconds, model.operations)) * (1 - 1 / count)
    return {"INFERENCE_NUM_THREADS": options.in_flight} if steps * _STEP > gain else {}


def _steps(operation: Operation) -> int:
    """Return how often a loop body runs; 0 without a loop or with a dynamic number of steps."""
    if not isinstance(operation, Recurrent) or is_plain(operation):
        return 0
    steps = shape_of(operation.input)[0]
    return steps * len(operation.direction.passes) if isinstance(steps, int) else 0


def _nanoseconds(operation: Operation) -> float:
    """Estimate the time of an operation on one thread from its multiply-adds and outputs."""
    elements = sum(prod(output.type.static_shape or ()) for output in operation.outputs)
    moves = getattr(operation, "moves", False)
    return multiply_adds(operation) * _MULTIPLY_ADD + (0 if moves else elements * _ELEMENT)
