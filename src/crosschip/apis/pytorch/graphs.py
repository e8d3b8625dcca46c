"""Compilation and execution of a graph that `torch.compile` captured."""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._guards import tracing

import crosschip
from crosschip.apis.pytorch.report import record
from crosschip.importers.pytorch.exporting import export_module, import_exported
from crosschip.ir import Array, InputError, Model, UnsupportedError
from crosschip.runtime.compiled import CompiledModel

_RANDOM = frozenset(
    (
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
        *("RandomUniformLike", "Dropout"),
    )
)
"""ONNX operators that draw random numbers; the exporter writes Dropout only for training."""


def compile_graph(
    graph_module: Any, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Callable[..., Any]:
    """Compile a graph for devices, or return its own function if they cannot run it.

    Raises:
        InputError: `crosschip.compile` does not take the options.
        DeviceError: a device is unknown or failed to load.
    """
    _check_options(options)
    reason = _reason_against(graph_module, inputs)
    if not reason:
        try:
            graph = _CompiledGraph(graph_module, inputs, options)
        except UnsupportedError as error:
            reason = str(error)
        else:
            decisions = graph.compiled.placement.decisions
            record(Counter(str(decision.device) for decision in decisions))
            return graph
    record({}, reason)
    function: Callable[..., Any] = graph_module.forward
    return function


def _check_options(options: Mapping[str, Any]) -> None:
    try:
        inspect.signature(crosschip.compile).bind(None, **options)
    except TypeError as error:
        raise InputError(f"options of torch.compile: crosschip.compile {error}") from None


def _reason_against(graph_module: Any, inputs: Sequence[Any]) -> str:
    """Return why PyTorch has to run a graph; empty if it need not."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return "it needs gradients; call the model in `with torch.inference_mode():`"
    (output,) = graph_module.graph.find_nodes(op="output")
    results = [_example(each) for each in output.args[0]]
    if not all(isinstance(result, torch.Tensor) for result in results):
        return "an output is no tensor"
    memory = {_memory(_example(node)) for node in graph_module.graph.find_nodes(op="placeholder")}
    if any(_memory(result) in memory for result in results):
        return "an output shares the memory of an input"
    return ""


def _example(node: Any) -> Any:
    """Return the tensor without elements that PyTorch traced for a node."""
    return node.meta["example_value"] if isinstance(node, torch.fx.Node) else node


def _memory(value: Any) -> object:
    """Return an identifier of a tensor's memory; a unique one for another value."""
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else object()


def _is_weight(value: Any) -> bool:
    """Return whether an input is a parameter or buffer of a module, and not the caller's."""
    # PyTorch marks those of modules whose changes it does not guard against.
    is_static = getattr(value, "_dynamo_static_input_type", None) is not None
    return isinstance(value, torch.Tensor) and (is_static or isinstance(value, torch.nn.Parameter))


class _Inputs:
    """The inputs of a graph: weights, tensors of the caller, and sizes of these.

    Args:
        graph_module: the graph.
        inputs: examples.
    """

    def __init__(self, graph_module: Any, inputs: Sequence[Any]) -> None:
        nodes = graph_module.graph.find_nodes(op="placeholder")
        self.traced = [node.meta["example_value"] for node in nodes]
        self.weights = [index for index, each in enumerate(inputs) if _is_weight(each)]
        self.tensors = [
            index
            for index, each in enumerate(inputs)
            if isinstance(each, torch.Tensor) and not _is_weight(each)
        ]
        axes = {
            str(size): (index, axis)
            for index in self.tensors
            for axis, size in enumerate(self.traced[index].shape)
        }
        self.sizes: dict[int, tuple[int, int]] = {}
        self.constants: dict[int, Any] = {}
        for index in sorted({*range(len(inputs))} - {*self.weights, *self.tensors}):
            if str(self.traced[index]) in axes:
                self.sizes[index] = axes[str(self.traced[index])]
            else:
                self.constants[index] = _fixed(inputs[index])

    def dynamic_shapes(self) -> list[dict[int, Any]]:
        """Return the axes of each of the caller's tensors whose sizes may change."""
        return [
            {
                axis: torch.export.Dim.AUTO
                for axis, size in enumerate(self.traced[index].shape)
                if isinstance(size, torch.SymInt)
            }
            for index in self.tensors
        ]

    def fix_sizes(self, model: Model | None) -> None:
        """Have PyTorch capture another graph for other sizes where a model has fixed ones.

        Args:
            model: takes the caller's tensors in order; `None` if all sizes are to be fixed.
        """
        operands = [None] * len(self.tensors) if model is None else model.inputs.values()
        for index, operand in zip(self.tensors, operands, strict=True):
            for axis, size in enumerate(self.traced[index].shape):
                if operand is None or isinstance((operand.type.shape or ())[axis], int):
                    _fixed(size)


def _fixed(value: Any) -> Any:
    """Return a number; PyTorch captures another graph if a symbolic one has another value."""
    if isinstance(value, torch.SymInt):
        return int(value)
    return float(value) if isinstance(value, torch.SymFloat) else value


class _Graph(torch.nn.Module):
    """The graph as a module: weights are buffers, and the caller's tensors are arguments."""

    def __init__(self, graph_module: Any, inputs: _Inputs, weights: Sequence[Any]) -> None:
        super().__init__()
        self._graph = graph_module
        self._inputs = inputs
        for index, weight in zip(inputs.weights, weights, strict=True):
            self.register_buffer(f"weight_{index}", weight.detach())

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        values = {**self._inputs.constants, **dict(zip(self._inputs.tensors, tensors, strict=True))}
        values |= {index: getattr(self, f"weight_{index}") for index in self._inputs.weights}
        for index, (tensor, axis) in self._inputs.sizes.items():
            values[index] = values[tensor].shape[axis]
        return tuple(self._graph(*(values[index] for index in sorted(values))))


class _CompiledGraph:
    """A graph that runs on devices; it is compiled again when a weight has changed."""

    def __init__(
        self, graph_module: Any, inputs: Sequence[Any], options: Mapping[str, Any]
    ) -> None:
        self._graph_module = graph_module
        self._options = options
        self._inputs = _Inputs(graph_module, inputs)
        (output,) = graph_module.graph.find_nodes(op="output")
        self._devices = [_example(result).device for result in output.args[0]]
        self._lock = threading.Lock()
        self._versions = self._weight_versions(inputs)
        self.compiled = self._compile(inputs)

    def __call__(self, *inputs: Any) -> list[Any]:
        if self._weight_versions(inputs) != self._versions:
            with self._lock:
                versions = self._weight_versions(inputs)
                if versions != self._versions:
                    self.compiled, self._versions = self._compile(inputs), versions
        arrays = [inputs[index].detach().cpu() for index in self._inputs.tensors]
        outputs = self.compiled.run(dict(zip(self.compiled.inputs, arrays, strict=True)))
        return [_tensor(*each) for each in zip(outputs.values(), self._devices, strict=True)]

    def _weight_versions(self, inputs: Sequence[Any]) -> list[tuple[int, int]]:
        """Return a version of each weight, which changes when the weight does."""
        return [
            (0 if weight.is_inference() else weight._version, weight.data_ptr())
            for weight in (inputs[index] for index in self._inputs.weights)
        ]

    def _compile(self, inputs: Sequence[Any]) -> CompiledModel:
        """Export and compile the graph.

        Raises:
            UnsupportedError: PyTorch cannot export it, or no device runs it.
        """
        weights = [inputs[index] for index in self._inputs.weights]
        module = _Graph(self._graph_module, self._inputs, weights).eval()
        tensors = tuple(inputs[index] for index in self._inputs.tensors)
        dynamic_shapes = self._inputs.dynamic_shapes()
        if any(dynamic_shapes):
            try:
                model = _import(module, tensors, (tuple(dynamic_shapes),))
            except UnsupportedError:
                self._inputs.fix_sizes(None)
            else:
                self._inputs.fix_sizes(model)
                return crosschip.compile(model, **self._options)
        return crosschip.compile(_import(module, tensors, None), **self._options)


def _import(module: Any, tensors: tuple[Any, ...], dynamic_shapes: Any) -> Model:
    """Export a graph and import it.

    Raises:
        UnsupportedError: PyTorch cannot export it, or it draws random numbers.
    """
    where = "the graph"
    # Not in the state of the capture that goes on, and with tensors that count their changes.
    with tracing(None), torch.inference_mode(False), torch.no_grad():
        exported = export_module(module, where, tensors, {}, dynamic_shapes)
    drawing = sorted(_RANDOM & {node.op_type for node in exported.model.graph.all_nodes()})
    if drawing:
        raise UnsupportedError(f"{where}: draws random numbers, as by {', '.join(drawing)}")
    return import_exported(exported, "graph", where)


def _tensor(array: Array, device: Any) -> Any:
    """Return an array as a tensor, which shares its memory if the device is the processor."""
    array = np.require(array, requirements=("C", "W"))
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(array).to(device)
