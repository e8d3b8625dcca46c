"""The small image classifier that the examples of the documentation run.

`python -m crosschip.demo.example` writes it to `model.onnx`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 10


def write_example(path: Path) -> None:
    """Write an ONNX file: scores of ten classes for images of 224 x 224, with random weights.

    Args:
        path: of the file.
    """
    random = np.random.default_rng(0)
    weights = {
        "conv1.weight": random.standard_normal((8, 3, 4, 4)) / 8,
        "conv2.weight": random.standard_normal((16, 8, 4, 4)) / 12,
        "classes.weight": random.standard_normal((CLASSES, 16)),
        "classes.bias": random.standard_normal(CLASSES),
    }
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight"], ["c1"], "conv1", strides=[4, 4]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "conv2.weight"], ["c2"], "conv2", strides=[4, 4]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["pooled"], "pool"),
        helper.make_node("Flatten", ["pooled"], ["features"], "flatten"),
        helper.make_node(
            "Gemm", ["features", "classes.weight", "classes.bias"], ["logits"], "classes", transB=1
        ),
        helper.make_node("Softmax", ["logits"], ["scores"], "softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(array.astype("f4"), name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


if __name__ == "__main__":
    write_example(Path(sys.argv[1] if len(sys.argv) > 1 else "model.onnx"))
