"""Rules of NNRt's mappings that operators of several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import DTypeLike

from crosschip.ir import (
    Array,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    Shape,
    TensorType,
    constant,
)
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import FLOATS, INDICES, INTEGERS
from crosschip.mapping.common import NNRT_CODES, Numbers
from crosschip.mapping.translation import Export, Import, Passed, Rule, refusal, value_of
from crosschip.ops.definition.slots import Fuse, Parameter
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Reshape

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

FUSES = {0: Fuse.NONE, 1: Fuse.RELU, 2: Fuse.RELU6}
"""The numbers of OH_NN_FuseType."""


def rank_of(operand: Operand | None, slot: str) -> int:
    """The number of axes of an operand.

    Raises:
        ModelError: it is not known.
    """
    if operand is None or operand.type.shape is None:
        raise ModelError(f"{slot}: must have a known number of axes")
    return len(operand.type.shape)


def filled(use: Import, slot: str) -> Operand:
    """The operand that has been found for a slot.

    Raises:
        ModelError: nothing has been found.
    """
    operand = use.slots.get(slot)
    if not isinstance(operand, Operand):
        raise ModelError(f"{slot}: is missing")
    return operand


def numbers(operand: Operand, slot: str) -> Array:
    """The numbers that a constant holds, on one axis.

    Raises:
        ModelError: it is computed when the model runs.
    """
    if operand.value is None:
        raise ModelError(f"{slot}: is computed when the model runs, but must be constant")
    return np.asarray(operand.value).reshape(-1)


def number(operand: Operand, slot: str) -> float:
    """The one number that a constant holds.

    Raises:
        ModelError: it holds several, or is computed.
    """
    values = numbers(operand, slot)
    if values.size != 1:
        raise ModelError(f"{slot}: is one number, not {values.size}")
    return cast(float, values[0].item())


@dataclass(frozen=True, slots=True)
class PaddingMode(Rule):
    """The padding that makes the output as large as the input, or none.

    Left out, the padding is that of another operand.
    """

    slot: str = "auto_pad"
    text: str = "`auto_pad` is one of 0 SAME, 1 and 2 VALID, NONE without it"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None:
            modes = {0: AutoPad.SAME, 1: AutoPad.VALID, 2: AutoPad.VALID}
            Passed(self.slot, modes).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        mode = value_in(use, self.slot)
        if mode == AutoPad.NONE:
            return None
        if mode not in (AutoPad.SAME, AutoPad.VALID):
            name = AutoPad(int(mode.item())).name
            raise refusal(use, self.slot, f"there is no number for {name}")
        return constant(np.array([mode == AutoPad.VALID], np.int8), f"{use.operation.name}.mode")


@dataclass(frozen=True, slots=True)
class Padding(Rule):
    """The padding above, below, left and right, where no mode says it."""

    slot: str = "pads"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        if value_in(use, "auto_pad") == AutoPad.NONE:
            return Passed(self.slot).export_operand(use)
        return None


@dataclass(frozen=True, slots=True)
class ProductBias(Rule):
    """A bias of integers without quantization counts in the unit of the products.

    Args:
        weight: the slot of the weight.
        required: whether the other operator cannot do without it.
    """

    weight: str
    required: bool = True
    slot: str = "bias"
    text: str = "an int32 bias without quantization has the scales of input times weight"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is None:
            return
        unit = filled(use, "input").type.quantization
        scales = filled(use, self.weight).type.quantization
        plain = operand.type.quantization is None
        if operand.type.element_type is ElementType.INT32 and plain and unit and scales:
            if operand.value is None:
                raise ModelError("bias: is computed when the model runs, but must be constant")
            product = tuple(float(np.float32(unit.scale[0]) * np.float32(s)) for s in scales.scale)
            quantization = Quantization(product, axis=None if scales.axis is None else 0)
            operand = constant(np.asarray(operand.value), operand.name, quantization)
        use.slots[self.slot] = operand

    def export_operand(self, use: Export) -> Operand | None:
        operand = use.operation.operand(self.slot)
        if operand is None:
            return self._zeros(use) if self.required else None
        if operand.type.quantization is None:
            return operand
        if operand.value is None:
            raise refusal(use, self.slot, "is quantized, and must be constant there")
        return constant(np.asarray(operand.value), operand.name)

    def _zeros(self, use: Export) -> Operand:
        input = use.operation.operand("input")
        shape = use.operation.outputs[0].type.shape
        assert input is not None
        if shape is None or not isinstance(shape[1], int):
            raise refusal(use, self.slot, "is needed there, and the channels are not known")
        integers = input.type.quantization is not None
        dtype = ElementType.INT32.dtype if integers else input.type.element_type.dtype
        return constant(np.zeros(shape[1], dtype), f"{use.operation.name}.{self.slot}")


@dataclass(frozen=True, slots=True)
class ActivationAfter(Rule):
    """An activation that becomes an operation of its own."""

    slot: str = ""
    text: str = "an activation becomes an operation after it"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        code = 0 if operand is None else number(operand, "activation")
        if code not in FUSES:
            raise ModelError(f"activation: is {code:g}, but there are 0, 1, 2")
        if code:
            follower = Relu if FUSES[int(code)] is Fuse.RELU else Relu6
            use.finishing.append(
                lambda outputs: (use.builder.add(follower, outputs[0]), *outputs[1:])
            )

    def export_operand(self, use: Export) -> Operand | None:
        return None


@dataclass(frozen=True, slots=True)
class Fixed(Rule):
    """A slot that always has the same value.

    Args:
        slot: the slot.
        value: the value.
    """

    slot: str
    value: object

    @property
    def text(self) -> str:
        value = f"{self.value:.6g}" if isinstance(self.value, float) else str(self.value)
        return f"`{self.slot}` is {value}"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.slots[self.slot] = self.value

    def export_operand(self, use: Export) -> Operand | None:
        value = value_in(use, self.slot)
        if not np.array_equal(value, np.asarray(self.value, value.dtype)):
            raise refusal(use, self.slot, f"there is no number for {value.tolist()}")
        return None


@dataclass(frozen=True, slots=True)
class MustBe(Rule):
    """An operand that has one meaning only, and fills no slot.

    Args:
        name: what messages call it.
        value: what it must be where it is there.
    """

    name: str
    value: float
    slot: str = field(default="", init=False)

    @property
    def text(self) -> str:
        return f"{self.name} must be {self.value:g}"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None and number(operand, self.name) != self.value:
            raise ModelError(f"{self.name}: must be {self.value:g}")

    def export_operand(self, use: Export) -> Operand | None:
        return None


@dataclass(frozen=True, slots=True)
class Case(Rule):
    """An operand that says which of several operators is meant.

    Args:
        name: what documentation calls it.
        told: for which of its values this operator is, in words.
        holds: tells that of a value.
        written: the value for this operator.
        default: the value where it is left out.
    """

    name: str
    description: str
    holds: Callable[[float], bool]
    written: Array
    default: float = 0
    slot: str = field(default="", init=False)

    @property
    def text(self) -> str:
        return f"with {self.name} {self.description}"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], use: Import) -> bool:
        return self.holds(self.default if operand is None else number(operand, self.name))

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        return constant(self.written, f"{use.operation.name}.{self.name.lower()}")


@dataclass(frozen=True, slots=True)
class Promoted(Rule):
    """The second of two operands, which become the wider of their types.

    Args:
        slot: its slot.
        other: that of the first.
    """

    slot: str
    other: str
    text: str = "operands of two types become the wider of them, or the one that is real"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is None:
            return
        first = filled(use, self.other)
        use.slots[self.slot] = operand
        own, others = operand.type, first.type
        if own.element_type is others.element_type or own.quantization or others.quantization:
            return
        type_ = _wider(own.element_type, others.element_type)
        for slot, part in ((self.slot, operand), (self.other, first)):
            if part.type.element_type is not type_:
                use.slots[slot] = use.builder.add(Cast, part, type_)

    def export_operand(self, use: Export) -> Operand | None:
        return Passed(self.slot).export_operand(use)


@dataclass(frozen=True, slots=True)
class Truth(Rule):
    """An operand of any type, converted to bool: what is not 0 is true.

    Args:
        slot: the slot.
    """

    slot: str
    text: str = "what is not 0 is true"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None and operand.type.element_type is not ElementType.BOOL:
            operand = use.builder.add(Cast, operand, ElementType.BOOL)
        use.slots[self.slot] = operand

    def export_operand(self, use: Export) -> Operand | None:
        return use.operation.operand(self.slot)


@dataclass(frozen=True, slots=True)
class AnyInteger(Rule):
    """An integer parameter whose operand has any integer type.

    Args:
        slot: the slot.
    """

    slot: str
    text: str = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if (
            operand is not None
            and operand.value is None
            and operand.type.element_type in INTEGERS - INDICES
        ):
            operand = use.builder.add(Cast, operand, ElementType.INT64)
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        return Passed(self.slot).export_operand(use)


def _wider(one: ElementType, other: ElementType) -> ElementType:
    """The more precise of two types: of a real one and another, the real one."""
    reals = [type_ for type_ in (one, other) if type_ in FLOATS]
    return reals[0] if len(reals) == 1 else ElementType.of(np.promote_types(one.dtype, other.dtype))


@dataclass(frozen=True, slots=True)
class OneAxis(Rule):
    """A list of axes that is one axis there.

    Args:
        default: what leaving it out means; it cannot be left out if there is none.
    """

    default: int | None = None
    slot: str = field(default="axes", init=False)
    text: str = field(default="`axes` is one axis", init=False)

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None:
            use.slots[self.slot] = (int(number(operand, self.slot)),)
        elif self.default is not None:
            use.slots[self.slot] = (self.default,)

    def export_operand(self, use: Export) -> Operand | None:
        axes = value_in(use, self.slot)
        if axes.size != 1:
            raise refusal(use, self.slot, f"there is no number for {axes.tolist()}")
        return constant(axes.astype(np.int32).reshape(1), f"{use.operation.name}.axis")


class ChannelAxis(Rule):
    """An axis that is always that of the channels: the last one, or 1."""

    slot = "axis"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        rank = 0 if use.channels_last else rank_of(filled(use, "input"), "input")
        use.slots[self.slot] = 1 if rank > 2 else -1

    def export_operand(self, use: Export) -> Operand | None:
        axis, rank = int(value_in(use, self.slot).item()), len(use.outputs[0].type.shape or ())
        channels = rank - 1 if use.channels_last or rank < 3 else 1
        if axis not in (channels, channels - rank):
            raise refusal(use, self.slot, f"there is no number for {axis}")
        return None


class NumberedFlag(Rule):
    """A flag that is false if left out, and a number there.

    Args:
        slot: the slot.
    """

    def __init__(self, slot: str) -> None:
        self.slot = slot

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.slots[self.slot] = operand is not None and bool(number(operand, self.slot))

    def export_operand(self, use: Export) -> Operand | None:
        held = value_in(use, self.slot).astype(np.int32).reshape(1)
        return constant(held, f"{use.operation.name}.{self.slot}")


@dataclass(frozen=True, slots=True)
class Told(Rule):
    """A slot that another operand tells, or an operand that means nothing.

    Args:
        slot: the slot; empty for an operand.
    """

    slot: str = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        return None


@dataclass(frozen=True, slots=True)
class Combined(Rule):
    """A number that an operand is put together with before it is used.

    Args:
        other: the slot of the operand.
        operator: how.
        neutral: the number that changes nothing.
        text: what documentation says of it.
    """

    other: str
    operator: type[Mul | Add]
    neutral: float
    text: str
    slot: str = field(default="", init=False)

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None and number(operand, self.text) != self.neutral:
            combine(use, self.other, self.operator, number(operand, self.text))

    def export_operand(self, use: Export) -> Operand | None:
        return None


def combine(use: Import, slot: str, operator: type[Mul | Add], value: float) -> None:
    """Multiply what fills a slot by a number, or add that."""
    operand = filled(use, slot)
    array = np.array(value, operand.type.element_type.dtype)
    use.slots[slot] = use.builder.add(operator, operand, array)


@dataclass(frozen=True, slots=True)
class TypeNumber(Rule):
    """The number of the element type of the first input or output, which is known anyway.

    Args:
        output: whether it is the output's.
        codes: the numbers of element types.
    """

    output: bool
    codes: Numbers = field(default_factory=lambda: NNRT_CODES[ElementType])
    slot: str = field(default="", init=False)

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        first = use.outputs[0] if self.output else use.operation.inputs[0]
        assert first is not None, "there is an input"
        return type_number(use, first.type, self.codes)


def type_number(
    use: Export, type_: TensorType, codes: Numbers, dtype: DTypeLike = np.int64
) -> Operand:
    """The number of an element type."""
    own = type_.element_type.code
    code = next((theirs for theirs, ours in codes.items() if ours == own), None)
    if code is None:
        raise refusal(use, "dtype", f"there is no number for {type_}")
    return constant(np.array([code], dtype), f"{use.operation.name}.type")


class PlainOutput(Rule):
    """The quantization of the output means nothing."""

    slot = ""
    text = "the output's quantization means nothing"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.declared = [TensorType(t.element_type, t.shape) for t in use.declared]

    def export_operand(self, use: Export) -> Operand | None:
        return None


@dataclass(frozen=True, slots=True)
class Pairs(Rule):
    """A list of numbers that is a list of pairs there.

    Args:
        slot: the slot.
    """

    slot: str

    @property
    def text(self) -> str:
        return f"`{self.slot}` has two axes"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is None:
            return
        if operand.value is None:
            operand = use.builder.add(Reshape, operand, (-1,))
        else:
            operand = constant(numbers(operand, self.slot), operand.name)
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        operand = Passed(self.slot).export_operand(use)
        if operand is None or operand.value is None:
            raise refusal(use, self.slot, "must be constant there")
        return constant(np.asarray(operand.value).reshape(-1, 2), operand.name)


def shape_known(shape: Shape | None) -> tuple[int, ...] | None:
    """A shape whose sizes are all known; `None` for another."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return cast(tuple[int, ...], shape)


def value_in(use: Export, slot: str) -> Array:
    """The value of a parameter.

    Raises:
        UnsupportedError: it is computed.
    """
    operator: type[Operator] = type(use.operation)
    parameter = getattr(operator, slot)
    assert isinstance(parameter, Parameter)
    value = value_of(parameter, use.operation.operand(slot))
    if value is None:
        raise refusal(use, slot, "must be constant there")
    return value
