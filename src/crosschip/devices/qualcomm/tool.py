"""Drives onnxruntime-qnn; runs in the environment that this is installed in, without crosschip."""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime
import onnxruntime_qnn

_PROVIDER = "QNNExecutionProvider"
_CONTEXT = "context.onnx"
_DETAILS = 0
_ERRORS = 3

_session = None


def about():
    """What the tool calls itself."""
    return {"version": f"{onnxruntime_qnn.__version__} (onnxruntime {onnxruntime.__version__})"}


def compile(folder, settings):
    """Compile `model.onnx` for the chip, all of it, and keep what the chip's compiler made."""
    try:
        return _compile(folder, settings, _ERRORS)
    except Exception:
        # It says only to those who ask for all details why it does not take a node.
        return _compile(folder, settings, _DETAILS)


def _compile(folder, settings, severity):
    global _session
    context = os.path.join(folder, _CONTEXT)
    options = _options(settings, severity)
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", context)
    options.add_session_config_entry("ep.context_embed_mode", "1")
    _session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options)
    return [_CONTEXT]


def load(folder, settings):
    """Make ready to run what was compiled."""
    global _session
    if _session is None:
        _session = onnxruntime.InferenceSession(os.path.join(folder, _CONTEXT), _options(settings))


def run(inputs):
    """The outputs, in order."""
    names = [value.name for value in _session.get_inputs()]
    return _session.run(None, dict(zip(names, inputs, strict=True)))


def _options(settings, severity=_ERRORS):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = severity
    # Else the processor takes over in silence.
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices([_device()], dict(settings, backend_path=_backend()))
    return options


def _device():
    if not any(device.ep_name == _PROVIDER for device in onnxruntime.get_ep_devices()):
        path = onnxruntime_qnn.get_library_path()
        onnxruntime.register_execution_provider_library(_PROVIDER, path)
    found = [device for device in onnxruntime.get_ep_devices() if device.ep_name == _PROVIDER]
    npus = [device for device in found if "NPU" in str(device.device.type)]
    return (npus or found)[0]


def _backend():
    return onnxruntime_qnn.get_qnn_htp_path()
