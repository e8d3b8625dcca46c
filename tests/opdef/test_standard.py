"""The standard operators as OpDefs: each slot as it is declared, each device as it answers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.modelling import DelegatingDevice

from crosschip.conformance.opdefs import standard_collection
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import YES, Options, Rule, Support
from crosschip.ir import ElementType, Operation
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import OpDef, OpDefCollection, Rank, SupplementalOpDefList
from crosschip.opdef.documents import parse, write
from crosschip.ops import Operator, operators
from crosschip.ops.definition.slots import Fuse, Parameter
from crosschip.runtime.guard.devices import GuardedDevice

pytestmark = pytest.mark.slow  # each operator's examples, in every type


class Picky(DelegatingDevice):
    """Adds, in float32 and without an activation, and concatenates int32."""

    def supports(self, operation: Operation, options: Options) -> Support:
        first = operation.inputs[0]
        assert first is not None
        wanted = {"ADD": ElementType.FLOAT32, "CONCAT": ElementType.INT32}
        if operation.type not in wanted:
            return Support.no(operation, "", "not here", Rule.OPERATOR)
        if first.type.element_type is not wanted[operation.type] or first.type.quantization:
            return Support.no(operation, "", "not this type", Rule.ELEMENT_TYPE)
        if isinstance(operation, Operator) and operation.fused is not Fuse.NONE:
            return Support.no(operation, "fuse_code", "no activation", Rule.FUSION)
        return YES


@pytest.fixture(scope="module")
def collection() -> OpDefCollection:
    devices = [GuardedDevice(ReferenceDevice(), "reference"), GuardedDevice(Picky(), "picky")]
    return standard_collection(devices)


@pytest.fixture(scope="module")
def op_defs(collection: OpDefCollection) -> Mapping[str, OpDef]:
    return collection.op_defs


def supplement(collection: OpDefCollection, backend: str) -> SupplementalOpDefList:
    return next(s for s in collection.supplements if s.backend == backend)


def test_it_is_a_document(collection: OpDefCollection) -> None:
    assert parse(write(collection)).collection == collection


def test_every_operator_and_slot_is_there(op_defs: Mapping[str, OpDef]) -> None:
    assert list(op_defs) == list(operators())
    for name, operator in operators().items():
        op_def = op_defs[name]
        slots = [slot.name for slot in operator.slots if not slot.parameter]
        settings = [slot.name for slot in operator.slots if slot.parameter]
        assert [tensor.name for tensor in op_def.inputs] == slots
        assert [tensor.name for tensor in op_def.parameters] == settings
        for slot in operator.slots:
            tensor = next(t for t in op_def.tensors if t.name == slot.name)
            assert tensor.mandatory != slot.optional
            plain = {d.element_type for d in tensor.datatypes if not d.quantized}
            assert plain <= slot.types
            assert {t for t in slot.types if Datatype.of(t)} == plain
            if isinstance(slot, Parameter):
                assert (tensor.shape.rank is Rank.SCALAR) == (slot.rank == 0)


def test_one_operator(op_defs: Mapping[str, OpDef]) -> None:
    conv = op_defs["CONV_2D"]
    by_name = {tensor.name: tensor for tensor in conv.parameters}
    fuse, strides = by_name["fuse_code"], by_name["strides"]
    assert fuse.enumeration is not None
    assert fuse.enumeration.names == ("NONE", "RELU", "RELU1", "RELU6")
    assert (fuse.default, strides.default) == ("NONE", "[1, 1]")
    assert conv.references[0].url == "https://onnx.ai/onnx/operators/onnx__Conv.html"
    assert [output.name for output in conv.outputs] == ["output"]
    assert Datatype.SFIXED_POINT_8 in conv.inputs[0].datatypes


def test_outputs(op_defs: Mapping[str, OpDef]) -> None:
    (split,) = op_defs["SPLIT"].outputs
    assert split.repeated
    values, indices = op_defs["TOP_K"].outputs
    assert (values.mandatory, indices.mandatory) == (True, True)
    assert set(indices.datatypes) <= {Datatype.INT_32, Datatype.INT_64}
    pooled, where = op_defs["MAX_POOL_2D"].outputs
    assert (pooled.mandatory, where.mandatory, where.repeated) == (True, False, False)
    (concat,) = op_defs["CONCAT"].inputs
    assert concat.repeated
    (compared,) = op_defs["LESS"].outputs
    assert compared.datatypes == (Datatype.BOOL_8,)
    assert op_defs["ADD"].inputs[1].constraints[0].text == "dtype(input1) == dtype(input0)"


def test_a_device_without_limits_adds_nothing(collection: OpDefCollection) -> None:
    reference = supplement(collection, "reference")
    assert reference.supported is not None
    assert list(reference.supported.names) == list(operators())
    assert reference.op_defs == ()


def test_a_device_with_limits_says_them(collection: OpDefCollection) -> None:
    picky = supplement(collection, "picky")
    assert picky.supported is not None
    assert set(picky.supported.names) <= {"ADD", "CONCAT"}
    add = next(op_def for op_def in picky.op_defs if op_def.name == "ADD")
    assert [(tensor.name, tensor.datatypes) for tensor in add.inputs] == [
        ("input0", (Datatype.FLOAT_32,)),
        ("input1", (Datatype.FLOAT_32,)),
    ]
    assert [(tensor.name, tensor.only_default) for tensor in add.parameters] == [
        ("fuse_code", True)
    ]
