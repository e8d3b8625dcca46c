"""Sessions on other providers, which must run all nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import onnxruntime
from onnxruntime import GraphOptimizationLevel, InferenceSession

from crosschip.devices.onnxruntime.failures import failure
from crosschip.ir import DeviceError

if TYPE_CHECKING:
    from crosschip.devices.onnxruntime.providers import Provider


class NotTaken(DeviceError):
    """A provider leaves nodes to the processor, where ONNX Runtime would silently run them.

    Attributes:
        nodes: the names of the nodes that have one.
    """

    def __init__(self, message: str, nodes: Collection[str]) -> None:
        super().__init__(message)
        self.nodes = nodes


def require(provider: Provider) -> None:
    """Check that a provider runs a model on this machine.

    Raises:
        DeviceError: the provider is not installed or cannot run a model.
    """
    if not provider.plugin and provider.name not in onnxruntime.get_available_providers():
        raise DeviceError(f"onnxruntime: {provider.name} is not installed")
    # Imported late: only other providers need a trial.
    from onnx import TensorProto, helper

    from crosschip.devices.kits.onnx.graph import OPSET

    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    output_info = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "trial", [value], [output_info]
    )
    opset = helper.make_operatorsetid("", OPSET)
    model = helper.make_model(graph, ir_version=10, opset_imports=[opset])
    provided(model.SerializeToString(), quiet_options(), provider)


def quiet_options() -> onnxruntime.SessionOptions:
    """Return session options without logging."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return options


def provided(
    model: bytes, options: onnxruntime.SessionOptions, provider: Provider
) -> InferenceSession:
    """Create a session all of whose nodes a provider runs.

    Raises:
        DeviceError: ONNX Runtime does not accept the model, or has no such provider.
        NotTaken: the provider does not run all of it.
    """
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    providers: list[tuple[str, dict[str, str]]] = []
    if provider.plugin and provider.name not in onnxruntime.get_available_providers():
        options.add_provider_for_devices(_chips(provider), dict(provider.options))
    else:
        providers.append((provider.name, dict(provider.options)))
    try:
        session = InferenceSession(model, options, providers=providers, enable_fallback=False)
    except Exception as error:
        raise failure("failed to compile", error) from error
    if provider.name not in session.get_providers():
        raise DeviceError(f"onnxruntime: {provider.name} cannot be used on this machine")
    others = [
        node
        for part in session.get_provider_graph_assignment_info()
        if part.ep_name != provider.name
        for node in part.get_nodes()
    ]
    if others:
        types = ", ".join(sorted({node.op_type for node in others}))
        names = [node.name for node in others if node.name]
        raise NotTaken(f"onnxruntime: {provider.name} does not run {types}", names)
    return session


def _chips(provider: Provider) -> Sequence[Any]:
    """Return ONNX Runtime's objects for the devices of a plug-in, loading it if needed.

    Raises:
        DeviceError: the plug-in does not load or finds no device.
    """
    for _ in range(2):
        chips = [chip for chip in onnxruntime.get_ep_devices() if chip.ep_name == provider.name]
        if chips:
            return chips[:1]
        try:
            path = import_module(provider.plugin).get_library_path()
            onnxruntime.register_execution_provider_library(provider.name, path)
        except Exception as error:
            raise failure(f"does not load {provider.plugin}", error) from error
    raise DeviceError(f"onnxruntime: {provider.name} finds no chip on this machine")
