"""Driver of onnxruntime-qnn; runs in the environment of that package, without crosschip."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime
import onnxruntime_qnn

_PROVIDER = "QNNExecutionProvider"
_CONTEXT = "context.onnx"
_DETAILS = 0
_ERRORS = 3


class _Loaded:
    """The session that `run` runs, and the names of its inputs."""

    session: Any = None
    inputs: Sequence[str] = ()


def describe() -> Mapping[str, Any]:
    """Return the version of the tool."""
    return {"version": f"{onnxruntime_qnn.__version__} (onnxruntime {onnxruntime.__version__})"}


def compile(folder: str, settings: Mapping[str, str]) -> Sequence[str]:
    """Compile `model.onnx` for the chip as a whole, and save the compiled context."""
    try:
        _compile(folder, settings, _ERRORS)
    except Exception:
        # Reasons for refused nodes are logged only at the most detailed level. A context of the
        # other nodes would make the second attempt fail.
        with suppress(FileNotFoundError):
            os.remove(os.path.join(folder, _CONTEXT))
        _compile(folder, settings, _DETAILS)
    if not os.path.exists(os.path.join(folder, _CONTEXT)):
        raise RuntimeError("nothing of it is left for the chip to compute")
    return [_CONTEXT]


def load(folder: str, settings: Mapping[str, str]) -> None:
    """Load the compiled context for `run`."""
    if _Loaded.session is None:
        path = os.path.join(folder, _CONTEXT)
        _use(onnxruntime.InferenceSession(path, _options(settings, _ERRORS)))


def run(inputs: Sequence[Any]) -> Sequence[Any]:
    """Run the loaded session and return its outputs."""
    feed = dict(zip(_Loaded.inputs, inputs, strict=True))
    outputs: Sequence[Any] = _Loaded.session.run(None, feed)
    return outputs


def _compile(folder: str, settings: Mapping[str, str], severity: int) -> None:
    options = _options(settings, severity)
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", os.path.join(folder, _CONTEXT))
    options.add_session_config_entry("ep.context_embed_mode", "1")
    _use(onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options))


def _use(session: Any) -> None:
    _Loaded.session = session
    _Loaded.inputs = [value.name for value in session.get_inputs()]


def _options(settings: Mapping[str, str], severity: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = severity
    # Otherwise the CPU would silently run refused nodes.
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    backend = {"backend_path": onnxruntime_qnn.get_qnn_htp_path()}
    options.add_provider_for_devices([_device()], {**settings, **backend})
    return options


def _device() -> Any:
    """Return the NPU if there is one; the emulation is registered as a CPU."""
    devices = _devices()
    if not devices:
        path = onnxruntime_qnn.get_library_path()
        onnxruntime.register_execution_provider_library(_PROVIDER, path)
        devices = _devices()
    npu = onnxruntime.OrtHardwareDeviceType.NPU
    return next((device for device in devices if device.device.type == npu), devices[0])


def _devices() -> Sequence[Any]:
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == _PROVIDER]
