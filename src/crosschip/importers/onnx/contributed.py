"""Output element types of ONNX Runtime's contributed operators, which ONNX's schemas do not cover.

The tables follow docs/ContribOperators.md of ONNX Runtime's repository.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.ir import ElementType
from crosschip.ir.types import FLOATS, QUANTIZABLE
from crosschip.onnx_messages import ELEMENT_TYPES, NodeProto, TensorProto, TypeProto, tensor_type

DOMAIN = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""

_UINT8, _INT8 = TensorProto.UINT8, TensorProto.INT8
_INT32, _INT64, _UINT32 = TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32
_FLOAT, _BOOL = TensorProto.FLOAT, TensorProto.BOOL

_SMALL = QUANTIZABLE - {ElementType.INT32}

_ZERO_POINTS: Mapping[str, tuple[int, int]] = {
    "QGemm": (8, _FLOAT),
    "QLinearAdd": (7, _UINT8),
    "QLinearAveragePool": (4, _UINT8),
    "QLinearConcat": (1, _UINT8),
    "QLinearConv": (7, _UINT8),
    "QLinearGlobalAveragePool": (4, _UINT8),
    "QLinearLeakyRelu": (4, _UINT8),
    "QLinearMul": (7, _UINT8),
    "QLinearReduceMean": (4, _UINT8),
    "QLinearSigmoid": (4, _UINT8),
    "QLinearSoftmax": (4, _UINT8),
    "QLinearWhere": (8, _UINT8),
    "QuantizeLinear": (2, _UINT8),
}
"""The index of the output's zero point, which has the output's type; the type if it is absent."""

_LIKE: Mapping[str, Sequence[int]] = {
    "BiasDropout": (0,),
    "DequantizeLinear": (1,),
    "ExpandDims": (0,),
    "GatherBlockQuantized": (2,),
    "GatherND": (0,),
    "MatMulBnb4": (0,),
    "MatMulIntegerToFloat": (2,),
    "MatMulNBits": (0,),
    "Pad": (0,),
    "QAttention": (3, 3),
    "RotaryEmbedding": (0,),
}
"""For each output, the index of the input that has its type."""

_FIXED: Mapping[str, Sequence[int]] = {
    "BeamSearch": (_INT32, _FLOAT, _FLOAT),
    "DynamicQuantizeMatMul": (_FLOAT,),
    "DynamicTimeWarping": (_INT32,),
    "GreedySearch": (_INT32,),
    "IsAllFinite": (_BOOL,),
    "MatMulInteger16": (_INT32,),
    "MulInteger": (_INT32,),
    "QEmbedLayerNormalization": (_FLOAT, _INT32),
    "ReduceSumInteger": (_INT32,),
    "Sampling": (_INT32, _FLOAT),
    "WhisperBeamSearch": (_INT32, _FLOAT, _FLOAT, _FLOAT, _FLOAT),
}
"""The type of each output."""


def known_types(node: NodeProto, inputs: Sequence[TypeProto | None]) -> list[TypeProto | None]:
    """Return a contributed operator's output types without shapes; empty if no table has it."""
    kinds: list[int | None]
    if node.domain != DOMAIN:
        kinds = []
    elif node.op_type in _ZERO_POINTS:
        index, default = _ZERO_POINTS[node.op_type]
        kinds = [_code(inputs, index) or _eight_bits(inputs) or default]
    elif node.op_type in _LIKE:
        kinds = [_code(inputs, index) for index in _LIKE[node.op_type]]
    elif node.op_type in _FIXED:
        kinds = list(_FIXED[node.op_type])
    elif node.op_type == "EmbedLayerNormalization":
        kinds = [_code(inputs, 2), _INT32, _code(inputs, 2)]
    elif node.op_type == "MurmurHash3":
        positive = next((a.i for a in node.attribute if a.name == "positive"), 1)
        kinds = [_UINT32 if positive else _INT32]
    elif node.op_type == "Unique":
        kinds = [_code(inputs, 0), _INT64, _INT64]
    else:
        kinds = []
    return [None if kind is None else tensor_type(kind, None) for kind in kinds]


def guessed_types(node: NodeProto, inputs: Sequence[TypeProto | None]) -> list[TypeProto | None]:
    """Guess the output types of an operator that no table has: the common type of its real inputs.

    Integers beside reals are indices, lengths or masks. Integers of eight bits or less may also be
    quantized reals; then the type is unknown.
    """
    codes = [_code(inputs, index) for index, name in enumerate(node.input) if name]
    reals = [code for code in codes if ELEMENT_TYPES.get(code or 0) in FLOATS]
    kinds = set(reals or codes)
    small = any(ELEMENT_TYPES.get(code or 0) in _SMALL for code in codes)
    code = kinds.pop() if len(kinds) == 1 and None not in codes else None
    if code is None or (reals and small):
        return [None] * len(node.output)
    return [tensor_type(code, None)] * len(node.output)


def _code(inputs: Sequence[TypeProto | None], index: int) -> int | None:
    """Return the ONNX data type of an input; `None` if it is absent or no tensor."""
    type_ = inputs[index] if index < len(inputs) else None
    if type_ is None or not type_.HasField("tensor_type"):
        return None
    return type_.tensor_type.elem_type or None


def _eight_bits(inputs: Sequence[TypeProto | None]) -> int | None:
    """Return the first 8-bit data type among the inputs, the type of the quantized outputs."""
    codes = (_code(inputs, index) for index in range(len(inputs)))
    return next((code for code in codes if code in (_UINT8, _INT8)), None)
