"""Prepared models of a crosschip device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.failures import HdiErrors, invalid, with_codes
from crosschip.apis.nnrt.hdi.v1_0.interface import (
    AnyPreparedModel,
    HdiError,
    IPreparedModel,
    ReturnCode,
)
from crosschip.apis.nnrt.hdi.v1_0.reader import element_type
from crosschip.apis.nnrt.hdi.v1_0.types import IOTensor, Priority, SharedBuffer
from crosschip.hal import Options, Program, urgency
from crosschip.ir import Array, Model, TensorType


class Memories(Protocol):
    """The memory interface of a device.

    Attributes:
        alignment: the alignment of input memory, in bytes.
    """

    alignment: int

    def data(self, buffer: SharedBuffer) -> Array:
        """Return the bytes of a buffer's data."""

    def output_view(self, buffer: SharedBuffer, type_: TensorType) -> Array | None:
        """Return the device memory of an output; `None` if runs cannot write to it directly."""

    def save(self, program: Program, model: Model, options: Options) -> SharedBuffer:
        """Save a program to memory from which the device can load it."""

    def GetVersion(self) -> tuple[int, int]:
        """Return the version of the interface."""


class AnyPrepared(HdiErrors, AnyPreparedModel):
    """The version-independent part of a prepared model.

    Args:
        chip: the device.
        program: the device's program.
        model: the model of the program.
        options: the program's compile options.
        priority: the priority of its runs.
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
        return [self._chip.save(self._program, self._model, self._options)]

    def run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        """Run the program; return each output's shape, and whether it fitted its memory.

        Raises:
            Error: an input does not match the model, a buffer is invalid, or the device failed.
        """
        for kind, tensors, types in (
            ("inputs", inputs, self._inputs),
            ("outputs", outputs, self._outputs),
        ):
            if len(tensors) != len(types):
                raise invalid(f"there are {len(tensors)} {kind}, but must be {len(types)}")
        arrays = [self._array(*pair) for pair in zip(inputs, self._inputs, strict=True)]
        views = [
            self._chip.output_view(output.data, type_)
            for output, type_ in zip(outputs, self._outputs, strict=True)
        ]
        token = urgency.set(int(self._priority or urgency.get()))
        try:
            results = self._program.run_into(arrays, views)
        finally:
            urgency.reset(token)
        self._check_rules(results[len(outputs) :])
        fits = [
            self._write_output(*arguments)
            for arguments in zip(results[: len(outputs)], outputs, views, strict=True)
        ]
        return [list(array.shape) for array in results[: len(outputs)]], fits

    def GetVersion(self) -> tuple[int, int]:
        return self._chip.GetVersion()

    def _array(self, tensor: IOTensor, type_: TensorType) -> Array:
        """Return an input's elements, without a copy where possible."""
        where = f"input {tensor.name!r}"
        if element_type(tensor.dataType) is not type_.element_type:
            raise invalid(f"{where}: is {tensor.dataType.name}, not {type_.element_type}")
        shape = tuple(tensor.dimensions)
        if min(shape, default=0) < 0 or not TensorType(type_.element_type, shape).fits(
            TensorType(type_.element_type, type_.shape)
        ):
            raise invalid(f"{where}: has the sizes {list(shape)}, but must be {type_}")
        dtype = type_.element_type.dtype
        expected = math.prod(shape) * dtype.itemsize
        if tensor.data.dataSize != expected:
            raise invalid(f"{where}: takes {expected} bytes, not {tensor.data.dataSize}")
        content = self._chip.data(tensor.data)
        if dtype.kind == "b":
            content = (content != 0).view(np.uint8)
        alignment = max(dtype.alignment, self._chip.alignment)
        array: Array = memory.align(content, alignment).view(dtype)
        return array.reshape(shape)

    def _check_rules(self, results: Sequence[Array]) -> None:
        """Raise `HdiError` if a run broke a rule of an operator's definition."""
        for rule, result in zip(self._program.rules, results, strict=True):
            if not np.all(result):
                raise HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, rule)

    def _write_output(self, result: Array, tensor: IOTensor, view: Array | None) -> bool:
        """Write an output to its memory; return whether the memory is large enough."""
        if result is view:
            return True
        if result.nbytes > tensor.data.dataSize:
            return False
        if result.nbytes:
            memory.fill(tensor.data, result)
        return True


class PreparedModel(AnyPrepared, IPreparedModel):
    """A crosschip program as an `IPreparedModel`."""

    @with_codes
    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        return self.run(inputs, outputs)
