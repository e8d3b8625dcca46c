"""Removal and merging of transpositions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir import Model, ModelError, Operand, Operation, constant
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
    """Merges transpositions, and moves operations across them to transpose fewer elements.

    1. Two transpositions that cancel out are removed: their readers read the input of the first.
    2. Two others in a row become one; the first stays only if it has other readers.
    3. Elementwise operations, `CONCAT`, `QUANTIZE` and `DEQUANTIZE` compute the same in any axis
       order. A connected region of them moves to the axis order of its producers or readers, if
       fewer elements are transposed in all.

    Transpositions that requantize are left alone, with the operations that read them. Operations
    with a scale per channel do not move. Functions such as `EXP` may differ in the last digit after
    a move: engines vectorize by the position of elements in memory.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        if not any(isinstance(operation, Transpose) for operation in model.operations):
            return model
        sweep = RemoveUnused().rewrite
        model = sweep(_rewrite(model, {}))
        while orders := _find_orders(model):
            moved = sweep(_rewrite(model, orders))
            if _transposed_size(moved) >= _transposed_size(
                model
            ):  # votes ignore dynamic dimensions
                break
            model = moved
        return model

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for operation in after.operations:
            if _merge(operation, after.producers.get) is not None:
                raise ModelError(f"{operation.type} {operation.name!r} still reads a TRANSPOSE")
        was, is_ = (_transposed_size(RemoveUnused().rewrite(model)) for model in (before, after))
        if is_ > was:
            raise ModelError(f"{is_} elements are transposed, but {was} were")


def _rewrite(model: Model, orders: Mapping[Operation, Order]) -> Model:
    """Merge transpositions, and move operations to new axis orders."""
    mover = _Mover(model, orders)
    rewriter = mover.rewriter
    for original in model.operations:
        if original in orders:
            mover.move(original)
            continue
        operation = rewriter.resolved(original)
        merged = _merge(operation, rewriter.producer)
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
    """Rewrites operations to another axis order of their output.

    Args:
        model: the model.
        orders: for each moved operation, the permutation from its new output to its old output.
    """

    def __init__(self, model: Model, orders: Mapping[Operation, Order]) -> None:
        self.rewriter = Rewriter(model)
        self._orders = orders
        self._moved: dict[tuple[Operand, Order], Operand] = {}
        self._needed = set(model.outputs.values())
        self._names = {operation.name for operation in model.operations}
        for operation in model.operations:
            order = orders.get(operation)
            for operand in operation.inputs:
                producer = None if operand is None else model.producers.get(operand)
                if operand is not None and producer is not None and orders.get(producer) != order:
                    self._needed.add(operand)

    def move(self, operation: Operation) -> None:
        """Emit an operation in its new axis order; transpose its output back for other readers."""
        assert isinstance(operation, Operator), "_is_movable requires it"
        order, (output,) = self._orders[operation], operation.outputs
        moved_shape = tuple((output.type.shape or ())[axis] for axis in _inverse(order))
        declared = Operand(f"{output.name}.moved", replace(output.type, shape=moved_shape))
        inputs = self._inputs(operation, order)
        moved = operation.with_inputs(type(operation).bind(operation.name, (), inputs), (declared,))
        result = Operand(declared.name, moved.infer()[0])
        self.rewriter.keep(moved.with_outputs((result,)))
        self._moved[output, order] = result
        if output in self._needed:
            name = self._unused_name(f"{output.name}.back")
            self.rewriter.emit(
                Transpose(name, Transpose.bind(name, (result, order), {}), (output,))
            )

    def _inputs(self, operation: Operator, order: Order) -> dict[str, object]:
        inputs: dict[str, object] = {}
        for slot in operation.slots:
            if slot.variadic:
                parts: Sequence[Operand] = getattr(operation, slot.name)
                inputs[slot.name] = [self._reordered(part, order) for part in parts]
            else:
                operand = operation.operand(slot.name)
                if operand is not None and not slot.parameter:
                    operand = self._reordered(operand, order)
                inputs[slot.name] = operand
        if isinstance(operation, Concat):
            inputs["axis"] = order[operation.axis]
        return inputs

    def _reordered(self, operand: Operand, order: Order) -> Operand:
        """Return the operand that a moved operation reads instead of `operand`."""
        if _is_single_number(operand):
            return self.rewriter.resolve(operand)
        transposed = self._moved.get((operand, order))
        if transposed is None:
            transposed = self._transposed(operand, order)
            self._moved[operand, order] = transposed
        return transposed

    def _transposed(self, operand: Operand, order: Order) -> Operand:
        perm = _inverse(order)
        if operand.value is not None:
            ones = (1,) * (len(order) - operand.value.ndim)
            array = operand.value.reshape(ones + operand.value.shape).transpose(perm)
            return constant(np.ascontiguousarray(array), operand.name, operand.type.quantization)
        source = self.rewriter.resolve(operand)
        before = self.rewriter.producer(source)
        inner = None if before is None else _order_of(before)
        if isinstance(before, Transpose) and inner is not None:
            source, perm = before.input, tuple(inner[axis] for axis in perm)
            if perm == tuple(range(len(perm))):
                return source
        name = self._unused_name(f"{operand.name}.to_{'_'.join(map(str, perm))}")
        inputs = Transpose.bind(name, (source, perm), {})
        result = Operand(name, Transpose(name, inputs).infer()[0])
        self.rewriter.keep(Transpose(name, inputs, (result,)))
        return result

    def _unused_name(self, stem: str) -> str:
        """Return a name that no operation has; an earlier run of the pass may have used it."""
        name, number = stem, 1
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name


