"""The guard of a program: its outputs are checked against the model."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crosschip.hal import (
    Buffer,
    Device,
    Event,
    Program,
    Submission,
)
from crosschip.ir import (
    Array,
    DeviceError,
    Dim,
    ElementType,
    Model,
    Shape,
    TensorType,
)
from crosschip.ir.interruption import raise_interruption
from crosschip.ir.size_reader import ShapeCheck, SizeReader
from crosschip.ir.types import OBJECTS, PYTHONS_TYPES
from crosschip.runtime.copies import Copied, Copies
from crosschip.runtime.guard.calls import call, failure, kind_of
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.shapes.strategy import DynamicShapeStrategy

if TYPE_CHECKING:
    from crosschip.runtime.statistics import SegmentStatistics

logger = logging.getLogger("crosschip")

_BYTES = bytes | bytearray | memoryview

_MAX_ACCEPTED = 512
"""The maximum number of sets of shapes that are accepted without another check, as of a decoder."""


class GuardedProgram(SegmentProgram):
    """A program whose exceptions become errors and whose outputs are checked.

    Args:
        name: the name of the device.
        device: the device; `None` for a program of the runtime.
        program: the program.
        model: the model that it was compiled from.
        alignment: the alignment of the inputs' memory, in bytes.
        parts: the programs of bodies that a program of the runtime runs and closes.
    """

    def __init__(
        self,
        name: str,
        device: Device | None,
        program: Program,
        model: Model,
        alignment: int,
        parts: Sequence[SegmentProgram] = (),
    ) -> None:
        self._alignment = alignment
        self.name = name
        self.device = device
        self.program = program
        self.model = model
        types = [operand.type for operand in (*model.inputs.values(), *model.outputs.values())]
        in_python = any(type_.element_type in PYTHONS_TYPES for type_ in types)
        self.submits = type(program).submit is not Program.submit and not in_python
        self._parts = parts
        self._run = call(name, "telling how it runs", lambda: program.run)
        self._inputs = [operand.type for operand in model.inputs.values()]
        self._reader = SizeReader(self._inputs)
        self._outputs = list(model.outputs.items())
        self._types = [operand.type for operand in model.outputs.values()]
        self._dtypes = [type_.element_type.dtype for type_ in self._types]
        self._objects = any(type_.element_type is ElementType.OBJECT for type_ in types)
        self._tensors_in, self._tensors_out = map(tensors_among, (self._inputs, self._types))
        self._in_memory = not in_python
        self._shape_check = ShapeCheck(self._types, self._reader)
        self._rules = call(name, "telling its rules", tuple, program.rules)
        self.copies = Copies()
        # The locations of sizes in the inputs' shapes; `None` if they do not determine all shapes.
        self._size_locations = self._reader.locations if self._reader.is_complete else None
        self._accepted: dict[tuple[Any, ...], tuple[Sequence[Shape], int, int]] = {}
        self._segment = model.name
        sides = self._inputs, self._types
        self._open = any(type_.static_shape is None for side in sides for type_ in side)
        fixed = not (self._open or self._objects or self._rules)
        self._fixed = [type_.static_shape for type_ in self._types] if fixed else None
        # Counted without a lock, which may lose counts but costs no time in a run.
        self._runs = 0
        self._bytes_in, self._bytes_out = (
            0 if self._open else sum(map(bytes_of, side)) for side in sides
        )

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if self._alignment > 1:
            inputs = self._align_inputs(inputs)
        try:
            outputs = self._run(inputs)
        except BaseException as error:  # any exception of foreign code is its failure
            raise_interruption(error)
            raise failure(self.name, "running", error) from error
        return self._checked(inputs, outputs)

    def run_into(self, inputs: Sequence[Array], targets: Sequence[Array | None]) -> Sequence[Array]:
        inputs = self._align_inputs(inputs)
        usable = [
            target if target is not None and self._is_writable(type_, target, inputs) else None
            for type_, target in zip(self._types, targets, strict=True)
        ]
        results = call(self.name, "running", self.program.run_into, inputs, usable)
        return self._checked(inputs, results)

    def with_program(self, program: Program, model: Model | None = None) -> GuardedProgram:
        """Return a guard of another program on the same device.

        Args:
            program: the program.
            model: the model that it was compiled from, if it is another.
        """
        return GuardedProgram(self.name, self.device, program, model or self.model, self._alignment)

    def count_run(self) -> None:
        """Count a run of a session of the program."""
        self._runs += 1

    def owns(self, buffer: Buffer) -> bool:
        return buffer.device is self.device

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        submission = call(self.name, "taking on a run", self.program.submit, inputs, outputs, after)
        if not isinstance(submission, Submission):
            raise self._mismatch(f"returned {kind_of(submission)} where a Submission belongs")
        buffers: list[Buffer] = call(self.name, "taking on a run", list, submission.outputs)
        count = len(self._outputs) + len(self._rules)
        if len(buffers) != count:
            raise self._mismatch(f"returned {len(buffers)} outputs where {count} belong")
        for (name, operand), buffer in zip(self._outputs, buffers, strict=False):
            if not isinstance(buffer, Buffer):
                raise self._mismatch(f"returned {kind_of(buffer)} for {name!r}, not a Buffer")
            dtype, shape = call(self.name, "describing a buffer", _describe_buffer, buffer)
            self._check_type(name, operand.type, dtype, shape, {})
        self._runs += 1
        if self._open:
            self._bytes_in += sum(_bytes_in(buffer) for buffer in inputs)
            self._bytes_out += sum(_bytes_in(buffer) for buffer in buffers)
        return Submission(buffers, submission.event)

    def check_rules(self, outputs: Sequence[Buffer]) -> None:
        for rule, buffer in zip(self._rules, outputs[len(self._outputs) :], strict=True):
            if not call(self.name, "running", lambda b: bool(np.all(b.array())), buffer):
                raise DeviceError(f"{self.name}: {rule}")

    def prepare(self, sizes: Mapping[str, Dim]) -> None:
        for part in self._parts:
            part.prepare(sizes)

    def statistics(self) -> Iterable[SegmentStatistics]:
        from crosschip.runtime.statistics import SegmentStatistics  # running needs none

        runs, times = self._runs, 1 if self._open else self._runs
        into, out = self._bytes_in * times, self._bytes_out * times
        way = DynamicShapeStrategy.OPEN if self._open else DynamicShapeStrategy.FIXED
        yield SegmentStatistics(self._segment, self.name, way.value, runs, into, out)
        for part in self._parts:
            yield from part.statistics()

    def save(self) -> bytes | None:
        """Return the bytes of the program; `None` if the device cannot save it.

        Raises:
            DeviceError: the device failed, or returned another type.
        """
        saved = call(self.name, "saving a program", self.program.save)
        if saved is not None and not isinstance(saved, _BYTES):
            raise self._mismatch(f"saved a program as {kind_of(saved)}, not as bytes")
        return saved

    def saving(self) -> Callable[[], Sequence[bytes | memoryview] | None] | None:
        """Return a function that saves the program; `None` if the device cannot save it.

        Raises:
            DeviceError: the device failed, or returned another type; also when the function is
                called.
        """
        make = call(self.name, "saving a program", self.program.saving)
        if callable(make):
            return partial(self._parts_of, make)
        if make is not None:
            raise self._mismatch(f"saves a program with {kind_of(make)}, which cannot be called")
        saved = self.save()
        return None if saved is None else lambda: [saved]

    def _parts_of(
        self, make: Callable[[], Sequence[bytes | memoryview] | None]
    ) -> Sequence[bytes | memoryview] | None:
        parts = call(self.name, "saving a program", make)
        if parts is None:
            return None
        if not isinstance(parts, list | tuple):
            raise self._mismatch(f"saved a program as {kind_of(parts)}, not as a list of bytes")
        for part in parts:
            if not isinstance(part, _BYTES):
                raise self._mismatch(f"saved a part of a program as {kind_of(part)}, not as bytes")
        return parts

    def close(self) -> None:
        try:
            call(self.name, "closing a program", self.program.close)
        except DeviceError as error:
            logger.warning("%s", error)

    def _align_inputs(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the inputs in memory with the device's alignment."""
        arrays = [_align(array, self._alignment) for array in inputs]
        for array, original in zip(arrays, inputs, strict=True):
            if array is not original:
                self.copies.add(Copied.INPUT, array)
        return arrays

    def _is_writable(self, type_: TensorType, target: Array, inputs: Sequence[Array]) -> bool:
        """Return whether a program may write an output of the type into an array."""
        return (
            type(target) is np.ndarray
            and target.dtype == type_.element_type.dtype
            and target.shape == type_.static_shape
            and target.flags.c_contiguous
            and target.flags.aligned
            and target.ctypes.data % self._alignment == 0
            and not any(np.may_share_memory(target, array) for array in inputs)
        )

    def _checked(self, inputs: Sequence[Array], outputs: Any) -> Sequence[Array]:
        """Check the results of a run against the model and return them; count the run."""
        try:
            for index, dtype in enumerate(self._dtypes):
                array = outputs[index]
                if type(array) is not np.ndarray or array.dtype is not dtype:
                    if isinstance(array, OBJECTS) and not self._tensors_out[index]:
                        continue
                    outputs = list(outputs)
                    outputs[index] = self._as_declared(index, array)
            if self._objects:
                shapes = shapes_of(self._tensors_out, outputs)
                read: tuple[Any, ...] = tuple(shapes_of(self._tensors_in, inputs))
            else:
                shapes = [array.shape for array in outputs]
                if shapes == self._fixed:
                    self._runs += 1
                    return cast(Sequence[Array], outputs)
                read = (
                    tuple([array.shape for array in inputs])
                    if self._size_locations is None
                    else tuple([inputs[index].shape[axis] for index, axis in self._size_locations])
                )
        except (TypeError, IndexError, AttributeError, KeyError):
            raise self._mismatch(f"returned {kind_of(outputs)} where outputs belong") from None
        accepted = self._accepted.get(read)
        if accepted is None or shapes != accepted[0]:
            self._check_shapes(shapes, inputs, outputs)
            accepted = shapes, self._bytes_of(inputs), self._bytes_of(outputs)
            if len(self._accepted) >= _MAX_ACCEPTED:
                self._accepted.clear()
            self._accepted[read] = accepted
        self._runs += 1
        if self._open:
            self._bytes_in += accepted[1]
            self._bytes_out += accepted[2]
        if self._rules:
            for rule, holds in zip(self._rules, outputs[len(self._outputs) :], strict=True):
                if not np.all(holds):
                    raise DeviceError(f"{self.name}: {rule}")
            return list(outputs[: len(self._outputs)])
        checked: Sequence[Array] = outputs
        return checked

    def _as_declared(self, index: int, array: object) -> Array:
        name, dtype = self._outputs[index][0], self._dtypes[index]
        if type(array) is np.ndarray and array.dtype == dtype:
            # An equal type with another identity, as NumPy has two for integers of 64 bits.
            return array.view(dtype)
        if self._types[index].element_type is ElementType.OBJECT:
            raise self._mismatch(
                f"returned {kind_of(array)} for {name!r}, not a list, dict or None"
            )
        if not isinstance(array, np.ndarray):
            raise self._mismatch(f"returned {kind_of(array)} for {name!r}, not an array")
        if array.dtype != dtype:
            declared = self._types[index]
            raise self._mismatch(
                f"returned {array.dtype} for {name!r}, but the model says {declared}"
            )
        return np.asarray(array).view(dtype)

    def _check_shapes(
        self, of_outputs: Sequence[Shape], inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        count = len(self._outputs) + len(self._rules)
        if len(outputs) != count:
            raise self._mismatch(f"returned {len(outputs)} outputs where {count} belong")
        sizes = self._reader.read(shapes_of(self._tensors_in, inputs))
        if self._shape_check.fits(of_outputs, sizes):
            return
        for (name, operand), array in zip(self._outputs, outputs, strict=False):
            if operand.type.element_type is not ElementType.OBJECT:
                self._check_type(name, operand.type, array.dtype, array.shape, sizes)

    def _bytes_of(self, values: Sequence[Array]) -> int:
        """Return the bytes of inputs or outputs, without those of Python objects."""
        if self._in_memory:
            return sum([value.nbytes for value in values])
        return sum([v.nbytes for v in values if type(v) is np.ndarray and not v.dtype.hasobject])

    def _check_type(
        self,
        name: str,
        declared: TensorType,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        sizes: Mapping[str, Dim],
    ) -> None:
        fits = declared.shape is None or (
            len(declared.shape) == len(shape)
            and all(map(_may_be, declared.substitute(sizes).shape or (), shape))
        )
        if not fits or dtype != declared.element_type.dtype:
            raise self._mismatch(
                f"returned {dtype}{list(shape)} for {name!r}, but the model says {declared}"
            )

    def _mismatch(self, how: str) -> DeviceError:
        return DeviceError(f"{self.name}: {how}; the device breaks the driver contract")


def tensors_among(types: Sequence[TensorType]) -> list[bool]:
    """Return, for each type, whether its values are tensors."""
    return [type_.element_type is not ElementType.OBJECT for type_ in types]


def shapes_of(tensors: Sequence[bool], values: Sequence[Array]) -> list[tuple[int, ...]]:
    """Return the shapes of values; `()` for objects.

    Args:
        tensors: whether each value is a tensor; further values are.
        values: the values.
    """
    if False not in tensors:
        return [value.shape for value in values]
    pairs = zip(chain(tensors, repeat(True)), values, strict=False)
    return [value.shape if is_tensor else () for is_tensor, value in pairs]


def _describe_buffer(buffer: Buffer) -> tuple[np.dtype[Any], tuple[int, ...]]:
    return buffer.element_type.dtype, tuple(buffer.shape)


def _align(array: Array, alignment: int) -> Array:
    """Return the array, or a copy in memory that begins at a multiple of `alignment` bytes."""
    if alignment == 1 or type(array) is not np.ndarray or array.dtype.hasobject:
        return array
    if array.ctypes.data % alignment == 0:
        return array
    memory = np.empty(array.nbytes + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    copy: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _may_be(declared: Dim, size: int) -> bool:
    return not isinstance(declared, int) or declared == size


def bytes_of(type_: TensorType) -> int:
    """Return the bytes of a tensor of a static type; 0 for Python objects."""
    if type_.element_type in PYTHONS_TYPES:
        return 0
    return math.prod(type_.static_shape or ()) * type_.element_type.dtype.itemsize


def _bytes_in(buffer: Buffer) -> int:
    return math.prod(buffer.shape) * buffer.element_type.dtype.itemsize
