"""Transposing as little as possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir import Model, ModelError, Operand, Operation, TensorType, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.definition.kinds import aligned_row_axis
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.passes.base import Pass
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewriter import Rewriter

Order = tuple[int, ...]


@dataclass(frozen=True)
class CancelTransposes(Pass):
    """Merges transpositions, and moves operations to where fewer elements are transposed.

    1. Two that undo each other vanish: readers read what the first one read.
    2. Two that do not become one; the first stays only if somebody else reads it.
    3. Operations that compute element by element, `CONCAT`, `QUANTIZE` and `DEQUANTIZE` can be
       done in any order of the axes. Those that are connected are moved together to an order in
       which what they read is made, or their readers want it, if that leaves fewer elements to be
       transposed in all.

    One that requantizes is left alone, and so is what reads it; what has a scale for each channel
    is not moved. Functions such as `EXP` may have another last digit where they are moved: engines
    compute several elements at once, and others one by one, by where these are in memory.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        if not any(isinstance(operation, Transpose) for operation in model.operations):
            return model
        sweep = RemoveUnused().rewrite
        model = sweep(_swept(model, {}))
        while orders := _orders(model):
            moved = sweep(_swept(model, orders))
            if _transposed(moved) >= _transposed(model):  # sizes are only estimates where open
                break
            model = moved
        return model

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for operation in after.operations:
            if _merged(operation, after.producers.get) is not None:
                raise ModelError(f"{operation.type} {operation.name!r} still reads a TRANSPOSE")
        was, is_ = (_transposed(RemoveUnused().rewrite(model)) for model in (before, after))
        if is_ > was:
            raise ModelError(f"{is_} elements are transposed, but {was} were")


def _swept(model: Model, orders: Mapping[Operation, Order]) -> Model:
    """The model with transpositions merged, and operations moved to other orders of their axes."""
    mover = _Mover(model, orders)
    rewriter = mover.rewriter
    for original in model.operations:
        if original in orders:
            mover.move(original)
            continue
        operation = rewriter.resolved(original)
        merged = _merged(operation, rewriter.producer)
        if merged is None:
            rewriter.keep(operation)
            continue
        source, perm = merged
        if perm == tuple(range(len(perm))):
            rewriter.replace(operation.outputs[0], source)
        else:
            inputs = Transpose.bind(operation.name, (source, perm), {})
            rewriter.emit(operation.with_inputs(inputs))
    return rewriter.finish()


