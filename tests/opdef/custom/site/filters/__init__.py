"""Three operators in three styles: parts, Python with functions of devices, and a kernel in C."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from crosschip import opdef
from crosschip.ir import Array, Builder, Operand
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.unary import Abs

package = opdef.Package.read(Path(__file__).with_name("operators.xml"))


@package.defines("softclip")
class Softclip(opdef.CustomOperator):
    """`X / (1 + bound * |X|)`."""

    def decompose(self, b: Builder) -> Operand:
        dtype = self.X.type.element_type.dtype
        size = b.add(Mul, b.add(Abs, self.X), np.array(self.bound, dtype))
        return b.add(Div, self.X, b.add(Add, size, np.array(1, dtype)))


@package.defines("tiled")
class Tiled(opdef.CustomOperator):
    """Each row, several times over."""

    def reference(self, X: Array) -> Array:
        return np.tile(X, (1, self.times))


@package.converts("openvino", Tiled)
def tiled_openvino(g: Any, op: Any) -> Any:
    from openvino import opset15 as ops

    return ops.tile(g[op.X], g.int64([1, op.times]))


@package.converts("onnxruntime", Tiled)
def tiled_onnx(g: Any, op: Any) -> str:
    times = g.constant(np.array([1, op.times], np.int64))
    return str(g.add("Tile", g[op.X], times))


@package.defines("median_of_three")
class Median(opdef.NativeOperator):
    library = Path(os.environ.get("FILTERS_LIBRARY", Path(__file__).with_name("libfilters.so")))
