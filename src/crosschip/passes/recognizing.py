"""Finding the parts of an operator in a model, and putting the operator in their place."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from crosschip.ir import ElementType, Model, ModelError, Operand, Operation
from crosschip.ir.budget import spend
from crosschip.ir.dimension import is_unknown
from crosschip.ops.definition.operator import Operator, UnknownRank
from crosschip.ops.definition.slots import ComputedParameter, Fuse
from crosschip.ops.standard.arithmetic import Div, Mul, Pow
from crosschip.ops.standard.unary import Square
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter

WIDE = (ElementType.FLOAT32, ElementType.FLOAT64)
"""The types in which parts and whole differ by no more than rounding."""
_MOST_FACTORS = 8


@dataclass(frozen=True)
class Found:
    """An operator that was found in its parts.

    Attributes:
        parts: the operations that compute it; the last one makes its output.
        operator: the operator.
        arguments: what fills its slots.
        before: new operations, which make some of that.
    """

    parts: Sequence[Operation]
    operator: type[Operator]
    arguments: Sequence[object]
    before: Sequence[Operation] = ()


@dataclass(frozen=True)
class Recognize(Pass):
    """Base of passes that put an operator in the place of its parts.

    Nothing but the parts reads what they make, except for the last of them, and the operator makes
    a tensor of the same type as that.
    """

    exact = False

    @abstractmethod
    def find(self, parts: Parts, last: Operator) -> Found | None:
        """The operator whose last part an operation is; `None` if it is that of none."""

    def rewrite(self, model: Model) -> Model:
        parts = Parts(model)
        found: dict[Operation, Found] = {}
        dropped: set[Operation] = set()
        for operation in reversed(model.operations):
            spend()
            if operation in dropped or not is_plain(operation):
                continue
            one = self._found(parts, operation)
            if one is None or not dropped.isdisjoint(one.parts) or not parts.are_closed(one.parts):
                continue
            if _is_alike(one):
                found[operation] = one
                dropped.update(one.parts)
        return _rewritten(model, found, dropped) if found else model

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        if len(after.operations) > len(before.operations):
            raise ModelError(f"{after.name!r} has got more operations")

    def _found(self, parts: Parts, last: Operation) -> Found | None:
        assert isinstance(last, Operator), "it is plain"
        try:
            return self.find(parts, last)
        except (ComputedParameter, UnknownRank):
            return None


class Parts:
    """The operations of a model, as what may be parts of others."""

    def __init__(self, model: Model) -> None:
        self._producers = model.producers
        self._uses = model.uses

    def of(self, operand: Operand | None, *kinds: type[Operator]) -> Operator | None:
        """The operation, of one of some kinds, that makes an operand."""
        operation = None if operand is None else self._producers.get(operand)
        if operation is None or not isinstance(operation, kinds) or not is_plain(operation):
            return None
        return operation

    def are_closed(self, parts: Sequence[Operation]) -> bool:
        """Tell whether only parts read what parts make, the last of them left out."""
        read = Counter(operand for part in parts for operand in part.inputs)
        made = (output for part in parts[:-1] for output in part.outputs)
        return all(self._uses.get(output, 0) == read[output] for output in made)

    def product(self, operand: Operand, of: Collection[Operand]) -> Product | None:
        """An operand as a number times some of given operands; `None` if it is something else."""
        if operand in of:
            return Product(1.0, Counter([operand]), ())
        known = number(operand)
        if known is not None:
            return Product(known, Counter(), ())
        operation = self.of(operand, Mul, Div, Pow, Square)
        if operation is None:
            return None
        first, *others = (o for o in operation.inputs if o is not None)
        base = self.product(first, of)
        if base is None:
            return None
        if isinstance(operation, Mul):
            other = self.product(others[0], of)
            return None if other is None else base.times(other, operation)
        power = 2.0 if isinstance(operation, Square) else number(others[0])
        if power is None or power == 0:
            return None
        if isinstance(operation, Div):
            return base.times(Product(1 / power, Counter(), ()), operation)
        return base.to(int(power), operation) if power in (2, 3) else None

    def below(self, operand: Operand) -> list[Operand]:
        """The operand, and those that it is a product of, as far as that goes."""
        found = [operand]
        for each in found:
            operation = self.of(each, Mul, Div, Pow, Square)
            if operation is not None and len(found) < _MOST_FACTORS:
                found += [o for o in operation.inputs if o is not None and not o.is_constant]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Product:
    """A number times operands.

    Attributes:
        number: the number.
        factors: the operands, each with how often it occurs.
        parts: the operations that compute it, in order.
    """

    number: float
    factors: Counter[Operand]
    parts: Sequence[Operation]

    def times(self, other: Product, by: Operation) -> Product:
        """The product of two, which an operation computes."""
        parts = tuple(dict.fromkeys((*self.parts, *other.parts, by)))
        return Product(self.number * other.number, self.factors + other.factors, parts)

    def to(self, power: int, by: Operation) -> Product:
        """A power, which an operation computes."""
        factors = Counter({operand: count * power for operand, count in self.factors.items()})
        return Product(self.number**power, factors, (*self.parts, by))

    def is_(self, number: float, *factors: Operand) -> bool:
        """Tell whether it is this number times these operands."""
        return self.factors == Counter(factors) and same_number(self.number, number)


def is_plain(operation: Operation, *kinds: type[Operator]) -> bool:
    """Tell whether an operation is of some kinds, and makes reals of at least 32 bits, no more."""
    if not isinstance(operation, kinds or Operator) or len(operation.outputs) != 1:
        return False
    type_ = operation.outputs[0].type
    fused = isinstance(operation, Operator) and operation.fused is not Fuse.NONE
    return type_.element_type in WIDE and type_.quantization is None and not fused


def number(operand: Operand | None) -> float | None:
    """The number that a constant of reals is; `None` if it is not one number."""
    if operand is None or operand.content is None or operand.type.quantization is not None:
        return None
    value = operand.value if operand.type.static_shape is not None else None
    if value is None or value.size != 1 or operand.type.element_type not in WIDE:
        return None
    return float(value.item())


def same_number(one: float, other: float) -> bool:
    """Tell whether two numbers differ by no more than float32 rounds off in some steps."""
    return bool(np.isclose(one, other, rtol=1e-6, atol=0))


def one_of_two(operation: Operation, kind: float) -> Operand | None:
    """The other operand of an operation on two of which one is a certain number."""
    first, second = operation.inputs[:2]
    for known, other in ((first, second), (second, first)):
        found = number(known)
        if found is not None and same_number(found, kind):
            return other
    return None


def _rewritten(model: Model, found: Mapping[Operation, Found], dropped: Set[Operation]) -> Model:
    """The model with operators in place of their parts."""
    rewriter = Rewriter(model)
    for operation in model.operations:
        if operation in found:
            for new in found[operation].before:
                rewriter.keep(rewriter.resolved(new))
            rewriter.emit(rewriter.resolved(_whole(found[operation])))
        elif operation not in dropped:
            rewriter.keep(rewriter.resolved(operation))
    return rewriter.finish()


def _whole(found: Found) -> Operation:
    """The operator in place of its parts."""
    last = found.parts[-1]
    inputs = found.operator.bind(last.name, found.arguments, {})
    return found.operator(last.name, inputs, last.outputs).standing_for(*found.parts)


def _is_alike(found: Found) -> bool:
    """Tell whether the operator makes a tensor of the type that its parts make.

    A size about which nothing is known may become known.
    """
    before = found.parts[-1].outputs[0].type
    try:
        (after,) = _whole(found).infer()
    except ModelError:
        return False
    if before.shape is None or after.shape is None or not after.fits(before):
        return before == after
    pairs = zip(before.shape, after.shape, strict=True)
    return all(old == new or is_unknown(old) for old, new in pairs)
