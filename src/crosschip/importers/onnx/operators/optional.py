"""Optional values: among tensors, one is there or it is not."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import ElementType, Operand, UnsupportedError


@imports("OptionalHasElement")
def optional_has_element(node: Node) -> Operand:
    value = _tensor(node)
    return node.constant(np.array(value is not None))


@imports("Optional", "OptionalGetElement")
def optional_get_element(node: Node) -> Operand:
    value = _tensor(node)
    if value is None:
        raise UnsupportedError("a value that is not there is no tensor")
    return value


def _tensor(node: Node) -> Operand | None:
    """The value, if it is there; one that the caller provides shows only when the model runs."""
    value = node.optional(0)
    if value is not None and value.type.element_type is ElementType.OBJECT:
        raise UnsupportedError("whether there is a value shows when the model runs")
    return value
