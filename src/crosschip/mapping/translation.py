"""Import and export of operations: between other systems' operators and the standard ones.

A row lists the other operator's operands, each with a rule: the slot that it fills, and how the
operand is converted. Rules work in both directions. `import_operand` takes a use of the other
operator, with its operands in their order, and builds standard operations; `export_operand` takes a
standard operation and gives the operands of the other operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    ModelError,
    Operand,
    Operation,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import BOOLEANS, FLOATS
from crosschip.ops.definition.slots import Parameter, Slot

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

Finish = Callable[[tuple[Operand, ...]], tuple[Operand, ...]]


@dataclass
class Import:
    """One use of another system's operator, on its way to standard operations.

    Attributes:
        builder: what standard operations are appended to.
        operator: the standard operator.
        declared: the types that the outputs are declared with; shapes may be missing.
        channels_last: whether the other system stores these images with their channels last.
        slots: what has been found for the slots so far.
        finishing: what is done to the operands that the standard operation makes, in order.
    """

    builder: Builder
    operator: type[Operator]
    declared: Sequence[TensorType]
    channels_last: bool = True
    slots: dict[str, object] = field(default_factory=dict)
    finishing: list[Finish] = field(default_factory=list)


@dataclass
class Export:
    """One standard operation, on its way to another system's operator.

    Attributes:
        operation: the operation.
        before: what standard operations are appended to that make what it reads.
        after: what standard operations are appended to that must follow it.
        outputs: the operands that the other operator makes.
        channels_last: whether the other system stores these images with their channels last.
    """

    operation: Operator
    before: Builder
    after: Builder
    outputs: list[Operand]
    channels_last: bool = True

    def follow(
        self, output: int, type_: TensorType, operator: type[Operator], *arguments: object
    ) -> None:
        """Have the other operator make another operand, of which an operation makes the output.

        Args:
            output: the place of the output.
            type_: what the other operator makes.
            operator: the operation's; it reads that first.
            arguments: what it reads after that.
        """
        operand = self.outputs[output]
        self.outputs[output] = Operand(f"{operand.name}.{operator.type.lower()}", type_)
        name = self.after.unique_name(operator.type.lower())
        inputs = operator.bind(name, (self.outputs[output], *arguments), {})
        self.after.append(operator(name, inputs, (operand,)))


class Expressed(NamedTuple):
    """A standard operation, expressed by another system's operator.

    Attributes:
        inputs: the other operator's operands; `None` where one is left out.
        outputs: the operands that it makes.
        before: the standard operations that make what it reads of what the operation reads.
        after: those that make the operation's own outputs of what it makes.
    """

    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    before: tuple[Operation, ...]
    after: tuple[Operation, ...]


class Rule:
    """The relation of a slot to an operand of another system's operator, or to what none tells.

    Attributes:
        slot: the slot that it fills; of one that is about outputs, empty.
        text: what it does beyond passing an operand on, for documentation; empty if nothing.
    """

    slot: str

    @property
    def text(self) -> str:
        return ""

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], use: Import) -> bool:
        """Tell whether this is the row for a use, where other rows have the same operator."""
        return True

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        """Find what fills the slot.

        Raises:
            ModelError: the operand cannot; the message starts with the slot.
        """
        raise NotImplementedError

    def export_operand(self, use: Export) -> Operand | None:
        """The operand that says what the slot does; `None` if it is left out, or there is none.

        Raises:
            UnsupportedError: there is no such operand.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Passed(Rule):
    """An operand that fills a slot as it is.

    When importing, a constant of another type than a parameter takes is converted to one that it
    takes, if that holds the same numbers. When exporting, a parameter that is left out is spelled
    out, and parameters have one axis, and 32 bits where they fit.

    Args:
        slot: the slot.
        numbers: for a choice or an element type, what their numbers are among ours.
        text: what the documentation says of the numbers.
        default: what leaving it out means, where that is not what it means to the slot.
    """

    slot: str
    numbers: Mapping[int, int] | None = None
    text: str = ""
    default: object = None

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is None:
            if self.default is not None:
                use.slots[self.slot] = self.default
            return
        slot = getattr(use.operator, self.slot)
        if isinstance(slot, Parameter):
            operand = _converted_constant(slot, operand)
            if self.numbers is not None:
                operand = self._ours(operand, self.numbers)
        use.slots[self.slot] = operand

    def export_operand(self, use: Export) -> Operand | None:
        slot = getattr(type(use.operation), self.slot)
        operand = use.operation.operand(self.slot)
        if not isinstance(slot, Parameter):
            return operand
        array = value_of(slot, operand)
        if array is None:
            return operand
        if self.numbers is not None:
            array = self._theirs(array, use, slot, self.numbers)
        if not array.size and slot.default == ():
            return None
        return constant(_narrow(slot, array), f"{use.operation.name}.{self.slot}")

    def _ours(self, operand: Operand, numbers: Mapping[int, int]) -> Operand:
        number = _number(operand, self.slot)
        if number not in numbers:
            known = ", ".join(map(str, sorted(numbers)))
            raise ModelError(f"{self.slot}: is {number}, but there are {known}")
        return constant(np.array([numbers[number]], np.int32), operand.name)

    def _theirs(
        self, array: Array, use: Export, slot: Parameter[Any], numbers: Mapping[int, int]
    ) -> Array:
        own = int(array.item())
        code = next((theirs for theirs, ours in numbers.items() if ours == own), None)
        if code is None:
            raise refusal(use, self.slot, f"there is no number for {slot.decode(array)}")
        return np.array([code], np.int32)


