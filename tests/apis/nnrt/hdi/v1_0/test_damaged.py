"""That damaged and hostile models, memory and runs are refused with a typed error, by name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.apis.nnrt.hdi.v1_0.making import NHWC, model_of, node, single, tensor

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.attributes import ATTRIBUTES
from crosschip.apis.nnrt.hdi.v1_0.chip import Chip
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.reader import read_model, read_parts
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DataType,
    Format,
    IOTensor,
    Model,
    ModelConfig,
    QuantParam,
    SharedBuffer,
)
from crosschip.devices.reference import ReferenceDevice
from crosschip.ir import UnsupportedError

F32 = np.float32


def sound() -> Model:
    """A model of two nodes: `relu(x) + 1`."""
    tensors = [
        tensor(F32, (2, 3), name="x"),
        tensor(F32, (2, 3)),
        tensor(F32, (3,), value=np.ones(3, F32)),
        tensor(F32, (2, 3), name="y"),
    ]
    nodes = [
        node("ACTIVATION", [0], [1], activationType=1),
        node("ADD_FUSION", [1, 2], [3]),
    ]
    return model_of(tensors, nodes, [3])


def changed(index: int, **fields: Any) -> Callable[[Model], Model]:
    """The change of a tensor."""

    def change(model: Model) -> Model:
        tensors = list(model.allTensors)
        tensors[index] = replace(tensors[index], **fields)
        return replace(model, allTensors=tuple(tensors))

    return change


def renoded(place: int, **fields: Any) -> Callable[[Model], Model]:
    """The change of a node."""

    def change(model: Model) -> Model:
        nodes = list(model.nodes)
        nodes[place] = replace(nodes[place], **fields)
        return replace(model, nodes=tuple(nodes))

    return change


def reshared(**fields: Any) -> Callable[[Model], Model]:
    """The change of the constant's memory."""

    def change(model: Model) -> Model:
        return changed(2, data=replace(model.allTensors[2].data, **fields))(model)

    return change


def part(**fields: Any) -> Callable[[Model], Model]:
    """The change of the sub-graph."""
    return lambda model: replace(model, subGraph=(replace(model.subGraph[0], **fields),))


QUANTIZED = (QuantParam(8, 0, 0.5),)

