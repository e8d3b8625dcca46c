"""A model that has been placed and compiled, ready to run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from crosschip.hal import Buffer, DeviceLost, Options
from crosschip.hal.device import OutOfRange
from crosschip.ir import Array, InputError, Operand
from crosschip.ir.closing import Closing
from crosschip.ir.shape_binding import concrete
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.cache import background_writer
from crosschip.runtime.details import CompileReport, Details
from crosschip.runtime.executable import Executable
from crosschip.runtime.guard.devices import GuardedDevice, on_death
from crosschip.runtime.histogram import Histogram
from crosschip.runtime.lifetime import hold_forever
from crosschip.runtime.movable_model import MovableModel
from crosschip.runtime.outline import Outline, device_of_operand, find_tensor
from crosschip.runtime.output_targets import check_targets, holds_buffers
from crosschip.runtime.priority import Priority
from crosschip.runtime.programs import Awaited, SegmentProgram
from crosschip.runtime.submissions import Submissions

if TYPE_CHECKING:
    from crosschip.runtime.artifact.compiled_model import Contents
    from crosschip.runtime.placement.placement import Placement
    from crosschip.runtime.profiling.profile import Profile
    from crosschip.runtime.requests import Request
    from crosschip.runtime.sessions.session import Session
    from crosschip.runtime.statistics import Statistics

_DEFAULT_IN_FLIGHT = 2
_CLOSING_POLL_SECONDS = 0.001


class CompiledModel(MovableModel, Closing):
    """A compiled model, which runs on the devices that it was placed on; thread-safe."""

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
            outline: the placement that the programs were compiled from, or its outline.
            programs: one for each segment, in order.
            devices: the devices, by name.
            options: the options that they were compiled with.
            report: the report of the compilation.
            details: information that runs do not need, computed on demand.
            in_flight: the number of requests that run at once; if `None`, the number that the
                programs were compiled for, and at least two.
            queue_size: the maximum number of waiting requests.
        """
        super().__init__(outline, programs, devices, options, report, details)
        self._owned: tuple[Closing, ...] = ()
        self._output_names = tuple(outline.model.outputs)
        self._times = Histogram()
        self._add_time = self._times.add
        self._sessions: WeakSet[Session] = WeakSet()
        at_once = in_flight or max(options.in_flight, _DEFAULT_IN_FLIGHT)
        self._requests = Submissions(outline.model.name, at_once, queue_size)
        # Ends the threads of the queue, which do not refer to the model, if it is never closed.
        finalize(self, self._requests.release)
        self._track()

    @property
    def placement(self) -> Placement:
        """The placement with reasons; read from the cache on first use if it is stored there.

        Raises:
            ModelFileError: the cache no longer has it.
        """
        return self.details.placement()

    @property
    def inputs(self) -> Mapping[str, Operand]:
        """The model's inputs, by name."""
        return self._executable.outline.model.inputs

    @property
    def outputs(self) -> Mapping[str, Operand]:
        """The model's outputs, by name."""
        return self._executable.outline.model.outputs

    @property
    def options(self) -> Options:
        """The options that it was compiled with."""
        return self._executable.options

    @property
    def devices(self) -> Mapping[str, GuardedDevice]:
        """The devices that it runs on, by name."""
        return self._executable.devices

    @property
    def details(self) -> Details:
        """The placement and other information that runs do not need."""
        return self._executable.details

    def wait_for_trials(self, seconds: float | None = None) -> bool:
        """Wait until no other device is being tried, after `compile` with `wait=False`.

        Args:
            seconds: the maximum number of seconds to wait; `None` for no limit.

        Returns:
            Whether no device is being tried.
        """
        return self.trials is None or self.trials.wait(seconds)

    def own(self, devices: Iterable[Closing]) -> None:
        """Make the model close these devices, too, when it is closed."""
        self._owned += tuple(devices)

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
                its device; see `crosschip.runtime.arrays.as_array`. For a sequence, pass a list,
                for a map a dictionary, and for an optional value the value or `None`.
            outputs: arrays, or buffers of `allocate`, to write outputs into, by name. Where sizes
                are known, a device on the processor writes directly into an array in C order that
                shares no memory with an input. After an error their content is undefined.
            keep: the names of outputs to leave as buffers on the device that computed them.
            timeout: seconds after which the run is cancelled at its next segment; `None` for never.

        Returns:
            An array for each model output, by name, or the value if it is no tensor; the caller
            owns them. For a name in `outputs`, the object in there; for one in `keep`, a buffer.

        Raises:
            InputError: the inputs do not fit the model, or the outputs do not fit the results.
            DeadlineError: it took longer than `timeout`.
            DeviceError: a device failed.
        """
        if timeout is not None:
            return self.submit(inputs, outputs, keep, deadline=timeout).result()
        begin = perf_counter()
        try:
            self._running.append(None)  # inside `try`, since a signal may interrupt after it
            executable = self._executable
            arrays = executable.arrange(inputs)
            if outputs is not None or keep or (executable.submits and holds_buffers(inputs)):
                if self._check is not None:
                    self._check()
                targets = check_targets(self.outputs, outputs, keep)
                results = executable.run_to_targets(arrays, targets, keep)
            else:
                results = dict(zip(self._output_names, executable.execute(arrays), strict=True))
        except (DeviceLost, OutOfRange) as error:
            results = executable.substitutes.after(error).run(inputs, outputs, keep)
        finally:
            self._running.pop()
        self._add_time(perf_counter() - begin)
        return results

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
        """Queue a run and return at once; its `Request` is a future, and can be awaited.

        Args:
            inputs: as for `run`; the arrays must stay as they are until the run has ended.
            outputs: as for `run`.
            keep: as for `run`.
            priority: the order among waiting requests.
            deadline: seconds from now after which the request fails.
            wait: whether to wait while the queue is full, at most until the deadline.

        Raises:
            InputError: the inputs do not fit the model, there is no such output or priority, or the
                deadline is no number.
            QueueFullError: the queue is full, and `wait` is false or the deadline has passed.
        """
        if self._check is not None:
            self._check()
        targets = check_targets(self.outputs, outputs, keep)
        executable = self._executable
        work = partial(self._run_request, executable, executable.arrange(inputs), targets, keep)
        return self._requests.put(work, Priority.of(priority), deadline, wait=wait)

    def __call__(self, /, *inputs: Any, **named: Any) -> Any:
        """Compute the outputs from inputs in order or by name; return a single output bare."""
        outputs = tuple(self.run(self._executable.signature.named(inputs, named)).values())
        return outputs[0] if len(outputs) == 1 else outputs

    def session(
        self,
        state: Mapping[str, str] | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Session:
        """Open a session: runs in which some outputs become inputs of the next run (a KV cache).

        These stay on the device if possible; the caller neither passes nor receives them. Each of
        several sessions has its own state.

        Args:
            state: the name of the input that an output becomes, by the name of the output; `*`
                matches any text: `{"present.*": "past_key_values.*"}`. If left out, by the names
                that exporters use.
            start: arrays that the first run reads, by the names of inputs. The others begin with
                zeros, of sizes that the other inputs determine, or else 0.

        Raises:
            InputError: there are no such outputs and inputs, or they do not go together.
            DeviceError: a device failed.
        """
        # Imported late to keep importing the runtime fast: most models have no state.
        from crosschip.runtime.sessions.session import Runner, Session

        if self._check is not None:
            self._check()
        runner = Runner(self, self._executable, self._run_counted)
        session = Session(runner, state, start)
        self._sessions.add(session)
        return session

    def allocate(self, name: str, shape: Sequence[int]) -> Buffer:
        """Allocate memory for an input or output on the device that reads or computes it.

        Args:
            name: the name of the input or output.
            shape: the static shape.

        Raises:
            InputError: there is no such input or output, it is no tensor of numbers, or `shape` is
                invalid.
            DeviceError: the device does not have enough memory.
        """
        operand = find_tensor(name, self.inputs, self.outputs)
        executable = self._executable
        name_of_device = device_of_operand(operand, executable.outline, executable.devices)
        device = executable.devices[name_of_device]
        return device.allocate(operand.type.element_type, concrete(name, shape))

    def prepare(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Compile in advance for shapes of the inputs, on devices that compile per shape.

        Otherwise the first run with these shapes compiles. Bodies of loops are included.

        Args:
            shapes: the shape of each input, by name.

        Raises:
            InputError: the shapes do not fit the model.
            CompileError: a device failed to compile for them.
        """
        executable = self._executable
        sizes = executable.signature.checked_sizes(shapes)
        for program in executable.programs:
            program.prepare(sizes)

    def statistics(self) -> Statistics:
        """Return the statistics of the runs so far: calls, times, programs and bytes by segment.

        They print as a table; `Statistics.to_json` returns plain data.
        """
        from crosschip.runtime.statistics import Statistics  # imported late: runs do not need it

        calls, latency = self._times.latency()
        segments = self._executable.segment_statistics()
        before = dict(enumerate(self._before))
        counted = [s.since(before[i]) if i in before else s for i, s in enumerate(segments)]
        return Statistics(calls, latency, counted)

    def forget_runs(self) -> None:
        """Reset `statistics`; no run may be in progress."""
        self._times = Histogram()
        self._add_time = self._times.add
        self._before = self._executable.segment_statistics()

    def profile(
        self, inputs: Mapping[str, Any] | None = None, *, runs: int = 10, warm_up: int = 2
    ) -> Profile:
        """Measure the time of devices' segments, engines' steps, copies and waiting in runs.

        Engines that report their steps compile once more for this. Segments do not overlap.

        Args:
            inputs: as for `run`; random if left out.
            runs: the number of measured runs.
            warm_up: the number of runs before them.

        Raises:
            InputError: the inputs do not fit the model, or cannot be generated.
            DeviceError: a device failed.
        """
        # Imported late to keep importing the runtime fast.
        from crosschip.runtime.profiling.timed_runs import check_counts, profile_runs

        check_counts(runs, warm_up)
        executable = self._executable
        whole = None if self._check is not None else executable.substitutes.whole()
        if whole is not None:
            return whole.profile(inputs, runs=runs, warm_up=warm_up)
        try:
            self._running.append(None)
            if self._check is not None:
                self._check()
            placement, sizes = executable.details.placement(), executable.options.sizes
            return profile_runs(
                placement, executable.programs, inputs, sizes, executable.arrange, runs, warm_up
            )
        finally:
            self._running.pop()

    def on_death(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call a function, with the reason, whenever the driver process of a device has died.

        Runs go on: in a new process or on the next device. A separate thread calls the function.
        With `wait=False`, these are the devices that the model runs on at present.

        Returns:
            A function that removes the callback.
        """
        return on_death(self.devices.values(), callback)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled model to a file, which `crosschip.load_compiled` loads.

        It contains the programs, including those for the shapes of runs so far, the placement, the
        options, and the weights that the devices need. The file is replaced atomically.

        Raises:
            InputError: the file cannot be written, or the model has been closed.
            UnsupportedError: a device cannot save programs.
            DeviceError: a device fails to save a program.
            ModelFileError: a file with the weights has changed since it was loaded.
        """
        write_user_file(path, self._encode())

    def to_bytes(self) -> bytes:
        """Return the content of the file that `save` writes; fails as `save` does."""
        return b"".join(self._encode())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the content of the file that `save` writes; fails as `save` does."""
        # Imported late: few models are pickled, and the import is slow.
        from crosschip.runtime.artifact.loading import load_compiled

        requests = self._requests
        load = partial(load_compiled, in_flight=requests.workers, queue_size=requests.capacity)
        return load, (self.to_bytes(),)

    @property
    def token(self) -> str:
        """The name of the compiled model: the caller's, or 32 hexadecimal digits of a hash.

        The hash covers the model with its weights, the devices, and the options, as for NNAdapter.
        Without a cache, computing it reads all weights.
        """
        return self.details.identity().token

    def close(self) -> None:
        """Wait for runs, accepted requests and cache writes, and release programs and devices.

        It also waits for the compilation for another device that runs in the background, and ends
        the trials. A closed model cannot be run.
        """
        self.stop_trials()
        self._requests.close()
        self.stop(_refuse_closed)
        self.wait_for_trials()
        while self._running:
            time.sleep(_CLOSING_POLL_SECONDS)
        for session in self._sessions:
            session.close()
        executables: list[Closing] = [self._executable, *self._retired]
        owned = self._owned
        self._retired, self._owned = [], ()
        for executable in executables:
            executable.close()
        for device in owned:
            device.close()
        background_writer.wait()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._executable.outline.model.name

    def after_fork(self, refuse: Callable[[], None] | None) -> None:
        self._running = []
        self._moving = threading.RLock()
        self._requests.after_fork()
        self._executable.substitutes.after_fork()
        if self.trials is not None:
            self.trials.after_fork()
        for session in self._sessions:
            session.after_fork()
        if refuse is not None:
            self.stop(refuse)
            # Their destructors would wait for threads that this process lacks.
            hold_forever((self._executable, self._retired, self._owned))
            self._executable.programs = ()
            self._retired, self._owned = [], ()

    def __repr__(self) -> str:
        return f"<CompiledModel {self.name}: {self.placement.summary()}>"

    def _repr_html_(self) -> str:
        from crosschip.runtime.placement.descriptions import placement_html

        return placement_html(self.placement, f"Compiled model {self.name}")

    def _run_counted(
        self, run: Callable[[Mapping[str, Any]], dict[str, Any]], inputs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call a function and count it as a run of the model."""
        begin = perf_counter()
        try:
            self._running.append(None)
            if self._check is not None:
                self._check()
            results = run(inputs)
        finally:
            self._running.pop()
        self._add_time(perf_counter() - begin)
        return results

    def _contents(self) -> Contents:
        """Return the content of the model's file; raises as `save` does."""
        # Imported late: few models are saved, and the import is slow.
        from crosschip.runtime.artifact.compiled_model import compiled_contents

        try:
            self._running.append(None)
            if self._check is not None:
                self._check()
            return compiled_contents(self._executable)
        finally:
            self._running.pop()

    def _encode(self) -> Iterator[bytes | memoryview]:
        from crosschip.runtime.artifact import container, header

        return container.encode(header.KIND, *self._contents())

    def _run_request(
        self,
        executable: Executable,
        values: Sequence[Array],
        outputs: Mapping[str, Array | Buffer],
        keep: Collection[str],
        awaited: Awaited,
    ) -> dict[str, Any]:
        """Run on inputs that were checked for an executable; see `Executable.run_request`."""
        begin = perf_counter()
        if executable is not self._executable:  # moved while the request waited
            executable = self._executable
            values = executable.arrange(dict(zip(self.inputs, values, strict=True)))
        try:
            results = executable.run_request(values, outputs, keep, awaited)
        except (DeviceLost, OutOfRange) as error:
            inputs = dict(zip(self.inputs, values, strict=True))
            results = executable.substitutes.after(error).run(inputs, outputs or None, keep)
        self._add_time(perf_counter() - begin)
        return results


def _refuse_closed() -> None:
    raise InputError("this compiled model has been closed; compile it again to use it")
