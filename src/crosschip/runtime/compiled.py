"""A model that has been placed and compiled, ready to run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from crosschip.hal import Buffer, DeviceLost, Options
from crosschip.hal.device import OutOfRange
from crosschip.ir import Array, InputError, Operand
from crosschip.ir.binding import concrete
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.runtime import lifetime
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.cache import background_writer
from crosschip.runtime.copies import Copies
from crosschip.runtime.details import Details
from crosschip.runtime.execution import Plan
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.histogram import Histogram
from crosschip.runtime.outline import Outline, home
from crosschip.runtime.places import check_places, placed
from crosschip.runtime.priority import Priority
from crosschip.runtime.programs import Awaited, SegmentProgram
from crosschip.runtime.signature import Signature
from crosschip.runtime.submitting import Submissions
from crosschip.runtime.substitutes import Substitutes

if TYPE_CHECKING:
    from crosschip.runtime.artifact.compiled_model import Contents
    from crosschip.runtime.choice import Choice
    from crosschip.runtime.placement.placing import Placement
    from crosschip.runtime.profiling.profile import Profile
    from crosschip.runtime.requests import Request
    from crosschip.runtime.sessions.session import Session
    from crosschip.runtime.statistics import SegmentStatistics, Statistics

_AT_ONCE = 2
"""The number of requests that run at once if nobody says."""

_CLOSING_LOOK_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Report of one compilation.

    Attributes:
        milliseconds: from the call to the compiled model.
        choice: how the devices did that `"auto"` means, and at which shapes of the inputs; `None`
            if the caller named devices.
    """

    milliseconds: float
    _cache: Callable[[], str]
    choice: Choice | None = None

    def __repr__(self) -> str:
        return f"CompileReport(milliseconds={self.milliseconds!r}, cache={self.cache!r})"

    @property
    def cache(self) -> str:
        """Where its programs came from, with those that runs have needed so far for their shapes.

        `hit` if every program came from the cache, `miss` if one did not, `off` if the cache is not
        used, no device saves its programs or none was needed yet; `file` if all came from a saved
        file.
        """
        return self._cache()