@dataclass(frozen=True, slots=True)
class Several(Rule):
    """Operands that fill a slot which takes many; how many is what is left of the others.

    Args:
        slot: the slot.
    """

    slot: str


@dataclass(frozen=True, slots=True)
class Written(Rule):
    """An operand that fills a slot like `Passed`, but is of a certain element type when exported.

    Args:
        slot: the slot.
        element_type: an integer type; what is beyond it becomes its least or greatest number.
    """

    slot: str
    element_type: ElementType

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        slot = getattr(type(use.operation), self.slot)
        array = value_of(slot, use.operation.operand(self.slot))
        if array is None:
            return use.operation.operand(self.slot)
        limits = np.iinfo(self.element_type.dtype)
        held = np.clip(array, limits.min, limits.max).astype(self.element_type.dtype)
        return constant(np.atleast_1d(held), f"{use.operation.name}.{self.slot}")


@dataclass(frozen=True, slots=True)
class TypeOfOutput(Rule):
    """An element type that no operand tells: it is that of an output.

    Args:
        slot: the slot.
        output: the place of the output.
    """

    slot: str
    output: int = 0

    @property
    def text(self) -> str:
        return f"`{self.slot}` is the element type of the output operand"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if self.output < len(use.declared):
            use.slots[self.slot] = use.declared[self.output].element_type

    def export_operand(self, use: Export) -> Operand | None:
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """An operator of another system.

    Attributes:
        operator: the standard operator.
        operands: the rules for its input operands, in order.
        given: the rules for what no operand tells.
    """

    operator: type[Operator]
    operands: tuple[Rule, ...]
    other_rules: tuple[Rule, ...] = ()

    @property
    def text(self) -> str:
        """The work beyond passing operands on, for documentation; empty if there is none."""
        texts = [rule.text for rule in (*self.operands, *self.other_rules) if rule.text]
        return "; ".join(dict.fromkeys(texts))

    def fits(self, values: Sequence[Operand | None], declared: Sequence[TensorType]) -> bool:
        """Tell whether this is the row for a use, where other rows have the same operator.

        Args:
            values: the operands, as for `import_operand`.
            declared: the types that the outputs are declared with.

        Raises:
            ModelError: there are too many operands, or too few.
        """
        use = Import(Builder(), self.operator, declared)
        return all(
            rule.fits(own[0] if own else None, values, use)
            for rule, own in _distributed(self.operands, values)
        ) and all(rule.fits(None, values, use) for rule in self.other_rules)


def row_of(
    operator: type[Operator],
    operands: Sequence[str | Rule],
    other_rules: Sequence[Rule],
    codes: Mapping[type, Mapping[int, int]],
) -> Row:
    """The row of a foreign.

    Args:
        operator: the standard operator.
        operands: slots and rules; empty for all slots in their order.
        other_rules: the rules for what no operand tells.
        codes: the numbers of choices and of element types, by the enumeration of ours.
    """
    listed = operands or [slot.name for slot in operator.slots]
    rules = [
        entry if isinstance(entry, Rule) else _rule_for(getattr(operator, entry), codes)
        for entry in listed
    ]
    return Row(operator, tuple(rules), tuple(other_rules))


def import_operation(
    row: Row,
    builder: Builder,
    values: Sequence[Operand | None],
    declared: Sequence[TensorType],
    name: str,
    channels_last: bool = True,
) -> tuple[Operand, ...]:
    """Build what a use of another system's operator computes.

    Args:
        row: the operator.
        builder: what the operations are appended to.
        values: the operands, in order; `None` where one is left out. Those that are missing at the
            end are left out.
        declared: the types that the outputs are declared with; shapes may be missing.
        name: what the operation is called.
        channels_last: whether its images are stored with their channels last.

    Returns:
        The operands that the other operator makes.

    Raises:
        ModelError: there are too many operands, or they break a rule of the operator.
    """
    use = Import(builder, row.operator, declared, channels_last)
    try:
        for rule, own in _distributed(row.operands, values):
            if isinstance(rule, Several):
                use.slots[rule.slot] = own
            else:
                rule.import_operand(own[0], use)
        for rule in row.other_rules:
            rule.import_operand(None, use)
        declared = use.declared
    except ModelError as error:
        raise ModelError(f"{name!r}: {row.operator.type}.{error}") from None
    reals = any(isinstance(o, Operand) and o.type.quantization for o in _flat(use.slots))
    quantization = tuple(type_.quantization for type_ in declared)
    while quantization and quantization[-1] is None:
        quantization = quantization[:-1]
    named: dict[str, Any] = {"quantization": quantization if reals else None, **use.slots}
    outputs = builder.add_all(row.operator, name=name, **named)
    for finish in use.finishing:
        outputs = finish(outputs)
    return outputs