DAMAGED: dict[str, tuple[Callable[[Model], Model], str]] = {
    "an input beyond": (renoded(0, inputIndex=(9,)), "inputs of node 0: there is no 9"),
    "an output beyond": (renoded(1, outputIndex=(4,)), "outputs of node 1: there is no 4"),
    "an output twice": (renoded(0, outputIndex=(1, 1)), "has an index twice"),
    "no inputs": (renoded(0, inputIndex=()), "no inputs"),
    "no outputs": (renoded(0, outputIndex=()), "or no outputs"),
    "two makers": (renoded(1, outputIndex=(1,)), "tensor 1, which node 1 makes, is made elsewhere"),
    "a constant made": (renoded(0, outputIndex=(2,)), "tensor 2, which node 0 makes"),
    "an input made": (renoded(1, outputIndex=(0,)), "tensor 0, which node 1 makes"),
    "a cycle": (renoded(0, inputIndex=(3,)), "reads what follows from its own output"),
    "a model input beyond": (lambda m: replace(m, inputIndex=(7,)), "inputs of the model"),
    "a model input twice": (lambda m: replace(m, inputIndex=(0, 0)), "an index twice"),
    "a constant model input": (lambda m: replace(m, inputIndex=(0, 2)), "a constant is an input"),
    "a model output beyond": (lambda m: replace(m, outputIndex=(8,)), "outputs of the model"),
    "an output unmade": (lambda m: replace(m, nodes=m.nodes[:1], subGraph=()), "nothing makes it"),
    "a negative size": (changed(1, dims=(2, -2)), "has the sizes"),
    "too many axes": (changed(1, dims=(1,) * 33), "33 axes"),
    "too many elements": (changed(1, dims=(2**31 - 1,) * 3), "elements"),
    "an unknown type": (changed(1, dataType=DataType.DATA_TYPE_UNKNOWN), "no tensors of"),
    "a wrong descriptor": (reshared(fd=-2), "fd is -2"),
    "a closed descriptor": (reshared(fd=2**20), "fd is no descriptor"),
    "data beyond the memory": (reshared(offset=4), "the data is not in it"),
    "more than there is": (reshared(bufferSize=2**20), "there are only"),
    "too little data": (reshared(dataSize=8), "takes 12 bytes, but its data has 8"),
    "too much data": (reshared(dataSize=13, bufferSize=13), "takes 12 bytes"),
    "an open constant": (changed(2, dims=(-1,)), "constant with an open size"),
    "huge sizes": (changed(2, dims=(2**31 - 1,)), "takes 8589934588 bytes"),
    "scales of reals": (changed(1, quantParams=QUANTIZED), "must have 8 bits"),
    "other bits": (
        changed(1, dataType=DataType.DATA_TYPE_INT8, quantParams=(QuantParam(4, 0, 0.5),)),
        "must have 8 bits",
    ),
    "a scale of 0": (
        changed(1, dataType=DataType.DATA_TYPE_INT8, quantParams=(QuantParam(8, 0, 0.0),)),
        "every scale must be a positive",
    ),
    "too many scales": (
        changed(1, dataType=DataType.DATA_TYPE_INT8, quantParams=QUANTIZED * 7),
        "no channels for 7 scales",
    ),
    "a node of the part beyond": (part(nodeIndices=(0, 5)), "nodes of the sub-graph"),
    "a node of the part missing": (part(nodeIndices=(0,)), "not all of the model"),
    "an input of the part beyond": (part(inputIndices=(5,)), "inputs of the sub-graph"),
    "an output of the part beyond": (part(outputIndices=(5,)), "outputs of the sub-graph"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_models(name: str) -> None:
    change, told = DAMAGED[name]
    model = sound()
    read_model(model)
    with pytest.raises(HdiError, match=told) as caught:
        read_model(change(model))
    assert caught.value.code in (ReturnCode.HDF_ERR_INVALID_PARAM, ReturnCode.HDF_ERR_BAD_FD)
    with Chip(ReferenceDevice()) as chip:
        with pytest.raises(HdiError, match=told):
            chip.GetSupportedOperation(change(model))
        with pytest.raises(HdiError, match=told):
            chip.PrepareModel(change(model), ModelConfig())


def test_several_parts_are_not_supported() -> None:
    model = sound()
    two = replace(model, subGraph=model.subGraph * 2)
    with pytest.raises(HdiError, match="several sub-graphs") as caught:
        read_model(two)
    assert caught.value.code is ReturnCode.HDF_ERR_NOT_SUPPORT


NODES: dict[str, tuple[Model, str]] = {
    "another shape": (
        single("ACTIVATION", [np.ones((2, 3), F32)], [(F32, (3, 2))], activationType=1),
        "makes float32\\[2, 3\\], not float32\\[3, 2\\]",
    ),
    "another type": (
        single("ACTIVATION", [np.ones(2, F32)], [(np.int32, (2,))], activationType=1),
        "not int32",
    ),
    "too many outputs": (
        single("SQRT", [np.ones(2, F32)], [(F32, (2,)), (F32, (2,))]),
        "makes 1 outputs, not 2",
    ),
    "too many inputs": (
        single("SQRT", [np.ones(2, F32), np.ones(2, F32)], [(F32, (2,))]),
        "there are 2 for 1 places",
    ),
    "too few inputs": (single("GATHER", [np.ones(2, F32)], [(F32, (2,))]), "is required"),
    "an axis beyond": (single("CONCAT", [np.ones(2, F32)], [(F32, (2,))], axis=5), "axis"),
    "no resize method": (
        single("RESIZE", [np.ones((1, 2, 2, 1), F32)], [(F32, (1, 2, 2, 1))]),
        "no such case",
    ),
    "reserved padding": (
        single("PAD_FUSION", [np.ones(2, F32)], [(F32, (2,))], paddings=[[0, 0]], paddingMode=3),
        "is 3, but there are 0, 1, 2",
    ),
    "another kernel": (
        single(
            *(
                "CONV2D_FUSION",
                [np.ones((1, 3, 3, 1), F32), np.ones((1, 2, 2, 1), F32), np.ones(1, F32)],
            ),
            *([(F32, (1, 2, 2, 1))],),
            kernelSize=[3, 3],
            stride=[1, 1],
            dilation=[1, 1],
            padList=[0, 0, 0, 0],
        ),
        "kernelSize is \\[3, 3\\]",
    ),
    "nothing to reduce to the end": (
        single(
            *("REDUCE_FUSION", [np.ones(2, F32), np.ones(0, np.int32)], [(F32, ())]),
            constants={1},
            reduceToEnd=True,
        ),
        "axes",
    ),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_that_break_a_rule_are_not_supported(name: str) -> None:
    model, told = NODES[name]
    assert list(read_parts(model).refused) == [0]
    with Chip(ReferenceDevice()) as chip:
        assert chip.GetSupportedOperation(model) == [False]
        with pytest.raises(HdiError, match=told) as caught:
            chip.PrepareModel(model, ModelConfig())
        assert caught.value.code is ReturnCode.HDF_ERR_NOT_SUPPORT


def test_an_image_keeps_its_format() -> None:
    model = single(
        "RESIZE",
        [np.ones((1, 2, 2, 1), F32)],
        [(F32, (1, 2, 2, 1))],
        method=1,
        newHeight=2,
        newWidth=2,
    )
    other = changed(1, format=Format.FORMAT_NCHW)(model)
    with pytest.raises(UnsupportedError, match="another format"):
        read_model(other)


def test_what_follows_a_refused_node_is_answered_on_its_own() -> None:
    model = renoded(0, nodeAttr=b"?")(sound())
    with Chip(ReferenceDevice()) as chip:
        assert chip.GetSupportedOperation(model) == [False, True]


def test_memory_that_is_none(tmp_path: Path) -> None:
    ends = os.pipe()
    try:
        with pytest.raises(HdiError, match="not that of memory") as caught:
            memory.read(SharedBuffer(ends[0], 4, 0, 4))
        assert caught.value.code is ReturnCode.HDF_ERR_BAD_FD
    finally:
        for end in ends:
            os.close(end)


def test_memory_that_can_change_is_copied() -> None:
    fd = os.memfd_create("test")
    try:
        os.write(fd, b"abcd")
        buffer = SharedBuffer(fd, 4, 1, 2)
        held = memory.read(buffer)
        os.pwrite(fd, b"xxxx", 0)
        assert bytes(held) == b"bc"
        os.ftruncate(fd, 1)  # would end the process if it were mapped
        with pytest.raises(HdiError, match="there are only 1 bytes"):
            memory.read(buffer)
        assert bytes(held) == b"bc"
    finally:
        os.close(fd)


def test_memory_of_constants_cannot_change_and_stays_after_its_descriptor() -> None:
    fd = memory.create_constant([(0, np.arange(4, dtype=F32))])
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 1)
    held = memory.read(SharedBuffer(fd, 16, 4, 8), constant=True)
    os.close(fd)
    np.testing.assert_array_equal(held.view(F32), [1, 2])


def test_memory_is_given_back_once() -> None:
    with Chip(ReferenceDevice()) as chip:
        buffer = chip.AllocateBuffer(8)
        chip.ReleaseBuffer(buffer)
        for other in (buffer, SharedBuffer(0, 8, 0, 8)):
            with pytest.raises(HdiError, match="was not allocated by this device"):
                chip.ReleaseBuffer(other)
        for size in (0, -1, 2**32):
            with pytest.raises(HdiError, match="must be 1 to"):
                chip.AllocateBuffer(size)


@pytest.fixture
def chip() -> Iterator[Chip]:
    with Chip(ReferenceDevice()) as made:
        yield made


def io(chip: Chip, dims: tuple[int, ...] = (2, 3), **fields: Any) -> IOTensor:
    data = replace(chip.AllocateBuffer(256), dataSize=24)
    whole = IOTensor("x", DataType.DATA_TYPE_FLOAT32, dims, NHWC, data)
    return replace(whole, **fields)


RUNS: dict[str, tuple[Callable[[IOTensor], list[IOTensor]], str]] = {
    "none": (lambda one: [], "0 inputs, but must be 1"),
    "two": (lambda one: [one, one], "2 inputs"),
    "another type": (lambda one: [replace(one, dataType=DataType.DATA_TYPE_INT32)], "not float32"),
    "other sizes": (lambda one: [replace(one, dimensions=(3, 2))], "has the sizes \\[3, 2\\]"),
    "an open size": (lambda one: [replace(one, dimensions=(-1, 3))], "has the sizes"),
    "too little": (lambda one: [replace(one, data=replace(one.data, dataSize=20))], "takes 24"),
    "beyond": (lambda one: [replace(one, data=replace(one.data, offset=250))], "not in it"),
    "no memory": (lambda one: [replace(one, data=SharedBuffer(dataSize=24))], "not in it"),
    "a lie": (lambda one: [replace(one, data=replace(one.data, bufferSize=2**20))], "only 256"),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_on_what_does_not_fit(name: str, chip: Chip) -> None:
    change, told = RUNS[name]
    prepared = chip.PrepareModel(sound(), ModelConfig())
    with pytest.raises(HdiError, match=told):
        prepared.Run(change(io(chip)), [io(chip)])
    with pytest.raises(HdiError, match="outputs, but must be 1"):
        prepared.Run([io(chip)], [])
    sizes, enough = prepared.Run([io(chip)], [io(chip)])  # it goes on serving
    assert (sizes, enough) == ([[2, 3]], [True])


def test_an_output_without_room_is_told_and_not_written(chip: Chip) -> None:
    prepared = chip.PrepareModel(sound(), ModelConfig())
    place = io(chip)
    small = replace(place, data=replace(place.data, dataSize=20))
    memory.fill(place.data, np.full(6, 7, F32))
    assert prepared.Run([io(chip)], [small]) == ([[2, 3]], [False])
    np.testing.assert_array_equal(memory.read(place.data).view(F32), 7)


SMALL = st.integers(-3, 9)
PLACES = st.lists(st.integers(0, 5), max_size=3).map(tuple)
DIMS = st.lists(st.sampled_from([-2, -1, 0, 1, 2, 3, 2**31 - 1]), max_size=4).map(tuple)
SCALES = st.lists(
    st.builds(QuantParam, st.sampled_from([0, 8, 16]), SMALL, st.floats(-1, 2)), max_size=3
).map(tuple)
NUMBERS = st.one_of(SMALL, st.floats(), st.booleans(), st.lists(SMALL, max_size=4))


@st.composite
def attributes(draw: st.DrawFn) -> dict[str, Any]:
    """A node type and attributes for it, of which some may be those of another or nonsense."""
    node_type = draw(st.sampled_from(sorted(ATTRIBUTES)))
    names = [field.encode_name for field in msgspec.structs.fields(ATTRIBUTES[node_type])]
    told = st.dictionaries(st.sampled_from([*names, "more"] if names else ["more"]), NUMBERS)
    written = draw(st.one_of(told.map(msgspec.msgpack.encode), st.binary(max_size=9)))
    return {"nodeType": node_type, "nodeAttr": written}


NODE_CHANGES = st.one_of(
    st.fixed_dictionaries({"inputIndex": PLACES}),
    st.fixed_dictionaries({"outputIndex": PLACES}),
    attributes(),
)
TENSOR_CHANGES = st.one_of(
    st.fixed_dictionaries({"dims": DIMS}),
    st.fixed_dictionaries({"dataType": st.sampled_from(DataType)}),
    st.fixed_dictionaries({"format": st.sampled_from(Format)}),
    st.fixed_dictionaries({"quantParams": SCALES}),
)
SIZES = st.sampled_from([0, 1, 4, 12, 24, 2**32 - 1])
CHANGES = st.one_of(
    st.builds(lambda place, fields: renoded(place, **fields), st.integers(0, 1), NODE_CHANGES),
    st.builds(lambda index, fields: changed(index, **fields), st.integers(0, 3), TENSOR_CHANGES),
    st.builds(lambda offset, size: reshared(offset=offset, dataSize=size), SIZES, SIZES),
)


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(CHANGES, min_size=1, max_size=3))
def test_any_damage_is_refused_or_harmless(changes: list[Callable[[Model], Model]]) -> None:
    model = sound()
    for change in changes:
        model = change(model)
    with Chip(ReferenceDevice()) as chip:
        try:
            told = read_parts(model).refused.values()
            assert not [why for why in told if re.search(r"^\w+: \w+Error: ", why)]
            chip.GetSupportedOperation(model)
            chip.PrepareModel(model, ModelConfig())
        except HdiError as error:
            assert str(error)  # noqa: PT017
        finally:
            os.close(model.allTensors[2].data.fd)


def test_memory_that_there_is_not_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken from others page by page until the system ends them."""
    monkeypatch.setattr("crosschip.drivers.protocol.memory._available", lambda: 1 << 25)
    with pytest.raises(HdiError, match="of 67108864 bytes: 33554432 are available"):
        memory.allocate(1 << 26)
    with pytest.raises(HdiError, match="are available"):
        memory.create_constant([(1 << 26, np.zeros(1, np.uint8))])
    with pytest.raises(HdiError, match="must be 1 to"):
        memory.allocate(memory.MAX_BYTES + 1)
