"""Assertion operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, ElementType, Shape
from crosschip.ir.types import ALL_TYPES, BOOLEANS
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.slots import integer, tensor, tensors


@operator("ASSERT", core=True)
class Assert(Operator):
    """Identity of the data that fails at run time if the condition does not hold.

    The condition holds if all its elements are true, or if it has none. Each output is one of the
    data tensors. An assertion is checked if one of its outputs is used: operations that depend on
    the condition must read the data from these outputs. The error shows the first `summarize`
    elements of each tensor, or all if `summarize` is negative.
    """

    __slots__ = ()
    condition = tensor(BOOLEANS)
    data = tensors(ALL_TYPES)
    summarize = integer(3)

    def output_count(self) -> int:
        return len(self.data)

    def infer_element_type(self) -> ElementType:
        return type(self).data.element_type(self.data[0])

    def infer_shape(self) -> Sequence[Shape | None]:
        return [operand.type.shape for operand in self.data]

    def reference(self, condition: Array, data: Sequence[Array]) -> Sequence[Array]:
        if not np.all(condition):
            excerpts = (
                array.ravel()[: None if self.summarize < 0 else self.summarize] for array in data
            )
            texts = "; ".join(str(array.tolist()) for array in excerpts)
            raise ValueError(f"condition: does not hold; the data begin with {texts}")
        return list(data)
