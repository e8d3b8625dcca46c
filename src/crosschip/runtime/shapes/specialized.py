"""A segment that is compiled per set of input shapes, with a bounded number of programs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.hal import Buffer, Device, Event, HostBuffer, Submission
from crosschip.ir import Array, Dim, Model
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.static_shapes import FixedModel, fix_sizes
from crosschip.runtime.artifact.header import ShapeKey, ShapePrograms
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Plan
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.programs import bytes_of, shapes_of, tensors_among
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.shapes.padding import Padding, Shapes
from crosschip.runtime.shapes.pool import Pool
from crosschip.runtime.shapes.strategy import DynamicShapeStrategy
from crosschip.runtime.statistics import SegmentStatistics


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled model of static shapes.

    Attributes:
        run: computes the outputs from the inputs, both in the model's order.
        plan: its programs, which are closed with it.
        whole: whether it is a single program with the model's inputs and outputs.
        loaded: the number of programs that came from the cache.
        saved: returns the content for a cache; `None` if a device does not save its program.
    """

    run: Callable[[Sequence[Array]], Sequence[Array]]
    plan: Plan
    whole: bool
    loaded: int
    saved: Callable[[], Mapping[Entry, bytes] | None]


Compile = Callable[[Model], Compiled]


class SpecializedProgram(SegmentProgram):
    """The programs of a segment, one per set of input shapes.

    Args:
        name: the name of the device.
        device: the device.
        model: the segment, with dynamic sizes.
        compile: compiles a model of static shapes.
        compilers: the names of the devices that may compile it, in the order of preference.
        most: the maximum number of programs that are kept.
        padding: the padded sizes, if any.
    """

    def __init__(
        self,
        name: str,
        device: Device,
        model: Model,
        compile: Compile,
        compilers: Sequence[str],
        most: int,
        padding: Padding,
    ) -> None:
        self.name = name
        self.copies = Copies()
        self.compile = compile
        self.compilers = tuple(compilers)
        # Buffers are passed on only if the device has its own memory.
        self.submits = type(device).allocate is not Device.allocate
        self._device = device
        self._model = model
        self._types = [operand.type for operand in model.inputs.values()]
        self._tensors = tensors_among(self._types)
        self._value_inputs = [
            i for i, type_ in enumerate(self._types) if type_.shape_value is not None
        ]
        self._padding = padding if padding else None
        self._pool: Pool[ShapeKey, _Specialization] = Pool(self._make, self._drop, most)
        self._lock = threading.Lock()
        self._dropped_statistics = SegmentStatistics(
            model.name, name, strategy_text(most, padding), programs=0
        )

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        shapes = tuple(shapes_of(self._tensors, inputs))
        if self._padding is not None:
            wider = self._padding.shapes(shapes)
            if wider != shapes:
                with self._lock:
                    self._dropped_statistics = replace(
                        self._dropped_statistics, padded=self._dropped_statistics.padded + 1
                    )
                outputs = self._run(wider, self._padding.pad(inputs, wider))
                return self._padding.crop(outputs, shapes)
        return self._run(shapes, inputs)

    def count_copies(self, copies: Copies) -> None:
        super().count_copies(copies)
        for _, program, _ in self._pool.entries():
            program.count_copies(copies)

    def owns(self, buffer: Buffer) -> bool:
        return buffer.device is self._device

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        shapes = tuple([tuple(buffer.shape) for buffer in inputs])
        if self._padding is not None and self._padding.shapes(shapes) != shapes:
            results = self.run([call(self.name, "handing out elements", b.array) for b in inputs])
            return Submission.on_host(results, outputs)
        elements = [
            call(self.name, "handing out elements", inputs[i].array) for i in self._value_inputs
        ]
        lease = self._pool.take((shapes, _elements(elements)))
        try:
            submission = lease.value.submit(inputs, outputs, after)
        except BaseException:
            self._pool.release(lease)
            raise
        end = EventWithAction(submission.event, lambda: self._pool.release(lease))
        return Submission(submission.outputs, end)

    def prepare(self, sizes: Mapping[str, Dim]) -> None:
        types = [type_.substitute(sizes) for type_ in self._types]
        shapes = [type_.static_shape for type_ in types]
        values = [_numbers(types[index].shape_value or ()) for index in self._value_inputs]
        static = tuple([shape for shape in shapes if shape is not None])
        elements = tuple([numbers for numbers in values if numbers is not None])
        if len(static) == len(shapes) and len(elements) == len(values):
            wider = static if self._padding is None else self._padding.shapes(static)
            self.make((wider, elements))

    def make(self, key: ShapeKey) -> None:
        """Compile for a key, unless there is a program for it.

        Raises:
            ValueError: the key does not belong to this program.
            CompileError: the device failed to compile.
        """
        shapes, elements = key
        for type_, shape in zip(self._types, shapes, strict=True):
            if min(shape, default=0) < 0 or not replace(type_, shape=shape).fits(type_):
                raise ValueError(f"{list(shape)} is no shape of {type_}")
        for index, numbers in zip(self._value_inputs, elements, strict=True):
            if len(numbers) != math.prod(shapes[index]):
                raise ValueError(f"{list(numbers)} are not the elements of {list(shapes[index])}")
        self._pool.release(self._pool.take(key), used=False)

    def save_all(self) -> tuple[ShapePrograms, Sequence[bytes]] | None:
        """Return the programs and their shapes; `None` if a device does not save one.

        Raises:
            DeviceError: a device failed to save one.
        """
        leases = self._pool.borrow()
        try:
            saved = [lease.value.saved() for _, lease in leases]
        finally:
            for _, lease in leases:
                self._pool.release(lease, used=False)
        programs: dict[Entry, bytes] = {}
        for entries in saved:
            if entries is None:
                return None
            programs.update(entries)
        buckets = {} if self._padding is None else self._padding.buckets
        shapes = ShapePrograms(
            tuple(self.compilers),
            {name: tuple(sizes) for name, sizes in buckets.items()},
            tuple([key for key, _ in leases]),
            tuple(programs),
        )
        return shapes, list(programs.values())

    def statistics(self) -> Iterable[SegmentStatistics]:
        total = self._dropped_statistics
        entries = self._pool.entries()
        for _, program, uses in entries:
            total = program.add_to(total, uses)
        yield replace(
            total,
            programs=len(entries),
            hits=self._pool.hits,
            evicted=self._pool.evicted,
        )

    def close(self) -> None:
        self._pool.clear()

    def _run(self, shapes: Shapes, inputs: Sequence[Array]) -> Sequence[Array]:
        key = shapes, _elements([inputs[index] for index in self._value_inputs])
        lease = self._pool.take(key)
        try:
            return lease.value.run(inputs)
        finally:
            self._pool.release(lease)

    def _make(self, key: ShapeKey) -> _Specialization:
        """Compile the program of a key.

        Raises:
            CompileError: neither the device nor any later one compiled it.
        """
        shapes, elements = key
        operands = list(self._model.inputs.values())
        values = {
            operands[index]: np.array(numbers, self._types[index].element_type.dtype).reshape(
                shapes[index]
            )
            for index, numbers in zip(self._value_inputs, elements, strict=True)
        }
        model = fix_sizes(self._model, shapes, values, self.name)
        if not model.model.operations:
            return _Specialization(model, None)
        compiled = self.compile(model.model)
        compiled.plan.count_copies(self.copies)
        with self._lock:
            past, count = self._dropped_statistics, len(compiled.plan.programs)
            self._dropped_statistics = replace(
                past,
                compiled=past.compiled + count - compiled.loaded,
                loaded=past.loaded + compiled.loaded,
            )
        return _Specialization(model, compiled)

    def _drop(self, program: _Specialization, uses: int) -> None:
        with self._lock:
            self._dropped_statistics = program.add_to(self._dropped_statistics, uses)
        program.close()


