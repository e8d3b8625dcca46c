"""Batches of files: arrays joined to a model's input, and outputs split into those of each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, DeviceError, InputError, Operand
from crosschip.ir.dimension import name_of
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.shapes.padding import rows_of

Outputs = dict[str, Any]


class Batching:
    """The batch axes of a compiled model.

    Files share a run only if the first size of the input is open, and no row of an output depends
    on other rows, as far as operators declare; otherwise each has a run of its own.

    Args:
        compiled: the model.
        constants: the inputs that are the same for all files, by name.

    Attributes:
        name: the name of the input that files become.
        operand: the input.
        is_open: whether files share runs.

    Raises:
        InputError: not just one input is left for files.
    """

    def __init__(self, compiled: CompiledModel, constants: Mapping[str, Array]) -> None:
        inputs = compiled.inputs
        names = [name for name in inputs if name not in constants]
        if len(names) != 1:
            raise InputError(
                f"the model has the inputs {', '.join(inputs) or 'none'}, but files are one input; "
                f"give the others, the same for all files"
            )
        (self.name,) = names
        self.operand = inputs[self.name]
        self._run = compiled.run
        self._accepted: Array | None = None
        self._constants = dict(constants)
        rows = self._rows(compiled)
        self.is_open = rows is not None
        self._axes = {
            name: rows.get(operand) if rows is not None else self._single_axis(operand)
            for name, operand in compiled.placement.model.outputs.items()
        }

    def _rows(self, compiled: CompiledModel) -> dict[Operand, int] | None:
        """Return the batch axis of each operand that has one; `None` if files share no run."""
        model = compiled.placement.model
        operand = model.inputs[self.name]
        size = name_of(operand.type.shape[0]) if operand.type.shape else None
        axes = None if size is None else rows_of(model, size)
        if axes is None or axes.get(operand) != 0:
            return None
        is_shared = all(axes.get(model.inputs[name]) is None for name in self._constants)
        return axes if is_shared else None

    def _single_axis(self, output: Operand) -> int | None:
        """Return the batch axis of an output if each file has a run of its own."""
        sizes = self.operand.type.shape, output.type.shape
        if not all(sizes):
            return None
        (ours, *_), (theirs, *_) = (shape or () for shape in sizes)
        is_batch = theirs == 1 or (theirs == ours and not isinstance(ours, int))
        return 0 if is_batch and (ours == 1 or not isinstance(ours, int)) else None

    def as_row(self, array: Array) -> Array:
        """Return a file's array with a batch axis.

        Raises:
            InputError: the array holds several rows.
        """
        shape = self.operand.type.shape
        if shape is None:
            return array
        if array.ndim == len(shape) - 1:
            return array[None]
        if self.is_open and array.shape[:1] != (1,):
            raise InputError(
                f"is {array.dtype} {list(array.shape)}, but the model's input {self.name!r} is "
                f"{self.operand.type}, of which a file holds one row"
            )
        return array

    def run(self, rows: Sequence[Array]) -> list[Outputs | InputError]:
        """Run the model on files' arrays, as `as_row` returns them.

        Returns:
            For each file the outputs by name, without the batch axis; or why the model does not
            take it.

        Raises:
            DeviceError: a device failed, also for a file that it had computed.
        """
        results: list[Outputs | InputError] = [InputError()] * len(rows)
        for indices in self._groups(rows):
            for index, result in zip(indices, self._run_group(rows, indices), strict=True):
                results[index] = result
        return results

    def _groups(self, rows: Sequence[Array]) -> list[list[int]]:
        """Return the indices of the rows of each run: those of one shape and element type."""
        if not self.is_open:
            return [[index] for index in range(len(rows))]
        groups: dict[object, list[int]] = {}
        for index, row in enumerate(rows):
            groups.setdefault((row.shape, row.dtype), []).append(index)
        return list(groups.values())

    def _run_group(
        self, rows: Sequence[Array], indices: Sequence[int]
    ) -> Sequence[Outputs | InputError]:
        group = [rows[index] for index in indices]
        batch = np.concatenate(group) if len(group) > 1 else group[0]
        try:
            outputs = self._run({**self._constants, self.name: batch})
        except (InputError, DeviceError) as error:
            if len(group) > 1:  # one of them may be bad, such as one with an index out of range
                return [self._run_group(rows, [index])[0] for index in indices]
            if isinstance(error, DeviceError) and not self._works():
                raise
            return [InputError(str(error))]
        self._accepted = group[-1]
        return [self._row(outputs, position) for position in range(len(group))]

    def _works(self) -> bool:
        """Return whether the device still computes what it did: then a file is bad, not it."""
        if self._accepted is None:
            return False
        try:
            self._run({**self._constants, self.name: self._accepted})
        except DeviceError:
            return False
        return True

    def _row(self, outputs: Mapping[str, Any], position: int) -> Outputs:
        row = {}
        for name, value in outputs.items():
            axis = self._axes[name]
            row[name] = value if axis is None else value[(slice(None),) * axis + (position,)]
        return row
