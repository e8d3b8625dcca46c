"""Names of operators in other systems, with their codes, operands' order and parameters there.

    faces(Relu, nnadapter=NNAdapter(65), nnrt=(NNRt(47, "RELU"),), onnx=("Relu",))

The faces of the operators of `crosschip.ops.standard.FAMILY` are in `crosschip.ops.faces.FAMILY`,
which is imported when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from crosschip.ops.definition.families import import_family

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator
    from crosschip.ops.definition.translation import Rule


@dataclass(frozen=True, slots=True)
class NNAdapter:
    """NNAdapter's operator of the same name; `crosschip.ops.definition.translation` reads it.

    Attributes:
        code: its `NNAdapterOperationCode`.
        operands: its input operands in order: the slot that each fills as it is, or the rule for
            it; empty if they are the operator's slots in their own order.
        given: the rules for what no input operand tells.
        optional_outputs: how many of its last output operands may be there without being made.
    """

    code: int
    operands: tuple[str | Rule, ...] = ()
    given: tuple[Rule, ...] = ()
    optional_outputs: int = 0


@dataclass(frozen=True, slots=True)
class NNRt:
    """An operator of OpenHarmony's Neural Network Runtime that is this one, or a case of it.

    Attributes:
        code: its `OH_NN_OperationType`.
        name: what follows `OH_NN_OPS_` there.
        inputs: its input tensors in order: the slot that each fills as it is, or the rule for it.
        parameters: the same for each parameter tensor, by what follows `OH_NN_<name>_`; where one
            reads what another has filled, it comes after that.
        given: the rules for what neither tells.
    """

    code: int
    name: str
    inputs: tuple[str | Rule, ...] = ("input",)
    parameters: Mapping[str, str | Rule] = field(default_factory=dict)
    given: tuple[Rule, ...] = ()

    @property
    def operands(self) -> tuple[str | Rule, ...]:
        """The inputs, then the parameters."""
        return (*self.inputs, *self.parameters.values())


class NodeType(IntEnum):
    """The node types of NNRt's driver interface (HDI V1_0)."""

    ACTIVATION = 2
    ADD_FUSION = 5
    ARGMAX_FUSION = 11
    AVGPOOL_FUSION = 17
    BATCH_TO_SPACE_ND = 22
    BIAS_ADD = 23
    CAST = 28
    CONCAT = 31
    CONV2D_FUSION = 35
    CONV2D_TRANSPOSE_FUSION = 36
    DIV_FUSION = 47
    ELTWISE = 52
    EXPAND_DIMS = 56
    FILL = 66
    FULL_CONNECTION = 67
    FUSED_BATCH_NORM = 68
    GATHER = 69
    LAYER_NORM_FUSION = 75
    LESS_EQUAL = 78
    MATMUL_FUSION = 89
    MAXIMUM = 90
    MAX_POOL_FUSION = 92
    MUL_FUSION = 99
    ONE_HOT = 105
    PAD_FUSION = 107
    POW_FUSION = 110
    PRELU_FUSION = 112
    QUANT_DTYPE_CAST = 113
    REDUCE_FUSION = 118
    RESHAPE = 119
    RESIZE = 120
    RSQRT = 126
    SCALE_FUSION = 127
    SHAPE = 130
    SLICE_FUSION = 135
    SOFTMAX = 138
    SPACE_TO_BATCH_ND = 141
    SPLIT = 145
    SQRT = 146
    SQUEEZE = 147
    SQUARED_DIFFERENCE = 149
    STACK = 150
    STRIDED_SLICE = 151
    SUB_FUSION = 152
    TILE_FUSION = 160
    TOPK_FUSION = 161
    TRANSPOSE = 162
    UNSQUEEZE = 165


@dataclass(frozen=True, slots=True)
class Faces:
    """All that other systems call an operator.

    Attributes:
        nnadapter: its NNAdapter operator, if there is one.
        nnrt: its NNRt operators.
        hdi: the node types of NNRt's driver interface that carry it.
        onnx: the ONNX operators of the standard domain that are this one, or a case of it.
    """

    nnadapter: NNAdapter | None = None
    nnrt: tuple[NNRt, ...] = ()
    hdi: tuple[NodeType, ...] = ()
    onnx: tuple[str, ...] = ()


_faces: dict[type[Operator], Faces] = {}


def faces(
    operator: type[Operator],
    *,
    nnadapter: NNAdapter | None = None,
    nnrt: Sequence[NNRt] = (),
    hdi: Sequence[NodeType] = (),
    onnx: Sequence[str] = (),
) -> None:
    """Register the names of an operator in other systems; see `Faces`."""
    _faces[operator] = Faces(nnadapter, tuple(nnrt), tuple(hdi), tuple(onnx))


def faces_of(operator: type[Operator]) -> Faces:
    """The names of an operator in other systems; empty if none are registered."""
    import_family("faces", operator)
    return _faces.get(operator, Faces())
