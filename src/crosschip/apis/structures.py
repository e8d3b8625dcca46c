"""C structures as tables: the one definition of their members.

Headers are written from them, and so are the layouts that ctypes computes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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


_BASIC: Mapping[str, Any] = {
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "size_t": ctypes.c_size_t,
}


def layout(name: str, structures: Mapping[str, Structure]) -> Any:
    """The ctypes class of a structure, laid out as this machine's C compiler does it.

    Args:
        name: the structure.
        structures: it and those that it holds, by name. Any other type is an enumeration.
    """
    structure = structures[name]
    fields, anonymous = [], []
    for index, member in enumerate(structure.members):
        kind = _kind(member.type.removeprefix("const "), structures)
        for length in reversed(member.lengths):
            kind = kind * length
        own = member.name or f"_{index}"
        if not member.name:
            anonymous.append(own)
        fields.append((own, kind))
    base = ctypes.Union if structure.union else ctypes.Structure
    return type(name, (base,), {"_anonymous_": tuple(anonymous), "_fields_": fields})


def _kind(type_: str, structures: Mapping[str, Structure]) -> Any:
    if type_.endswith("*"):
        pointed = type_.removesuffix("*").strip()
        if pointed == "void":
            return ctypes.c_void_p
        return ctypes.POINTER(_kind(pointed, structures))
    if type_ in structures:
        return layout(type_, structures)
    return _BASIC.get(type_, ctypes.c_int)
