"""The table from standard operators to a device's own: one function an operator.

Example:
    converters = Converters[MyGraph, MyTensor](types=FLOAT32_ONLY)

    @converters.converts(LeakyRelu)
    def leaky_relu(g: MyGraph, op: LeakyRelu) -> MyTensor:
        return g.add("LeakyRelu", g[op.input], alpha=op.alpha)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from crosschip.hal.support import YES, Support
from crosschip.ir import ElementType, Operation
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse

Graph = TypeVar("Graph")
Value = TypeVar("Value")
Op = TypeVar("Op", bound=Operator)

Limit = Callable[[Any], str | None]
"""What a device cannot do about one operator: given an operation, `slot: rule`, or `None`."""


@dataclass(frozen=True, slots=True)
class Converter(Generic[Graph, Value]):
    """How a device does one operator.

    Attributes:
        convert: adds an operation to the device's graph and returns its output, or all of them.
        types: the element types that its tensors may have.
        computed: the parameters whose value need not be known at compile time.
        limit: what else the device cannot do.
        nonempty: whether it needs tensors that have elements.
    """

    convert: Callable[[Graph, Any], Value | Sequence[Value]]
    types: frozenset[ElementType]
    computed: frozenset[str]
    limit: Limit | None
    nonempty: bool


class Converters(Generic[Graph, Value]):
    """A device's converters, by operator.

    Args:
        types: the element types that tensors may have where a converter says nothing else.
        fuses: whether converters look at `fuse_code`; if not, such operations are declined, and
            the runtime splits the activation off.
    """

    def __init__(self, types: Collection[ElementType], *, fuses: bool = False) -> None:
        self._types = frozenset(types)
        self._fuses = fuses
        self._table: dict[type[Operation], Converter[Graph, Value]] = {}

    def converts(
        self,
        *operators: type[Op],
        types: Collection[ElementType] | None = None,
        computed: Collection[str] = (),
        limit: Callable[[Op], str | None] | None = None,
        nonempty: bool = False,
    ) -> Callable[[Callable[[Graph, Op], Any]], Callable[[Graph, Op], Any]]:
        """Decorator: the function converts these operators."""

        def register(convert: Callable[[Graph, Op], Any]) -> Callable[[Graph, Op], Any]:
            entry: Converter[Graph, Value] = Converter(
                convert,
                self._types if types is None else frozenset(types),
                frozenset(computed),
                limit,
                nonempty,
            )
            self._table.update(dict.fromkeys(operators, entry))
            return convert

        return register

    @property
    def operators(self) -> frozenset[str]:
        """The names of the operators that the table has."""
        return frozenset(operator.type for operator in self._table)

    @property
    def functions(self) -> Sequence[Callable[[Graph, Any], Value | Sequence[Value]]]:
        """The function for each of these operators."""
        return [converter.convert for converter in self._table.values()]

    def supports(self, operation: Operation) -> Support:
        """Whether the table covers the operation, and if not, why."""
        converter = self._table.get(type(operation))
        if converter is None or not isinstance(operation, Operator):
            return Support.no(f"{operation.type}: not implemented on this device")
        rule = self._broken_rule(operation, converter)
        return YES if rule is None else Support.no(f"{operation.type}.{rule}")

    def convert(self, graph: Graph, operation: Operation) -> Sequence[Value]:
        """Add a supported operation to the device's graph; one value for each output."""
        result = self._table[type(operation)].convert(graph, operation)
        return cast(Sequence[Value], result if isinstance(result, list | tuple) else [result])

    def _broken_rule(self, operation: Operator, converter: Converter[Graph, Value]) -> str | None:
        for slot, operand in operation.filled():
            if slot.parameter:
                if operand.value is None and slot.name not in converter.computed:
                    return f"{slot.name}: is computed at run time, but must be constant here"
            elif slot.reads_reals(operand) and not operation.moves_integers:
                return f"{slot.name}: is quantized"
            elif converter.nonempty and 0 in (operand.type.shape or ()):
                return f"{slot.name}: has no elements"
            elif operand.type.element_type not in converter.types:
                return f"{slot.name}: {operand.type.element_type} is not supported"
        for output in operation.outputs:
            if output.type.element_type not in converter.types:
                return f"output: {output.type.element_type} is not supported"
        if operation.fused is not Fuse.NONE and not self._fuses:
            return f"fuse_code: {operation.fused.name} is not fused on this device"
        return converter.limit(operation) if converter.limit else None
