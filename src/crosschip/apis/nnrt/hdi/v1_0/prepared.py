"""Programs of crosschip devices as prepared models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.failures import Failing, with_codes, wrong
from crosschip.apis.nnrt.hdi.v1_0.interface import (
    AnyPreparedModel,
    HdiError,
    IPreparedModel,
    ReturnCode,
)
from crosschip.apis.nnrt.hdi.v1_0.reading import element_type
from crosschip.apis.nnrt.hdi.v1_0.types import IOTensor, Priority, SharedBuffer
from crosschip.hal import Options, Program, urgency
from crosschip.ir import Array, Model, TensorType


class Memories(Protocol):
    """The memory of the device whose program it is.

    Attributes:
        alignment: the bytes to a multiple of which the memory of inputs is aligned.
    """

    alignment: int

    def data(self, buffer: SharedBuffer) -> Array:
        """Return the data in a buffer, as bytes."""

    def place(self, buffer: SharedBuffer, type_: TensorType) -> Array | None:
        """Where in the device's own memory an output of known shape can be written."""

    def saved(self, program: Program, model: Model, options: Options) -> SharedBuffer:
        """Memory that holds a program, from which the device makes it again."""

    def GetVersion(self) -> tuple[int, int]:
        """Return the version of the interface."""


class AnyPrepared(Failing, AnyPreparedModel):
    """The part of a prepared model that is the same in all versions.

    Args:
        chip: the device.
        program: its program.
        model: the model that it is of.
        options: the options that it was compiled with.
        priority: of its runs.
    """

    def __init__(
        self,
        chip: Memories,
        program: Program,
        model: Model,
        options: Options,
        priority: Priority,
    ) -> None:
        self._chip = chip
        self._priority = priority
        self._program = program
        self._model = model
        self._options = options
        self._inputs = [operand.type for operand in model.inputs.values()]
        self._outputs = [operand.type for operand in model.outputs.values()]

    @with_codes
    def ExportModelCache(self) -> Sequence[SharedBuffer]:
        return [self._chip.saved(self._program, self._model, self._options)]

    def run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        """Return the sizes of each output, and whether it has been written: its memory may be too small.

        Raises:
            Error: an input does not fit the model, memory is not as it is said, or the device
                failed.
        """
        for what, tensors, types in (
            ("inputs", inputs, self._inputs),
            ("outputs", outputs, self._outputs),
        ):
            if len(tensors) != len(types):
                raise wrong(f"there are {len(tensors)} {what}, but must be {len(types)}")
        arrays = [self._array(*pair) for pair in zip(inputs, self._inputs, strict=True)]
        places = [
            self._chip.place(one.data, type_)
            for one, type_ in zip(outputs, self._outputs, strict=True)
        ]
        before = urgency.set(int(self._priority or urgency.get()))
        try:
            results = self._program.run_into(arrays, places)
        finally:
            urgency.reset(before)
        self._check_rules(results[len(outputs) :])
        enough = [
            self._hand_out(*each)
            for each in zip(results[: len(outputs)], outputs, places, strict=True)
        ]
        return [list(array.shape) for array in results[: len(outputs)]], enough

    def GetVersion(self) -> tuple[int, int]:
        return self._chip.GetVersion()

    def _array(self, tensor: IOTensor, type_: TensorType) -> Array:
        """Return an input, in the memory that it comes in."""
        where = f"input {tensor.name!r}"
        if element_type(tensor.dataType) is not type_.element_type:
            raise wrong(f"{where}: is {tensor.dataType.name}, not {type_.element_type}")
        shape = tuple(tensor.dimensions)
        if min(shape, default=0) < 0 or not TensorType(type_.element_type, shape).fits(
            TensorType(type_.element_type, type_.shape)
        ):
            raise wrong(f"{where}: has the sizes {list(shape)}, but must be {type_}")
        dtype = type_.element_type.dtype
        expected = math.prod(shape) * dtype.itemsize
        if tensor.data.dataSize != expected:
            raise wrong(f"{where}: takes {expected} bytes, not {tensor.data.dataSize}")
        held = self._chip.data(tensor.data)
        if dtype.kind == "b":
            held = (held != 0).view(np.uint8)
        alignment = max(dtype.alignment, self._chip.alignment)
        array: Array = memory.aligned(held, alignment).view(dtype)
        return array.reshape(shape)

    def _check_rules(self, truths: Sequence[Array]) -> None:
        """`HdiError` if a rule of a definition was broken in the run."""
        for rule, truth in zip(self._program.rules, truths, strict=True):
            if not np.all(truth):
                raise HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, rule)

    def _hand_out(self, result: Array, tensor: IOTensor, place: Array | None) -> bool:
        """Write an output to its memory; whether that is large enough."""
        if result is place:
            return True
        if result.nbytes > tensor.data.dataSize:
            return False
        if result.nbytes:
            memory.fill(tensor.data, result)
        return True


class PreparedModel(AnyPrepared, IPreparedModel):
    """A program of a crosschip device as an `IPreparedModel`."""

    @with_codes
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        return self.run(inputs, outputs)
