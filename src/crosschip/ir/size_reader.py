"""Values of named sizes, read from tensor shapes in each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.ir.dimension import Dim, Dimension, Shape, name_of, substitute
from crosschip.ir.extension import Extension
from crosschip.ir.model import Model
from crosschip.ir.types import TensorType


class SizeReader:
    """Reads the values of named sizes from the shapes of tensors.

    Args:
        types: the tensors' types.

    Attributes:
        locations: for each named size, the index of a tensor and the axis that it is read from.
        is_complete: whether the named sizes determine all shapes.
    """

    def __init__(self, types: Sequence[TensorType]) -> None:
        self._locations: dict[str, tuple[int, int]] = {}
        self._fixed: list[tuple[int, int, int]] = []
        self._again: list[tuple[int, int, int, int]] = []
        self._derived: list[tuple[int, int, Dimension]] = []
        self._duplicates: list[tuple[int, int]] = []
        self._ranks: list[tuple[int, int]] = []
        first: dict[Shape, int] = {}
        for index, type_ in enumerate(types):
            if type_.shape is None:
                continue
            model = first.setdefault(type_.shape, index)
            if model != index:
                self._duplicates.append((index, model))
            else:
                self._ranks.append((index, len(type_.shape)))
                self._note(index, type_.shape)
        self.locations = tuple(self._locations.values())
        self.is_complete = all(
            type_.shape is not None and all(map(self.knows, type_.shape)) for type_ in types
        )

    def read(self, shapes: Sequence[Shape]) -> dict[str, Dim]:
        """Return the named sizes, read from shapes whose ranks match the types."""
        return {name: shapes[index][axis] for name, (index, axis) in self._locations.items()}

    def read_checked(self, shapes: Sequence[Shape]) -> dict[str, Dim] | None:
        """Return the named sizes; `None` if shapes contradict their types or each other."""
        for index, model in self._duplicates:
            if shapes[index] != shapes[model]:
                return None
        for index, rank in self._ranks:
            if len(shapes[index]) != rank:
                return None
        for index, axis, size in self._fixed:
            if shapes[index][axis] != size:
                return None
        for index, axis, other, its in self._again:
            if shapes[index][axis] != shapes[other][its]:
                return None
        sizes = self.read(shapes)
        for index, axis, derived in self._derived:
            value = substitute(derived, sizes)
            if isinstance(value, int) and value != shapes[index][axis]:
                return None
        return sizes

    def _note(self, index: int, shape: Shape) -> None:
        for axis, size in enumerate(shape):
            name = name_of(size)
            if not isinstance(size, Dimension):
                self._fixed.append((index, axis, size))
            elif name is None:
                self._derived.append((index, axis, size))
            elif name in self._locations:
                self._again.append((index, axis, *self._locations[name]))
            else:
                self._locations[name] = index, axis

    def knows(self, size: Dim) -> bool:
        """Return whether the values of the named sizes determine a size."""
        return not isinstance(size, Dimension) or size.names <= self._locations.keys()


class ShapeCheck:
    """Checks tensor shapes against types, given the values of named sizes.

    Args:
        types: the tensors' types.
        reader: reader of the named sizes; a size that it does not know may have any value.
    """

    def __init__(self, types: Sequence[TensorType], reader: SizeReader) -> None:
        self._ranks: list[tuple[int, int]] = []
        self._duplicates: list[tuple[int, int]] = []
        self._fixed: list[tuple[int, int, int]] = []
        self._open: dict[Dimension, list[tuple[int, int]]] = {}
        first: dict[Shape, int] = {}
        for index, type_ in enumerate(types):
            if type_.shape is None:
                continue
            model = first.setdefault(type_.shape, index)
            if model != index and all(map(reader.knows, type_.shape)):
                self._duplicates.append((index, model))
                continue
            self._ranks.append((index, len(type_.shape)))
            for axis, size in enumerate(type_.shape):
                if not isinstance(size, Dimension):
                    self._fixed.append((index, axis, size))
                elif reader.knows(size):
                    self._open.setdefault(size, []).append((index, axis))

    def fits(self, shapes: Sequence[Shape], sizes: Mapping[str, Dim]) -> bool:
        """Return whether shapes match the types for these values of the named sizes."""
        for index, rank in self._ranks:
            if len(shapes[index]) != rank:
                return False
        for index, model in self._duplicates:
            if shapes[index] != shapes[model]:
                return False
        for index, axis, fixed in self._fixed:
            if shapes[index][axis] != fixed:
                return False
        for size, locations in self._open.items():
            value = substitute(size, sizes)
            for index, axis in locations:
                if shapes[index][axis] != value:
                    return False
        return True


def names_are_proven(model: Model) -> bool:
    """Return whether sizes of one name are equal for certain; a file may declare wrong shapes."""
    return not any(
        isinstance(operation, Extension)
        and any(operand.type.static_shape is None for operand in operation.outputs)
        for operation in model.operations
    )
