"""Programs of devices written in C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from crosschip.devices.kits.native.arguments import Arguments, Memory
from crosschip.devices.kits.native.interface import foreign
from crosschip.devices.kits.native.library import Library
from crosschip.devices.kits.native.memory import NativeBuffer
from crosschip.hal.buffers import COMPLETED, Buffer, Event, HostBuffer, HostEvent, Submission
from crosschip.hal.program import Program
from crosschip.ir import Array, DeviceError, ElementType, Model, TensorType

Allocate = Callable[[ElementType, tuple[int, ...]], Buffer]


class NativeProgram(Program):
    """A program with synchronous runs.

    Args:
        library: the driver's library.
        handle: the driver's `program`.
        model: the compiled model.
        keep_alive: objects whose memory the driver may read.
    """

    def __init__(
        self, library: Library, handle: Any, model: Model, keep_alive: Sequence[object]
    ) -> None:
        self._library = library
        self._handle = handle
        self._model = model
        self._keep_alive = keep_alive
        self._new: list[None] = [None] * len(model.outputs)
        self._idle: list[Arguments] = []

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            arguments = self._idle.pop()
        except IndexError:
            arguments = Arguments(self._model)
        arguments.set(inputs, self._new)
        self._execute(arguments)
        outputs = arguments.results()
        self._idle.append(arguments)
        return [output for output in outputs if isinstance(output, np.ndarray)]

    def save(self) -> bytes | None:
        if self._library.function("save_program") is None:
            return None
        ffi = foreign()
        saved, length = ffi.new("const void **"), ffi.new("uint64_t *")
        self._library.call("save_program", self._handle, saved, length)
        return bytes(ffi.buffer(saved[0], length[0]))

    def close(self) -> None:
        self._library.driver.destroy_program(self._handle)
        vars(self).clear()

    def _execute(self, arguments: Arguments) -> None:
        code = self._library.driver.execute_program(self._handle, *arguments.passed)
        self._library.check(code, "execute_program")


class SubmittingProgram(NativeProgram):
    """A program of a driver that runs asynchronously or has memory of its own.

    Args:
        library, handle, model, keep_alive: as for `NativeProgram`.
        allocate: allocates memory of the device.
    """

    def __init__(
        self,
        library: Library,
        handle: Any,
        model: Model,
        keep_alive: Sequence[object],
        allocate: Allocate,
    ) -> None:
        super().__init__(library, handle, model, keep_alive)
        self._allocate = allocate

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        for event in after:
            event.wait()
        types = [operand.type for operand in self._model.outputs.values()]
        targets = [
            self._target(type_, buffer)
            for type_, buffer in zip(types, outputs or self._new, strict=True)
        ]
        arguments = Arguments(self._model)
        memory = [None if target is None else _memory_of(target) for target in targets]
        arguments.set([_memory_of(buffer) for buffer in inputs], memory)
        done = self._start(arguments)
        results: list[Buffer] = []
        for index, (type_, target) in enumerate(zip(types, targets, strict=True)):
            results.append(target or _DataDependentBuffer(arguments, index, type_.element_type))
            results[-1].ready = done
        return Submission(results, done)

    def _target(self, type_: TensorType, target: Buffer | None) -> Buffer | None:
        """Return the output's buffer, or a new one if the shape is static."""
        shape = type_.static_shape
        return (
            self._allocate(type_.element_type, shape)
            if target is None and shape is not None
            else target
        )

    def _start(self, arguments: Arguments) -> Event:
        submit = self._library.function("submit_program")
        if submit is None:
            self._execute(arguments)
            return COMPLETED
        run = _Run(self._library, arguments)
        _submitted_runs[run.token] = run
        try:
            code = submit(self._handle, *arguments.passed, _completion(), run.token)
            self._library.check(code, "submit_program")
        except DeviceError:
            del _submitted_runs[run.token]
            raise
        return run.event


class _Run:
    """A submitted run, with the arguments that the driver reads and writes."""

    def __init__(self, library: Library, arguments: Arguments) -> None:
        self.library = library
        self.arguments = arguments
        self.event = HostEvent()
        self.token = foreign().new_handle(self)


_submitted_runs: dict[Any, _Run] = {}
"""The runs that drivers have not completed."""


@lru_cache(maxsize=1)
def _completion() -> Any:
    """Return the C function that drivers call, from any thread, when a run has completed."""

    def done(token: Any, result: int) -> None:
        run: _Run = foreign().from_handle(token)
        del _submitted_runs[run.token]
        try:
            run.library.check(result, "submit_program")
        except DeviceError as error:
            run.event.set(error)
        else:
            run.event.set()

    return foreign().callback("void (void *, int)", done)


class _DataDependentBuffer(Buffer):
    """A host buffer of an output whose shape is known only after the run."""

    def __init__(self, arguments: Arguments, index: int, element_type: ElementType) -> None:
        self.element_type = element_type
        self._arguments = arguments
        self._index = index

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # waits for the run
        return self.array().shape

    def array(self) -> Array:
        self.ready.wait()
        array = self._arguments.results()[self._index]
        assert isinstance(array, np.ndarray), "Arguments.memory_for allocates it on the host"
        return array

    def write(self, array: Array) -> None:
        np.copyto(self.array(), array, casting="no")

    def __dlpack__(self, **request: Any) -> Any:
        return self.array().__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array().__dlpack_device__()


def _memory_of(buffer: Buffer) -> Memory:
    if isinstance(buffer, NativeBuffer):
        buffer.ready.wait()
        return buffer
    assert isinstance(buffer, HostBuffer | _DataDependentBuffer), (
        "a device gets its own buffers, or the host's"
    )
    return buffer.array()