def strategy_text(most: int, padding: Padding) -> str:
    """Return the dynamic shape strategy in words."""
    way = f"{DynamicShapeStrategy.PROGRAM_PER_SHAPE.value}, {most} at most"
    return f"{way}; pads {padding}" if padding else way


class _Specialization:
    """The program of a segment for one set of shapes.

    Args:
        fixed: the model with static shapes.
        compiled: the compiled model; `None` if nothing is left to run.
    """

    def __init__(self, fixed: FixedModel, compiled: Compiled | None) -> None:
        self._reads = fixed.reads
        self._results = fixed.makes
        self._executable = compiled
        self._bytes_per_run = [
            sum(bytes_of(operand.type) for operand in side.values())
            for side in (fixed.model.inputs, fixed.model.outputs)
        ]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        outputs: Sequence[Array] = ()
        if self._executable is not None:
            outputs = self._executable.run([inputs[index] for index in self._reads])
        return [outputs[m] if isinstance(m, int) else m.copy() for m in self._results]

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        """Submit a run; waiting for its event checks its rules."""
        compiled = self._executable
        targets = outputs or [None] * len(self._results)
        if compiled is None or not (compiled.whole and compiled.plan.submits):
            for event in after:
                event.wait()
            return Submission.on_host(self.run([buffer.array() for buffer in inputs]), targets)
        computed_targets = [
            target for target, m in zip(targets, self._results, strict=True) if isinstance(m, int)
        ]
        (program,) = compiled.plan.programs
        submission = program.submit(
            [inputs[index] for index in self._reads], computed_targets, after
        )
        buffers = [
            submission.outputs[m] if isinstance(m, int) else _write_output(m.copy(), target)
            for m, target in zip(self._results, targets, strict=True)
        ]
        check = program.check_rules
        return Submission(
            buffers, EventWithAction(submission.event, lambda: check(submission.outputs))
        )

    def count_copies(self, copies: Copies) -> None:
        """Set the counter of copies."""
        if self._executable is not None:
            self._executable.plan.count_copies(copies)

    def add_to(self, statistics: SegmentStatistics, uses: int) -> SegmentStatistics:
        """Return statistics with the runs of this program added."""
        into, out = self._bytes_per_run
        return replace(
            statistics,
            runs=statistics.runs + uses,
            bytes_in=statistics.bytes_in + uses * into,
            bytes_out=statistics.bytes_out + uses * out,
        )

    def saved(self) -> Mapping[Entry, bytes] | None:
        """Return the content for a cache; `None` if a device does not save its program."""
        return {} if self._executable is None else self._executable.saved()

    def close(self) -> None:
        for program in () if self._executable is None else self._executable.plan.programs:
            program.close()


