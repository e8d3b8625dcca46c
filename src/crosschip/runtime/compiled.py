"""A model that has been placed and compiled, ready to run."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import finalize

from crosschip.hal import Buffer, Sizes
from crosschip.ir import Array, InputError, Operand
from crosschip.ir.closing import Closing
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Plan
from crosschip.runtime.guard import GuardedDevice, GuardedProgram, call
from crosschip.runtime.placement.placing import Placement
from crosschip.runtime.places import check_places, placed
from crosschip.runtime.requests import Priority, Request, RequestQueue
from crosschip.runtime.signature import Signature

_CLOSING_LOOK_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Report of one compilation.

    Attributes:
        milliseconds: from the call to the compiled model.
        cache: `hit` if every program came from the cache, `miss` if one did not, `off` if it was
            not used or no device saves its programs.
    """

    milliseconds: float
    cache: str


class CompiledModel(Closing):
    """Runs a model on the devices that it was placed on; may be called from many threads at once.

    Attributes:
        placement: who runs what, and why.
        report: what compiling took.
        copies: what was copied in its runs, of what could have stayed where it was.
    """

    def __init__(
        self,
        placement: Placement,
        programs: Sequence[GuardedProgram],
        devices: Mapping[str, GuardedDevice],
        sizes: Sizes,
        report: CompileReport,
        in_flight: int = 2,
        queue_size: int = 64,
    ) -> None:
        """Join programs to a plan.

        Args:
            placement: what the programs were compiled from.
            programs: one for each segment, in order.
            devices: the devices, by name.
            sizes: the ranges that open sizes must keep to.
            report: what compiling took.
            in_flight: how many requests run at once.
            queue_size: how many wait besides.
        """
        self.placement = placement
        self.report = report
        self._programs = tuple(programs)
        self._devices = dict(devices)
        self._owned: tuple[GuardedDevice, ...] = ()
        self.copies = Copies()
        self._output_names = tuple(placement.model.outputs)
        self._plan = Plan(placement, programs, self.copies)
        self._signature = Signature(placement.model, sizes, self.copies, buffers=self._plan.submits)
        self._execute = self._plan.execute
        # An entry for each run that is under way: adding and removing one takes no lock.
        self._running: list[None] = []
        self._closed = False
        self._requests = RequestQueue(placement.model.name, in_flight, queue_size)
        # The threads of the queue hold the queue alone, and end if nobody closes the model.
        finalize(self, self._requests.release)

    @property
    def inputs(self) -> Mapping[str, Operand]:
        """The operands that the caller provides, by name."""
        return self.placement.model.inputs

    @property
    def outputs(self) -> Mapping[str, Operand]:
        """The operands that the caller gets back, by name."""
        return self.placement.model.outputs

    def own(self, devices: Iterable[GuardedDevice]) -> None:
        """Close these devices, too, when the model is closed."""
        self._owned = tuple(devices)

    def run(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Array | Buffer] | None = None,
        keep: Collection[str] = (),
        *,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Compute the outputs.

        Args:
            inputs: an array for each model input, by name, or a buffer that an earlier run kept on
                its device; only read. See `crosschip.runtime.arrays.as_array` for what is taken
                for an array. For what is no tensor, the value itself: a list for a sequence, a
                dictionary for a map, and for an optional value what it holds or `None`.
            outputs: arrays, or buffers of `allocate`, to write outputs into, by name; writable, and
                of an output's type and shape. Where sizes are known, a device on the processor
                writes straight into an array in C order that shares no memory with an input. If
                the run fails, they may hold anything.
            keep: the names of outputs to leave on the device that made them, as buffers.
            timeout: seconds after which the caller no longer waits; the run, which no engine can
                be stopped in, ends by itself. `None` waits for its end.

        Returns:
            An array for each model output, by name, or the value itself for what is no tensor; the
            caller owns them. For a name in `outputs`, it is what was given there, and for one in
            `keep` a `crosschip.hal.Buffer`.

        Raises:
            InputError: the inputs do not fit the model, or the outputs do not fit the results.
            DeadlineError: it took longer than `timeout`.
            DeviceError: a device failed.
        """
        if timeout is not None:
            return self.submit(inputs, outputs, keep, deadline=timeout).result()
        self._running.append(None)
        try:
            arrays = self._signature.arrange(inputs)
            if outputs or keep or (self._plan.submits and _holds_buffers(inputs)):
                check_places(self.outputs, outputs or {}, keep)
                return self._run_in_place(arrays, outputs or {}, keep)
            return dict(zip(self._output_names, self._execute(arrays), strict=True))
        finally:
            self._running.pop()

    def submit(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Array | Buffer] | None = None,
        keep: Collection[str] = (),
        *,
        priority: Priority = Priority.MEDIUM,
        deadline: float | None = None,
        wait: bool = True,
    ) -> Request:
        """Take on a run and return at once; its `Request` is a future, and can be awaited.

        Args:
            inputs: as for `run`; the arrays must stay as they are until the run has ended.
            outputs: as for `run`.
            keep: as for `run`.
            priority: its place among the requests that wait.
            deadline: seconds from now after which the request has failed, wherever it is.
            wait: whether to wait while the queue is full, at most until the deadline.

        Raises:
            InputError: the inputs do not fit the model, or there is no such output.
            QueueFullError: the queue is full, and waiting was not allowed or was of no use.
        """
        if outputs or keep:
            check_places(self.outputs, outputs or {}, keep)
        work = partial(self._answer, self._signature.arrange(inputs), outputs or {}, keep)
        if type(priority) is not Priority:
            priority = Priority(priority)
        return self._requests.put(work, priority, deadline, wait=wait)

    def __call__(self, /, *inputs: Any, **named: Any) -> Any:
        """Compute the outputs from inputs in order or by name; a single output comes back bare."""
        outputs = tuple(self.run(self._signature.named(inputs, named)).values())
        return outputs[0] if len(outputs) == 1 else outputs

    def allocate(self, name: str, shape: Sequence[int]) -> Buffer:
        """Memory for an input or an output of the model on the device that reads or makes it.

        Args:
            name: the input's or the output's.
            shape: the sizes, all known.

        Raises:
            InputError: there is no such input or output, or it is of text or no tensor.
            DeviceError: the device does not have so much memory.
        """
        operand = {**self.outputs, **self.inputs}.get(name)
        if operand is None:
            known = ", ".join([*self.inputs, *self.outputs])
            raise InputError(f"the model has no input or output {name!r}; there are {known}")
        device = self._devices[self._home(operand)]
        type_ = operand.type.element_type
        if type_ in PYTHONS_TYPES:
            raise InputError(f"{name!r} is of {type_}, which no device's memory holds")
        doing = "allocating memory"
        return call(device.name, doing, device.device.allocate, type_, tuple(shape))

    def prepare(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Compile for shapes of the inputs, where a device compiles again for each.

        Without it, the first run with such shapes does so.

        Args:
            shapes: for each input, by name.

        Raises:
            InputError: the shapes do not fit the model.
            CompileError: a device failed to compile for them.
        """
        sizes = self._signature.sizes(shapes)
        for segment, program in zip(self.placement.segments, self._programs, strict=True):
            types = [operand.type.substitute(sizes) for operand in segment.inputs]
            known = [type_.static_shape for type_ in types]
            if all(shape is not None for shape in known):
                program.prepare([shape for shape in known if shape is not None])

    def close(self) -> None:
        """Release programs and devices, once runs and requests that were taken on have ended.

        The model cannot be run afterwards; a second call does nothing.
        """
        self._requests.close()
        self._closed = True
        self._execute = _closed
        while self._running:
            time.sleep(_CLOSING_LOOK_SECONDS)
        programs, owned = self._programs, self._owned
        self._programs, self._owned = (), ()
        for program in programs:
            program.close()
        for device in owned:
            device.close()

    def __repr__(self) -> str:
        return f"<CompiledModel {self.placement.model.name}: {self.placement.summary()}>"

    def _answer(
        self,
        values: Sequence[Array],
        outputs: Mapping[str, Array | Buffer],
        keep: Collection[str],
    ) -> dict[str, Any]:
        """`run` for values that have been checked."""
        if outputs or keep or self._plan.submits:
            return self._run_in_place(values, outputs, keep)
        return dict(zip(self._output_names, self._plan.execute(values), strict=True))

    def _run_in_place(
        self,
        values: Sequence[Array],
        outputs: Mapping[str, Array | Buffer],
        keep: Collection[str],
    ) -> dict[str, Any]:
        """`run` where buffers come in, outputs have their places, or stay on their devices."""
        if self._closed:
            self._execute(values)
        places = {index: outputs.get(name) for index, name in enumerate(self._output_names)}
        targets = {index: place for index, place in places.items() if place is not None}
        made = dict(
            zip(self._output_names, self._plan.execute_values(values, targets), strict=True)
        )
        return {
            name: placed(name, value, outputs.get(name), self.copies, kept=name in keep)
            for name, value in made.items()
        }

    def _home(self, operand: Operand) -> str:
        """The device that makes an operand, or is the first to read it."""
        segments = self.placement.segments
        for segment in segments:
            if operand in segment.outputs and segment.device in self._devices:
                return segment.device
        readers = (
            segment.device
            for segment in segments
            if operand in segment.inputs and segment.device in self._devices
        )
        return next(readers, next(iter(self._devices)))


def _holds_buffers(inputs: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Buffer) for value in inputs.values())


def _closed(arrays: Sequence[Array]) -> Sequence[Array]:
    raise InputError("this compiled model has been closed; compile it again to run it")