def _find_orders(model: Model) -> Mapping[Operation, Order]:
    """Return the operations to move, with the permutations from their new to their old outputs.

    A region is a maximal set of movable operations connected by operands.
    """
    regions: dict[Operation, list[Operation]] = {}
    for operation in model.operations:
        if not _is_movable(operation):
            continue
        region = [operation]
        makers = (model.producers.get(o) for o in operation.inputs if o is not None)
        for other in {id(r): r for m in makers if m is not None and (r := regions.get(m))}.values():
            region, other = (region, other) if len(region) > len(other) else (other, region)
            region.extend(other)
            regions.update(dict.fromkeys(other, region))
        regions[operation] = region
    readers: dict[Operand, list[Operation]] = {}
    for operation in model.operations:
        for operand in {o for o in operation.inputs if o is not None}:
            readers.setdefault(operand, []).append(operation)
    orders: dict[Operation, Order] = {}
    merging: set[Operation] = set()  # a transposition can merge with one region only
    for operations in {id(each): each for each in regions.values()}.values():
        candidate = _Region(model, operations, readers)
        order = candidate.order()
        if order is not None and merging.isdisjoint(candidate.transposes):
            merging |= candidate.transposes
            orders.update(dict.fromkeys(operations, order))
    return orders


class _Region:
    """Operations that move together.

    Attributes:
        read: the operands that they read from outside, except single numbers: each with its
            producer, and whether the region has all of its readers.
        readers: for each of their outputs, the readers outside the region.
        transposes: the transpositions among these producers and readers.
    """

    def __init__(
        self,
        model: Model,
        operations: Iterable[Operation],
        readers: Mapping[Operand, Sequence[Operation]],
    ) -> None:
        region = dict.fromkeys(operations)
        self._outputs = set(model.outputs.values())
        self.read = {
            operand: (model.producers.get(operand), region.keys() >= set(readers[operand]))
            for operation in region
            for operand in _tensors(operation)
            if operand.value is None
            and not _is_single_number(operand)
            and model.producers.get(operand) not in region
        }
        self.readers = {
            output: [reader for reader in readers.get(output, ()) if reader not in region]
            for operation in region
            for output in operation.outputs
        }
        producers = {producer for producer, _ in self.read.values() if producer is not None}
        readers_outside = {reader for each in self.readers.values() for reader in each}
        self.transposes = {
            part for part in producers | readers_outside if _order_of(part) is not None
        }
        self._inner_transposes = self.transposes & producers & readers_outside

    def order(self) -> Order | None:
        """Return the axis order to move to; `None` if a move saves nothing."""
        votes: dict[Order, int] = {}
        for operand, (producer, _) in self.read.items():
            inner = None if producer is None else _order_of(producer)
            if inner is not None:
                votes[inner] = votes.get(inner, 0) + _size(operand)
        for operand, others in self.readers.items():
            for outer in filter(None, map(_order_of, others)):
                votes[_inverse(outer)] = votes.get(_inverse(outer), 0) + _size(operand)
        best = max(votes, key=lambda order: votes[order], default=None)
        if best is None or self._inner_transposes:
            return None  # a transposition inside the region stays in any axis order
        return best if self._saved_elements(best) > 0 else None

    def _saved_elements(self, order: Order) -> int:
        """Return how many fewer elements are transposed after a move to an axis order."""
        saved = 0
        for operand, (producer, alone) in self.read.items():
            inner = None if producer is None else _order_of(producer)
            vanishes = inner is not None and alone and operand not in self._outputs
            saved += _size(operand) * (vanishes - (inner != order))
        for operand, others in self.readers.items():
            outer = [_order_of(reader) for reader in others]
            saved += _size(operand) * outer.count(_inverse(order))
            saved -= _size(operand) * (operand in self._outputs or None in outer)
        return saved


def _is_movable(operation: Operation) -> bool:
    """Return whether an operation computes the same in any axis order."""
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
            _is_single_number(operand)
            or operand.value is not None
            or len(operand.type.shape or ()) == len(shape)
        )
        for operand in (*_tensors(operation), *operation.outputs)
    ) and not (isinstance(operation, Quantize) and _scale_count(operation) != 1)


def _scale_count(operation: Quantize) -> int:
    scale = operation.operand("scale")
    return 0 if scale is None or scale.value is None else scale.value.size


def _tensors(operation: Operation) -> Sequence[Operand]:
    assert isinstance(operation, Operator)
    return [operand for slot, operand in operation.filled() if not slot.parameter]


def _is_single_number(operand: Operand) -> bool:
    """Return whether an operand is one number, so that its axis order does not matter."""
    if operand.value is not None:
        return operand.value.size == 1
    return operand.type.shape == ()


def _size(operand: Operand) -> int:
    """Return the number of elements, taking dynamic dimensions as 1."""
    return math.prod(size for size in operand.type.shape or () if isinstance(size, int))


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _transposed_size(model: Model) -> int:
    """Return how many elements a model transposes; all operations must be used."""
    return sum(_size(o.outputs[0]) for o in model.operations if _order_of(o) is not None)


def _order_of(operation: Operation) -> Order | None:
    """Return the permutation of a transposition that can be merged with others, else `None`."""
    if not isinstance(operation, Transpose):
        return None
    if operation.quantized_inputs() and not operation.moves_integers:
        return None
    try:
        perm = operation.perm
    except ComputedParameter:
        return None
    return tuple(axis % len(perm) for axis in perm)


def _merge(
    second: Operation, producer: Callable[[Operand], Operation | None]
) -> tuple[Operand, Order] | None:
    """Return the source and joint permutation of two transpositions in a row, else `None`."""
    outer = _order_of(second)
    if outer is None or not isinstance(second, Transpose):
        return None
    first = producer(second.input)
    inner = None if first is None else _order_of(first)
    if inner is None or not isinstance(first, Transpose):
        return None
    return first.input, tuple(inner[axis] for axis in outer)
