"""Programs of drivers in C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from crosschip.devices.kits.native.arguments import Arguments, Place
from crosschip.devices.kits.native.interface import foreign
from crosschip.devices.kits.native.library import Library
from crosschip.devices.kits.native.memory import NativeBuffer
from crosschip.hal.buffers import COMPLETED, Buffer, Event, HostBuffer, HostEvent, Submission
from crosschip.hal.program import Program
from crosschip.ir import Array, DeviceError, ElementType, Model, TensorType

Allocate = Callable[[ElementType, tuple[int, ...]], Buffer]


class NativeProgram(Program):
    """A program that is waited for.

    Args:
        library: the driver's.
        handle: the driver's `program`.
        model: what was compiled.
        kept: what the driver may still read.
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
    """A program of a driver that takes on work and goes on, or has memory of its own.

    Args:
        library, handle, model, kept: as for a program that is waited for.
        allocate: makes memory of the device.
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
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer | None],
        after: Sequence[Event],
    ) -> Submission:
        for event in after:
            event.wait()
        types = [operand.type for operand in self._model.outputs.values()]
        targets = [
            self._target(type_, given)
            for type_, given in zip(types, outputs or self._new, strict=True)
        ]
        arguments = Arguments(self._model)
        places = [None if target is None else _place(target) for target in targets]
        arguments.set([_place(buffer) for buffer in inputs], places)
        done = self._started(arguments)
        results: list[Buffer] = []
        for index, (type_, target) in enumerate(zip(types, targets, strict=True)):
            results.append(target or _Late(arguments, index, type_.element_type))
            results[-1].ready = done
        return Submission(results, done)

    def _target(self, type_: TensorType, target: Buffer | None) -> Buffer | None:
        """The memory that an output goes to, if its sizes are known."""
        shape = type_.static_shape
        return (
            self._allocate(type_.element_type, shape)
            if target is None and shape is not None
            else target
        )

    def _started(self, arguments: Arguments) -> Event:
        submit = self._library.function("submit_program")
        if submit is None:
            self._execute(arguments)
            return COMPLETED
        run = _Run(self._library, arguments)
        _under_way[run.token] = run
        try:
            code = submit(self._handle, *arguments.passed, _done(), run.token)
            self._library.check(code, "submit_program")
        except DeviceError:
            del _under_way[run.token]
            raise
        return run.event


class _Run:
    """A run that a driver has taken on, with all that it reads and writes."""

    def __init__(self, library: Library, arguments: Arguments) -> None:
        self.library = library
        self.arguments = arguments
        self.event = HostEvent()
        self.token = foreign().new_handle(self)


_under_way: dict[Any, _Run] = {}
"""The runs that drivers have not finished."""


@lru_cache(maxsize=1)
def _done() -> Any:
    """The function that drivers call when a run is done, from threads of their own."""

    def done(token: Any, result: int) -> None:
        run: _Run = foreign().from_handle(token)
        del _under_way[run.token]
        try:
            run.library.check(result, "submit_program")
        except DeviceError as error:
            run.event.set(error)
        else:
            run.event.set()

    return foreign().callback("void (void *, int)", done)


class _Late(Buffer):
    """An output on the host whose sizes show only when it is there."""

    def __init__(self, arguments: Arguments, index: int, element_type: ElementType) -> None:
        self.element_type = element_type
        self._arguments = arguments
        self._index = index

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # it is waited for
        return self.array().shape

    def array(self) -> Array:
        self.ready.wait()
        array = self._arguments.results()[self._index]
        assert isinstance(array, np.ndarray), "what the driver asks for is on the host"
        return array

    def write(self, array: Array) -> None:
        np.copyto(self.array(), array, casting="no")

    def __dlpack__(self, **request: Any) -> Any:
        return self.array().__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array().__dlpack_device__()


def _place(buffer: Buffer) -> Place:
    if isinstance(buffer, NativeBuffer):
        buffer.ready.wait()
        return buffer
    assert isinstance(buffer, HostBuffer | _Late), "a device gets its own buffers, or the host's"
    return buffer.array()
