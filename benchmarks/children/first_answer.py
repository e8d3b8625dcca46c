"""Load, compile and run a model, and say when the answer is there; nothing else is imported."""

import json
import os
import sys

import numpy as np


def crosschip(path: str, device: str, folder: str, inputs: dict[str, np.ndarray]) -> None:
    """With crosschip, whose cache is in the folder."""
    import crosschip as cc

    cc.compile(path, [device], cache=folder).run(inputs)


def onnxruntime(path: str, folder: str, inputs: dict[str, np.ndarray]) -> None:
    """With ONNX Runtime, which keeps what it has optimized, and reads that the next time."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    kept = os.path.join(folder, "optimized.onnx")
    if os.path.exists(kept):
        path = kept
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    else:
        options.optimized_model_filepath = kept
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)


def openvino(path: str, folder: str, inputs: dict[str, np.ndarray]) -> None:
    """With OpenVINO, whose cache is in the folder, in float32."""
    import openvino as ov

    core = ov.Core()
    core.set_property({"CACHE_DIR": folder})
    config = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    core.compile_model(path, "CPU", config)(inputs)


def main(way: str, device: str, path: str, folder: str, shapes: str) -> None:
    """Print a line once the answer is there.

    Args:
        way: `crosschip`, or `engine` for the device's engine alone.
        device: `onnxruntime` or `openvino`.
        path: of the model.
        folder: where what is compiled is kept.
        shapes: of the inputs by name, as JSON.
    """
    inputs = {name: np.ones(shape, np.float32) for name, shape in json.loads(shapes).items()}
    if way == "crosschip":
        crosschip(path, device, folder, inputs)
    else:
        {"onnxruntime": onnxruntime, "openvino": openvino}[device](path, folder, inputs)
    print("answered", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
