"""TOSA files of blocks."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tosa.block import Block, Node, Value
from crosschip.flatbuffer import write
from crosschip.flatbuffer.schemas.tosa import (
    ATTRIBUTES,
    DType,
    SoftwareVersion,
    TosaBasicBlock,
    TosaGraph,
    TosaOperator,
    TosaRegion,
    TosaShape,
    TosaTensor,
    Version,
)
from crosschip.hal.device import CompileError

_IDENTIFIER = b"TOSA"
_ALIGNMENT = 8
_MAX_BYTES = 2**31 - 2**24
"""The most bytes of constants: FlatBuffers' offsets have 31 bits."""


def to_bytes(block: Block, name: str) -> bytes:
    """Return a block as the content of a TOSA 1.0 file.

    Raises:
        CompileError: the constants are too large for a file.
    """
    constants = [value.elements for value in block.values.values() if value.elements is not None]
    size = sum(elements.nbytes for elements in constants)
    if size > _MAX_BYTES:
        raise CompileError(f"the constants have {size} bytes, and a TOSA file at most 2 GB", [])
    values = block.values.values()
    main = TosaBasicBlock(
        name=name,
        operators=[_operator(node) for node in block.nodes],
        tensors=[_tensor(value) for value in values if value.dtype is not DType.SHAPE],
        inputs=block.inputs,
        outputs=block.outputs,
        shapes=[_shape(value) for value in values if value.dtype is DType.SHAPE],
    )
    graph = TosaGraph(
        version=Version(major=1, minor=0, patch=0, draft=False),
        regions=[TosaRegion(name=name, blocks=[main])],
        software_version=SoftwareVersion(major=1, minor=0, micro=0, modifier=""),
    )
    return write(graph, _IDENTIFIER)


def _operator(node: Node) -> TosaOperator:
    attributes = {
        name: np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        for name, value in node.attributes.items()
    }
    return TosaOperator(
        op=node.op,
        attribute=ATTRIBUTES[node.op](**attributes),
        inputs=node.inputs,
        outputs=node.outputs,
    )


def _tensor(value: Value) -> TosaTensor:
    tensor = TosaTensor(name=value.name, shape=value.shape, type=value.dtype)
    if value.elements is not None:
        tensor.data = _data(value)
    return tensor


def _shape(value: Value) -> TosaShape:
    return TosaShape(name=value.name, rank=value.shape[0], data=_data(value))


def _data(value: Value) -> np.ndarray:
    """Return the elements in bytes, up to a multiple of 8, as readers expect them."""
    assert value.elements is not None, "it is constant"
    data = value.elements.tobytes()
    return np.frombuffer(data + bytes(-len(data) % _ALIGNMENT), np.uint8)
