"""Declarations of the C header as Python data, parsed from the header."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache, lru_cache
from typing import Any, TypeVar

from cffi import FFI

from crosschip.devices.kits.native.header import HEADER
from crosschip.hal.capabilities import Kind, Precision, Sizing
from crosschip.hal.support import Rule
from crosschip.ir import ElementType

E = TypeVar("E", bound=Enum)

_FOR_COMPILERS = re.compile(
    r"^#ifdef __cplusplus.*?^#endif$|^#ifndef CROSSCHIP_NO_HELPERS.*?^#endif$"
    r"|^#include .*?$|^#ifndef CROSSCHIP_HAL_H$|^#define CROSSCHIP_HAL_H$|^#endif$",
    re.MULTILINE | re.DOTALL,
)


@lru_cache(maxsize=1)
def foreign() -> FFI:
    """Return the FFI object with the header's declarations."""
    ffi = FFI()
    ffi.cdef(_FOR_COMPILERS.sub("", HEADER.read_text(encoding="utf-8")))
    return ffi


@cache
def enumerators(name: str) -> dict[str, int]:
    """Return the constants of a C enumeration by name."""
    return {word: int(code) for word, code in foreign().typeof(name).relements.items()}


@cache
def codes(enumeration: type[E]) -> dict[E, int]:
    """Return the C code of each member that has one."""
    name, prefix = _C_NAMES[enumeration]
    members_by_name = {f"{prefix}{member.name}": member for member in enumeration}
    return {
        members_by_name[name_in_c]: code
        for name_in_c, code in enumerators(name).items()
        if name_in_c in members_by_name
    }


@cache
def members(enumeration: type[E]) -> dict[int, E]:
    """Return the member for each C code."""
    return {code: member for member, code in codes(enumeration).items()}


def text(pointer: Any) -> str:
    """Return a C string; empty for NULL."""
    ffi = foreign()
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


_C_NAMES: dict[type[Enum], tuple[str, str]] = {
    ElementType: ("crosschip_type", "CROSSCHIP_"),
    Kind: ("crosschip_kind", "CROSSCHIP_KIND_"),
    Precision: ("crosschip_precision", "CROSSCHIP_PRECISION_"),
    Rule: ("crosschip_rule", "CROSSCHIP_RULE_"),
    Sizing: ("crosschip_sizing", "CROSSCHIP_SIZING_"),
}
"""The C enumeration of each Python one, and the prefix of its constants."""
