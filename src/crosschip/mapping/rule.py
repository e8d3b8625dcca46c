"""Interface of the rules that convert operands, and access to the values that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike

from crosschip.ir import (
    Array,
    Builder,
    ModelError,
    Operand,
    Operation,
    Shape,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.slots import Parameter

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

Finish = Callable[[tuple[Operand, ...]], tuple[Operand, ...]]


@dataclass
class Import:
    """The import of one operation of another system.

    Attributes:
        builder: the builder that standard operations are appended to.
        operator: the standard operator.
        declared: the declared types of the outputs; shapes may be missing.
        channels_last: whether the other system stores these images with their channels last.
        slots: the arguments of the standard operator that the rules have set so far, by slot.
        finishing: the functions to apply, in order, to the outputs of the standard operation.
    """

    builder: Builder
    operator: type[Operator]
    declared: Sequence[TensorType]
    channels_last: bool = True
    slots: dict[str, object] = field(default_factory=dict)
    postprocessing: list[Finish] = field(default_factory=list)


@dataclass
class Export:
    """The export of one standard operation to another system's operator.

    Attributes:
        operation: the operation.
        before: the builder of standard operations that compute the other operator's operands.
        after: the builder of standard operations that compute the operation's outputs.
        outputs: the outputs of the other operator.
        channels_last: whether the other system stores these images with their channels last.
    """

    operation: Operator
    before: Builder
    after: Builder
    outputs: list[Operand]
    channels_last: bool = True

    def replace_output(
        self, output: int, type_: TensorType, operator: type[Operator], *arguments: object
    ) -> None:
        """Replace an output of the other operator, and append an operation that computes it.

        Args:
            output: the index of the output.
            type_: the type of the replacement.
            operator: the standard operator that computes the output from the replacement.
            arguments: its arguments after the replacement.
        """
        operand = self.outputs[output]
        self.outputs[output] = Operand(f"{operand.name}.{operator.type.lower()}", type_)
        name = self.after.unique_name(operator.type.lower())
        inputs = operator.bind(name, (self.outputs[output], *arguments), {})
        self.after.append(operator(name, inputs, (operand,)))


class Rule:
    """Converts between a slot and an operand of another system's operator.

    This base class ignores the operand when importing and leaves it out when exporting.

    Attributes:
        slot: the slot that the rule sets; empty if it sets none.
        text: the conversion in words, for documentation; empty if the operand is passed unchanged.
    """

    slot: str

    @property
    def text(self) -> str:
        return ""

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], ctx: Import) -> bool:
        """Return whether an operation can be imported with this rule.

        Where several rows have the same operator, the first row whose rules all fit is used.
        """
        return True

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        """Set the slot from an operand; `None` if the operand is omitted or does not exist.

        Raises:
            ModelError: the operand is invalid; the message starts with the slot.
        """

    def export_operand(self, ctx: Export) -> Operand | None:
        """Return the operand for the slot; `None` if it is omitted or does not exist.

        Raises:
            UnsupportedError: the other operator cannot express the slot's value.
        """
        return None


class InexpressibleError(UnsupportedError):
    """An operation that another system's operator cannot express.

    Attributes:
        slot: the slot that cannot be expressed.
        why: the reason, as a predicate of the slot.
    """

    def __init__(self, operation: Operation, slot: str, why: str) -> None:
        super().__init__(f"{operation.name!r}: {operation.type}.{slot}: {why}")
        self.slot = slot
        self.why = why


def refusal(ctx: Export, slot: str, why: str) -> InexpressibleError:
    """Return the error for a slot of an operation that is being exported."""
    return InexpressibleError(ctx.operation, slot, why)


def slot_operand(ctx: Import, slot: str) -> Operand:
    """Return the operand that a rule has set for a slot.

    Raises:
        ModelError: no rule has set one.
    """
    operand = ctx.slots.get(slot)
    if not isinstance(operand, Operand):
        raise ModelError(f"{slot}: is missing")
    return operand


def rank_of(operand: Operand | None, slot: str) -> int:
    """Return the rank of an operand.

    Raises:
        ModelError: the rank is unknown.
    """
    if operand is None or operand.type.shape is None:
        raise ModelError(f"{slot}: must have a known number of axes")
    return len(operand.type.shape)


def numbers(operand: Operand, slot: str) -> Array:
    """Return the elements of a constant as a one-dimensional array.

    Raises:
        ModelError: the operand is not constant.
    """
    if operand.value is None:
        raise ModelError(f"{slot}: is computed when the model runs, but must be constant")
    return np.asarray(operand.value).reshape(-1)


def number(operand: Operand, slot: str) -> float:
    """Return the only element of a constant.

    Raises:
        ModelError: the operand has several elements, or is not constant.
    """
    values = numbers(operand, slot)
    if values.size != 1:
        raise ModelError(f"{slot}: is one number, not {values.size}")
    return cast(float, values[0].item())


def static_shape(shape: Shape | None) -> tuple[int, ...] | None:
    """Return a shape if all its sizes are known, else `None`."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return cast(tuple[int, ...], shape)


def value_or_default(slot: Parameter[Any], operand: Operand | None) -> Array | None:
    """Return the value of a parameter, or its default if it has no operand.

    The result is `None` if the operand is not constant, or if there is no default.
    """
    if operand is not None:
        return None if operand.value is None else np.asarray(operand.value)
    return None if slot.default is None else slot.encode(slot.default)


def parameter_value(ctx: Export, slot: str) -> Array:
    """Return the value of a parameter, or its default.

    Raises:
        UnsupportedError: the parameter is not constant.
    """
    operator: type[Operator] = type(ctx.operation)
    parameter = getattr(operator, slot)
    assert isinstance(parameter, Parameter)
    value = value_or_default(parameter, ctx.operation.operand(slot))
    if value is None:
        raise refusal(ctx, slot, "must be constant in the target")
    return value


def type_code(
    ctx: Export, type_: TensorType, codes: Mapping[int, int], dtype: DTypeLike = np.int64
) -> Operand:
    """Return the code of an element type in another system, as a constant of shape [1]."""
    code = next((k for k, ours in codes.items() if ours == type_.element_type.code), None)
    if code is None:
        raise refusal(ctx, "dtype", f"has no code for {type_}")
    return constant(np.array([code], dtype), f"{ctx.operation.name}.type")
