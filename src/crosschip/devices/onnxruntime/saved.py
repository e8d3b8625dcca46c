"""The form that compiled ONNX models are saved in, with their large constants beside them.

    offset  size  what
    0       8     the mark "ORT" 0D 0A 1A 00 07; its last byte is the version of this layout
    8       8     where the ONNX model starts, little-endian like all numbers here
    16      8     its size
    24      8     the size of the description, which is the rest
    64            the elements of the large constants, each at a multiple of 64
    ...           the ONNX model
    ...           the description, as JSON: the facts about the model that was compiled, and of each
                  large constant the name, the element type and the shape, in their order

In the ONNX model a large constant is external data with a `length` and an `offset`, which counts
from byte 64. What lies between these parts is 0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.devices.kits.input_checks import InputRequirements
from crosschip.devices.kits.onnx.model import OnnxModel, aligned
from crosschip.ir import Array, ElementType, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.encoding import decode_type, encode_type

_MARK = b"ORT\r\n\x1a\x00\x07"
_PREAMBLE = struct.Struct("<8sQQQ")
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about the source model that a program needs.

    Attributes:
        precise: whether products of 8-bit integers must not saturate.
        optimize: whether ONNX Runtime has yet to optimize the saved model.
        sums_separate: whether sums are not fused into the products before them.
        checks: whether a run's sizes need to be checked, and the inputs that determine them.
        declared: the outputs whose types only the model's file declares: index, name and type.
    """

    precise: bool
    optimize: bool
    sums_separate: bool
    checks: InputRequirements
    declared: Sequence[tuple[int, str, TensorType]]


def parts(model: OnnxModel, facts: Facts) -> list[bytes | memoryview]:
    """Return the saved form of a model in parts; constants are in the order of their offsets.

    Returns:
        Its parts, in their order.
    """
    elements: list[bytes | memoryview] = []
    constants = []
    for name, array in model.external.items():
        padding = bytes(aligned(array.nbytes) - array.nbytes)
        elements += [array.reshape(-1).view(np.uint8).data, padding]
        constants.append([name, array.dtype.name, list(array.shape)])
    description = json.dumps(
        {
            "precise": facts.precise,
            "optimize": facts.optimize,
            "apart": facts.sums_separate,
            "checks": facts.checks.to_plain(),
            "declared": [[index, name, encode_type(t)] for index, name, t in facts.declared],
            "constants": constants,
        },
        separators=(",", ":"),
    ).encode()
    start = _ALIGNMENT + sum(map(len, elements))
    preamble = _PREAMBLE.pack(_MARK, start, len(model.proto), len(description))
    return [preamble.ljust(_ALIGNMENT, b"\0"), *elements, model.proto, description]


def read(saved: bytes | memoryview) -> tuple[OnnxModel, Facts]:
    """Return the saved model, whose external constants are views of the bytes, and its facts.

    Raises:
        Exception: the data has another form; struct, JSON and NumPy raise their own errors.
    """
    content = memoryview(saved)
    mark, start, size, description_size = _PREAMBLE.unpack_from(content)
    end = start + size
    if mark != _MARK or end + description_size != len(content):
        raise ValueError("it starts with something else")
    plain: dict[str, Any] = json.loads(bytes(content[end:]))
    external: dict[str, Array] = {}
    offset = _ALIGNMENT
    for name, type_, shape in plain["constants"]:
        dtype = ElementType(type_).dtype
        count = int(np.prod(shape, dtype=np.int64))
        external[name] = np.frombuffer(saved, dtype, count, offset).reshape(shape)
        offset += aligned(external[name].nbytes)
    if offset != start:
        raise ValueError("its constants are of other sizes")
    facts = Facts(
        plain["precise"],
        plain["optimize"],
        plain["apart"],
        InputRequirements.from_plain(plain["checks"]),
        [(index, name, decode_type(t)) for index, name, t in plain["declared"]],
    )
    return OnnxModel(bytes(content[start:end]), external), facts
