"""Small ONNX models for the tests, and both interfaces to run them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import parser

from crosschip.apis import onnxruntime as ours

HEAD = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]>\n'

SUM = """g (float[N,3] x, float[N,3] y) => (float[N,3] z, float[N,3] w) {
    z = Add(x, y)
    w = Mul(x, y)
}"""
DEFAULT = """g (float[N,3] x, float[3] b) => (float[N,3] y) <float[3] b = {1.0, 2.0, 3.0}> {
    y = Add(x, b)
}"""
STRINGS = "g (string[N] x) => (string[N] y) { y = Identity(x) }"
BRANCHES = """g (bool c, int64[N] x) => (int64[M] y) {
    y = If (c) <then_branch = t () => (z) { z = Neg(x) }, else_branch = e () => (z) { z = Abs(x) }>
}"""
SEQUENCES = "g (float[N] x, float[N] y) => (seq(float[N]) z) { z = SequenceConstruct(x, y) }"
TYPES = {
    "float": np.float32,
    "double": np.float64,
    "int64": np.int64,
    "int32": np.int32,
    "uint8": np.uint8,
    "float16": np.float16,
}


def model(text: str) -> bytes:
    """Return the content of the model's file."""
    content: bytes = parser.parse_model(HEAD + text).SerializeToString()
    return content


def both(text: str, **arguments: Any) -> tuple[Any, Any]:
    """Return a session of crosschip's and one of ONNX Runtime itself."""
    content = model(text)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    real = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return ours.InferenceSession(content, **arguments), real


def outcome(session: Any, *arguments: Any) -> Any:
    """Return the outputs of a run, or the name of the class of its exception."""
    try:
        return session.run(*arguments)
    except Exception as error:
        return type(error).__name__
