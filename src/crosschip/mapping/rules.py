"""Rules that mappings of several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from crosschip.ir import Array, ElementType, ModelError, Operand, TensorType, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import BOOLEANS, FLOATS, INDICES, INTEGERS
from crosschip.mapping.common import NNRT_CODES, Numbers
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    numbers,
    parameter_value,
    rank_of,
    refusal,
    slot_operand,
    type_code,
    value_or_default,
)
from crosschip.ops.definition.slots import Parameter
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Reshape


@dataclass(frozen=True, slots=True)
class PassThrough(Rule):
    """Passes an operand to its slot unchanged.

    On import, a constant whose element type the parameter does not take is converted without loss.
    On export, an omitted parameter is written with its default. Parameters are written with one
    axis, and with 32 bits where the values fit.

    Args:
        slot: the slot.
        numbers: the codes of an enumeration or of element types: ours by theirs.
        text: the codes in words, for documentation.
        default: the value of an omitted operand, where it differs from the slot's default.
    """

    slot: str
    numbers: Numbers | None = None
    text: str = ""
    default: object = None

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            if self.default is not None:
                ctx.slots[self.slot] = self.default
            return
        slot = getattr(ctx.operator, self.slot)
        if isinstance(slot, Parameter):
            operand = _converted_constant(slot, operand)
            if self.numbers is not None:
                operand = self._import_code(operand, self.numbers)
        ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        slot = getattr(type(ctx.operation), self.slot)
        operand = ctx.operation.operand(self.slot)
        if not isinstance(slot, Parameter):
            return operand
        array = value_or_default(slot, operand)
        if array is None:
            return operand
        if self.numbers is not None:
            array = self._export_code(array, ctx, slot, self.numbers)
        if not array.size and slot.default == ():
            return None
        return constant(_export_form(slot, array), f"{ctx.operation.name}.{self.slot}")

    def _import_code(self, operand: Operand, codes: Numbers) -> Operand:
        code = int(number(operand, self.slot))
        if code not in codes:
            choices = ", ".join(map(str, sorted(codes)))
            raise ModelError(f"{self.slot}: is {code}, but there are {choices}")
        return constant(np.array([codes[code]], np.int32), operand.name)

    def _export_code(
        self, array: Array, ctx: Export, slot: Parameter[Any], codes: Numbers
    ) -> Array:
        value = int(array.item())
        code = next((theirs for theirs, ours in codes.items() if ours == value), None)
        if code is None:
            raise refusal(ctx, self.slot, f"has no code for {slot.decode(array)}")
        return np.array([code], np.int32)


def _converted_constant(slot: Parameter[Any], operand: Operand) -> Operand:
    """Convert a constant to an element type that the parameter takes; return others unchanged."""
    if operand.value is None or operand.type.element_type in slot.types:
        return operand
    value = np.asarray(operand.value)
    if slot.types <= FLOATS:
        type_ = ElementType.FLOAT32
    else:
        type_ = ElementType.BOOL if slot.types <= BOOLEANS else ElementType.INT64
    array = value.astype(type_.dtype)
    if not np.array_equal(array, value):
        raise ModelError(f"{slot.name}: is {value.tolist()}, which {type_} does not hold")
    return constant(array, operand.name)


def _export_form(slot: Parameter[Any], array: Array) -> Array:
    """Return an array with at least one axis, floats as float32, integers as int32 if they fit."""
    array = np.atleast_1d(array)
    if slot.types <= FLOATS:
        return array.astype(np.float32)
    if array.dtype == np.int64 and np.array_equal(array, array.astype(np.int32)):
        return array.astype(np.int32)
    return array


@dataclass(frozen=True, slots=True)
class Variadic(Rule):
    """Passes to a variadic slot all operands that the other rules of the row do not take."""

    slot: str


@dataclass(frozen=True, slots=True)
class CastOnExport(Rule):
    """Passes an operand like `PassThrough`, but exports it with a fixed element type.

    Args:
        slot: the slot.
        element_type: an integer type; values are clipped to its range.
    """

    slot: str
    element_type: ElementType

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        slot = getattr(type(ctx.operation), self.slot)
        array = value_or_default(slot, ctx.operation.operand(self.slot))
        if array is None:
            return ctx.operation.operand(self.slot)
        limits = np.iinfo(self.element_type.dtype)
        clipped = np.clip(array, limits.min, limits.max).astype(self.element_type.dtype)
        return constant(np.atleast_1d(clipped), f"{ctx.operation.name}.{self.slot}")


@dataclass(frozen=True, slots=True)
class TypeOfOutput(Rule):
    """Sets an element type, which has no operand, from the declared type of an output.

    Args:
        slot: the slot.
        output: the index of the output.
    """

    slot: str
    output: int = 0

    @property
    def text(self) -> str:
        return f"`{self.slot}` is the element type of the output operand"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if self.output < len(ctx.declared):
            ctx.slots[self.slot] = ctx.declared[self.output].element_type


@dataclass(frozen=True, slots=True)
class FixedValue(Rule):
    """Sets a slot that has no operand to a fixed value, and exports no other value."""

    slot: str
    value: object

    @property
    def text(self) -> str:
        value = f"{self.value:.6g}" if isinstance(self.value, float) else str(self.value)
        return f"`{self.slot}` is {value}"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.slots[self.slot] = self.value

    def export_operand(self, ctx: Export) -> Operand | None:
        value = parameter_value(ctx, self.slot)
        if not np.array_equal(value, np.asarray(self.value, value.dtype)):
            raise refusal(ctx, self.slot, f"has no code for {value.tolist()}")
        return None


@dataclass(frozen=True, slots=True)
class RequiredValue(Rule):
    """An operand that sets no slot and for which one value is supported.

    Args:
        name: the operand's name in messages.
        value: the supported value.
    """

    name: str
    value: float
    slot: str = field(default="", init=False)

    @property
    def text(self) -> str:
        return f"{self.name} must be {self.value:g}"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None and number(operand, self.name) != self.value:
            raise ModelError(f"{self.name}: must be {self.value:g}")


@dataclass(frozen=True, slots=True)
class Selector(Rule):
    """An operand that selects one of several standard operators.

    Args:
        name: the operand's name in documentation.
        description: the values that select this operator, in words.
        holds: whether a value selects this operator.
        exported: the value to export.
        default: the value of an omitted operand.
    """

    name: str
    description: str
    holds: Callable[[float], bool]
    exported: Array
    default: float = 0
    slot: str = field(default="", init=False)

    @property
    def text(self) -> str:
        return f"with {self.name} {self.description}"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], ctx: Import) -> bool:
        return self.holds(self.default if operand is None else number(operand, self.name))

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(self.exported, f"{ctx.operation.name}.{self.name.lower()}")


@dataclass(frozen=True, slots=True)
class Ignored(Rule):
    """A slot that another rule sets, or an operand without effect.

    Args:
        slot: the slot; empty for an operand.
    """

    slot: str = ""


@dataclass(frozen=True, slots=True)
class TypePromotion(Rule):
    """Casts two operands to their common type when the second is imported.

    Args:
        slot: the slot of the second operand.
        other: the slot of the first operand.
    """

    slot: str
    other: str
    text: str = "operands of two types become the wider of them, or the one that is real"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            return
        first = slot_operand(ctx, self.other)
        ctx.slots[self.slot] = operand
        types = first.type.element_type, operand.type.element_type
        if types[0] is types[1] or first.type.quantization or operand.type.quantization:
            return
        floats = [type_ for type_ in types if type_ in FLOATS]
        common = ElementType.of(np.promote_types(*(type_.dtype for type_ in types)))
        type_ = floats[0] if len(floats) == 1 else common
        for slot, part in ((self.slot, operand), (self.other, first)):
            if part.type.element_type is not type_:
                ctx.slots[slot] = ctx.builder.add(Cast, part, type_)

    def export_operand(self, ctx: Export) -> Operand | None:
        return PassThrough(self.slot).export_operand(ctx)


@dataclass(frozen=True, slots=True)
class BoolCast(Rule):
    """Converts an operand of any element type to bool; nonzero is true."""

    slot: str
    text: str = "what is not 0 is true"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None and operand.type.element_type is not ElementType.BOOL:
            operand = ctx.builder.add(Cast, operand, ElementType.BOOL)
        ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        return ctx.operation.operand(self.slot)


@dataclass(frozen=True, slots=True)
class AnyInteger(Rule):
    """Passes an integer parameter; computed operands of other integer types are cast to int64."""

    slot: str
    text: str = ""

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if (
            operand is not None
            and operand.value is None
            and operand.type.element_type in INTEGERS - INDICES
        ):
            operand = ctx.builder.add(Cast, operand, ElementType.INT64)
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        return PassThrough(self.slot).export_operand(ctx)


@dataclass(frozen=True, slots=True)
class SingleAxis(Rule):
    """Converts between `axes` and an operand with one axis.

    Args:
        default: the value of an omitted operand; if `None`, `axes` is left unset.
    """

    default: int | None = None
    slot: str = field(default="axes", init=False)
    text: str = field(default="`axes` is one axis", init=False)

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None:
            ctx.slots[self.slot] = (int(number(operand, self.slot)),)
        elif self.default is not None:
            ctx.slots[self.slot] = (self.default,)

    def export_operand(self, ctx: Export) -> Operand | None:
        axes = parameter_value(ctx, self.slot)
        if axes.size != 1:
            raise refusal(ctx, self.slot, f"has no code for {axes.tolist()}")
        return constant(axes.astype(np.int32).reshape(1), f"{ctx.operation.name}.axis")


class ChannelAxis(Rule):
    """Sets `axis`, which has no operand, to the channel axis."""

    slot = "axis"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        rank = 0 if ctx.channels_last else rank_of(slot_operand(ctx, "input"), "input")
        ctx.slots[self.slot] = 1 if rank > 2 else -1

    def export_operand(self, ctx: Export) -> Operand | None:
        axis, rank = (
            int(parameter_value(ctx, self.slot).item()),
            len(ctx.outputs[0].type.shape or ()),
        )
        channels = rank - 1 if ctx.channels_last or rank < 3 else 1
        if axis not in (channels, channels - rank):
            raise refusal(ctx, self.slot, f"has no code for {axis}")
        return None


class NumericFlag(Rule):
    """Converts between a flag and an int32 operand; an omitted operand is false."""

    def __init__(self, slot: str) -> None:
        self.slot = slot

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.slots[self.slot] = operand is not None and bool(number(operand, self.slot))

    def export_operand(self, ctx: Export) -> Operand | None:
        flag = parameter_value(ctx, self.slot).astype(np.int32).reshape(1)
        return constant(flag, f"{ctx.operation.name}.{self.slot}")


@dataclass(frozen=True, slots=True)
class Pairs(Rule):
    """Converts between a one-dimensional parameter [2 * n] and an operand [n, 2]."""

    slot: str

    @property
    def text(self) -> str:
        return f"`{self.slot}` has two axes"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            return
        if operand.value is None:
            operand = ctx.builder.add(Reshape, operand, (-1,))
        else:
            operand = constant(numbers(operand, self.slot), operand.name)
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = PassThrough(self.slot).export_operand(ctx)
        if operand is None or operand.value is None:
            raise refusal(ctx, self.slot, "must be constant in the target")
        return constant(np.asarray(operand.value).reshape(-1, 2), operand.name)


@dataclass(frozen=True, slots=True)
class ConstantTerm(Rule):
    """A constant that is multiplied by, or added to, the operand of another slot on import.

    Args:
        other: the slot of that operand.
        operator: `Mul` or `Add`.
        neutral: the constant for which no operation is needed.
        text: the rule in words, for documentation and messages.
    """

    other: str
    operator: type[Mul | Add]
    neutral: float
    text: str
    slot: str = field(default="", init=False)

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None and number(operand, self.text) != self.neutral:
            apply_constant(ctx, self.other, self.operator, number(operand, self.text))


def apply_constant(ctx: Import, slot: str, operator: type[Mul | Add], value: float) -> None:
    """Replace the operand of a slot by its product or sum with a constant."""
    operand = slot_operand(ctx, slot)
    array = np.array(value, operand.type.element_type.dtype)
    ctx.slots[slot] = ctx.builder.add(operator, operand, array)


@dataclass(frozen=True, slots=True)
class TypeCode(Rule):
    """Exports the code of the element type of the first input or output; ignored on import.

    Args:
        output: whether to export the output's type instead of the input's.
        codes: the codes of element types: ours by theirs.
    """

    output: bool
    codes: Numbers = field(default_factory=lambda: NNRT_CODES[ElementType])
    slot: str = field(default="", init=False)

    def export_operand(self, ctx: Export) -> Operand | None:
        first = ctx.outputs[0] if self.output else ctx.operation.inputs[0]
        assert first is not None, "input is required"
        return type_code(ctx, first.type, self.codes)


class UnquantizedOutput(Rule):
    """Drops the declared quantization of the outputs on import."""

    slot = ""
    text = "the output's quantization means nothing"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.declared = [TensorType(t.element_type, t.shape) for t in ctx.declared]
