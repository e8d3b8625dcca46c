"""Tensors in all their forms: typed, raw, external, and wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper, save_model

from crosschip.importers import load
from crosschip.importers.onnx.wire import LARGE
from crosschip.ir import ModelFileError, UnsupportedError
from crosschip.ir.files import Stored
from crosschip.onnx_messages import ELEMENT_TYPES

Array = NDArray[Any]
Reading = Callable[..., list[Array]]

WEIGHTS = np.random.default_rng(7).standard_normal((3, LARGE)).astype(np.float32)


def model_of(*tensors: TensorProto) -> ModelProto:
    """Return a model whose outputs are the tensors."""
    for index, tensor in enumerate(tensors):
        tensor.name = f"t{index}"
    outputs = [helper.make_tensor_value_info(t.name, t.data_type, None) for t in tensors]
    graph = helper.make_graph([], "tensors", [], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """Imports a model of tensors and returns their arrays; keywords become external data."""

    def run(*tensors: TensorProto, external: dict[str, str] | None = None) -> list[Array]:
        for tensor in tensors if external is not None else ():
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (external or {}).items():
                tensor.external_data.add(key=key, value=value)
        path = tmp_path / "model.onnx"
        path.write_bytes(model_of(*tensors).SerializeToString())
        found = [operand.value for operand in load(path).outputs.values()]
        return [array for array in found if array is not None]

    return run


@pytest.mark.parametrize("code", ELEMENT_TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 1, 3)])
def test_typed_and_raw_elements(reading: Reading, code: int, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape)) * 3 % 7).tolist()
    typed = helper.make_tensor("t", code, shape, values)
    oracle = numpy_helper.to_array(typed)
    raw = numpy_helper.from_array(oracle)
    assert raw.HasField("raw_data")
    assert not typed.HasField("raw_data")
    for found in reading(typed, raw):
        assert (found.dtype, found.shape) == (oracle.dtype, oracle.shape)
        np.testing.assert_array_equal(found, oracle)


def test_negative_elements_of_small_types(reading: Reading) -> None:
    values = [-128, -1, 0, 127]
    (found,) = reading(helper.make_tensor("t", TensorProto.INT8, [4], values))
    assert found.tolist() == values


def test_booleans_are_true_or_false(reading: Reading) -> None:
    tensor = TensorProto(data_type=TensorProto.BOOL, dims=[3], raw_data=b"\0\1\2")
    (found,) = reading(tensor)
    assert found.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("padding", range(4))
def test_large_weights_are_read_when_asked_for(tmp_path: Path, padding: int) -> None:
    proto = model_of(numpy_helper.from_array(WEIGHTS))
    proto.producer_name = "x" * (4 + padding)
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    (operand,) = load(path).outputs.values()
    assert isinstance(operand.content, Stored)
    found = operand.value
    assert found is not None
    np.testing.assert_array_equal(found, WEIGHTS)
    assert found.flags.aligned
    assert not found.flags.writeable
    assert operand.value is found


def test_external_data(tmp_path: Path) -> None:
    small = np.arange(7, dtype=np.int64)
    proto = model_of(numpy_helper.from_array(WEIGHTS), numpy_helper.from_array(small))
    path = tmp_path / "model.onnx"
    save_model(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    first, second = (operand.value for operand in load(path).outputs.values())
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first, WEIGHTS)
    np.testing.assert_array_equal(second, small)
    assert isinstance(next(iter(load(path).outputs.values())).content, Stored)
    assert not first.flags.writeable


def test_external_data_in_a_folder_below(reading: Reading, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"abcd" + WEIGHTS.tobytes())
    entries = {"location": "data/w.bin", "offset": "4", "checksum": "ignored"}
    (found,) = reading(numpy_helper.from_array(WEIGHTS), external=entries)
    np.testing.assert_array_equal(found, WEIGHTS)


def test_a_model_of_links_into_one_folder(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    proto = model_of(numpy_helper.from_array(WEIGHTS))
    save_model(proto, blobs / "m", save_as_external_data=True, location="w.bin", size_threshold=0)
    (blobs / "w.bin").rename(blobs / "hash")
    (snapshot / "model.onnx").symlink_to(blobs / "m")
    (snapshot / "w.bin").symlink_to(blobs / "hash")
    (operand,) = load(snapshot / "model.onnx").outputs.values()
    np.testing.assert_array_equal(operand.value, WEIGHTS)


SIZE = str(WEIGHTS.nbytes)
WRONG_ENTRIES = [
    ({}, "external data have no location"),
    ({"location": "gone.bin"}, "'gone.bin': there is no such file; put it beside the model"),
    ({"location": "."}, "'.': is not a regular file"),
    ({"location": "pipe"}, "'pipe': is not a regular file"),
    ({"location": "empty.bin"}, "has 0 bytes, but its shape needs 49152"),
    ({"location": "../outside.bin"}, "'../outside.bin': is not a place in the model's folder"),
    ({"location": "a/../w.bin"}, "is not a place in the model's folder"),
    ({"location": "/etc/hostname"}, "is not a place in the model's folder"),
    ({"location": "w.bin\0"}, "is not a place in the model's folder"),
    ({"location": "x" * 5000}, "File name too long"),
    ({"location": "link.bin"}, "'link.bin': is a link to a place outside of the model's folder"),
    ({"location": "w.bin", "offset": "-1"}, "'-1' is not an offset or a length"),
    ({"location": "w.bin", "offset": "٣"}, "is not an offset or a length"),
    ({"location": "w.bin", "offset": "9" * 5000}, "is not an offset or a length"),
    ({"location": "w.bin", "offset": "1"}, "has 49151 bytes, but its shape needs 49152"),
    ({"location": "w.bin", "offset": SIZE, "length": SIZE}, "is beyond its end at 49152"),
    ({"location": "w.bin", "offset": "9" * 19}, "is beyond its end at 49152"),
    ({"location": "w.bin", "length": "8"}, "has 8 bytes, but its shape needs 49152"),
    ({"location": ""}, "external data have no location"),
    ({"location": "", "offset": "8", "length": SIZE}, "external data have no location"),
]


@pytest.mark.parametrize(("entries", "message"), WRONG_ENTRIES)
def test_wrong_external_data(
    reading: Reading, tmp_path: Path, entries: dict[str, str], message: str
) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "empty.bin").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path.parent / "outside.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "link.bin").symlink_to(tmp_path.parent / "outside.bin")
    with pytest.raises(ModelFileError) as caught:
        reading(numpy_helper.from_array(WEIGHTS), external=entries)
    assert "model.onnx: output 't0': initializer 't0': " in str(caught.value)
    assert message in str(caught.value)


FLOAT, INT8 = TensorProto.FLOAT, TensorProto.INT8
WRONG_TENSORS = [
    (TensorProto(data_type=FLOAT, dims=[2], raw_data=b"1234567"), "has 7 bytes of raw data"),
    (TensorProto(data_type=FLOAT, dims=[3], float_data=[1, 2]), "has 2 elements, but its shape"),
    (TensorProto(data_type=FLOAT, dims=[2]), "has 0 elements, but its shape needs 2"),
    (TensorProto(data_type=FLOAT, dims=[2], int32_data=[1, 2]), "has 0 elements"),
    (TensorProto(data_type=FLOAT, dims=[-1], raw_data=b"1234"), "[-1] is not a shape"),
    (TensorProto(data_type=INT8, dims=[1] * 65, raw_data=b"1"), "is not a shape"),
    (TensorProto(data_type=FLOAT, dims=[2**40, 2**40]), "does not fit into memory"),
    (TensorProto(data_type=FLOAT, dims=[2**62, 0, 2**62]), "does not fit into memory"),
]


@pytest.mark.parametrize(("tensor", "message"), WRONG_TENSORS)
def test_wrong_tensors(reading: Reading, tensor: TensorProto, message: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        reading(tensor)
    assert message in str(caught.value)


@pytest.mark.parametrize("code", [TensorProto.UNDEFINED, 77])
def test_types_that_no_operand_has(reading: Reading, code: int) -> None:
    with pytest.raises(UnsupportedError, match="initializer 't0': no element type corresponds"):
        reading(TensorProto(data_type=code, dims=[0]))


def test_segments(reading: Reading) -> None:
    tensor = TensorProto(data_type=FLOAT, dims=[0], segment=TensorProto.Segment(begin=0, end=1))
    with pytest.raises(UnsupportedError, match="stored in segments"):
        reading(tensor)
