"""ONNX Runtime's side: optimizing models, and making sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import onnxruntime
from onnxruntime import (
    GraphOptimizationLevel,
    InferenceSession,
    OrtExternalInitializerInfo,
    OrtValue,
)

from crosschip.devices.kits.onnx.model import EXTERNAL_BYTES, OnnxModel, aligned
from crosschip.devices.onnxruntime.failures import failure
from crosschip.devices.onnxruntime.provided import provided, quiet_options
from crosschip.hal import Options
from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.devices.onnxruntime.providers import Provider
    from crosschip.devices.onnxruntime.saved import Facts

_T = TypeVar("_T")

_ELSEWHERE = __file__
"""The file that an optimized model says its large constants are in.

ONNX Runtime looks whether it is there, and reads none of it: they are handed over by name, and stay
where they are. Handed over as external data instead, which would need no file, they are copied.
"""

_FOLDER = "session.model_external_initializers_file_folder_path"

_SPOILING = ("QDQPropagationTransformer", "SkipLayerNormFusion")
"""Optimizations that are left out.

The first makes quantizations to int8 of which that then makes half a quantization to uint8. What
the second makes of a sum and its normalization takes four times as long as the two.
"""

_OF_SUMS = ("MatMulAddFusion",)
"""Optimizations that are left out where both factors of a product are dequantized.

What it makes of such a product and a sum is no longer seen to be a product of bytes: the weights
are multiplied as they are by numbers that are rounded to bytes of another unit.
"""

_OF_A_BRANCH = "Graph attribute inferencing failed"
"""What ONNX Runtime says of a branch that no run takes with the sizes of the inputs.

It has then put the only branch within that these sizes leave in the place of a choice, and what it
makes fits nothing. The branches of a file stay as they are where it folds nothing.
"""

_PACKED = ("tensor(int4)", "tensor(uint4)")
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
        apart: whether sums stay apart from the products before them.
    """

    threads: int | None
    spinning: bool
    precise: bool = True
    provider: Provider | None = None
    record: str = ""
    sessions: int = 1
    sums_separate: bool = False

    @classmethod
    def of(
        cls, options: Options, spinning: bool, facts: Facts, provider: Provider | None
    ) -> Settings:
        """The settings for a caller's wishes.

        The threads of a session are helpers of whoever calls it: if there are any, each run that
        is under way has a session with helpers of its own.
        """
        threads = options.threads_each
        sessions = 1 if threads == 1 or provider is not None else options.in_flight
        return cls(
            threads,
            spinning,
            facts.precise,
            provider,
            sessions=sessions,
            sums_separate=facts.sums_separate,
        )

    def optimized(self, model: OnnxModel) -> OnnxModel:
        """A model as ONNX Runtime optimizes it for this processor.

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
            return OrtExternalInitializerInfo(os.path.basename(_ELSEWHERE), start, size)

        def compile(options: onnxruntime.SessionOptions) -> bytes:
            external.clear()
            compiler = onnxruntime.ModelCompiler(
                options,
                model.proto,
                graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_ALL,
                get_initializer_location_func=place,
            )
            parts: list[bytes] = []
            # ONNX Runtime 1.32 does not free what `compile_to_bytes` returns a copy of.
            compiler.compile_to_stream(parts.append)
            return b"".join(parts)

        try:
            return OnnxModel(self._session(compile, ortvalues(model)), external)
        except Exception as error:
            raise failure("failed to compile", error) from error

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
        if self.provider is not None:
            return provided(model.proto, self._options(values), self.provider)
        levels = GraphOptimizationLevel

        def make(options: onnxruntime.SessionOptions) -> InferenceSession:
            options.graph_optimization_level = (
                levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
            )
            options.add_session_config_entry(_FOLDER, os.path.dirname(_ELSEWHERE))
            for name, value in values.items():
                options.add_initializer(name, value)
            return InferenceSession(
                model.proto,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=False,  # it prints, and there is nothing to fall back to
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
            if _OF_A_BRANCH not in str(error):
                raise
        return make(self._options(values, "ConstantFolding"))

    def _options(self, values: Mapping[str, OrtValue], *without: str) -> onnxruntime.SessionOptions:
        options = quiet_options()
        options.intra_op_num_threads = self.threads or 0
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spinning)))
        options.add_session_config_entry("session.x64quantprecision", str(int(self.precise)))
        if self.record:
            options.enable_profiling = True
            options.profile_file_prefix = self.record
        options.add_session_config_entry(
            "optimization.disable_specified_optimizers",
            ";".join([*_SPOILING, *(_OF_SUMS if self.sums_separate else ()), *without]),
        )
        if values:
            options.add_external_initializers(list(values), list(values.values()))
        return options


def ortvalues(model: OnnxModel) -> dict[str, OrtValue]:
    """The external constants of a model as ONNX Runtime's values, in the same memory."""
    return {name: OrtValue.ortvalue_from_numpy(array) for name, array in model.external.items()}
