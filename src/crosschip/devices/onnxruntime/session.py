"""Optimization of models by ONNX Runtime, and creation of sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import onnxruntime
from onnxruntime import (
    GraphOptimizationLevel,
    InferenceSession,
    OrtExternalInitializerInfo,
    OrtValue,
)

from crosschip.devices.kits.onnx.model import EXTERNAL_BYTES, OnnxModel, aligned
from crosschip.devices.onnxruntime import modes
from crosschip.hal import Options
from crosschip.ir import Array, DeviceError
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.devices.onnxruntime.providers import Provider
    from crosschip.devices.onnxruntime.saved import Facts

_T = TypeVar("_T")

_EXISTING_FILE = __file__
"""The file that an optimized model names for its large constants.

ONNX Runtime checks that it exists, but does not read it: sessions get the constants by name. As
external data without a file they would be copied.
"""

_FOLDER = "session.model_external_initializers_file_folder_path"

_DISABLED = ("QDQPropagationTransformer", "SkipLayerNormFusion")
"""Disabled optimizations.

The first moves int8 quantizations and then converts only half of each to uint8. The second fuses a
sum and its normalization into a kernel four times slower than the two.
"""

_DISABLED_FOR_SUMS = ("MatMulAddFusion",)
"""Optimizations that are disabled if both factors of a product are dequantized.

ONNX Runtime does not recognize the fused product and sum as a product of bytes, and multiplies the
weights by factors quantized with another scale.
"""

_UNTAKEN_BRANCH = "Graph attribute inferencing failed"
"""ONNX Runtime's error for a branch that is never taken with the sizes of the inputs.

It has replaced a nested choice by its only possible branch, whose outputs then have wrong shapes.
Without constant folding, branches are kept.
"""

_PACKED = ("tensor(int4)", "tensor(uint4)")
"""Packed types, which NumPy does not have."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of sessions.

    Attributes:
        threads: the threads of a run; `None` for one per core.
        spinning: whether idle threads spin.
        stopping: whether they stop that at the end of a run.
        precise: whether products of 8-bit integers must not saturate.
        provider: the provider that runs the whole model; `None` for the processor's.
        record: the path prefix of the record of node times; empty if there is none.
        sessions: the number of sessions of a program.
        sums_separate: whether sums are not fused into the products before them.
    """

    threads: int | None
    spinning: bool
    stopping: bool = False
    precise: bool = True
    provider: Provider | None = None
    record: str = ""
    sessions: int = 1
    sums_separate: bool = False

    @classmethod
    def of(
        cls, options: Options, spinning: bool, facts: Facts, provider: Provider | None
    ) -> Settings:
        """Return the settings for a request.

        A session's threads help the calling thread: if there are any, each concurrent run has its
        own session.
        """
        threads = options.threads_each
        sessions = 1 if threads == 1 or provider is not None else options.in_flight
        return cls(
            threads,
            spinning,
            options.alternates,
            facts.precise,
            provider,
            sessions=sessions,
            sums_separate=facts.sums_separate,
        )

    def optimized(self, model: OnnxModel) -> OnnxModel:
        """Return the model optimized for this processor.

        Raises:
            DeviceError: ONNX Runtime does not accept the model.
        """
        external: dict[str, Array] = {}
        end = 0

        def place(
            name: str, value: OrtValue, source: OrtExternalInitializerInfo | None
        ) -> OrtExternalInitializerInfo | None:
            nonlocal end
            size = value.tensor_size_in_bytes()
            if size < EXTERNAL_BYTES or value.data_type() in _PACKED:
                return None
            external[name] = value.numpy()
            start, end = end, end + aligned(size)
            return OrtExternalInitializerInfo(os.path.basename(_EXISTING_FILE), start, size)

        def compile(options: onnxruntime.SessionOptions) -> bytes:
            external.clear()
            compiler = onnxruntime.ModelCompiler(
                options,
                model.proto,
                graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_ALL,
                get_initializer_location_func=place,
            )
            parts: list[bytes] = []
            # ONNX Runtime 1.32 leaks the buffer of `compile_to_bytes`.
            compiler.compile_to_stream(parts.append)
            return b"".join(parts)

        try:
            return OnnxModel(self._session(compile, ortvalues(model)), external)
        except Exception as error:
            raise failure("failed to compile", error) from error

    def session(
        self, model: OnnxModel, values: Mapping[str, OrtValue], *, optimize: bool
    ) -> InferenceSession:
        """Create a session.

        Args:
            model: the ONNX model.
            values: its external constants, whose memory the session reads; they must outlive the
                session.
            optimize: whether the model is not optimized yet.

        Raises:
            DeviceError: ONNX Runtime does not accept the model.
            NotTaken: the provider leaves nodes to the processor.
        """
        if self.provider is not None:
            return provider_session(model.proto, self._options(values), self.provider)
        levels = GraphOptimizationLevel

        def make(options: onnxruntime.SessionOptions) -> InferenceSession:
            options.graph_optimization_level = (
                levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
            )
            options.add_session_config_entry(_FOLDER, os.path.dirname(_EXISTING_FILE))
            for name, value in values.items():
                options.add_initializer(name, value)
            return InferenceSession(
                model.proto,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=False,  # which would print
            )

        try:
            return self._session(make, values if optimize else {})
        except Exception as error:
            what = "failed to compile" if optimize else "failed to load a compiled model"
            raise failure(what, error) from error

    def _session(
        self, make: Callable[[onnxruntime.SessionOptions], _T], values: Mapping[str, OrtValue]
    ) -> _T:
        try:
            return make(self._options(values))
        except Exception as error:
            if _UNTAKEN_BRANCH not in str(error):
                raise
        return make(self._options(values, "ConstantFolding"))

    def _options(self, values: Mapping[str, OrtValue], *without: str) -> onnxruntime.SessionOptions:
        options = quiet_options()
        options.intra_op_num_threads = self.threads or 0
        options.add_session_config_entry(modes.SPINNING, str(int(self.spinning)))
        options.add_session_config_entry(modes.STOPPING, str(int(self.stopping)))
        options.add_session_config_entry("session.x64quantprecision", str(int(self.precise)))
        if self.record:
            options.enable_profiling = True
            options.profile_file_prefix = self.record
        options.add_session_config_entry(
            "optimization.disable_specified_optimizers",
            ";".join([*_DISABLED, *(_DISABLED_FOR_SUMS if self.sums_separate else ()), *without]),
        )
        if values:
            options.add_external_initializers(list(values), list(values.values()))
        return options


def ortvalues(model: OnnxModel) -> dict[str, OrtValue]:
    """Return the external constants as ONNX Runtime values in the same memory."""
    return {name: OrtValue.ortvalue_from_numpy(array) for name, array in model.external.items()}


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
    provider_session(model.SerializeToString(), quiet_options(), provider)


def quiet_options() -> onnxruntime.SessionOptions:
    """Return session options without logging."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return options


def provider_session(
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


def failure(what: str, error: Exception) -> DeviceError:
    """Return an error that says what failed, with the first line of ONNX Runtime's message.

    ONNX Runtime's exceptions have no base class, so callers catch all exceptions of its calls.
    """
    text = str(error).strip().removeprefix("[ONNXRuntimeError] : ") or type(error).__name__
    return DeviceError(f"onnxruntime {what}: {text.splitlines()[0]}")
