"""Inputs and outputs of a model that has been built, as NNAdapter has them.

The model alone tells them, so that one that was compiled earlier is used as it was then: a layout
is a part of the name of the input or output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLayoutCode as Layout
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLifetimeCode as Lifetime
from crosschip.apis.nnadapter.operands import operand_type
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import Model, Operand, TensorType

_PREFIX = "NNADAPTER_"


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model, in their order.

    Attributes:
        inputs: their types, with the shapes that they may have.
        outputs: their types, with the shapes that they have for these.
    """

    inputs: tuple[NNAdapterOperandType, ...]
    outputs: tuple[NNAdapterOperandType, ...]

    @classmethod
    def of(cls, model: Model, profiles: Sequence[Mapping[str, int]]) -> Self:
        """The signature of a model.

        Args:
            model: the model.
            profiles: the values of its open sizes for each of the shapes that inputs may have.
        """
        return cls(
            _types(model.inputs, profiles, Lifetime.NNADAPTER_MODEL_INPUT),
            _types(model.outputs, profiles, Lifetime.NNADAPTER_MODEL_OUTPUT),
        )

    def allows(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Tell whether the inputs may have these shapes together, each of which fits its type."""
        rows = [
            (type_.dimensions.dynamic_data, list(shape))
            for type_, shape in zip(self.inputs, shapes, strict=True)
            if type_.dimensions.dynamic_count
        ]
        return not rows or any(
            all(data[index] == shape for data, shape in rows) for index in range(len(rows[0][0]))
        )


def name_of(kind: str, index: int, layout: Layout) -> str:
    """The name of an input or output of a model."""
    if layout == Layout.NNADAPTER_NCHW:
        return f"{kind}{index}"
    return f"{kind}{index}:{Layout(layout).name.removeprefix(_PREFIX)}"


def _types(
    operands: Mapping[str, Operand], profiles: Sequence[Mapping[str, int]], lifetime: Lifetime
) -> tuple[NNAdapterOperandType, ...]:
    return tuple(_type(name, operand, profiles, lifetime) for name, operand in operands.items())


def _type(
    name: str, operand: Operand, profiles: Sequence[Mapping[str, int]], lifetime: Lifetime
) -> NNAdapterOperandType:
    type_ = with_shapes(operand.type, profiles)
    type_.layout = Layout[_PREFIX + (name.partition(":")[2] or "NCHW")]
    type_.lifetime = lifetime
    return type_


def with_shapes(type_: TensorType, profiles: Sequence[Mapping[str, int]]) -> NNAdapterOperandType:
    """A tensor's type as NNAdapter has it, with its shape for each of the given sizes.

    Raises:
        UnsupportedError: NNAdapter has no such type.
    """
    found = operand_type(type_)
    if type_.static_shape is None:
        shapes = [type_.substitute(profile).static_shape for profile in profiles]
        if all(shape is not None for shape in shapes):
            found.dimensions.dynamic_data = [list(shape or ()) for shape in shapes]
    return found
