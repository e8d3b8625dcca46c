"""Constants, and tensors made from a description."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Array, ModelError, Operand, UnsupportedError
from crosschip.ir import constant as constant_operand
from crosschip.ops.creation import Fill

_VALUES: dict[str, Callable[[Node, str], Array]] = {
    "value": Node.tensor,
    "value_float": lambda node, name: np.array(node.real(name), np.float32),
    "value_floats": lambda node, name: np.array(node.reals(name), np.float32),
    "value_int": lambda node, name: np.array(node.integer(name), np.int64),
    "value_ints": lambda node, name: np.array(node.integers(name), np.int64),
}


@imports("Constant")
def constant(node: Node) -> Operand:
    for name, read in _VALUES.items():
        if node.has(name):
            return constant_operand(read(node, name), node.outputs[0])
    raise UnsupportedError("its value is neither a dense tensor nor numbers")


@imports("ConstantOfShape")
def constant_of_shape(node: Node) -> Operand:
    value = node.tensor("value") if node.has("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise ModelError(f"value has {value.size} elements, but must have one")
    return node.add(Fill, node[0], value)
