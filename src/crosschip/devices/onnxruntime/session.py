"""Making ONNX Runtime sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnxruntime

from crosschip.ir import Array, DeviceError

EXTERNAL_BYTES = 1024
"""Constants of at least so many bytes are kept outside of ONNX models."""

_SILENT = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """How sessions are made.

    Attributes:
        threads: how many threads a run may use; `None` for one a processor core.
        spinning: whether threads wait for work in a loop.
    """

    threads: int | None
    spinning: bool

    def session(
        self,
        model: bytes,
        external: Mapping[str, Array],
        *,
        optimize: bool = True,
        write_to: Path | None = None,
    ) -> onnxruntime.InferenceSession:
        """A session for a serialized model.

        Args:
            model: the ONNX model.
            external: its constants that are outside of it, by name; they must outlive the session.
            optimize: whether the model is still to be optimized.
            write_to: where to write the optimized model to, with its constants beside it.

        Raises:
            DeviceError: ONNX Runtime does not accept the model.
        """
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _SILENT
        options.intra_op_num_threads = self.threads or 0
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spinning)))
        # 8-bit products must not saturate, whatever the processor.
        options.add_session_config_entry("session.x64quantprecision", "1")
        if not optimize:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if write_to:
            _write_to(options, write_to)
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in external.values()]
        if values:
            options.add_external_initializers(list(external), values)
        try:
            return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise failure("failed to compile", error) from error


def failure(what: str, error: Exception) -> DeviceError:
    """The error that says what the engine did not do, in its own words.

    The engine's exceptions have no base class, so callers catch whatever its calls raise.
    """
    text = str(error).strip().removeprefix("[ONNXRuntimeError] : ") or type(error).__name__
    return DeviceError(f"onnxruntime {what}: {text.splitlines()[0]}")


def _write_to(options: onnxruntime.SessionOptions, path: Path) -> None:
    options.optimized_model_filepath = str(path)
    prefix = "session.optimized_model_external_initializers_"
    options.add_session_config_entry(f"{prefix}file_name", f"{path.name}.data")
    options.add_session_config_entry(f"{prefix}min_size_in_bytes", str(EXTERNAL_BYTES))
