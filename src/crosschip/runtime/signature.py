"""Checks of the arguments of a compiled model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.hal import Buffer, Sizes
from crosschip.ir import Array, Dim, ElementType, InputError, Operand
from crosschip.ir.shape_binding import bind, concrete
from crosschip.ir.size_reader import SizeReader
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.runtime.arrays import as_array
from crosschip.runtime.copies import Copied, Copies
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.programs import shapes_of, tensors_among

_MAX_ACCEPTED = 64
"""The number of accepted combinations of shapes that are remembered."""

_READY = 0x101
"""NumPy's flags of an array that is C-contiguous and aligned."""


class Signature:
    """The inputs of a model, prepared for fast checks.

    Shapes are checked in full only if no recent call had the same.

    Attributes:
        observe: called with the inputs of a call whose shapes no recent call had; `None` for none.
    """

    def __init__(
        self,
        inputs: Mapping[str, Operand],
        sizes: Sizes | None = None,
        copies: Copies | None = None,
        *,
        buffers: bool = False,
    ) -> None:
        """Prepare the checks.

        Args:
            inputs: the model's inputs, by name.
            sizes: the ranges of dynamic sizes.
            copies: counts the inputs that must be copied.
            buffers: whether device buffers are accepted as they are; otherwise they are read into
                arrays.
        """
        self.observe: Callable[[Sequence[Any]], None] | None = None
        self._copies = copies or Copies()
        self._buffers = buffers
        self._sizes = sizes or Sizes()
        self._operands = tuple(inputs.items())
        self._names = tuple(inputs)
        self._types = [operand.type for operand in inputs.values()]
        types = [type_.element_type for type_ in self._types]
        self._reader = SizeReader(self._types)
        self._ready = tuple(None if type_ in PYTHONS_TYPES else type_.dtype for type_ in types)
        self._has_objects = ElementType.OBJECT in types
        self._tensors = tensors_among(self._types)
        self._previous: tuple[tuple[int, ...], ...] | None = None
        self._accepted: set[tuple[tuple[int, ...], ...]] = set()

    def arrange(self, inputs: Mapping[str, Any]) -> list[Array]:
        """Check all inputs and return them in the order of the model's inputs.

        Values other than aligned C-contiguous arrays of NumPy's usual type are converted.

        Raises:
            InputError: a name, shape or element type does not match.
        """
        arrays = self.take(inputs)
        if self._has_objects:
            shapes = tuple(shapes_of(self._tensors, arrays))
        else:
            shapes = tuple([array.shape for array in arrays])
        if shapes != self._previous:
            if shapes not in self._accepted:
                self._accept(shapes, arrays)
            self._previous = shapes
        return arrays

    def take(self, inputs: Mapping[str, Any]) -> list[Array]:
        """Check all inputs except for their shapes, and return them in order.

        Raises:
            InputError: a name or element type does not match.
        """
        try:
            arrays = [inputs[name] for name in self._names]
            count = len(inputs)
        except KeyError as error:
            raise self._wrong_names(inputs) from error
        except (TypeError, IndexError) as error:
            raise InputError(
                f"the inputs are of type {type(inputs).__name__}, but must be arrays by name: "
                f"{self._format_inputs()}"
            ) from error
        if count != len(arrays):
            raise self._wrong_names(inputs)
        for index, dtype in enumerate(self._ready):
            array = arrays[index]
            if (
                type(array) is not np.ndarray
                or array.dtype is not dtype
                or array.flags.num & _READY != _READY
            ):
                arrays[index] = self._value(index, array)
        return arrays

    def count_copies(self, copies: Copies) -> None:
        """Set the counter of copies."""
        self._copies = copies

    def named(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return positional and keyword inputs by name.

        Raises:
            InputError: there are too many, or one is given twice.
        """
        if not arrays:
            return named
        if len(arrays) + len(named) != len(self._operands):
            count = len(arrays) + len(named)
            raise InputError(
                f"the model takes {len(self._operands)} inputs, not {count}: "
                f"{self._format_inputs()}"
            )
        values = {name: array for (name, _), array in zip(self._operands, arrays, strict=False)}
        twice = next((name for name in named if name in values), None)
        if twice is not None:
            raise InputError(
                f"input {twice!r} is given twice; the model takes {self._format_inputs()}"
            )
        return {**values, **named}

    def _value(self, index: int, value: object) -> Any:
        name, operand = self._operands[index]
        if type(value) is not np.ndarray and isinstance(value, Buffer):
            self._check_buffer(index, value)
            if self._buffers and value.device is not None:
                return value
            array = call("a buffer", "handing out its elements", value.array)
            if value.device is not None:
                self._copies.add(Copied.INPUT, array)
            value = array
        try:
            array = as_array(value, operand.type)
        except InputError as error:
            raise InputError(f"input {name!r} {error}") from error.__cause__
        if array is not value and isinstance(array, np.ndarray) and _is_copy(array, value):
            self._copies.add(Copied.INPUT, array)
        return array

    def checked_sizes(self, shapes: object) -> dict[str, Dim]:
        """Return the named sizes of a caller's shapes, after checking them.

        Raises:
            InputError: they are no shapes by name, or as for `sizes`.
        """
        if not isinstance(shapes, Mapping):
            raise InputError(f'shapes is {shapes!r}, but must be like {{"x": [1, 3, 224]}}')
        return self.sizes({name: concrete(name, shape) for name, shape in shapes.items()})

    def sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, Dim]:
        """Return the named sizes of inputs of these shapes.

        Raises:
            InputError: there is no such input, a shape does not match, or a size is out of range.
        """
        sizes = bind({name: operand.type for name, operand in self._operands}, shapes)
        check_ranges(sizes, self._sizes)
        return sizes

    def _accept(self, shapes: tuple[tuple[int, ...], ...], values: Sequence[Any]) -> None:
        self._check_shapes(shapes)
        if len(self._accepted) >= _MAX_ACCEPTED:
            self._accepted.clear()
        self._accepted.add(shapes)
        if self.observe is not None:
            self.observe(values)

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        sizes = self._reader.read_checked(shapes)
        if sizes is not None:
            check_ranges(sizes, self._sizes)
        else:  # raises the error that names the mismatch
            self.sizes(dict(zip(self._names, shapes, strict=True)))

    def _check_buffer(self, index: int, buffer: Buffer) -> None:
        name, operand = self._operands[index]
        if buffer.element_type is not operand.type.element_type:
            raise InputError(
                f"input {name!r} is a buffer of {buffer.element_type}, but the model takes "
                f"{operand.type}; allocate one with allocate({name!r}, …)"
            )

    def _wrong_names(self, inputs: Mapping[str, Any]) -> InputError:
        names = self._names
        missing = [name for name in names if name not in inputs]
        extra = [name for name in inputs if name not in names]
        problem = (
            f"there is no input {extra[0]!r}{did_you_mean(str(extra[0]), names)}"
            if extra
            else f"input {missing[0]!r} is missing"
        )
        return InputError(f"{problem}; the model takes {self._format_inputs()}")

    def _format_inputs(self) -> str:
        return ", ".join(f"{name}: {operand.type}" for name, operand in self._operands) or "none"


def _is_copy(array: Array, source: object) -> bool:
    """Return whether an array does not share memory with the value that it was made from."""
    root = _root(array)
    return isinstance(root, np.ndarray) and root.flags.owndata and root is not _root(source)


def _root(value: object) -> object:
    """Return the owner of an array's memory."""
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    return value


def check_ranges(values: Mapping[str, Dim], sizes: Sizes) -> None:
    """Raise if sizes of inputs are out of their ranges.

    Args:
        values: the sizes of the inputs, by name.
        sizes: the ranges.

    Raises:
        InputError: a size is out of its range.
    """
    for bounds in sizes.ranges:
        value = values.get(bounds.name)
        if isinstance(value, int) and not bounds.least <= value <= bounds.most:
            raise InputError(
                f"the size {bounds.name} is {value}, but the model was compiled for "
                f"{bounds.least} to {bounds.most}; compile it with another range"
            )
