"""Load and run a model with an engine itself; nothing of crosschip is imported."""

import json
import sys

import numpy as np

from benchmarks.children.peak import peak_bytes

_RUNS = 3


def onnxruntime(path: str | None, shapes: dict[str, list[int]]) -> None:
    """Run an `.onnx` file; without a file, only import what that needs."""
    import onnxruntime as ort

    if path:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        inputs = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        for _ in range(_RUNS):
            session.run(None, inputs)


def openvino(path: str | None, shapes: dict[str, list[int]]) -> None:
    """Run any file that OpenVINO reads, in float32; without a file, only import what that needs."""
    import openvino as ov

    core = ov.Core()
    if path:
        model = core.read_model(path)
        model.reshape(shapes)
        config = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        request = core.compile_model(model, "CPU", config).create_infer_request()
        inputs = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        for _ in range(_RUNS):
            request.infer(inputs, share_inputs=True)


def main(engine: str, path: str = "", shapes: str = "{}") -> None:
    """Print the peak of memory.

    Args:
        engine: `onnxruntime` or `openvino`.
        path: of the model; without one, nothing is run.
        shapes: of the inputs by name, as JSON.
    """
    {"onnxruntime": onnxruntime, "openvino": openvino}[engine](path or None, json.loads(shapes))
    print(json.dumps({"peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
