"""That the nodes of version 2.1 are all there, and say what standard operators compute."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest
from tests.apis.nnrt.hdi.v1_0.making import model_of as made_of
from tests.apis.nnrt.hdi.v1_0.making import tensor

from crosschip.apis.nnrt.hdi.v1_0.attributes import encoded
from crosschip.apis.nnrt.hdi.v1_0.reading import read_model
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes
from crosschip.apis.nnrt.hdi.v1_0.types import Format, Model, Node, RoundMode
from crosschip.apis.nnrt.hdi.v1_0.writing import write_model
from crosschip.apis.nnrt.hdi.v2_1.attributes import ATTRIBUTES, ConstantOfShape, MaxPoolFusion
from crosschip.apis.nnrt.hdi.v2_1.nodes import V2_0, V2_1
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig, NNRT_ReturnCode, NodeType, ReduceMode
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, TensorType, UnsupportedError
from crosschip.ir import Model as StandardModel
from crosschip.ops import examples_of
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.reduction import ReduceL2

# In the order of their codes: NnrtTypes.idl of version 2.1.
NODES = """
    NONE 0 ABS 1 ACTIVATION 2 ADD_FUSION 5 ALL 9 ARGMAX_FUSION 11 ASSERT 13 AVGPOOL_FUSION 17
    BATCH_TO_SPACE_ND 22 BIAS_ADD 23 BROADCAST_TO 27 CAST 28 CEIL 29 CLIP 30 CONCAT 31
    CONV2D_FUSION 35 CONV2D_TRANSPOSE_FUSION 36 COS 37 CONSTANT_OF_SHAPE 38 CROP 39
    DEPTH_TO_SPACE 45 DETECTION_POST_PROCESS 46 DIV_FUSION 47 ELTWISE 52 EQUAL 53 EXPFUSION 55
    EXPAND_DIMS 56 FLATTEN 61 FLOOR 63 FILL 66 FULL_CONNECTION 67 FUSED_BATCH_NORM 68 GATHER 69
    GATHER_ND 70 GREATER 71 GREATER_EQUAL 72 INSTANCE_NORM 74 LAYER_NORM_FUSION 75 LEAKY_RELU 76
    LESS 77 LESS_EQUAL 78 LOG 79 LOGICAL_AND 81 LOGICAL_NOT 82 LOGICAL_OR 83 LRN 85 LSTM 87
    L2_NORMALIZE_FUSION 88 MATMUL_FUSION 89 MAXIMUM 90 MAX_POOL_FUSION 92 MINIMUM 96 MOD 98
    MUL_FUSION 99 NEG 101 NOT_EQUAL 103 ONE_HOT 105 PAD_FUSION 107 POW_FUSION 110 PRELU_FUSION 112
    QUANT_DTYPE_CAST 113 RANK 114 RANGE 115 RECIPROCAL 116 REAL_DIV 117 REDUCE_FUSION 118
    RESHAPE 119 RESIZE 120 ROUND 125 RSQRT 126 SCALE_FUSION 127 SCATTER_ND 128 SHAPE 130 SIN 133
    SLICE_FUSION 135 SOFTMAX 138 SPACE_TO_BATCH_ND 141 SPACE_TO_DEPTH 142 SPARSE_TO_DENSE 144
    SPLIT 145 SQRT 146 SQUEEZE 147 SQUARE 148 SQUARED_DIFFERENCE 149 STACK 150 STRIDED_SLICE 151
    SUB_FUSION 152 TILE_FUSION 160 TOPK_FUSION 161 TRANSPOSE 162 UNSQUEEZE 165 UNSTACK 166
    WHERE 168 SELECT 170 ERF 178 LOG_SOFTMAX 189 QUANT_DTYPE_CAST_V2 999
