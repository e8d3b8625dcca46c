"""Search for shapes of a model's inputs that are valid for all operations, by shape inference.

The search begins with typical sizes. If an operation is invalid at them, the sizes that it depends
on are changed: to sizes of its other operands, to other typical sizes, to any. Changes with which a
later operation is the first invalid one are kept, and changed further.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from crosschip.hal import Sizes
from crosschip.ir import (
    Dim,
    Dimension,
    InputError,
    Model,
    ModelError,
    Operation,
    TensorType,
    symbol,
)
from crosschip.ir.bodies import walk_operations
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import name_of
from crosschip.lowering.static_shapes import DependsOnData, Fixing, elements_or_zeros
from crosschip.ops.standard.indexing import Gather, GatherElements, GatherND
from crosschip.runtime.shapes.typical_sizes import USUAL, Role, role_of

_STARTS = 6
"""The number of initial sets of typical sizes."""

_RANKS = (4, 2, 3, 1)
"""The ranks that are tried for inputs of dynamic rank."""

_MOST_SCANNED = 1024
"""The number of consecutive sizes that are tried, from the least on."""

_MOST_INFERENCES = 20_000
_MOST_WALKS = 40
"""The maximum number of inferred operations; at least `_MOST_WALKS` times the model's number."""

_PICKING = (Gather, GatherElements, GatherND)
_MOST_PICKED = 1 << 20
"""The maximum number of elements that are gathered to check their indices."""

_BROKEN_RULES = (ModelError, InputError, ArithmeticError, LookupError, ValueError)

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ShapeMismatch:
    """The first operation of a model that is invalid at some sizes.

    Attributes:
        index: the index of the operation.
        operation: the operation.
        reason: the reason, in words.
    """

    index: int
    operation: Operation
    reason: str


