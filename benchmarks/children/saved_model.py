"""Save a compiled model, as crosschip and as its engine do, or load one; how long that takes.

What is timed begins before crosschip or the engine is imported, and ends with a model that is ready
to be run.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

FILE, OWN, CACHE = "model.chips", "model.engine", "cache"
TOKEN = "model"


def main(way: str, path: str, directly: str, device: str, folder: str, shapes: str) -> None:
    """Print the milliseconds, and the size of the file that was written or read.

    Args:
        way: `save`, or what to load: `cache`, `token`, `file`, or `engine` for the engine's own.
        path: of the model.
        directly: of the file of it that the engine reads.
        device: to compile it for.
        folder: where the files are.
        shapes: of the inputs by name, as JSON.
    """
    sizes = {name: tuple(shape) for name, shape in json.loads(shapes).items()}
    home = Path(folder)
    if way == "save":
        _save(path, directly, device, home, sizes)
        return
    start = time.perf_counter()
    ready = (
        _engine(device, home / OWN) if way == "engine" else _ours(way, path, device, home, sizes)
    )
    taken = (time.perf_counter() - start) * 1e3
    ready({name: np.zeros(shape, np.float32) for name, shape in sizes.items()})
    file = home / (OWN if way == "engine" else FILE)
    print(json.dumps({"ms": taken, "bytes": file.stat().st_size}))


def _ours(way: str, path: str, device: str, home: Path, sizes: dict[str, tuple[int, ...]]) -> Any:
    import crosschip

    if way == "file":
        return crosschip.load_compiled(home / FILE).run
    model = crosschip.load(path)
    if way == "cache":
        compiled = crosschip.compile(model, [device], shapes=sizes, cache=home / CACHE)
    else:
        buffer = (home / FILE).read_bytes()
        compiled = crosschip.compile(
            model,
            [device],
            shapes=sizes,
            cache=crosschip.CacheOptions(location=buffer, token=TOKEN),
        )
    assert compiled.report.cache == "hit"
    return compiled.run


def _save(
    path: str, directly: str, device: str, home: Path, sizes: dict[str, tuple[int, ...]]
) -> None:
    import crosschip

    model, store = crosschip.load(path), crosschip.Memory()
    crosschip.compile(model, [device], shapes=sizes, cache=home / CACHE).close()
    with crosschip.compile(
        model, [device], shapes=sizes, cache=crosschip.CacheOptions(location=store, token=TOKEN)
    ) as compiled:
        compiled.save(home / FILE)
    if device == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(home / OWN)
        options.log_severity_level = 3
        onnxruntime.InferenceSession(directly, options, providers=["CPUExecutionProvider"])
    else:
        import openvino

        core = openvino.Core()
        read = core.read_model(directly)
        read.reshape({name: list(shape) for name, shape in sizes.items()})
        config = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        exported = core.compile_model(read, "CPU", config).export_model()
        (home / OWN).write_bytes(exported.getvalue())
    print(json.dumps({}))


def _engine(device: str, file: Path) -> Any:
    if device == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(str(file), options, providers=providers)
        return lambda inputs: session.run(
            None, dict(zip([i.name for i in session.get_inputs()], inputs.values(), strict=True))
        )
    import openvino

    compiled = openvino.Core().import_model(file.read_bytes(), "CPU")
    request = compiled.create_infer_request()
    return lambda inputs: request.infer(list(inputs.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
