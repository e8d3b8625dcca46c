"""Optional values: in a model of tensors, one is there or it is not."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand, UnsupportedError


@imports("OptionalHasElement")
def optional_has_element(node: Node) -> Operand:
    return node.constant(np.array(node.optional(0) is not None))


@imports("Optional", "OptionalGetElement")
def optional_get_element(node: Node) -> Operand:
    if node.optional(0) is None:
        raise UnsupportedError("a value that is not there is no tensor")
    return node[0]