class _Mover:
    """Rewrites operations so that what they make is transposed to what they made.

    Args:
        model: the model.
        orders: the permutation that does that, for each operation that is moved.
    """

    def __init__(self, model: Model, orders: Mapping[Operation, Order]) -> None:
        self.rewriter = Rewriter(model)
        self._orders = orders
        self._moved: dict[tuple[Operand, Order], Operand] = {}
        self._needed = set(model.outputs.values())
        for operation in model.operations:
            own = orders.get(operation)
            for operand in operation.inputs:
                maker = None if operand is None else model.producers.get(operand)
                if operand is not None and maker is not None and orders.get(maker) != own:
                    self._needed.add(operand)

    def move(self, operation: Operation) -> None:
        """Add an operation in its other order, and what its readers elsewhere need."""
        assert isinstance(operation, Operator), "nothing else is moved"
        order, (output,) = self._orders[operation], operation.outputs
        declared = Operand(f"{output.name}.moved", _permuted(output.type, _inverse(order)))
        inputs = self._inputs(operation, order)
        moved = operation.with_inputs(type(operation).bind(operation.name, (), inputs), (declared,))
        result = Operand(declared.name, moved.infer()[0])
        self.rewriter.keep(moved.with_outputs((result,)))
        self._moved[output, order] = result
        if output in self._needed:
            name = f"{output.name}.back"
            self.rewriter.emit(
                Transpose(name, Transpose.bind(name, (result, order), {}), (output,))
            )

    def _inputs(self, operation: Operator, order: Order) -> dict[str, object]:
        inputs: dict[str, object] = {}
        for slot in operation.slots:
            if slot.variadic:
                parts: Sequence[Operand] = getattr(operation, slot.name)
                inputs[slot.name] = [self._placed(part, order) for part in parts]
            else:
                operand = operation.operand(slot.name)
                if operand is not None and not slot.parameter:
                    operand = self._placed(operand, order)
                inputs[slot.name] = operand
        if isinstance(operation, Concat):
            inputs["axis"] = order[operation.axis]
        return inputs

    def _placed(self, operand: Operand, order: Order) -> Operand:
        """What an operation reads instead of an operand when it is moved."""
        if _alike_everywhere(operand):
            return self.rewriter.resolve(operand)
        transposed = self._moved.get((operand, order))
        if transposed is None:
            transposed = self._transposed(operand, order)
            self._moved[operand, order] = transposed
        return transposed

    def _transposed(self, operand: Operand, order: Order) -> Operand:
        back = _inverse(order)
        if operand.value is not None:
            ones = (1,) * (len(order) - operand.value.ndim)
            array = operand.value.reshape(ones + operand.value.shape).transpose(back)
            return constant(np.ascontiguousarray(array), operand.name, operand.type.quantization)
        source = self.rewriter.resolve(operand)
        before = self.rewriter.producer(source)
        inner = None if before is None else _order_of(before)
        if isinstance(before, Transpose) and inner is not None:
            source, back = before.input, tuple(inner[axis] for axis in back)
            if back == tuple(range(len(back))):
                return source
        name = f"{operand.name}.to_{'_'.join(map(str, back))}"
        inputs = Transpose.bind(name, (source, back), {})
        result = Operand(name, Transpose(name, inputs).infer()[0])
        self.rewriter.keep(Transpose(name, inputs, (result,)))
        return result


def _orders(model: Model) -> Mapping[Operation, Order]:
    """Operations to be moved, with the permutations that make of what they make what they made.

    A region is the operations that can be moved and hand operands on to each other.
    """
    regions: dict[Operation, list[Operation]] = {}
    for operation in model.operations:
        if not _is_movable(operation):
            continue
        joined = [operation]
        makers = (model.producers.get(o) for o in operation.inputs if o is not None)
        for other in {id(r): r for m in makers if m is not None and (r := regions.get(m))}.values():
            joined, other = (joined, other) if len(joined) > len(other) else (other, joined)
            joined.extend(other)
            regions.update(dict.fromkeys(other, joined))
        regions[operation] = joined
    readers: dict[Operand, list[Operation]] = {}
    for operation in model.operations:
        for operand in {o for o in operation.inputs if o is not None}:
            readers.setdefault(operand, []).append(operation)
    orders: dict[Operation, Order] = {}
    merging: set[Operation] = set()  # a transposition between two regions vanishes once
    for operations in {id(region): region for region in regions.values()}.values():
        region = _Region(model, operations, readers)
        order = region.order()
        if order is not None and merging.isdisjoint(region.transposes):
            merging |= region.transposes
            orders.update(dict.fromkeys(operations, order))
    return orders


