"""The mappings cover all operators of NNAdapter, NNRt and its driver interface."""

from __future__ import annotations

from collections import Counter

from crosschip.apis.nnrt.hdi.v1_0.types import NodeType
from crosschip.mapping.common import HDI_CODES, NNADAPTER_CODES, NNRT_CODES
from crosschip.mapping.opsets import opset_mapping
from crosschip.mapping.translation import row_of
from crosschip.ops import examples_of, operators

# In the order of their codes, from 0: nnadapter.h of Paddle Lite.
NNADAPTER = """
    ABS ADAPTIVE_AVERAGE_POOL_2D ADAPTIVE_MAX_POOL_2D ADD AND ARG_MAX ARG_MIN ASSIGN
    AVERAGE_POOL_2D BATCH_NORMALIZATION CAST CHANNEL_SHUFFLE CLIP CONCAT CONV_2D
    CONV_2D_TRANSPOSE COS CUM_SUM DEFORMABLE_CONV_2D DEQUANTIZE DIV EQUAL EXP EXPAND FILL
    FILL_LIKE FLATTEN FLOOR FLOOR_DIV FULLY_CONNECTED GATHER GELU GREATER GREATER_EQUAL
    GRID_SAMPLE GROUP_NORMALIZATION HARD_SIGMOID HARD_SWISH INSTANCE_NORMALIZATION
    LAYER_NORMALIZATION LEAKY_RELU LESS LESS_EQUAL LOG LOG_SOFTMAX LP_NORMALIZATION LRN MAT_MUL
    MAX MAX_POOL_2D MESHGRID MIN MUL NOT NOT_EQUAL OR PAD POW PRIOR_BOX PRELU QUANTIZE RANGE
    REDUCE_MEAN REDUCE_MAX REDUCE_SUM RELU RELU6 RESHAPE RESIZE_NEAREST RESIZE_LINEAR ROI_ALIGN
    ROLL RSQRT SHAPE SIGMOID SIN SLICE SOFTMAX SOFTPLUS SPLIT SQUARE SQUEEZE STACK SUB SUM SWISH
    TANH TILE TOP_K TRANSPOSE UNSQUEEZE UNSTACK WHERE XOR NON_MAX_SUPPRESSION YOLO_BOX
"""

# In the order of their codes, from 1: neural_network_runtime_type.h of OpenHarmony.
NNRT = """
    ADD AVG_POOL BATCH_NORM BATCH_TO_SPACE_ND BIAS_ADD CAST CONCAT CONV2D CONV2D_TRANSPOSE
    DEPTHWISE_CONV2D_NATIVE DIV ELTWISE EXPAND_DIMS FILL FULL_CONNECTION GATHER HSWISH
    LESS_EQUAL MATMUL MAXIMUM MAX_POOL MUL ONE_HOT PAD POW SCALE SHAPE SIGMOID SLICE SOFTMAX
    SPACE_TO_BATCH_ND SPLIT SQRT SQUARED_DIFFERENCE SQUEEZE STACK STRIDED_SLICE SUB TANH TILE
    TRANSPOSE REDUCE_MEAN RESIZE_BILINEAR RSQRT RESHAPE PRELU RELU RELU6 LAYER_NORM REDUCE_PROD
    REDUCE_ALL QUANT_DTYPE_CAST TOP_K ARG_MAX UNSQUEEZE GELU UNSTACK ABS ERF EXP LESS SELECT
    SQUARE FLATTEN DEPTH_TO_SPACE RANGE INSTANCE_NORM CONSTANT_OF_SHAPE BROADCAST_TO EQUAL
    GREATER NOT_EQUAL GREATER_EQUAL LEAKY_RELU LSTM CLIP ALL ASSERT COS LOG LOGICAL_AND
    LOGICAL_NOT MOD NEG RECIPROCAL SIN WHERE SPARSE_TO_DENSE LOGICAL_OR CEIL CROP
    DETECTION_POST_PROCESS FLOOR L2_NORMALIZE LOG_SOFTMAX LRN MINIMUM RANK REDUCE_MAX REDUCE_MIN
    REDUCE_SUM ROUND SCATTER_ND SPACE_TO_DEPTH SWISH REDUCE_L2 HARD_SIGMOID GATHER_ND
"""


def test_nnadapter() -> None:
    mappings = {
        name: foreign
        for name, op in operators().items()
        if (foreign := opset_mapping(op).nnadapter)
    }
    assert {foreign.code: name for name, foreign in mappings.items()} == dict(
        enumerate(NNADAPTER.split())
    )
    for name, foreign in mappings.items():
        slots = {slot.name for slot in operators()[name].slots}
        row = row_of(operators()[name], foreign.operands, foreign.other_rules, NNADAPTER_CODES)
        assert {rule.slot for rule in row.operands} <= slots


def test_nnrt() -> None:
    mappings = [(op, foreign) for op in operators().values() for foreign in opset_mapping(op).nnrt]
    assert {foreign.code: foreign.name for _, foreign in mappings} == dict(
        enumerate(NNRT.split(), 1)
    )
    for op, foreign in mappings:
        slots = {slot.name for slot in op.slots}
        row = row_of(op, foreign.operands, foreign.other_rules, NNRT_CODES)
        assert {rule.slot for rule in (*row.operands, *row.other_rules)} - {""} <= slots, foreign


def test_the_driver_interface() -> None:
    mappings = [(op, foreign) for op in operators().values() for foreign in opset_mapping(op).hdi]
    named = {
        f"NODE_TYPE_{foreign.name}": foreign.code
        for _, foreign in mappings
        if foreign.since == (1, 0)
    }
    assert named == {node.name: node.value for node in NodeType if node}
    for op, foreign in mappings:
        slots = {slot.name for slot in op.slots} | {"fuse_code"}
        row = row_of(op, foreign.operands, foreign.other_rules, HDI_CODES)
        assert {rule.slot for rule in (*row.operands, *row.other_rules)} - {""} <= slots, foreign


def test_an_onnx_operator_that_several_stand_for_is_a_case_of_each() -> None:
    result = Counter(name for op in operators().values() for name in opset_mapping(op).onnx)
    by_rank = {"Conv", "ConvTranspose", "QLinearConv"}
    several = {"Cast", "DequantizeLinear", "Resize", "Upsample"} | by_rank
    assert {name for name, count in result.items() if count > 1} <= several


def test_the_core_is_small() -> None:
    assert sum(op.core for op in operators().values()) <= 60


def test_every_operator_is_documented_and_has_examples() -> None:
    for name, op in operators().items():
        assert examples_of(op), name
        assert (op.__doc__ or "").strip(), name
