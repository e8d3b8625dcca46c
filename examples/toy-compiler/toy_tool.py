"""The vendor's side: a compiler that reads ONNX files, and an emulator of its chip.

It runs in a process of its own, and knows nothing of crosschip.
"""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

INSTRUCTIONS = {
    "Add": np.add,
    "Mul": np.multiply,
    "Relu": lambda x: np.maximum(x, np.float16(0)),
    "Identity": np.copy,
}
program = None


def describe():
    return {"version": "1.0"}


def compile(folder, settings):
    graph = onnx.load(Path(folder, "model.onnx")).graph
    for node in graph.node:
        for tensor in graph.initializer:
            if tensor.name in node.input and len(tensor.dims) > 3:
                raise ValueError(f"node {node.name}: a constant has more than 3 axes")
    code = {
        "inputs": [value.name for value in graph.input],
        "constants": {t.name: numpy_helper.to_array(t).tolist() for t in graph.initializer},
        "instructions": [[n.op_type, list(n.input), n.output[0]] for n in graph.node],
        "outputs": [
            (v.name, onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type).name)
            for v in graph.output
        ],
    }
    Path(folder, "program.json").write_text(json.dumps(code))
    return ["program.json"]


def load(folder, settings):
    global program
    program = json.loads(Path(folder, "program.json").read_text())


def run(inputs):
    values = {name: np.float16(constant) for name, constant in program["constants"].items()}
    values.update(zip(program["inputs"], map(np.float16, inputs), strict=True))
    for name, read, made in program["instructions"]:
        values[made] = INSTRUCTIONS[name](*(values[one] for one in read))
    return [values[name].astype(dtype) for name, dtype in program["outputs"]]
