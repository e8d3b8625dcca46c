"""Access to the operations that patterns are matched against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence, Set
from typing import TypeGuard

import numpy as np

from crosschip.ir import ElementType, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import Div, Mul, Pow
from crosschip.ops.standard.unary import Square

WIDE = frozenset({ElementType.FLOAT32, ElementType.FLOAT64})
"""The types in which composite operators and their parts differ by no more than rounding."""
_MAX_FACTORS = 8


class Parts:
    """The operations of a model that can be parts of a composite operator.

    Args:
        model: the model.
        types: the element types that are matched.
    """

    def __init__(self, model: Model, types: Set[ElementType] = WIDE) -> None:
        self._producers = model.producers
        self._uses = model.uses
        self._types = types
        self._factors: dict[Operand, Sequence[Operand]] = {}

    def of(self, operand: Operand | None, *kinds: type[Operator]) -> Operator | None:
        """Return the producer of an operand if it is plain and of one of the kinds, else `None`."""
        operation = None if operand is None else self._producers.get(operand)
        if operation is None or not self.is_plain(operation, *kinds):
            return None
        return operation

    def is_plain(self, operation: Operation, *kinds: type[Operator]) -> TypeGuard[Operator]:
        """Return whether an operation of some kind has one real output and no fused activation."""
        if not isinstance(operation, kinds or Operator) or len(operation.outputs) != 1:
            return False
        type_ = operation.outputs[0].type
        is_real = type_.element_type in self._types and type_.quantization is None
        return is_real and operation.fused is Fuse.NONE

    def number(self, operand: Operand | None) -> float | None:
        """Return the value of a constant with one real element, else `None`."""
        if operand is None or operand.content is None or operand.type.quantization is not None:
            return None
        value = operand.value if operand.type.static_shape is not None else None
        if value is None or value.size != 1 or operand.type.element_type not in self._types:
            return None
        return float(value.item())

    def are_closed(self, parts: Sequence[Operation]) -> bool:
        """Return whether the outputs of all parts but the last are read by parts only."""
        read = Counter(operand for part in parts for operand in part.inputs)
        results = (output for part in parts[:-1] for output in part.outputs)
        return all(self._uses.get(output, 0) == read[output] for output in results)

    def product(self, operand: Operand, of: Collection[Operand]) -> Product | None:
        """Return an operand as a number times some of the operands `of`, or `None`."""
        if operand in of:
            return Product(1.0, Counter([operand]), ())
        value = self.number(operand)
        if value is not None:
            return Product(value, Counter(), ())
        operation = self.of(operand, Mul, Div, Pow, Square)
        if operation is None:
            return None
        first, *other_inputs = (o for o in operation.inputs if o is not None)
        base = self.product(first, of)
        if base is None:
            return None
        if isinstance(operation, Mul):
            other = self.product(other_inputs[0], of)
            return None if other is None else base.times(other, operation)
        power = 2.0 if isinstance(operation, Square) else self.number(other_inputs[0])
        if power is None or power == 0:
            return None
        if isinstance(operation, Div):
            return base.times(Product(1 / power, Counter(), ()), operation)
        return base.to(int(power), operation) if power in (2, 3) else None

    def factors(self, operand: Operand) -> Sequence[Operand]:
        """Return an operand and the operands that it is a product of, up to a limit."""
        cached = self._factors.get(operand)
        if cached is not None:
            return cached
        operands = [operand]
        for each in operands:
            operation = self.of(each, Mul, Div, Pow, Square)
            if operation is not None and len(operands) < _MAX_FACTORS:
                operands += [o for o in operation.inputs if o is not None and not o.is_constant]
        return self._factors.setdefault(operand, list(dict.fromkeys(operands)))


@dataclass(frozen=True)
class Product:
    """A product of a number and operands.

    Attributes:
        number: the number.
        factors: the operands, with their powers.
        parts: the operations that compute the product, in order.
    """

    number: float
    factors: Counter[Operand]
    parts: Sequence[Operation]

    def times(self, other: Product, by: Operation) -> Product:
        """Return the product with another one, computed by an operation."""
        parts = tuple(dict.fromkeys((*self.parts, *other.parts, by)))
        return Product(self.number * other.number, self.factors + other.factors, parts)

    def to(self, power: int, by: Operation) -> Product:
        """Return a power of the product, computed by an operation."""
        factors = Counter({operand: count * power for operand, count in self.factors.items()})
        return Product(self.number**power, factors, (*self.parts, by))

    def equals(self, number: float, *factors: Operand) -> bool:
        """Return whether the product is this number times these operands."""
        return self.factors == Counter(factors) and same_number(self.number, number)


def same_number(one: float, other: float) -> bool:
    """Return whether two numbers are equal up to float32 rounding of a few steps."""
    return bool(np.isclose(one, other, rtol=1e-6, atol=0))