"""
NEWER = {code: entries for code, entries in V2_1.rows.items() if code not in V1_0.rows}
CASES = {
    f"{NodeType(code).name.removeprefix('NODE_TYPE_')}-{entry.row.operator.type}-{number}": (
        entry,
        arguments,
    )
    for code, entries in NEWER.items()
    for entry in entries
    for number, arguments in enumerate(examples_of(entry.row.operator))
}


def run(model: StandardModel, inputs: list[Array]) -> list[Array]:
    return list(ReferenceDevice().compile(model, Options()).run(inputs))


def test_every_node_has_attributes_and_operators() -> None:
    words = NODES.split()
    wanted = {
        f"NODE_TYPE_{word}": int(code) for word, code in zip(words[::2], words[1::2], strict=True)
    }
    assert {node.name: node.value for node in NodeType} == wanted
    assert set(ATTRIBUTES) == set(V2_1.rows) == set(NodeType) - {NodeType.NODE_TYPE_NONE}
    assert set(V2_0.rows) == set(V1_0.rows)
    for code, entries in V2_1.rows.items():
        names = {field.encode_name for field in msgspec.structs.fields(ATTRIBUTES[code])}
        assert all(set(entry.attributes) <= names for entry in entries)
    assert ReduceMode.REDUCE_MODE_L2.value == 8
    assert (NNRT_ReturnCode.NNRT_INSUFFICIENT_BUFFER, NNRT_ReturnCode.NNRT_UNSUPPORTED_OP) == (
        9,
        33,
    )
    assert ModelConfig(extensions={"ModelName": b"x"}).enableFloat16 is False


@pytest.mark.parametrize("case", CASES)
def test_newer_nodes_compute_what_their_operators_do(case: str) -> None:
    """Each is written where nothing else would be, and read again."""
    entry, arguments = CASES[case]
    model, inputs = model_of(entry.row.operator, arguments), list(arrays_for(arguments).values())
    only = Nodes(
        (2, 1), NodeType, ATTRIBUTES, lambda op: [entry] if op is entry.row.operator else []
    )
    only.uses = {**V1_0.uses, entry.row.operator: [entry]}
    try:
        written = write_model(model, Format.FORMAT_NHWC, only, decomposing=False)
    except UnsupportedError as error:
        assert re.search("driver interface|has no (operand|code)|in the target", str(error))  # noqa: PT017
        return
    with written:
        assert entry.node_type in [node.nodeType for node in written.model.nodes]
        back = read_model(written.model, V2_1)
    for found, array in zip(run(back, inputs), run(model, inputs), strict=True):
        assert found.dtype == array.dtype
        close = 4e-3 if array.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(found, array, rtol=close, atol=close / 10)


def pooled(rounding: RoundMode, rows: int, version: Nodes) -> Array:
    """The maxima of windows of 2 in an image of 5 pixels, read from a node."""
    attributes = MaxPoolFusion(
        kernelSize=(1, 2), strides=(1, 2), pad=(0, 0, 0, 0), roundMode=rounding
    )
    node_type = version.node_type(NodeType.NODE_TYPE_MAX_POOL_FUSION)
    tensors = [tensor(np.float32, (1, 1, 5, 1), name="x"), tensor(np.float32, (1, 1, rows, 1))]
    model: Model = made_of(tensors, [Node("", node_type, encoded(attributes), (0,), (1,))], [1])
    image = np.array([3, 1, 2, 5, 9], np.float32).reshape(1, 1, 5, 1)
    (made,) = run(read_model(model, version), [image])
    return made.reshape(-1)


def test_maxima_are_rounded_since_2_0() -> None:
    np.testing.assert_array_equal(pooled(RoundMode.ROUND_MODE_FLOOR, 2, V2_0), [3, 5])
    np.testing.assert_array_equal(pooled(RoundMode.ROUND_MODE_CEIL, 3, V2_0), [3, 5, 9])
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (1, 1, 1, 5)))
    b.output("y", b.add(MaxPool2D, x, kernel_shape=(1, 2), strides=(1, 2), ceil_mode=True))
    with pytest.raises(UnsupportedError, match="ceil_mode"):
        write_model(b.build(), decomposing=False)
    write_model(b.build(), nodes=V2_0, decomposing=False).close()


def test_euclidean_norms_are_a_reduction_since_2_1() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    b.output("y", b.add(ReduceL2, x, (1,)))
    for nodes, names in ((V1_0, ["ReduceFusion:0", "Sqrt:1"]), (V2_1, ["ReduceFusion:0"])):
        with write_model(b.build(), nodes=nodes) as written:
            assert [node.name for node in written.model.nodes] == names
            given = np.array([[3, 4, 0], [0, 5, 12]], np.float32)
            (made,) = run(read_model(written.model, nodes), [given])
            np.testing.assert_allclose(made.reshape(-1), [5, 13], rtol=1e-6)


def test_element_types_have_the_drivers_numbers() -> None:
    operator = next(e.row.operator for e in V2_1.rows[NodeType.NODE_TYPE_CONSTANT_OF_SHAPE])
    entry = V2_1.rows[NodeType.NODE_TYPE_CONSTANT_OF_SHAPE][0]
    only = Nodes((2, 1), NodeType, ATTRIBUTES)
    only.uses = {operator: [entry]}
    b = Builder()
    shape = b.input("shape", TensorType(ElementType.INT64, (2,)))
    b.output("y", b.add(operator, shape=shape, value=np.array(7, np.int32)))
    with write_model(b.build(), nodes=only) as written:
        (node,) = written.model.nodes
        assert V2_1.decoded(node) == ConstantOfShape(dataType=34, value=(7.0,))
