"""Import and export of operations: between other systems' operators and the standard ones.

A row maps the operands of another system's operator to the slots of a standard operator, with one
rule for each operand. Rules convert in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crosschip.ir import Builder, ElementType, ModelError, Operand, Operation, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.rule import Export, Import, Rule, refusal
from crosschip.mapping.rules import PassThrough, Variadic
from crosschip.ops.definition.slots import Parameter, Slot

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator


class Expressed(NamedTuple):
    """A standard operation, expressed by another system's operator.

    Attributes:
        inputs: the input operands of the other operator; `None` for an omitted operand.
        outputs: the outputs of the other operator.
        before: the standard operations that compute `inputs` from the operation's inputs.
        after: the standard operations that compute the operation's outputs from `outputs`.
    """

    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    before: tuple[Operation, ...]
    after: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """The mapping between an operator of another system and a standard operator.

    Attributes:
        operator: the standard operator.
        operands: the rules for the other operator's input operands, in order.
        other_rules: the rules for slots without an operand.
    """

    operator: type[Operator]
    operands: tuple[Rule, ...]
    other_rules: tuple[Rule, ...] = ()

    @property
    def text(self) -> str:
        """The conversions in words, for documentation; empty if operands are passed unchanged."""
        texts = [rule.text for rule in (*self.operands, *self.other_rules) if rule.text]
        return "; ".join(dict.fromkeys(texts))

    def fits(self, values: Sequence[Operand | None], declared: Sequence[TensorType]) -> bool:
        """Return whether an operation can be imported with this row.

        Args:
            values: the operands, as for `import_operation`.
            declared: the declared types of the outputs.

        Raises:
            ModelError: there are too many operands, or too few.
        """
        ctx = Import(Builder(), self.operator, declared)
        return all(
            rule.fits(operands[0] if operands else None, values, ctx)
            for rule, operands in _assign_operands(self.operands, values)
        ) and all(rule.fits(None, values, ctx) for rule in self.other_rules)


def row_of(
    operator: type[Operator],
    operands: Sequence[str | Rule],
    other_rules: Sequence[Rule],
    codes: Mapping[type, Mapping[int, int]],
) -> Row:
    """Build a row.

    Args:
        operator: the standard operator.
        operands: a slot's name or a rule for each operand; empty for all slots in order.
        other_rules: the rules for slots without an operand.
        codes: the codes of enumerations and element types in the other system.
    """
    rules = [
        entry if isinstance(entry, Rule) else _rule_for(getattr(operator, entry), codes)
        for entry in operands or [slot.name for slot in operator.slots]
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
    """Import an operation of another system.

    Args:
        row: the mapping of its operator.
        builder: the builder that standard operations are appended to.
        values: the operands, in order; `None` for an omitted operand. Trailing ones may be missing.
        declared: the declared types of the outputs; shapes may be missing.
        name: the name of the operation.
        channels_last: whether its images are stored with their channels last.

    Returns:
        The outputs of the operation.

    Raises:
        ModelError: there are too many operands, or a rule refuses one.
    """
    ctx = Import(builder, row.operator, declared, channels_last)
    try:
        for rule, operands in _assign_operands(row.operands, values):
            if isinstance(rule, Variadic):
                ctx.slots[rule.slot] = operands
            else:
                rule.import_operand(operands[0], ctx)
        for rule in row.other_rules:
            rule.import_operand(None, ctx)
        declared = ctx.declared
    except ModelError as error:
        raise ModelError(f"{name!r}: {row.operator.type}.{error}") from None
    quantized = any(isinstance(o, Operand) and o.type.quantization for o in _flatten(ctx.slots))
    quantization = tuple(type_.quantization for type_ in declared)
    while quantization and quantization[-1] is None:
        quantization = quantization[:-1]
    arguments: dict[str, Any] = {"quantization": quantization if quantized else None, **ctx.slots}
    outputs = builder.add_all(row.operator, name=name, **arguments)
    for finish in ctx.postprocessing:
        outputs = finish(outputs)
    return outputs


def export_operation(row: Row, operation: Operator, channels_last: bool = True) -> Expressed:
    """Express an operation by another system's operator.

    Args:
        row: the mapping of the other operator.
        operation: the standard operation.
        channels_last: whether to store images with their channels last.

    Raises:
        UnsupportedError: the operation cannot be expressed; the message names the slot.
    """
    before, after = (Builder(prefix=f"{operation.name}.{side}.") for side in ("in", "out"))
    ctx = Export(operation, before, after, list(operation.outputs), channels_last)
    handled = {rule.slot for rule in (*row.operands, *row.other_rules)}
    for slot, _ in operation.filled():
        if slot.name not in handled:
            raise refusal(ctx, slot.name, "has no operand in the target")
    values: list[Operand | None] = []
    for rule in row.operands:
        if isinstance(rule, Variadic):
            values.extend(getattr(operation, rule.slot))
        else:
            values.append(rule.export_operand(ctx))
    for rule in row.other_rules:
        rule.export_operand(ctx)
    return Expressed(
        tuple(values),
        tuple(ctx.outputs),
        tuple(before.operations),
        tuple(reversed(after.operations)),
    )


def _rule_for(slot: Slot, codes: Mapping[type, Mapping[int, int]]) -> Rule:
    if slot.variadic:
        return Variadic(slot.name)
    if not isinstance(slot, Parameter):
        return PassThrough(slot.name)
    options = ElementType if slot.kind == "element type" else slot.options
    numbers = codes.get(options) if options is not None else None
    if numbers is None or slot.options is None:
        return PassThrough(slot.name, numbers)
    same = all(theirs == ours for theirs, ours in numbers.items())
    if same and len(numbers) == len(slot.options):
        return PassThrough(slot.name, numbers)
    choices = ", ".join(f"{n} {slot.options(ours).name}" for n, ours in sorted(numbers.items()))
    return PassThrough(slot.name, numbers, f"`{slot.name}` is one of {choices}")


def _assign_operands(
    rules: Sequence[Rule], values: Sequence[Operand | None]
) -> Sequence[tuple[Rule, Sequence[Operand | None]]]:
    """Pair each rule with one operand, and the `Variadic` rule with all that the others leave."""
    spare = len(values) - len(rules)
    variadic = any(isinstance(rule, Variadic) for rule in rules)
    if spare > 0 and not variadic:
        raise ModelError(f"operands: there are {len(values)} for {len(rules)} places")
    if variadic and spare < 0:
        raise ModelError(f"operands: there are {len(values)} for {len(rules)} places or more")
    remaining = [*values, *(None,) * -min(spare, 0)]
    pairs = []
    for rule in rules:
        count = 1 + spare if isinstance(rule, Variadic) else 1
        pairs.append((rule, remaining[:count]))
        remaining = remaining[count:]
    return pairs


def _flatten(slots: Mapping[str, object]) -> Sequence[object]:
    flat: list[object] = []
    for value in slots.values():
        flat.extend(value if isinstance(value, list) else [value])
    return flat
