"""Shapes of a model's inputs at which no operation breaks a rule, by inference alone.

Sizes begin with usual ones. Where an operation breaks a rule at them, the sizes that it depends on
are changed: to those that it meets in its other operands, to other usual ones, to any. What gets
further through the model than before is kept, and changed further.
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
from crosschip.runtime.shapes.guessing import USUAL, Role, role_of

_STARTS = 6
"""The number of sets of usual sizes to begin with."""

_RANKS = (4, 2, 3, 1)
"""The numbers of axes that are tried for inputs that may have any."""

_MOST_SCANNED = 1024
"""The number of sizes that are tried one after the other, from the least on."""

_MOST_INFERENCES = 20_000
_MOST_WALKS = 40
"""The most operations inferred in a search: so many, or those of so many whole models."""

_PICKING = (Gather, GatherElements, GatherND)
_MOST_PICKED = 1 << 20
"""The most elements that are picked to see whether all are there."""

_BROKEN_RULES = (ModelError, InputError, ArithmeticError, LookupError, ValueError)

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ShapeMismatch:
    """The first operation of a model that breaks a rule at some sizes.

    Attributes:
        index: its place in the model.
        operation: the operation itself.
        reason: the rule that it breaks.
    """

    index: int
    operation: Operation
    reason: str


class ShapeSearch:
    """The search for shapes of a model's inputs.

    Args:
        model: sizes of whose inputs are open.
        sizes: what is known of them: ranges, and the first profile.
        given: the shapes of inputs that are known, by name.

    Attributes:
        mismatch: what stood in the way of the first sizes that were tried; `None` if nothing did.
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
        """Shapes of all inputs, by name, the most usual ones first; none twice."""
        derived: list[Shapes] = []
        for rank in _RANKS if self._has_open_ranks() else (0,):
            self._assume_rank(rank)
            for start in range(_STARTS if self._roles else 1):
                sizes = self._repaired(self._start(start)) if self._roles else {}
                shapes = None if sizes is None else self._shapes_at(sizes)
                if shapes is not None and shapes not in derived:
                    derived.append(shapes)
                    yield shapes

    def first(self) -> Shapes:
        """The first of `shapes`; the usual ones if there are none."""
        return next(self.shapes(), None) or self.usual()

    def usual(self) -> Shapes:
        """The shapes that are tried first, whether or not operations take them."""
        self._assume_rank(_RANKS[0])
        return self._shapes_at(self._start(0))

    def _has_open_ranks(self) -> bool:
        return any(
            operand.type.shape is None and name not in self._fixed
            for name, operand in self._model.inputs.items()
        )

    def _assume_rank(self, rank: int) -> None:
        """Take all inputs whose number of axes is open for tensors of so many axes."""
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
        """Usual sizes within their bounds: at first the most of these, and a batch of one."""
        sizes: dict[str, int] = {}
        for name, role in self._roles.items():
            usual = USUAL[role][0 if role is Role.BATCH else number]
            least, most = self._bounds.get(name, (1, usual))
            sizes[name] = most if number == 0 else min(max(usual, least), most)
        return sizes

    def _shapes_at(self, sizes: Mapping[str, int]) -> Shapes:
        fixed = {name: type_.substitute(sizes).static_shape for name, type_ in self._types.items()}
        return {name: shape for name, shape in fixed.items() if shape is not None}

    def _repaired(self, sizes: Mapping[str, int]) -> Mapping[str, int] | None:
        """Sizes near these at which no operation breaks a rule; `None` if none are found."""
        mismatch = self._mismatch(sizes)
        self.mismatch = self.mismatch or mismatch
        return sizes if mismatch is None else self._beyond(mismatch, sizes, {_key(sizes)})

    def _beyond(
        self, mismatch: ShapeMismatch, sizes: Mapping[str, int], tried: set[object]
    ) -> Mapping[str, int] | None:
        """Sizes at which neither the operation nor any other breaks a rule; `None` if not found."""
        for change in self._changes(mismatch.operation, sizes):
            changed = {**sizes, **change}
            if self._effort <= 0:
                return None
            if _key(changed) in tried or not self._fits(mismatch.operation, changed):
                continue
            tried.add(_key(changed))
            next_mismatch = self._mismatch(changed)
            if next_mismatch is None:
                return changed
            if next_mismatch.index > mismatch.index:
                repaired = self._beyond(next_mismatch, changed, tried)
                if repaired is not None:
                    return repaired
        return None

    def _mismatch(self, sizes: Mapping[str, int]) -> ShapeMismatch | None:
        """The first operation that breaks a rule; what depends on data is not looked into."""
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
                known = output.type.substitute(fixing.sizes).static_shape
                if known is not None:
                    fixing.take(output, known)
        return None

    def _fits(self, operation: Operation, sizes: Mapping[str, int]) -> bool:
        """Tell whether an operation breaks no rule, and makes something, as far as is seen of it.

        Nothing is seen where sizes of what it reads do not follow from those of inputs.
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
        """Other values of the sizes that an operation depends on, the most likely first."""
        read = [o.type for o in operation.inputs if o is not None and not o.is_constant]
        all_sizes = [size for type_ in read for size in (*(type_.shape or ()), *_values(type_))]
        met = dict.fromkeys(name for size in all_sizes for name in sorted(_names_of(size)))
        names = [name for name in met if name in self._roles] or list(self._roles)
        if len(met) > len(names):
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
            yield from self._within((name,), equal if name in bare else ())
        for place in range(max(map(len, USUAL.values()))):
            for group in groups:
                yield from self._within(group, USUAL[self._roles[group[0]]][place : place + 1])
        for above in range(_MOST_SCANNED):
            for group in groups:
                least = max(self._bounds.get(name, (1, 0))[0] for name in group)
                yield from self._within(group, [least + above])

    def _within(self, names: Sequence[str], values: Sequence[int]) -> Iterator[dict[str, int]]:
        """Changes of sizes to each of some values that lies within the bounds of all of them."""
        bounds = [self._bounds.get(name, (1, None)) for name in names]
        for value in values:
            if all(least <= value and (most is None or value <= most) for least, most in bounds):
                yield dict.fromkeys(names, value)


def _check_positions(operation: Operation | None) -> None:
    """Have an operation that picks elements at positions which are known refuse those beyond."""
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
