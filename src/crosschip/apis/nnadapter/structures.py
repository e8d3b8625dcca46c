"""NNAdapter's C structures: the one definition of their members."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from crosschip.apis import structures
from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_MAX_SIZE_OF_DIMENSIONS as RANK,
)
from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS as PROFILES,
)
from crosschip.apis.structures import Member, Structure

STRUCTURES: Mapping[str, Structure] = {
    "NNAdapterSymmPerLayerQuantParams": Structure((Member("float", "scale"),)),
    "NNAdapterSymmPerChannelQuantParams": Structure(
        (
            Member("uint32_t", "channel_dim"),
            Member("uint32_t", "scale_count"),
            Member("float*", "scales"),
        )
    ),
    "NNAdapterAsymmPerLayerQuantParams": Structure(
        (Member("float", "scale"), Member("int32_t", "zero_point"))
    ),
    "NNAdapterOperandDimensionType": Structure(
        (
            Member("uint32_t", "count"),
            Member("int32_t", "data", (RANK,)),
            Member("uint32_t", "dynamic_count"),
            Member("int32_t", "dynamic_data", (PROFILES, RANK)),
        )
    ),
    "NNAdapterQuantParams": Structure(
        (
            Member("NNAdapterSymmPerLayerQuantParams", "symm_per_layer_params"),
            Member("NNAdapterSymmPerChannelQuantParams", "symm_per_channel_params"),
            Member("NNAdapterAsymmPerLayerQuantParams", "asymm_per_layer_params"),
        ),
        union=True,
    ),
    "NNAdapterOperandType": Structure(
        (
            Member("NNAdapterOperandPrecisionCode", "precision"),
            Member("NNAdapterOperandLayoutCode", "layout"),
            Member("NNAdapterOperandLifetimeCode", "lifetime"),
            Member("NNAdapterOperandDimensionType", "dimensions"),
            Member("NNAdapterQuantParams"),
        )
    ),
}
"""Every structure by name, those that others hold before these. `NNAdapterQuantParams` has no name
in C: it is the union inside of `NNAdapterOperandType`."""


@cache
def layout(name: str) -> Any:
    """The ctypes class of a structure, laid out as this machine's C compiler does it."""
    return structures.layout(name, STRUCTURES)
