"""Models of the interface made by hand, and their runs on the reference device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.attributes import ATTRIBUTES, encode
from crosschip.apis.nnrt.hdi.v1_0.chip import Chip
from crosschip.apis.nnrt.hdi.v1_0.interface import INnrtDevice
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DataType,
    Format,
    IOTensor,
    Model,
    ModelConfig,
    Node,
    NodeType,
    QuantParam,
    SharedBuffer,
    SubGraph,
    Tensor,
)
from crosschip.devices.reference import ReferenceDevice
from crosschip.ir import Array

NHWC, NCHW = Format.FORMAT_NHWC, Format.FORMAT_NCHW


def code(array_type: Any) -> DataType:
    """The number of a NumPy type."""
    return DataType[f"DATA_TYPE_{np.dtype(array_type).name.upper()}"]


def tensor(
    array_type: Any,
    dims: Sequence[int],
    *,
    name: str = "",
    format: Format = NHWC,
    quantization: Sequence[QuantParam] = (),
    value: Array | None = None,
) -> Tensor:
    """A tensor; with a value, a constant in memory of its own, which is never closed."""
    data = SharedBuffer()
    if value is not None:
        held = np.ascontiguousarray(value)
        fd = memory.create_constant([(0, held)])
        data = SharedBuffer(fd, max(held.nbytes, 1), 0, held.nbytes)
    return Tensor(name, code(array_type), tuple(dims), format, data, tuple(quantization))


def model_of(tensors: Sequence[Tensor], nodes: Sequence[Node], outputs: Sequence[int]) -> Model:
    """A model whose inputs are the tensors that are no constants and that no node makes."""
    made = {index for node in nodes for index in node.outputIndex}
    inputs = tuple(i for i, t in enumerate(tensors) if i not in made and t.data.fd < 0)
    whole = SubGraph("NNRt_SubGraph", inputs, tuple(outputs), tuple(range(len(nodes))))
    return Model("NNR_Model", inputs, tuple(outputs), tuple(nodes), tuple(tensors), (whole,))


def node(
    kind: str, read: Sequence[int], made: Sequence[int], attributes: object = None, **named: object
) -> Node:
    """A node; its attributes are given, or made of the named ones."""
    node_type = NodeType[f"NODE_TYPE_{kind}"]
    told = attributes
    if told is None:
        told = msgspec.convert(named, ATTRIBUTES[node_type])
    return Node(kind, node_type, encode(told), tuple(read), tuple(made))  # type: ignore[arg-type]


def single(
    kind: str,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[Any, Sequence[int]]],
    *,
    constants: Collection[int] = (),
    order: Format = NHWC,
    scales: dict[int, Sequence[QuantParam]] | None = None,
    **attributes: object,
) -> Model:
    """A model of one node.

    Args:
        kind: what follows `NODE_TYPE_` in its operator.
        inputs: its inputs.
        outputs: the types and sizes of its outputs.
        constants: which inputs are constants.
        order: the format of all tensors.
        scales: the quantization of tensors, by place; outputs come after inputs.
        attributes: the node's.
    """
    kept = scales or {}
    tensors = [
        tensor(
            *(array.dtype, array.shape),
            name=f"in{place}",
            format=order,
            quantization=kept.get(place, ()),
            value=array if place in constants else None,
        )
        for place, array in enumerate(inputs)
    ]
    made = range(len(inputs), len(inputs) + len(outputs))
    tensors += [
        tensor(*type_, name=f"out{place}", format=order, quantization=kept.get(place, ()))
        for place, type_ in zip(made, outputs, strict=True)
    ]
    only = node(kind, range(len(inputs)), made, **attributes)
    return model_of(tensors, [only], list(made))


def run(driver: INnrtDevice, model: Model, inputs: Sequence[Array]) -> list[Array]:
    """Prepare a model and run it once, in memory that the driver allocates.

    Raises:
        HdiError: the driver does not prepare it.
    """
    prepared = driver.PrepareModel(model, ModelConfig())
    assert all(driver.GetSupportedOperation(model))
    buffers: list[SharedBuffer] = []

    def place(size: int) -> SharedBuffer:
        buffers.append(driver.AllocateBuffer(max(size, 1)))
        return msgspec.structs.replace(buffers[-1], dataSize=size)

    read, wanted = [], []
    for index, array in zip(model.inputIndex, inputs, strict=True):
        data = place(array.nbytes)
        if array.nbytes:
            memory.fill(data, array)
        own = model.allTensors[index]
        read.append(IOTensor(own.name, own.dataType, array.shape, own.format, data))
    for index in model.outputIndex:
        own = model.allTensors[index]
        wanted.append(IOTensor(own.name, own.dataType, (), own.format, place(1 << 16)))
    sizes, enough = prepared.Run(read, wanted)
    assert all(enough)
    results = []
    for one, shape in zip(wanted, sizes, strict=True):
        dtype = np.dtype(one.dataType.name.removeprefix("DATA_TYPE_").lower())
        held = memory.read(one.data)[: int(np.prod(shape)) * dtype.itemsize]
        results.append(held.copy().view(dtype).reshape(shape))
    for buffer in buffers:
        driver.ReleaseBuffer(buffer)
    return results


def computed(
    kind: str,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[Any, Sequence[int]]],
    *,
    constants: Collection[int] = (),
    **more: Any,
) -> list[Array]:
    """What one node computes on the reference device."""
    model = single(kind, inputs, outputs, constants=constants, **more)
    given = [array for place, array in enumerate(inputs) if place not in constants]
    with Chip(ReferenceDevice()) as chip:
        return run(chip, model, given)
