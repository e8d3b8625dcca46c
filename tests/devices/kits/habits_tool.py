"""A compiler of ONNX files with habits that settings turn on, for tests of those who call it.

It takes any node but Sin, which it names, and Cos, which it does not; Tan ends its process. The
files that it keeps hold the model as it is, and ONNX's evaluator runs it.
"""

import os
import time
from pathlib import Path
from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator


class Loaded:
    """The model that `run` runs."""

    evaluator: Any = None


def describe() -> dict[str, str]:
    """The tool's description of itself."""
    return {"version": "7"}


def compile(folder: str, settings: dict[str, Any]) -> list[str]:
    """Keep a model."""
    with Path(settings["journal"]).open("a") as journal:
        model = onnx.load(Path(folder, "model.onnx"))
        types = [node.op_type for node in model.graph.node]
        journal.write(" ".join([*types, *sorted(settings["told"])]) + "\n")
    for node in model.graph.node:
        if node.op_type == "Sin":
            print(f"ERROR: {node.name} is not for this chip")
            raise RuntimeError("compilation failed, see above")
        if node.op_type == "Cos":
            raise RuntimeError("internal error 3110")
        if node.op_type == "Tan":
            os.write(2, b"no tiles left\n")
            os.abort()
        if node.op_type == "Atan":
            time.sleep(3600)
    if types.count("Neg") > 2:
        raise RuntimeError("too many of them")
    Path(folder, "kept.onnx").write_bytes(model.SerializeToString())
    return ["kept.onnx"]


def load(folder: str, settings: dict[str, Any]) -> None:
    """Make ready to run what was kept."""
    Loaded.evaluator = ReferenceEvaluator(onnx.load(Path(folder, "kept.onnx")))


def run(inputs: list[Any]) -> list[Any]:
    """The outputs, in order; a NaN ends the process."""
    if any((array != array).any() for array in inputs):
        os.abort()
    names = Loaded.evaluator.input_names
    return list(Loaded.evaluator.run(None, dict(zip(names, inputs, strict=True))))
