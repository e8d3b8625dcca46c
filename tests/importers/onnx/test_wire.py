"""Leaving the weights in the file: what remains is the same model."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from crosschip.importers.onnx.wire import LARGE, OWN_FILE, without_weights
from crosschip.ir.files import Held

SIZES = st.sampled_from([0, 1, 100, LARGE - 1, LARGE, LARGE + 1, 5 * LARGE, 70000])


@st.composite
def tensors(draw: st.DrawFn) -> TensorProto:
    raw = draw(st.binary(min_size=3, max_size=3)) * draw(SIZES)
    return TensorProto(name=draw(st.text()), data_type=draw(st.integers(0, 20)), raw_data=raw)


@st.composite
def models(draw: st.DrawFn) -> ModelProto:
    attributes = [AttributeProto(name="value", t=t) for t in draw(st.lists(tensors(), max_size=3))]
    nodes = [NodeProto(op_type="Constant", attribute=[attribute]) for attribute in attributes]
    graph = GraphProto(
        node=[*nodes, NodeProto(op_type="x" * draw(SIZES))],
        initializer=draw(st.lists(tensors(), max_size=3)),
        doc_string="y" * draw(SIZES),
    )
    return ModelProto(ir_version=8, graph=graph, producer_name="z" * draw(SIZES))


def all_tensors(model: ModelProto) -> list[TensorProto]:
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    return [*(attribute.t for attribute in attributes), *model.graph.initializer]


@given(models())
def test_putting_the_weights_back_gives_the_same_model(model: ModelProto) -> None:
    file = model.SerializeToString()
    light = ModelProto.FromString(without_weights(Held(file)))
    for tensor, original in zip(all_tensors(light), all_tensors(model), strict=True):
        assert (tensor.data_location == TensorProto.EXTERNAL) == (len(original.raw_data) >= LARGE)
        if tensor.data_location == TensorProto.EXTERNAL:
            place = {entry.key: entry.value for entry in tensor.external_data}
            assert place["location"] == OWN_FILE
            offset, length = int(place["offset"]), int(place["length"])
            tensor.raw_data = file[offset : offset + length]
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    assert light == model


@given(models(), st.data())
@settings(max_examples=300)
def test_damage_is_left_for_the_parser_to_find(model: ModelProto, data: st.DataObject) -> None:
    file = bytearray(model.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(file) - 1))
        file[place] = data.draw(st.integers(0, 255))
    damaged = bytes(file[: data.draw(st.integers(0, len(file)))])
    assert is_message(without_weights(Held(bytes(damaged)))) == is_message(damaged)


@given(st.binary())
def test_anything_small_is_left_alone(data: bytes) -> None:
    assert without_weights(Held(bytes(data))) == data


def is_message(data: bytes) -> bool:
    try:
        ModelProto.FromString(data)
    except DecodeError:
        return False
    return True


def test_little_is_left_of_a_real_model(models: Path) -> None:
    file = (models / "onnx" / "resnet50.onnx").read_bytes()
    assert len(without_weights(Held(file))) < len(file) // 100


def test_where_the_elements_are_said_to_be_is_said_last() -> None:
    """`quantize_dynamic` of ONNX Runtime writes `data_location` behind the elements."""
    tensor = TensorProto(
        name="w",
        data_type=TensorProto.UINT8,
        dims=[LARGE],
        raw_data=bytes(LARGE),
        data_location=TensorProto.DEFAULT,
    )
    file = ModelProto(graph=GraphProto(initializer=[tensor])).SerializeToString()
    (light,) = all_tensors(ModelProto.FromString(without_weights(Held(file))))
    assert light.data_location == TensorProto.EXTERNAL
