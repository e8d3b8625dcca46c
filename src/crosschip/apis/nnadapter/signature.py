"""NNAdapter's types of a built model's inputs and outputs.

They are derived from the model alone, so that a model loaded from a cache has the same signature:
the names of inputs and outputs contain the layout and the listed shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLayoutCode as Layout
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLifetimeCode as Lifetime
from crosschip.apis.nnadapter.operands import operand_type
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import Operand, TensorType
from crosschip.ir.dimension import name_of as size_name

_PREFIX = "NNADAPTER_"


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model, in their order.

    Attributes:
        inputs: the input types, with the shapes that they may have.
        outputs: the output types, with the resulting shapes.
    """

    inputs: tuple[NNAdapterOperandType, ...]
    outputs: tuple[NNAdapterOperandType, ...]

    @classmethod
    def of(cls, inputs: Mapping[str, Operand], outputs: Mapping[str, Operand]) -> Self:
        """Return the signature of a model with these named inputs and outputs."""
        profiles = _profiles(inputs)
        return cls(
            _types(inputs, profiles, Lifetime.NNADAPTER_MODEL_INPUT),
            _types(outputs, profiles, Lifetime.NNADAPTER_MODEL_OUTPUT),
        )

    def allows(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Return whether these input shapes are one of the listed combinations.

        Each shape already matches its input's type.
        """
        rows = [
            (type_.dimensions.dynamic_data, list(shape))
            for type_, shape in zip(self.inputs, shapes, strict=True)
            if type_.dimensions.dynamic_count
        ]
        return not rows or any(
            all(data[index] == shape for data, shape in rows) for index in range(len(rows[0][0]))
        )


def name_of(kind: str, index: int, type_: NNAdapterOperandType) -> str:
    """Return an input's or output's name, such as `input0` or `input0:NHWC:1x8x8x3,4x8x8x3`."""
    shapes = ",".join("x".join(map(str, shape)) for shape in type_.dimensions.dynamic_data)
    layout = Layout(type_.layout).name.removeprefix(_PREFIX)
    text = ":".join([layout, shapes] if shapes else [layout])
    return f"{kind}{index}" if text == "NCHW" else f"{kind}{index}:{text}"


def _profiles(inputs: Mapping[str, Operand]) -> Sequence[Mapping[str, int]]:
    """Return the values of the dynamic dimensions for each combination of listed shapes."""
    profiles: list[dict[str, int]] = []
    for name, operand in inputs.items():
        for row, shape in enumerate(_shapes_in(name)):
            profiles += [{}] if row == len(profiles) else []
            sizes = map(size_name, operand.type.shape or ())
            profiles[row].update({s: n for s, n in zip(sizes, shape, strict=True) if s is not None})
    return profiles


def _shapes_in(name: str) -> Sequence[Sequence[int]]:
    shapes = name.partition(":")[2].partition(":")[2]
    return [list(map(int, shape.split("x"))) for shape in shapes.split(",") if shape]


def _types(
    operands: Mapping[str, Operand], profiles: Sequence[Mapping[str, int]], lifetime: Lifetime
) -> tuple[NNAdapterOperandType, ...]:
    types = []
    for name, operand in operands.items():
        type_ = with_shapes(operand.type, profiles)
        layout = name.partition(":")[2].partition(":")[0] or "NCHW"
        type_.layout, type_.lifetime = Layout[_PREFIX + layout], lifetime
        types.append(type_)
    return tuple(types)


def with_shapes(type_: TensorType, profiles: Sequence[Mapping[str, int]]) -> NNAdapterOperandType:
    """Return NNAdapter's form of a tensor type, with its shape for each profile.

    Raises:
        UnsupportedError: NNAdapter has no such type.
    """
    result = operand_type(type_)
    if type_.static_shape is None:
        shapes = [type_.substitute(profile).static_shape for profile in profiles]
        if all(shape is not None for shape in shapes):
            result.dimensions.dynamic_data = [list(shape or ()) for shape in shapes]
    return result
