"""OpenVINO, called directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from crosschip.bench.peers import PeerRun
from crosschip.devices.openvino.quiet import import_engine
from crosschip.ir import Array, DeviceError


def open_model(path: Path, inputs: Mapping[str, Array], threads: int | None) -> PeerRun:
    """Open an `.onnx`, `.pdmodel` or OpenVINO file in float32, for latency.

    Of a folder, the `.pdmodel` in it is read.
    """
    try:
        import_engine()
    except ImportError as error:
        raise DeviceError(f"openvino is not installed: {error}") from error
    import openvino

    core = openvino.Core()
    config: dict[str, object] = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    if threads:
        config["INFERENCE_NUM_THREADS"] = threads
    try:
        model = core.read_model(next(path.glob("*.pdmodel"), path) if path.is_dir() else path)
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        request = core.compile_model(model, "CPU", config).create_infer_request()
    except Exception as error:  # the engine's own exceptions have no common base
        raise DeviceError(f"openvino: {path}: {str(error).strip().splitlines()[-1]}") from error
    feed = dict(inputs)

    def run() -> Sequence[Array]:
        results = request.infer(feed, share_inputs=True, share_outputs=True)
        return [array.copy() for array in results.values()]

    return run
