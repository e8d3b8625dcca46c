"""Levels of detail (LoD): the offsets of the sequences that are concatenated in a tensor.

A level is a list of offsets [n + 1], int64. In the last level, sequence `i` consists of the rows
from offset `i` up to offset `i + 1`; in other levels, of that range of sequences of the next level.
"""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.importers.paddle.program import Operator
from crosschip.ir import Builder, ElementType, Operand, TensorType, unknown

# fmt: off
LOD_SHARING = frozenset({
    "abs", "acos", "asin", "assign", "atan", "batch_norm", "brelu", "cast", "ceil", "celu",
    "clip", "concat", "conv2d", "cos", "dropout", "elementwise_add", "elementwise_div",
    "elementwise_floordiv", "elementwise_max", "elementwise_min", "elementwise_mod",
    "elementwise_mul", "elementwise_pow", "elementwise_sub", "elu", "erf", "exp", "fc",
    "fill_any_like", "fill_zeros_like", "floor", "gelu", "gru", "hard_shrink", "hard_sigmoid",
    "hard_swish", "label_smooth", "layer_norm", "leaky_relu", "log", "log_softmax",
    "logsigmoid", "lookup_table", "lookup_table_v2", "lstm", "matmul", "mish", "mul", "one_hot",
    "one_hot_v2", "pow", "prelu", "reciprocal", "relu", "relu6", "reverse", "round", "row_conv",
    "rsqrt", "scale", "selu", "sequence_conv", "sequence_reverse", "sequence_softmax",
    "share_data", "sigmoid", "sign", "silu", "sin", "softmax", "softplus", "softshrink",
    "softsign", "sqrt", "square", "stanh", "sum", "swish", "tanh", "tanh_shrink",
    "thresholded_relu", "top_k", "top_k_v2",
})
# fmt: on
"""The operators whose outputs have the LoD of the first input with LoD.

Source: the functions that infer shapes in Paddle 2.6, which share or do not share LoD.
"""


class Lod:
    """The LoD levels of a tensor, coarsest first."""

    def __init__(self, levels: Sequence[Operand]) -> None:
        self._levels = tuple(levels)

    @property
    def is_input(self) -> bool:
        """Whether the levels are inputs of the model."""
        return False

    def levels(self) -> Sequence[Operand]:
        """Return the offsets of each level."""
        return self._levels


class InputLod(Lod):
    """The LoD levels of an input of the model, which become inputs themselves when they are read.

    Args:
        builder: the model's builder.
        name: the input's name.
        count: the number of levels.
    """

    def __init__(self, builder: Builder, name: str, count: int) -> None:
        super().__init__(())
        self._builder = builder
        self._name = name
        self._count = count

    @property
    def is_input(self) -> bool:
        return True

    def levels(self) -> Sequence[Operand]:
        if not self._levels:
            names = [level_name(self._name, level) for level in range(self._count)]
            self._levels = tuple(
                self._builder.input(name, TensorType(ElementType.INT64, (unknown(),)))
                for name in names
            )
        return self._levels


def level_name(variable: str, level: int) -> str:
    """Return the name of the model input or output for a LoD level of a variable."""
    return f"{variable}.lod{level}"


def propagate_lod(operator: Operator, lods: dict[str, Lod]) -> None:
    """Copy the LoD of an operator's inputs to its outputs where Paddle does so."""
    read = [name for names in operator.inputs.values() for name in names]
    lod = next((lods[name] for name in read if name in lods), None)
    keeps = lod is not None and operator.type in LOD_SHARING
    for names in operator.outputs.values():
        for name in names:
            if keeps and lod is not None:
                lods[name] = lod
            else:
                lods.pop(name, None)