def export_operation(row: Row, operation: Operator, channels_last: bool = True) -> Expressed:
    """Express an operation by another system's operator.

    Args:
        row: the other operator.
        operation: the operation.
        channels_last: whether to store images with their channels last.

    Raises:
        UnsupportedError: it cannot be expressed; the message names the slot.
    """
    before, after = (Builder(prefix=f"{operation.name}.{place}.") for place in ("in", "out"))
    use = Export(operation, before, after, list(operation.outputs), channels_last)
    handled = {rule.slot for rule in (*row.operands, *row.other_rules)}
    for slot, _ in operation.filled():
        if slot.name not in handled:
            raise refusal(use, slot.name, "has no operand there")
    values: list[Operand | None] = []
    for rule in row.operands:
        if isinstance(rule, Several):
            values.extend(getattr(operation, rule.slot))
        else:
            values.append(rule.export_operand(use))
    for rule in row.other_rules:
        rule.export_operand(use)
    return Expressed(
        tuple(values),
        tuple(use.outputs),
        tuple(before.operations),
        tuple(reversed(after.operations)),
    )


class InexpressibleError(UnsupportedError):
    """A use of an operator that another system's operator cannot say.

    Attributes:
        slot: the slot at fault.
        why: the rest of the sentence.
    """

    def __init__(self, operation: Operation, slot: str, why: str) -> None:
        super().__init__(f"{operation.name!r}: {operation.type}.{slot}: {why}")
        self.slot = slot
        self.why = why


def refusal(use: Export, slot: str, why: str) -> InexpressibleError:
    """The error of an operation that another system has no operand for."""
    return InexpressibleError(use.operation, slot, why)


def value_of(slot: Parameter[Any], operand: Operand | None) -> Array | None:
    """The value of a parameter, also of one that is left out; `None` if it is computed or none."""
    if operand is not None:
        return None if operand.value is None else np.asarray(operand.value)
    return None if slot.default is None else slot.encode(slot.default)


def _rule_for(slot: Slot, codes: Mapping[type, Mapping[int, int]]) -> Rule:
    if slot.variadic:
        return Several(slot.name)
    if not isinstance(slot, Parameter):
        return Passed(slot.name)
    options = ElementType if slot.kind == "element type" else slot.options
    numbers = codes.get(options) if options is not None else None
    if numbers is None or slot.options is None:
        return Passed(slot.name, numbers)
    same = all(theirs == ours for theirs, ours in numbers.items())
    if same and len(numbers) == len(slot.options):
        return Passed(slot.name, numbers)
    choices = ", ".join(f"{n} {slot.options(ours).name}" for n, ours in sorted(numbers.items()))
    return Passed(slot.name, numbers, f"`{slot.name}` is one of {choices}")


def _distributed(
    rules: Sequence[Rule], values: Sequence[Operand | None]
) -> Sequence[tuple[Rule, Sequence[Operand | None]]]:
    """Each rule with its operands: one, or as many as are left for the one that takes many."""
    spare = len(values) - len(rules)
    several = any(isinstance(rule, Several) for rule in rules)
    if spare > 0 and not several:
        raise ModelError(f"operands: there are {len(values)} for {len(rules)} places")
    if several and spare < 0:
        raise ModelError(f"operands: there are {len(values)} for {len(rules)} places or more")
    left = [*values, *(None,) * -min(spare, 0)]
    distribution = []
    for rule in rules:
        count = 1 + spare if isinstance(rule, Several) else 1
        distribution.append((rule, left[:count]))
        left = left[count:]
    return distribution


def _flat(slots: Mapping[str, object]) -> Sequence[object]:
    flat: list[object] = []
    for value in slots.values():
        flat.extend(value if isinstance(value, list) else [value])
    return flat


def _converted_constant(slot: Parameter[Any], operand: Operand) -> Operand:
    """A constant as one of a type that the parameter takes; another operand as it is."""
    if operand.value is None or operand.type.element_type in slot.types:
        return operand
    value = np.asarray(operand.value)
    if slot.types <= FLOATS:
        wanted = ElementType.FLOAT32
    else:
        wanted = ElementType.BOOL if slot.types <= BOOLEANS else ElementType.INT64
    array = value.astype(wanted.dtype)
    if not np.array_equal(array, value):
        raise ModelError(f"{slot.name}: is {value.tolist()}, which {wanted} does not hold")
    return constant(array, operand.name)


def _number(operand: Operand, slot: str) -> int:
    if operand.value is None:
        raise ModelError(f"{slot}: is computed when the model runs, but must be constant")
    if operand.value.size != 1:
        raise ModelError(f"{slot}: is one number, not {operand.value.size}")
    return int(operand.value.item())


def _narrow(slot: Parameter[Any], array: Array) -> Array:
    """Numbers with one axis, of 32 bits if they fit."""
    array = np.atleast_1d(array)
    if slot.types <= FLOATS:
        return array.astype(np.float32)
    if array.dtype == np.int64 and np.array_equal(array, array.astype(np.int32)):
        return array.astype(np.int32)
    return array
