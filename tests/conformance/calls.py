"""Devices that are right when `run` is called once, and wrong in another call or a later one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Buffer, Device, Event, Options, Program, Submission
from crosschip.ir import Array, DeviceError, ElementType, Model
from crosschip.ops.definition.serialization import from_bytes


@dataclass(frozen=True)
class Call:
    """A device with such a fault, and words of the message that the kit has for it."""

    device: type[Device]
    message: str


class Memory(Buffer):
    """Memory of a device, which remembers how often it was written."""

    def __init__(self, device: object, element_type: ElementType, shape: tuple[int, ...]) -> None:
        self.device = device
        self.element_type = element_type
        self.shape = shape
        self.held = np.zeros(shape, element_type.dtype)
        self.writes = 0

    def array(self) -> Array:
        return self.held.copy()

    def write(self, array: Array) -> None:
        self.held[...] = array
        self.writes += 1

    def __dlpack__(self, **request: Any) -> Any:
        return self.held.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.held.__dlpack_device__()


class WrittenOnce(Memory):
    """Ignores all writes but the first."""

    def write(self, array: Array) -> None:
        if not self.writes:
            super().write(array)


class InOrder(Memory):
    """Takes the memory of an array for C-contiguous."""

    def write(self, array: Array) -> None:
        super().write(np.asarray(array).ravel("K").reshape(array.shape))


class Submitting(ReferenceProgram):
    """Computes what is submitted at once."""

    def submit(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer | None],
        after: Sequence[Event],
    ) -> Submission:
        for event in after:
            event.wait()
        return Submission.on_host(self.outputs([b.array() for b in inputs]), outputs)

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        return list(self.run(inputs))


class OneTooLarge(Submitting):
    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        return [o + o.dtype.type(1) if o.dtype.kind in "fi" else o for o in super().outputs(inputs)]


class InOneBuffer(Submitting):
    """Hands out the same arrays for all that is submitted."""

    _mine: dict[tuple[int, ...], list[Array]]

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        made = super().outputs(inputs)
        shape = made[0].shape
        self._mine = getattr(self, "_mine", {})
        mine = self._mine.setdefault(shape, made)
        for held, array in zip(mine, made, strict=True):
            held[...] = array
        return mine


class Impatient(Submitting):
    """Reads inputs before what must come before has ended."""

    def submit(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer | None],
        after: Sequence[Event],
    ) -> Submission:
        arrays = [buffer._array.copy() for buffer in inputs if hasattr(buffer, "_array")]
        if len(arrays) < len(inputs):
            return super().submit(inputs, outputs, after)
        return Submission.on_host(self.outputs(arrays), outputs)


class Unwritten(ReferenceProgram):
    """Says of arrays of the caller's that they have been written, and does not write them."""

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        made = self.run(inputs)
        return [a if p is None else p for a, p in zip(made, places, strict=True)]


class Leaking(ReferenceProgram):
    """Keeps a kilobyte of each run."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self._kept = [*getattr(self, "_kept", []), bytearray(1024)]
        return super().run(inputs)


class Aligned(ReferenceProgram):
    """Reads from addresses that are multiples of 8 alone."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        moved = [
            np.roll(a.reshape(-1), 1).reshape(a.shape) if a.size and a.ctypes.data % 8 else a
            for a in inputs
        ]
        return super().run(moved)


class Spoiling(ReferenceProgram):
    """Computes in the memory of its inputs."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        made = super().run(inputs)
        for array in inputs:
            if array.flags.writeable and array.size and array.dtype.kind == "f":
                array.reshape(-1)[-1] += 1
        return made


def _device(program: type[ReferenceProgram], memory: type[Memory] | None = None) -> type[Device]:
    """The reference device with another program, and memory of its own."""

    class Faulty(ReferenceDevice):
        def compile(self, model: Model, options: Options) -> Program:
            return program(model)

        def load(self, saved: bytes, model: Model, options: Options) -> Program:
            return program(from_bytes(saved, "saved program"), model)

    if memory is not None:

        def allocate(self: Device, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
            return memory(self, element_type, shape)

        Faulty.allocate = allocate  # type: ignore[method-assign]
    return Faulty


class Forgetful(ReferenceDevice):
    """Loads programs without the second constant of int64."""

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        held = [o for o in model.constants if o.type.element_type is ElementType.INT64]
        if len(held) > 1 and held[1].value is not None:
            raise DeviceError("a constant of int64 is not in the saved program")
        return super().load(saved, model, options)


class Sorted(ReferenceProgram):
    """Returns outputs in the order in which operations compute them."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        made = super().run(inputs)
        return [made[index] for index in np.argsort(self._outputs)]


class LoadsSorted(ReferenceDevice):
    """Loads programs that forget the order of the model's outputs."""

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return Sorted(from_bytes(saved, "saved program"), model)


class ByShape(ReferenceDevice):
    """Takes models whose operations and shapes are equal for the same."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._models: dict[tuple[object, ...], Model] = {}

    def compile(self, model: Model, options: Options) -> Program:
        types = tuple(str(operand.type) for operand in model.inputs.values())
        key = (*types, *(operation.type for operation in model.operations))
        held = self._models.setdefault(key, model)
        return super().compile(
            held if held.inputs.keys() == model.inputs.keys() else model, options
        )


CALLS: dict[str, Call] = {
    "a_submission_is_one_too_large": Call(_device(OneTooLarge), "submit"),
    "submissions_share_memory": Call(_device(InOneBuffer), ""),
    "events_are_not_awaited": Call(_device(Impatient), "behind an event"),
    "a_second_write_is_ignored": Call(_device(Submitting, WrittenOnce), "written again"),
    "strides_are_ignored": Call(_device(Submitting, InOrder), "with strides"),
    "arrays_of_the_caller_are_not_written": Call(_device(Unwritten), "run_into"),
    "a_kilobyte_is_lost_a_run": Call(_device(Leaking), "memory grows by"),
    "inputs_are_read_as_aligned": Call(_device(Aligned), "read-only inputs"),
    "inputs_are_computed_in": Call(_device(Spoiling), "was written to"),
    "a_saved_constant_is_lost": Call(Forgetful, "constant of int64"),
    "a_loaded_program_sorts_outputs": Call(LoadsSorted, "a loaded model of"),
    "programs_are_kept_by_shape": Call(ByShape, ""),
}
"""The devices by what they do wrong."""
