"""Paddle Inference, called directly."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosschip.bench.peers import PeerRun
from crosschip.importers.paddle.files import find
from crosschip.ir import Array, DeviceError, ModelFileError


def open_model(path: Path, inputs: Mapping[str, Array], threads: int | None) -> PeerRun:
    """Open a Paddle 2 or 3 program, or the one in a folder, with oneDNN, in float32."""
    try:
        from paddle import inference
    except ImportError as error:
        raise DeviceError(f"paddle is not installed: {error}") from error
    try:
        files = find(path)
    except ModelFileError as error:
        raise DeviceError(f"paddle: {error}") from error
    config = inference.Config(str(files.program), str(files.parameters))
    config.disable_gpu()
    config.disable_glog_info()
    if files.program.suffix == ".json":  # Paddle 3's programs, which the older executor lacks
        config.enable_new_ir()
        config.enable_new_executor()
    config.enable_memory_optim()
    config.enable_mkldnn()
    config.set_cpu_math_library_num_threads(threads or os.cpu_count() or 1)
    try:
        predictor = inference.create_predictor(config)
        handles = {name: predictor.get_input_handle(name) for name in inputs}
    except Exception as error:  # the engine's own exceptions have no common base
        raise DeviceError(f"paddle: {path}: {str(error).strip().splitlines()[-1]}") from error

    def run() -> Sequence[Array]:
        for name, array in inputs.items():
            handles[name].copy_from_cpu(array)
        predictor.run()
        names = predictor.get_output_names()
        return [predictor.get_output_handle(name).copy_to_cpu() for name in names]

    return run
