"""Reproductions: graphs in ONNX's textual form, with the inputs of the record in order."""

from __future__ import annotations

from collections.abc import Callable

import onnxruntime

from crosschip.devices.kits.quirks import Quirk, Quirks
from crosschip.ir import Array

_HEAD = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>\n'


def _run(graph: Callable[[], str], quirk: Quirk) -> list[Array]:
    from onnx import parser

    try:
        model = parser.parse_model(_HEAD + graph())
    except parser.ParseError as error:
        raise SyntaxError(error) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")  # as for models of bytes
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    outputs: list[Array] = []
    for inputs in (*quirk.before, quirk.inputs):
        outputs = session.run(None, dict(zip(names, inputs, strict=True)))
    return outputs


quirk = Quirks("onnxruntime", "1.32.0", _run)
