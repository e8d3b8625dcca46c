"""ONNX Runtime, called directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from crosschip.bench.peers import PeerRun
from crosschip.devices.onnxruntime.quiet import import_engine
from crosschip.ir import Array, DeviceError


def open_model(path: Path, inputs: Mapping[str, Array], threads: int | None) -> PeerRun:
    """Open an `.onnx` file with all graph optimizations."""
    try:
        onnxruntime = import_engine()
    except ImportError as error:
        raise DeviceError(f"onnxruntime is not installed: {error}") from error

    if path.suffix != ".onnx":
        raise DeviceError(f"{path}: onnxruntime reads .onnx files only")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the engine's own exceptions have no common base
        raise DeviceError(f"onnxruntime: {path}: {error}") from error
    feed = dict(inputs)
    names = [output.name for output in session.get_outputs()]

    def run() -> Sequence[Array]:
        return cast(Sequence[Array], session.run(names, feed))

    return run
