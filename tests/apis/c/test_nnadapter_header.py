"""NNAdapter's header: its structures as compilers lay them out, its values and its functions.

What is asserted holds of NNAdapter's own header, too: `CROSSCHIP_NNADAPTER_HEADER=…/nnadapter.h`
has it compiled against that one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from cffi import FFI
from tests.apis.c.conftest import LANGUAGES, compiler_of

from crosschip.apis import nnadapter
from crosschip.apis.c.header import FOLDER, Function, Header

# Where gcc puts the members of NNAdapter's own header on a machine of 64 bits: offset and size.
OFFSETS = {
    "NNAdapterSymmPerLayerQuantParams": {"scale": (0, 4)},
    "NNAdapterSymmPerChannelQuantParams": {
        "channel_dim": (0, 4),
        "scale_count": (4, 4),
        "scales": (8, 8),
    },
    "NNAdapterAsymmPerLayerQuantParams": {"scale": (0, 4), "zero_point": (4, 4)},
    "NNAdapterOperandDimensionType": {
        "count": (0, 4),
        "data": (4, 32),
        "dynamic_count": (36, 4),
        "dynamic_data": (40, 256),
    },
    "NNAdapterOperandType": {
        "precision": (0, 4),
        "layout": (4, 4),
        "lifetime": (8, 4),
        "dimensions": (12, 296),
        "symm_per_layer_params": (312, 4),
        "symm_per_channel_params": (312, 16),
        "asymm_per_layer_params": (312, 8),
    },
}
SIZES = {
    "NNAdapterSymmPerLayerQuantParams": 4,
    "NNAdapterSymmPerChannelQuantParams": 16,
    "NNAdapterAsymmPerLayerQuantParams": 8,
    "NNAdapterOperandDimensionType": 296,
    "NNAdapterOperandType": 328,
}


def _assertions() -> Iterator[str]:
    """Lines of C that do not compile if anything is not as it should be."""
    for structure, members in OFFSETS.items():
        yield f'static_assert(sizeof({structure}) == {SIZES[structure]}, "{structure}");'
        for member, (offset, size) in members.items():
            yield f'static_assert(offsetof({structure}, {member}) == {offset}, "{member}");'
            yield f'static_assert(sizeof((({structure} *)0)->{member}) == {size}, "{member}");'
    for name in nnadapter.__all__:
        found = getattr(nnadapter, name)
        if isinstance(found, int):
            yield f'static_assert({name} == {found}, "{name}");'
        elif isinstance(found, type) and issubclass(found, IntEnum):
            for code in found:
                yield f'static_assert({code.name} == {code.value}, "{code.name}");'
    for function in Header(FOLDER / "nnadapter.h").functions:
        yield _use(function)


def _use(function: Function) -> str:
    """A line that takes a function with just these parameters and this result."""
    inside = ", ".join(parameter.declaration for parameter in function.parameters)
    return f"{function.result} (*use_{function.name})({inside}) = {function.name};"


def _compile(path: Path, language: str, folder: Path) -> None:
    source = folder / "check.c"
    head = ["assert.h", "stdbool.h", "stddef.h"]
    lines = [*(f"#include <{name}>" for name in head), f'#include "{path}"', *_assertions()]
    source.write_text("\n".join([*lines, ""]), "utf-8")
    compiler, *own = compiler_of(language)
    command = [compiler, *own, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_header(language: str, tmp_path: Path) -> None:
    _compile(FOLDER / "nnadapter.h", language, tmp_path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_their_header(language: str, tmp_path: Path) -> None:
    path = os.environ.get("CROSSCHIP_NNADAPTER_HEADER")
    if path is None:
        pytest.skip("CROSSCHIP_NNADAPTER_HEADER does not name NNAdapter's own header")
    _compile(Path(path), language, tmp_path)


def test_no_structure_and_no_member_has_been_left_out() -> None:
    header = Header(FOLDER / "nnadapter.h")
    ffi = FFI()
    ffi.cdef(header.types)
    types = {*ffi.list_types()[0]} - {*header.handles}
    named = {name for name in types if ffi.typeof(name).kind == "struct"}
    assert named == set(OFFSETS)
    for name in named:
        assert set(_members(ffi.typeof(name))) == set(OFFSETS[name])


def _members(structure: Any) -> Iterator[str]:
    for name, member in structure.fields:
        if name:
            yield name
        else:
            yield from _members(member.type)
