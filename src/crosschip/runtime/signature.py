"""Checking what a caller passes to a compiled model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.hal import Buffer, Sizes
from crosschip.ir import Array, Dim, ElementType, InputError, Model
from crosschip.ir.types import boxed
from crosschip.passes.specialize import bind
from crosschip.runtime.profiles import check_ranges

_TEXT_KINDS = "UT"
"""The kinds of NumPy's types for text: of fixed and of variable width."""


class Signature:
    """The inputs that a model takes, prepared so that checking a call costs little.

    Shapes are compared in full only when they differ from those of the call before.
    """

    def __init__(self, model: Model, sizes: Sizes | None = None) -> None:
        self._sizes = sizes or Sizes()
        self._operands = tuple(model.inputs.items())
        self._dtypes = tuple(o.type.element_type.dtype for o in model.inputs.values())
        self._strings = [
            index
            for index, operand in enumerate(model.inputs.values())
            if operand.type.element_type is ElementType.STRING
        ]
        self._objects = [
            index
            for index, operand in enumerate(model.inputs.values())
            if operand.type.element_type is ElementType.OBJECT
        ]
        self._accepted: tuple[tuple[int, ...], ...] | None = None

    def arrange(self, inputs: Mapping[str, Any]) -> list[Array]:
        """The arrays in the order of the model's inputs, each of them checked.

        Raises:
            InputError: a name, shape, element type or memory layout does not fit.
        """
        try:
            arrays = [inputs[name] for name, _ in self._operands]
            given = len(inputs)
        except KeyError as error:
            raise self._wrong_names(inputs) from error
        except (TypeError, IndexError) as error:
            raise InputError(
                f"the inputs are of type {type(inputs).__name__}, but must be arrays by name: "
                f"{self._listed()}"
            ) from error
        if given != len(arrays):
            raise self._wrong_names(inputs)
        for index in self._objects:
            arrays[index] = _as_object(arrays[index])
        for index in self._strings:
            arrays[index] = self._as_strings(index, arrays[index])
        for index, (array, dtype) in enumerate(zip(arrays, self._dtypes, strict=True)):
            if type(array) is not np.ndarray:
                if isinstance(array, Buffer):
                    self._check_buffer(index, array)
                    continue
                arrays[index] = array = self._as_array(index, array)
            if array.dtype is not dtype and array.dtype != dtype:
                raise self._wrong_type(index, array)
            if not array.flags.c_contiguous:
                raise InputError(
                    f"input {self._operands[index][0]!r} is not contiguous in memory (strides "
                    f"{array.strides}); pass numpy.ascontiguousarray(...) of it"
                )
        shapes = tuple([array.shape for array in arrays])
        if shapes != self._accepted:
            self._check_shapes(shapes)
            self._accepted = shapes
        return arrays

    def named(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """Inputs given in order, by name.

        Raises:
            InputError: there are too many or too few.
        """
        if len(arrays) != len(self._operands):
            raise InputError(
                f"the model takes {len(self._operands)} inputs, not {len(arrays)}: {self._listed()}"
            )
        return {name: array for (name, _), array in zip(self._operands, arrays, strict=True)}

    def _as_array(self, index: int, given: object) -> Array:
        try:
            return np.asarray(given)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"input {self._operands[index][0]!r} cannot be made an array: {error}"
            ) from error

    def _as_strings(self, index: int, given: object) -> Array:
        """An array of Python's strings; NumPy has types of its own for text."""
        name, operand = self._operands[index]
        array = given if isinstance(given, np.ndarray) else self._as_array(index, given)
        if array.dtype.kind in _TEXT_KINDS:
            array = array.astype(object, order="C")
        if array.dtype != object:
            raise InputError(
                f"input {name!r} is {array.dtype}, but the model takes {operand.type}; "
                f"pass an array of Python's str"
            )
        wrong = next((type(v).__name__ for v in array.flat if not isinstance(v, str)), None)
        if wrong is not None:
            raise InputError(
                f"input {name!r} has an element of type {wrong}, but the model takes "
                f"{operand.type}; make all of them str"
            )
        return array

    def sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, Dim]:
        """The named sizes of inputs of these shapes.

        Raises:
            InputError: there is no such input, a shape does not fit, or a size is out of range.
        """
        found = bind({name: operand.type for name, operand in self._operands}, shapes)
        check_ranges(found, self._sizes)
        return found

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        self.sizes({name: shape for (name, _), shape in zip(self._operands, shapes, strict=True)})

    def _check_buffer(self, index: int, buffer: Buffer) -> None:
        name, operand = self._operands[index]
        if buffer.element_type is not operand.type.element_type:
            raise InputError(
                f"input {name!r} is a buffer of {buffer.element_type}, but the model takes "
                f"{operand.type}; allocate one with allocate({name!r}, …)"
            )

    def _wrong_names(self, inputs: Mapping[str, Any]) -> InputError:
        names = [name for name, _ in self._operands]
        missing = [name for name in names if name not in inputs]
        extra = [name for name in inputs if name not in names]
        problem = f"there is no input {extra[0]!r}" if extra else f"input {missing[0]!r} is missing"
        return InputError(f"{problem}; the model takes {self._listed()}")

    def _wrong_type(self, index: int, array: Array) -> InputError:
        name, operand = self._operands[index]
        wanted = operand.type.element_type
        if array.dtype.newbyteorder("=") == wanted.dtype:
            return InputError(
                f"input {name!r} has its bytes in the other order ({array.dtype.str}); "
                f"pass array.astype({str(wanted)!r})"
            )
        return InputError(
            f"input {name!r} is {array.dtype}, but the model takes {operand.type}; "
            f"pass array.astype({str(wanted)!r})"
        )

    def _listed(self) -> str:
        return ", ".join(f"{name}: {operand.type}" for name, operand in self._operands) or "none"


def _as_object(given: object) -> Array:
    """What is no tensor, as an array; one of these may be an output of another model."""
    if isinstance(given, np.ndarray) and given.dtype == object and not given.ndim:
        return given
    return boxed(given)
