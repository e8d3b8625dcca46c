"""NNAdapter's C structures: the one definition of their members.

The header is written from it, and so are the layouts that ctypes computes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_MAX_SIZE_OF_DIMENSIONS as RANK,
)
from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS as PROFILES,
)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a structure.

    Attributes:
        type: its C type: a basic one, a pointer (`float*`), an enumeration or a structure.
        name: its name; empty for a union whose members are the structure's own.
        lengths: how many of them there are, for each axis of an array.
    """

    type: str
    name: str = ""
    lengths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure, or a union.

    Attributes:
        members: its members, in order.
        union: whether the members share one place.
    """

    members: tuple[Member, ...]
    union: bool = False


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

_BASIC: Mapping[str, Any] = {
    "float": ctypes.c_float,
    "float*": ctypes.POINTER(ctypes.c_float),
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "NNAdapterOperandPrecisionCode": ctypes.c_int,
    "NNAdapterOperandLayoutCode": ctypes.c_int,
    "NNAdapterOperandLifetimeCode": ctypes.c_int,
}


@cache
def layout(name: str) -> Any:
    """The ctypes class of a structure, laid out as this machine's C compiler does it."""
    structure = STRUCTURES[name]
    fields, anonymous = [], []
    for index, member in enumerate(structure.members):
        kind = _BASIC.get(member.type) or layout(member.type)
        for length in reversed(member.lengths):
            kind = kind * length
        own = member.name or f"_{index}"
        if not member.name:
            anonymous.append(own)
        fields.append((own, kind))
    base = ctypes.Union if structure.union else ctypes.Structure
    return type(name, (base,), {"_anonymous_": tuple(anonymous), "_fields_": fields})
