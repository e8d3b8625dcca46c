"""The work of operations: multiply-adds by kind, and bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Operation, Shape, TensorType
from crosschip.ir.types import PYTHONS_TYPES

NOMINAL_MULTIPLY_ADDS = 20e9
"""The multiply-adds that a nominal device does in a second."""

NOMINAL_BYTES = 5e9
"""The bytes that a nominal device reads or writes in a second."""

_DENSE_CHANNELS = 8
"""The minimum number of products per filter channel of a convolution that is not grouped."""


class Workload(NamedTuple):
    """The work of some operations in one run; dynamic sizes count as 1.

    Attributes:
        convolutions: the multiply-adds of convolutions.
        grouped: the multiply-adds of convolutions with few channels per group.
        products: the multiply-adds of all other operations.
        bytes: the bytes of the tensors that each operation reads and writes.
        operations: the number of operations.
    """

    convolutions: int = 0
    grouped: int = 0
    products: int = 0
    bytes: int = 0
    operations: int = 0

    @classmethod
    def total(cls, parts: Sequence[Workload]) -> Workload:
        """Return the work of several parts together."""
        return cls(*map(sum, zip(*parts, strict=True)))

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of all kinds."""
        return self.convolutions + self.grouped + self.products

    @property
    def nominal_seconds(self) -> float:
        """The duration of a run on a nominal device, which makes models comparable."""
        return self.multiply_adds / NOMINAL_MULTIPLY_ADDS + self.bytes / NOMINAL_BYTES


def workload_of(operation: Operation, nbytes: int) -> Workload:
    """Return the work of an operation that reads and writes a number of bytes."""
    count = multiply_adds(operation)
    if not count:
        return Workload(bytes=nbytes, operations=1)
    if not operation.type.startswith("CONV"):
        return Workload(products=count, bytes=nbytes, operations=1)
    shape = operation.inputs[1].type.static_shape if operation.inputs[1] is not None else None
    if shape and len(shape) > 1 and shape[1] < _DENSE_CHANNELS <= shape[0]:
        return Workload(grouped=count, bytes=nbytes, operations=1)
    return Workload(convolutions=count, bytes=nbytes, operations=1)


def nbytes_of(type_: TensorType) -> int:
    """Return the bytes of a tensor; dynamic sizes count as 1, and Python objects as nothing."""
    if type_.element_type in PYTHONS_TYPES:
        return 0
    return elements_of(type_.shape) * type_.element_type.dtype.itemsize


@lru_cache(maxsize=4096)
def elements_of(shape: Shape | None) -> int:
    """Return the number of elements of a shape, in which dynamic sizes count as 1."""
    return math.prod([size for size in shape or () if isinstance(size, int)])
