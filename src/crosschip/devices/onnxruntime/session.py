"""ONNX Runtime's side: optimizing models, and making sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnxruntime
from onnx import TensorProto
from onnxruntime import (
    GraphOptimizationLevel,
    InferenceSession,
    OrtExternalInitializerInfo,
    OrtValue,
)

from crosschip.devices.onnxruntime.failures import failure
from crosschip.devices.onnxruntime.provided import provided, quiet_options
from crosschip.devices.onnxruntime.providers import Provider
from crosschip.hal import Options
from crosschip.hal.onnx.model import EXTERNAL_BYTES, OnnxModel, aligned

_PACKED = (TensorProto.INT4, TensorProto.UINT4)
"""Types with several elements in a byte, which NumPy does not know."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that sessions are made with.

    Attributes:
        threads: how many threads a run may use; `None` for one a processor core.
        spinning: whether threads wait for work in a loop.
        precise: whether products of integers of eight bits must not saturate on any processor.
        provider: the provider that runs all of a model; `None` for ONNX Runtime's own.
        record: the beginning of the path where sessions record their nodes' times; empty if they
            do not.
        sessions: how many a program has.
    """

    threads: int | None
    spinning: bool
    precise: bool = True
    provider: Provider | None = None
    record: str = ""
    sessions: int = 1

    @classmethod
    def of(
        cls, options: Options, spinning: bool, precise: bool, provider: Provider | None
    ) -> Settings:
        """The settings for a caller's wishes.

        The threads of a session are helpers of whoever calls it: if there are any, each run that
        is under way has a session with helpers of its own.
        """
        threads = options.threads_each
        sessions = 1 if threads == 1 or provider is not None else options.in_flight
        return cls(threads, spinning, precise, provider, sessions=sessions)

    def optimized(self, model: OnnxModel) -> OnnxModel:
        """A model as ONNX Runtime optimizes it for this processor.

        Raises:
            DeviceError: ONNX Runtime does not accept the model.
        """
        external = {}
        end = 0

        def place(
            name: str, value: OrtValue, source: OrtExternalInitializerInfo | None
        ) -> OrtExternalInitializerInfo | None:
            nonlocal end
            size = value.tensor_size_in_bytes()
            if size < EXTERNAL_BYTES or value.element_type() in _PACKED:
                return None
            external[name] = value.numpy()
            start, end = end, end + aligned(size)
            return OrtExternalInitializerInfo("saved", start, size)

        try:
            compiler = onnxruntime.ModelCompiler(
                self._options(ortvalues(model)),
                model.proto,
                graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_ALL,
                get_initializer_location_func=place,
            )
            proto = compiler.compile_to_bytes()
        except Exception as error:
            raise failure("failed to compile", error) from error
        return OnnxModel(proto, external)

    def session(
        self, model: OnnxModel, values: Mapping[str, OrtValue], *, optimize: bool
    ) -> InferenceSession:
        """A session for a model.

        Args:
            model: what it runs.
            values: its external constants. The session reads them where they are, so they must
                outlive it.
            optimize: whether the model has not been optimized yet.

        Raises:
            DeviceError: ONNX Runtime does not accept the model.
            NotTaken: the provider leaves nodes to the processor.
        """
        options = self._options(values)
        if self.provider is not None:
            return provided(model.proto, options, self.provider)
        levels = GraphOptimizationLevel
        options.graph_optimization_level = (
            levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
        )
        for name, value in values.items():
            options.add_initializer(name, value)
        try:
            session = InferenceSession(
                model.proto,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=False,  # it prints, and there is nothing to fall back to
            )
        except Exception as error:
            what = "failed to compile" if optimize else "failed to load a compiled model"
            raise failure(what, error) from error
        return session

    def _options(self, values: Mapping[str, OrtValue]) -> onnxruntime.SessionOptions:
        options = quiet_options()
        options.intra_op_num_threads = self.threads or 0
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spinning)))
        options.add_session_config_entry("session.x64quantprecision", str(int(self.precise)))
        if self.record:
            options.enable_profiling = True
            options.profile_file_prefix = self.record
        # It makes quantizations to int8 of which that then makes half a quantization to uint8.
        options.add_session_config_entry(
            "optimization.disable_specified_optimizers", "QDQPropagationTransformer"
        )
        if values:
            options.add_external_initializers(list(values), list(values.values()))
        return options


def ortvalues(model: OnnxModel) -> dict[str, OrtValue]:
    """The external constants of a model as ONNX Runtime's values, in the same memory."""
    return {name: OrtValue.ortvalue_from_numpy(array) for name, array in model.external.items()}