class EventWithAction(Event):
    """An event that runs an action once after the work has ended or failed.

    Args:
        event: the end of the work itself.
        then: the action; it runs when a wait ends, or when the event is deleted.
    """

    def __init__(self, event: Event, then: Callable[[], None]) -> None:
        self._event = event
        self._then: list[Callable[[], None]] = [then]

    @property
    def done(self) -> bool:
        return self._event.done

    def wait(self, timeout: float | None = None) -> bool:
        try:
            ended = self._event.wait(timeout)
        except BaseException:
            self._finish()
            raise
        if ended:
            self._finish()
        return ended

    def _finish(self) -> None:
        try:
            then = self._then.pop()
        except IndexError:
            return
        then()

    def __del__(self) -> None:
        self._finish()


def _elements(arrays: Sequence[Array]) -> tuple[tuple[int, ...], ...]:
    return tuple([tuple(array.reshape(-1).tolist()) for array in arrays])


def _numbers(sizes: Sequence[Dim]) -> tuple[int, ...] | None:
    """Return the sizes, if all of them are numbers."""
    numbers = tuple([size for size in sizes if isinstance(size, int)])
    return numbers if len(numbers) == len(sizes) else None


def _write_output(array: Array, target: Buffer | None) -> Buffer:
    if target is None:
        return HostBuffer(array)
    target.write(array)
    return target
