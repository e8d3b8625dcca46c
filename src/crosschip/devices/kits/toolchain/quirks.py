"""Reproductions of quirks with a chip's compiler, in the environment that it is installed in.

A reproduction is a graph in ONNX's textual form. The compiler and the chip, or its emulation, are
driven by the same few lines that the device has for the environment without crosschip, `tool.py`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from crosschip.devices.kits.quirks import Quirk
from crosschip.devices.kits.toolchain.device import Toolchain
from crosschip.ir import Array

_HEAD = '<ir_version: 9, opset_import: ["": 19]>\n'

_PROGRAM = """
import ast, importlib.util, sys
import numpy as np
script, folder, settings = sys.argv[1], sys.argv[2], ast.literal_eval(sys.argv[3])
spec = importlib.util.spec_from_file_location("tool", script)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)
tool.compile(folder, settings)
tool.load(folder, settings)
with np.load(folder + "/inputs.npz") as arrays:
    outputs = tool.run([arrays[name] for name in arrays.files])
np.savez(folder + "/outputs.npz", *outputs)
"""


def runs(
    toolchain: type[Toolchain], settings: Mapping[str, object]
) -> Callable[[Callable[[], str], Quirk], Sequence[Array]]:
    """What gives a reproduction to a compiler.

    Args:
        toolchain: the device, whose interpreter `CROSSCHIP_<DEVICE>_PYTHON` names.
        settings: what its tool is told.
    """

    def run(graph: Callable[[], str], quirk: Quirk) -> Sequence[Array]:
        python = os.environ.get(toolchain.variable())
        if python is None:
            raise ImportError(f"{toolchain.variable()} is not set")
        from onnx import parser

        try:
            model = parser.parse_model(_HEAD + graph())
        except parser.ParseError as error:
            raise SyntaxError(error) from error
        with TemporaryDirectory() as folder:
            Path(folder, "model.onnx").write_bytes(model.SerializeToString())
            np.savez(Path(folder, "inputs.npz"), *quirk.inputs)
            command = [python, "-c", _PROGRAM, str(toolchain.script), folder, repr(dict(settings))]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
            if done.returncode:
                raise RuntimeError((done.stderr or done.stdout)[-2000:])
            with np.load(Path(folder, "outputs.npz")) as outputs:
                return [outputs[name] for name in outputs.files]

    return run
