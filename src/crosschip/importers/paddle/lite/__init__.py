"""Importer of Paddle Lite's optimized models, `.nb` (naive buffer), format versions 0 to 2.

A file is the format version (u16), the tool version (16 bytes), the size of the program (u64), the
program, and the parameters; all numbers are little-endian. `flat` reads FlatBuffers (versions 1 and
2), `naive` reads sequences of fields (version 0). `fused_operators` replaces the operators that
Paddle Lite's optimizer creates by operators of Paddle.

Source: lite/model_parser/model_parser.cc of Paddle Lite 2.14.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from crosschip.importers.paddle import paddle2
from crosschip.importers.paddle.files import LITE_HEAD
from crosschip.importers.paddle.lite import flat, naive
from crosschip.importers.paddle.lite.fused_operators import unfuse
from crosschip.importers.paddle.program import NameCounter, Program, Variable
from crosschip.ir import Array, ElementType, ModelError
from crosschip.ir.files import Source, Stored

_VERSIONS = {0: naive, 1: flat, 2: flat}


def read(source: Source) -> tuple[Program, Mapping[str, Array | Stored]]:
    """Return the program of a file and its parameters by name; large parameters stay in the file.

    Raises:
        ModelError: the file is damaged, or its version is unknown.
        UnsupportedError: an operator cannot be expressed.
    """
    try:
        return _read(source)
    except OSError as error:
        raise ModelError(error.strerror or str(error)) from None
    except (struct.error, UnicodeDecodeError, ValueError, IndexError, OverflowError) as error:
        raise ModelError(f"is damaged: {error}") from None


def _read(source: Source) -> tuple[Program, Mapping[str, Array | Stored]]:
    version, _, size = LITE_HEAD.unpack(flat.read_bytes(source, 0, LITE_HEAD.size))
    if version not in _VERSIONS:
        raise ModelError(f"is of version {version} of the form; known are {sorted(_VERSIONS)}")
    end = LITE_HEAD.size + size
    if end > source.size:
        raise ModelError(f"has {source.size} bytes, but its program ends at {end}")
    reader = _VERSIONS[version]
    message = reader.program(source.read(LITE_HEAD.size, end))
    values = reader.parameters(source, end, version)
    program = paddle2.from_message(message)
    numbering = NameCounter()
    operators = deque(
        plain._replace(name=numbering.next(plain.type))
        for operator in program.operators
        for plain in unfuse(operator)
    )
    declared = {
        name: Variable(name, ElementType.of(value.dtype), value.shape)
        for name, value in values.items()
    }
    return replace(program, parameters=declared, operators=operators), values