class ShapeSearch:
    """The search for shapes of a model's inputs.

    Args:
        model: a model with dynamic dimensions in its inputs.
        sizes: the ranges of sizes, and a first profile, which is used.
        fixed: the static shapes of inputs, by name.

    Attributes:
        mismatch: the invalid operation at the first sizes; `None` if there was none.
    """

    def __init__(self, model: Model, sizes: Sizes, fixed: Shapes | None = None) -> None:
        self.mismatch: ShapeMismatch | None = None
        self._model = model
        self._fixed = fixed or {}
        self._bounds = {entry.name: (entry.least, entry.most) for entry in sizes.ranges}
        if sizes.profiles:
            self._bounds.update((name, (value, value)) for name, value in sizes.profiles[0])
        inferences = sum(1 for _ in walk_operations(model))
        self._effort = max(_MOST_INFERENCES, _MOST_WALKS * inferences)
        self._types: dict[str, TensorType] = {}
        self._roles: dict[str, Role] = {}

    def shapes(self) -> Iterator[Shapes]:
        """Return different valid shapes of all inputs, by name, the most typical first."""
        derived: list[Shapes] = []
        for rank in _RANKS if self._has_open_ranks() else (0,):
            self._assume_rank(rank)
            for start in range(_STARTS if self._roles else 1):
                sizes = self._repair(self._start(start)) if self._roles else {}
                shapes = None if sizes is None else self._shapes_at(sizes)
                if shapes is not None and shapes not in derived:
                    derived.append(shapes)
                    yield shapes

    def first(self) -> Shapes:
        """Return the first of `shapes`; the typical ones if there are none."""
        return next(self.shapes(), None) or self.usual()

    def usual(self) -> Shapes:
        """Return the shapes that are tried first, valid or not."""
        self._assume_rank(_RANKS[0])
        return self._shapes_at(self._start(0))

    def _has_open_ranks(self) -> bool:
        return any(
            operand.type.shape is None and name not in self._fixed
            for name, operand in self._model.inputs.items()
        )

    def _assume_rank(self, rank: int) -> None:
        """Assume a rank for all inputs of dynamic rank."""
        self._types = {}
        for name, operand in self._model.inputs.items():
            shape = self._fixed.get(name, operand.type.shape)
            if shape is None:
                shape = tuple(symbol(f"{name}_{axis}") for axis in range(rank))
            self._types[name] = replace(operand.type, shape=shape)
        self._roles = {}
        for type_ in self._types.values():
            for axis, size in enumerate(type_.shape or ()):
                for size_name in sorted(_names_of(size)):
                    self._roles.setdefault(size_name, role_of(type_, axis))

    def _start(self, number: int) -> dict[str, int]:
        """Return the initial sizes of a number: typical ones within their bounds."""
        sizes: dict[str, int] = {}
        for name, role in self._roles.items():
            usual = USUAL[role][0 if role is Role.BATCH else number]
            least, most = self._bounds.get(name, (1, usual))
            sizes[name] = most if number == 0 else min(max(usual, least), most)
        return sizes

    def _shapes_at(self, sizes: Mapping[str, int]) -> Shapes:
        fixed = {name: type_.substitute(sizes).static_shape for name, type_ in self._types.items()}
        return {name: shape for name, shape in fixed.items() if shape is not None}

    def _repair(self, sizes: Mapping[str, int]) -> Mapping[str, int] | None:
        """Return valid sizes near these; `None` if none are found."""
        mismatch = self._mismatch(sizes)
        self.mismatch = self.mismatch or mismatch
        return sizes if mismatch is None else self._repair_further(mismatch, sizes, {_key(sizes)})

    def _repair_further(
        self, mismatch: ShapeMismatch, sizes: Mapping[str, int], tried: set[object]
    ) -> Mapping[str, int] | None:
        """Return valid sizes by changes for the mismatch; `None` if none are found."""
        for change in self._changes(mismatch.operation, sizes):
            changed = {**sizes, **change}
            if self._effort <= 0:
                return None
            if _key(changed) in tried or not self._passes(mismatch.operation, changed):
                continue
            tried.add(_key(changed))
            next_mismatch = self._mismatch(changed)
            if next_mismatch is None:
                return changed
            if next_mismatch.index > mismatch.index:
                repaired = self._repair_further(next_mismatch, changed, tried)
                if repaired is not None:
                    return repaired
        return None

    def _mismatch(self, sizes: Mapping[str, int]) -> ShapeMismatch | None:
        """Return the first invalid operation; those with data-dependent sizes count as valid."""
        fixing = Fixing(dict(sizes))
        for name, shape in self._shapes_at(sizes).items():
            fixing.take(self._model.inputs[name], shape)
        for index, operation in enumerate(self._model.operations):
            self._effort -= 1 + sum(1 for body in operation.bodies for _ in walk_operations(body))
            read = [fixing[operand] for operand in operation.inputs if operand is not None]
            if all(operand.type.static_shape is not None for operand in read):
                try:
                    _check_positions(fixing.follow(operation))
                    continue
                except DependsOnData:
                    pass
                except _BROKEN_RULES as error:
                    return ShapeMismatch(index, operation, f"{operation.name!r}: {error}")
            for output in operation.outputs:
                output_shape = output.type.substitute(fixing.sizes).static_shape
                if output_shape is not None:
                    fixing.take(output, output_shape)
        return None

    def _passes(self, operation: Operation, sizes: Mapping[str, int]) -> bool:
        """Return whether an operation is valid and has no empty operands.

        Also true if the sizes of the model's inputs do not determine the operation's operands.
        """
        self._effort -= 1 + sum(1 for body in operation.bodies for _ in walk_operations(body))
        fixing = Fixing(dict(sizes))
        for operand in operation.inputs:
            if operand is None or operand.is_constant:
                continue
            shape = operand.type.substitute(sizes).static_shape
            if shape is None:
                return True
            if 0 in shape:
                return False
            fixing.take(operand, shape)
        try:
            fixing.follow(operation)
        except DependsOnData:
            return True
        except _BROKEN_RULES:
            return False
        return not any(0 in (fixing[output].type.shape or ()) for output in operation.outputs)

    def _changes(self, operation: Operation, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Return changes of the sizes that an operation depends on, the most likely first."""
        read = [o.type for o in operation.inputs if o is not None and not o.is_constant]
        all_sizes = [size for type_ in read for size in (*(type_.shape or ()), *_values(type_))]
        read_names = dict.fromkeys(name for size in all_sizes for name in sorted(_names_of(size)))
        names = [name for name in read_names if name in self._roles] or list(self._roles)
        if len(read_names) > len(names):
            names = list(dict.fromkeys([*names, *self._roles]))
        names.sort(key=lambda name: self._roles[name] is Role.BATCH)
        shapes = [o.type.substitute(sizes).shape or () for o in operation.inputs if o is not None]
        numbers = {size for shape in shapes for size in shape if isinstance(size, int)}
        equal = sorted((size for size in numbers if size > 1), reverse=True)
        bare = set(map(name_of, all_sizes))
        groups: list[tuple[str, ...]] = [(name,) for name in names]
        for role in Role:
            alike = tuple(name for name in names if self._roles[name] is role)
            groups += [alike] if len(alike) > 1 else []
        for name in names:
            yield from self._changes_in_bounds((name,), equal if name in bare else ())
        for index in range(max(map(len, USUAL.values()))):
            for group in groups:
                yield from self._changes_in_bounds(
                    group, USUAL[self._roles[group[0]]][index : index + 1]
                )
        for above in range(_MOST_SCANNED):
            for group in groups:
                least = max(self._bounds.get(name, (1, 0))[0] for name in group)
                yield from self._changes_in_bounds(group, [least + above])

    def _changes_in_bounds(
        self, names: Sequence[str], values: Sequence[int]
    ) -> Iterator[dict[str, int]]:
        """Return changes of sizes to each value that is within the bounds of all of them."""
        bounds = [self._bounds.get(name, (1, None)) for name in names]
        for value in values:
            if all(least <= value and (most is None or value <= most) for least, most in bounds):
                yield dict.fromkeys(names, value)


def _check_positions(operation: Operation | None) -> None:
    """Run a gather with constant indices, which raises an error if one is out of range."""
    if isinstance(operation, _PICKING) and operation.indices.is_constant:
        sizes = [output.type.static_shape or () for output in operation.outputs]
        if all(math.prod(shape) <= _MOST_PICKED for shape in sizes):
            operation.kernel()([elements_or_zeros(operand) for operand in operation.inputs])


def _values(type_: TensorType) -> Sequence[Dim]:
    return type_.shape_value or ()


def _names_of(size: Dim) -> frozenset[str]:
    return size.names if isinstance(size, Dimension) else frozenset()


def _key(sizes: Mapping[str, int]) -> object:
    return tuple(sorted(sizes.items()))
