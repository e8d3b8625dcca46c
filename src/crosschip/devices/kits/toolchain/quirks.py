"""Reproductions of quirks on a chip's compiler, in the environment where it is installed.

A reproduction is a graph in ONNX's textual form. The device's script drives the compiler and the
chip or its emulator, without crosschip.
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
    """Return the function that runs a reproduction on a compiler.

    Args:
        toolchain: the device; `CROSSCHIP_<DEVICE>_PYTHON` names its interpreter.
        settings: the settings of its tool.
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
            completed = subprocess.run(command, capture_output=True, text=True, cwd=folder)
            if completed.returncode:
                raise RuntimeError((completed.stderr or completed.stdout)[-2000:])
            with np.load(Path(folder, "outputs.npz")) as outputs:
                return [outputs[name] for name in outputs.files]

    return run