class _Region:
    """Operations that are moved together.

    Attributes:
        read: what they read that others make, with the others; without what is the same in any
            order.
        readers: for each operand that they make, those that read it, but for themselves.
        transposes: the transpositions in front of them and behind them.
    """

    def __init__(
        self,
        model: Model,
        operations: Iterable[Operation],
        readers: Mapping[Operand, Sequence[Operation]],
    ) -> None:
        own = dict.fromkeys(operations)
        self._outputs = set(model.outputs.values())
        self.read = {
            operand: (model.producers.get(operand), own.keys() >= set(readers[operand]))
            for operation in own
            for operand in _tensors(operation)
            if operand.value is None
            and not _alike_everywhere(operand)
            and model.producers.get(operand) not in own
        }
        self.readers = {
            output: [reader for reader in readers.get(output, ()) if reader not in own]
            for operation in own
            for output in operation.outputs
        }
        makers = {maker for maker, _ in self.read.values() if maker is not None}
        others = {reader for each in self.readers.values() for reader in each}
        self.transposes = {part for part in makers | others if _order_of(part) is not None}
        self._turned = self.transposes & makers & others

    def order(self) -> Order | None:
        """The order to move to; `None` if they are best where they are."""
        votes: dict[Order, int] = {}
        for operand, (maker, _) in self.read.items():
            inner = None if maker is None else _order_of(maker)
            if inner is not None:
                votes[inner] = votes.get(inner, 0) + _size(operand)
        for operand, others in self.readers.items():
            for outer in filter(None, map(_order_of, others)):
                votes[_inverse(outer)] = votes.get(_inverse(outer), 0) + _size(operand)
        best = max(votes, key=lambda order: votes[order], default=None)
        if best is None or self._turned:
            return None  # what reads its own result in another order does so in any
        return best if self._saved(best) > 0 else None

    def _saved(self, order: Order) -> int:
        """The number of elements that are transposed no more when they are moved."""
        saved = 0
        for operand, (maker, alone) in self.read.items():
            inner = None if maker is None else _order_of(maker)
            vanishes = inner is not None and alone and operand not in self._outputs
            saved += _size(operand) * (vanishes - (inner != order))
        for operand, others in self.readers.items():
            outer = [_order_of(reader) for reader in others]
            saved += _size(operand) * outer.count(_inverse(order))
            saved -= _size(operand) * (operand in self._outputs or None in outer)
        return saved


def _is_movable(operation: Operation) -> bool:
    """Tell whether an operation does the same in any order of the axes."""
    if not isinstance(operation, Operator) or len(operation.outputs) != 1:
        return False
    by_element = type(operation).row_axis is aligned_row_axis
    if not by_element and not isinstance(operation, Concat | Quantize | Dequantize):
        return False
    if isinstance(operation, Concat) and operation.operand("axis").value is None:  # type: ignore[union-attr]
        return False
    shape, value = operation.outputs[0].type.shape, operation.outputs[0].type.shape_value
    if shape is None or len(shape) < 2 or value is not None:
        return False
    return all(
        (operand.type.quantization is None or operand.type.quantization.axis is None)
        and (
            _alike_everywhere(operand)
            or operand.value is not None
            or len(operand.type.shape or ()) == len(shape)
        )
        for operand in (*_tensors(operation), *operation.outputs)
    ) and not (isinstance(operation, Quantize) and _scales(operation) != 1)


def _scales(operation: Quantize) -> int:
    scale = operation.operand("scale")
    return 0 if scale is None or scale.value is None else scale.value.size


def _tensors(operation: Operation) -> Sequence[Operand]:
    assert isinstance(operation, Operator)
    return [operand for slot, operand in operation.filled() if not slot.parameter]


def _alike_everywhere(operand: Operand) -> bool:
    """Tell whether an operand is one number, which has no order."""
    if operand.value is not None:
        return operand.value.size == 1
    return operand.type.shape == ()


def _size(operand: Operand) -> int:
    """The number of elements, as far as it is known."""
    return math.prod(size for size in operand.type.shape or () if isinstance(size, int))


def _permuted(type_: TensorType, order: Order) -> TensorType:
    return replace(type_, shape=tuple((type_.shape or ())[axis] for axis in order))


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _transposed(model: Model) -> int:
    """The number of elements that are transposed in a model, all of which is used."""
    return sum(_size(o.outputs[0]) for o in model.operations if _order_of(o) is not None)


def _order_of(operation: Operation) -> Order | None:
    """The permutation of a transposition that can be merged with others."""
    if not isinstance(operation, Transpose):
        return None
    if operation.quantized_inputs() and not operation.moves_integers:
        return None
    try:
        perm = operation.perm
    except ComputedParameter:
        return None
    return tuple(axis % len(perm) for axis in perm)


def _merged(
    second: Operation, producer: Callable[[Operand], Operation | None]
) -> tuple[Operand, Order] | None:
    """The input of a transposition and the one before it, and their joint permutation."""
    outer = _order_of(second)
    if outer is None or not isinstance(second, Transpose):
        return None
    first = producer(second.input)
    inner = None if first is None else _order_of(first)
    if inner is None or not isinstance(first, Transpose):
        return None
    return first.input, tuple(inner[axis] for axis in outer)