class CompiledModel(Closing):
    """Runs a model on the devices that it was placed on; may be called from many threads at once.

    Attributes:
        report: what compiling took.
        options: how it was compiled.
        devices: the devices, by name.
        details: what few ask for.
        copies: what was copied in its runs, of what could have stayed where it was.
    """

    def __init__(
        self,
        outline: Outline,
        programs: Sequence[SegmentProgram],
        devices: Mapping[str, GuardedDevice],
        options: Options,
        report: CompileReport,
        details: Details,
        in_flight: int | None = None,
        queue_size: int = 64,
    ) -> None:
        """Join programs to a plan.

        Args:
            outline: what the programs were compiled from: the placement, or its outline.
            programs: one for each segment, in order.
            devices: the devices, by name.
            options: how they were compiled.
            report: what compiling took.
            details: all that running does not need, which may take time.
            in_flight: how many requests run at once; if `None`, as many as the programs were
                compiled for, and at least two.
            queue_size: how many wait besides.
        """
        self._outline = outline
        self.details = details
        self.report = report
        self._programs = tuple(programs)
        self.devices = dict(devices)
        self.options = options
        self._owned: tuple[GuardedDevice, ...] = ()
        self._substitutes = Substitutes(outline.model.name, details)
        self.copies = Copies()
        self._output_names = tuple(outline.model.outputs)
        self._plan = Plan(outline, programs, self.copies)
        self._signature = Signature(
            outline.model.inputs, options.sizes, self.copies, buffers=self._plan.submits
        )
        self._execute = self._plan.execute
        self._times = Histogram()
        self._took = self._times.add
        self._before: Sequence[SegmentStatistics] = ()
        # An entry for each run that is under way: adding and removing one takes no lock.
        self._running: list[None] = []
        # What each run does first, once there is anything; see `stop`.
        self._check: Callable[[], None] | None = None
        self._sessions: WeakSet[Session] = WeakSet()
        at_once = in_flight or max(options.in_flight, _AT_ONCE)
        self._requests = Submissions(outline.model.name, at_once, queue_size)
        # The threads of the queue hold the queue alone, and end if nobody closes the model.
        finalize(self, self._requests.release)
        lifetime.watch(self)

    @property
    def placement(self) -> Placement:
        """Who runs what, and why; read from the cache when it is first asked for, if it is there.

        Raises:
            ModelFileError: it is there no longer.
        """
        return self.details.placement()

    @property
    def inputs(self) -> Mapping[str, Operand]:
        """The operands that the caller provides, by name."""
        return self._outline.model.inputs

    @property
    def outputs(self) -> Mapping[str, Operand]:
        """The operands that the caller gets back, by name."""
        return self._outline.model.outputs

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
            timeout: seconds after which the caller no longer waits; the run ends with the segment
                that it is in, since no engine can be stopped in one. `None` waits for its end.

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
        begin = perf_counter()
        try:
            self._running.append(None)  # in the block: a signal may interrupt right behind it
            arrays = self._signature.arrange(inputs)
            if outputs is not None or keep or (self._plan.submits and _holds_buffers(inputs)):
                if self._check is not None:
                    self._check()
                places = check_places(self.outputs, outputs, keep)
                made = self._run_in_place(arrays, places, keep)
            else:
                made = dict(zip(self._output_names, self._execute(arrays), strict=True))
        except DeviceLost as lost:
            made = self._substitutes.after(lost).run(inputs, outputs, keep)
        except OutOfRange as error:
            made = self._substitutes.beyond(error).run(inputs, outputs, keep)
        finally:
            self._running.pop()
        self._took(perf_counter() - begin)
        return made

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
            InputError: the inputs do not fit the model, there is no such output or priority, or the
                deadline is no number.
            QueueFullError: the queue is full, and waiting was not allowed or was of no use.
        """
        if self._check is not None:
            self._check()
        places = check_places(self.outputs, outputs, keep)
        work = partial(self._answer, self._signature.arrange(inputs), places, keep)
        return self._requests.put(work, Priority.of(priority), deadline, wait=wait)

    def __call__(self, /, *inputs: Any, **named: Any) -> Any:
        """Compute the outputs from inputs in order or by name; a single output comes back bare."""
        outputs = tuple(self.run(self._signature.named(inputs, named)).values())
        return outputs[0] if len(outputs) == 1 else outputs

    def session(
        self,
        state: Mapping[str, str] | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Session:
        """Runs in which some outputs are inputs of the next one, as the keys and values of a text.

        These stay on the device that makes and reads them, if it can keep them; the caller neither
        gives nor gets them. There may be several sessions at once, each with a state of its own.

        Args:
            state: the names of these outputs, each with that of the input that it becomes; a `*` in
                both stands for any text: `{"present.*": "past_key_values.*"}`. If left out, by the
                names that exporters give them.
            start: arrays that the first run reads, by the names of inputs. What is not given
                begins with zeros, of sizes that the other inputs show; a size that none of them
                shows is of the past, and begins as 0.

        Raises:
            InputError: there are no such outputs and inputs, or they do not go together.
            DeviceError: a device failed.
        """
        # Most models have no state: importing the runtime is to take no longer for it.
        from crosschip.runtime.sessions.session import Runner, Session

        if self._check is not None:
            self._check()
        runner = Runner(
            self,
            self._outline,
            self._programs,
            self.options.sizes,
            self.copies,
            self._substitutes,
            self._counted,
        )
        session = Session(runner, state, start)
        self._sessions.add(session)
        return session

    def allocate(self, name: str, shape: Sequence[int]) -> Buffer:
        """Memory for an input or an output of the model on the device that reads or makes it.

        Args:
            name: the input's or the output's.
            shape: the sizes, all known.

        Raises:
            InputError: there is no such input or output, it is of text or no tensor, or `shape` is
                no shape.
            DeviceError: the device does not have so much memory.
        """
        operand = {**self.outputs, **self.inputs}.get(name)
        if operand is None:
            known = ", ".join([*self.inputs, *self.outputs])
            near = did_you_mean(name, [*self.inputs, *self.outputs])
            raise InputError(f"the model has no input or output {name!r}{near}; there are {known}")
        device = self.devices[home(operand, self._outline, self.devices)]
        type_ = operand.type.element_type
        if type_ in PYTHONS_TYPES:
            raise InputError(f"{name!r} is of {type_}, which no device's memory holds")
        doing = "allocating memory"
        return call(device.name, doing, device.device.allocate, type_, concrete(name, shape))

    def prepare(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Compile for shapes of the inputs, where that is done for each; bodies of loops, too.

        Without it, the first run with such shapes does so.

        Args:
            shapes: for each input, by name.

        Raises:
            InputError: the shapes do not fit the model.
            CompileError: a device failed to compile for them.
        """
        if not isinstance(shapes, Mapping):
            raise InputError(f'shapes is {shapes!r}, but must be like {{"x": [1, 3, 224]}}')
        given = {name: concrete(name, shape) for name, shape in shapes.items()}
        sizes = self._signature.sizes(given)
        for program in self._programs:
            program.prepare(sizes)

    def statistics(self) -> Statistics:
        """The figures about the runs so far: calls, times, and for each segment programs and bytes.

        They print as a table; `Statistics.to_json` has them as plain data.
        """
        from crosschip.runtime.statistics import Statistics  # running needs none

        calls, latency = self._times.latency()
        segments = self._segment_statistics()
        before = dict(enumerate(self._before))
        counted = [s.since(before[i]) if i in before else s for i, s in enumerate(segments)]
        return Statistics(calls, latency, counted)

    def forget_runs(self) -> None:
        """Have no run so far count in `statistics`; none may be under way."""
        self._times = Histogram()
        self._took = self._times.add
        self._before = self._segment_statistics()

    def _segment_statistics(self) -> list[SegmentStatistics]:
        """The figures about each segment, with all runs."""
        return [found for program in self._programs for found in program.statistics()]

    def profile(
        self, inputs: Mapping[str, Any] | None = None, *, runs: int = 10, warm_up: int = 2
    ) -> Profile:
        """Measure where the time of runs goes: devices' segments, engines' steps, copies, waiting.

        Engines that tell of their steps compile once more for it, and take some time to tell.
        Segments run one after the other.

        Args:
            inputs: as for `run`; made up if left out.
            runs: how many runs count.
            warm_up: how many come before them, in which engines allocate and wake up.

        Raises:
            InputError: the inputs do not fit the model, or cannot be made up.
            DeviceError: a device failed.
        """
        # Seldom needed: importing the runtime is to take no longer for it.
        from crosschip.runtime.measuring import typical_inputs
        from crosschip.runtime.profiling.running import profiled

        if runs < 1 or warm_up < 0:
            raise InputError(f"there must be a run that counts: runs={runs}, warm_up={warm_up}")
        whole = None if self._check is not None else self._substitutes.whole()
        if whole is not None:
            return whole.profile(inputs, runs=runs, warm_up=warm_up)
        given = (
            typical_inputs(self.placement.model, self.options.sizes) if inputs is None else inputs
        )
        try:
            self._running.append(None)
            if self._check is not None:
                self._check()
            arrange = partial(self._signature.arrange, given)
            return profiled(self.placement, self._programs, arrange, runs, warm_up)
        finally:
            self._running.pop()

    def on_death(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Have a function called, with the reason, each time a driver in another process has died.

        Runs go on: in the process that replaces it, or on the next device. The call comes from a
        thread of its own.

        Returns:
            A function that ends it.
        """
        ends = [
            call(device.name, "taking note", device.device.on_death, callback)
            for device in {id(one.device): one for one in self.devices.values()}.values()
        ]

        def end() -> None:
            for one in ends:
                one()

        return end

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled model to a file, which `crosschip.load_compiled` loads.

        It holds the programs, placement and options, and what the devices need of the weights, all
        as it is now: shapes that a device has compiled for are compiled. The file is there whole or
        not at all; one that was there is replaced.

        Args:
            path: of the file.

        Raises:
            InputError: it cannot be written there, or the model has been closed.
            UnsupportedError: a device does not save its programs.
            DeviceError: a device fails to save one.
            ModelFileError: a file that the weights are in has changed since they were loaded.
        """
        write_user_file(path, self._encode())

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes, which `crosschip.load_compiled` takes too.

        Raises:
            InputError, UnsupportedError, DeviceError, ModelFileError: as for `save`.
        """
        return b"".join(self._encode())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the content of the file that `save` writes; devices are opened again by name.

        Raises:
            InputError, UnsupportedError, DeviceError, ModelFileError: as for `save`.
        """
        # Seldom needed, and imports all that loads.
        from crosschip.runtime.artifact.loading import load_compiled

        requests = self._requests
        load = partial(load_compiled, in_flight=requests.workers, queue_size=requests.capacity)
        return load, (self.to_bytes(),)

    @property
    def token(self) -> str:
        """The name of the compiled model: that which the caller gave, or one made from the content.

        The latter is of 32 hexadecimal digits, as NNAdapter's is, and depends on the model with its
        weights, the devices, and how it was compiled. It takes time where there is no cache, as the
        weights are read for it.
        """
        return self.details.identity().token

    def close(self) -> None:
        """Release programs and devices, once runs and requests that were taken on have ended.

        What is kept in the cache has been written then.

        The model cannot be run afterwards; a second call does nothing.
        """
        self._requests.close()
        self.stop(_refuse_closed)
        while self._running:
            time.sleep(_CLOSING_LOOK_SECONDS)
        for session in self._sessions:
            session.close()
        self._substitutes.close()
        programs, owned = self._programs, self._owned
        self._programs, self._owned = (), ()
        for program in programs:
            program.close()
        for device in owned:
            device.close()
        background_writer.wait()

    def stop(self, check: Callable[[], None]) -> None:
        """Have each run that is asked for from now on call a function first, which refuses it.

        Args:
            check: the function; where it returns, the run goes on.
        """
        execute = self._plan.execute

        def checked(arrays: Sequence[Array]) -> Sequence[Array]:
            check()
            return execute(arrays)

        self._check = check
        self._execute = checked

    def finish_requests(self, seconds: float) -> None:
        """Take on no more requests, and wait for those that were taken on.

        Args:
            seconds: how long to wait at most for each thread that answers them.
        """
        self._requests.close(max(0.0, seconds))

    @property
    def name(self) -> str:
        """The model's name."""
        return self._outline.model.name

    @property
    def runs_under_way(self) -> int:
        """The number of runs that have begun and not ended, in any thread."""
        return len(self._running) + self._requests.running

    def after_fork(self, refuse: Callable[[], None] | None) -> None:
        """Begin anew in a forked process, which has none of the threads of its parent but one.

        Args:
            refuse: raises the error that each run is refused with; `None` if they can be run.
        """
        self._running = []
        self._requests.after_fork()
        self._substitutes.after_fork()
        for session in self._sessions:
            session.after_fork()
        if refuse is not None:
            self.stop(refuse)
            # Their destructors would wait for threads that are not there.
            lifetime.hold_forever((self._programs, self._owned, self._plan))
            self._programs, self._owned = (), ()

    def withdraw_run(self) -> None:
        """Count a run no longer that waits for the end of the process."""
        self._running.pop()

    def __repr__(self) -> str:
        return f"<CompiledModel {self._outline.model.name}: {self.placement.summary()}>"

    def _counted(
        self, run: Callable[[Mapping[str, Any]], dict[str, Any]], inputs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call what is a run of the model in another way."""
        begin = perf_counter()
        try:
            self._running.append(None)
            if self._check is not None:
                self._check()
            made = run(inputs)
        finally:
            self._running.pop()
        self._took(perf_counter() - begin)
        return made

    def _contents(self) -> Contents:
        """Return what the file of the model holds.

        Raises:
            InputError, UnsupportedError, DeviceError, ModelFileError: as for `save`.
        """
        # Seldom needed, like what saving needs besides: it takes long to import.
        from crosschip.runtime.artifact.compiled_model import contents_of

        try:
            self._running.append(None)
            if self._check is not None:
                self._check()
            identity = self.details.identity()
            return contents_of(self.placement, self._programs, self.devices, self.options, identity)
        finally:
            self._running.pop()

    def _encode(self) -> Iterator[bytes | memoryview]:
        """Return the content of the model's file."""
        from crosschip.runtime.artifact.container import encode
        from crosschip.runtime.artifact.header import KIND

        return encode(KIND, *self._contents())

    def _answer(
        self,
        values: Sequence[Array],
        outputs: Mapping[str, Array | Buffer],
        keep: Collection[str],
        awaited: Awaited,
    ) -> dict[str, Any]:
        """`run` for values that have been checked, as long as somebody waits for its end."""
        begin = perf_counter()
        try:
            if outputs or keep or self._plan.submits:
                made = self._run_in_place(values, outputs, keep, awaited)
            else:
                found = self._plan.execute_while(values, awaited)
                made = dict(zip(self._output_names, found, strict=True))
        except DeviceLost as lost:
            inputs = dict(zip(self.inputs, values, strict=True))
            made = self._substitutes.after(lost).run(inputs, outputs or None, keep)
        except OutOfRange as error:
            inputs = dict(zip(self.inputs, values, strict=True))
            made = self._substitutes.beyond(error).run(inputs, outputs or None, keep)
        self._took(perf_counter() - begin)
        return made

    def _run_in_place(
        self,
        values: Sequence[Array],
        outputs: Mapping[str, Array | Buffer],
        keep: Collection[str],
        awaited: Awaited | None = None,
    ) -> dict[str, Any]:
        """`run` where buffers come in, outputs have their places, or stay on their devices."""
        places = {index: outputs.get(name) for index, name in enumerate(self._output_names)}
        targets = {index: place for index, place in places.items() if place is not None}
        made = dict(
            zip(
                self._output_names,
                self._plan.execute_values(values, targets, awaited),
                strict=True,
            )
        )
        return {
            name: placed(name, value, outputs.get(name), self.copies, kept=name in keep)
            for name, value in made.items()
        }


def _holds_buffers(inputs: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Buffer) for value in inputs.values())


def _refuse_closed() -> None:
    raise InputError("this compiled model has been closed; compile it again to use it")
