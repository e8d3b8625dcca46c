"""NNRt's C structures: the one definition of their members."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from crosschip.apis import structures
from crosschip.apis.structures import Member, Structure

STRUCTURES: Mapping[str, Structure] = {
    "OH_NN_UInt32Array": Structure((Member("uint32_t*", "data"), Member("uint32_t", "size"))),
    "OH_NN_QuantParam": Structure(
        (
            Member("uint32_t", "quantCount"),
            Member("const uint32_t*", "numBits"),
            Member("const double*", "scale"),
            Member("const int32_t*", "zeroPoint"),
        )
    ),
    "OH_NN_Tensor": Structure(
        (
            Member("OH_NN_DataType", "dataType"),
            Member("uint32_t", "dimensionCount"),
            Member("const int32_t*", "dimensions"),
            Member("const OH_NN_QuantParam*", "quantParam"),
            Member("OH_NN_TensorType", "type"),
        )
    ),
    "OH_NN_Memory": Structure((Member("void*", "data"), Member("size_t", "length"))),
}
"""Every structure by name, those that others hold before these. Both members of `OH_NN_Memory` are
constant."""


@cache
def layout(name: str) -> Any:
    """The ctypes class of a structure, laid out as this machine's C compiler does it."""
    return structures.layout(name, STRUCTURES)
