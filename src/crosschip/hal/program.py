"""Compiled models, sessions of consecutive runs, and profilers of the steps of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from crosschip.hal.buffers import Buffer, Event, HostBuffer, Submission
from crosschip.ir import Array, Operation
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import INTEGERS


class Program:
    """Compiled model. Several threads may run it concurrently.

    A subclass defines `run` if it blocks, or `submit` if it executes asynchronously; each has a
    default that calls the other. No method is called during or after `close`.

    Attributes:
        rules: a message for each boolean output that follows the model's outputs: the rule of an
            operator definition that is broken if an element of that output is false. So a device
            reports errors that it detects while it computes.
    """

    rules: Sequence[str] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.run is Program.run and cls.submit is Program.submit:
            raise TypeError(f"{cls.__name__} defines neither run nor submit; define one of them")

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs.

        Args:
            inputs: one C-contiguous array per model input, of its element type and a shape that its
                type admits, aligned to its elements and to the device's `alignment`; neither
                written to nor kept after the run. For `ElementType.OBJECT`, the value itself.

        Returns:
            One C-contiguous array per model output, then one per entry of `rules`; the caller owns
            them. For `ElementType.OBJECT`, the value itself.

        Raises:
            DeviceError: the device failed.
        """
        outputs: list[Buffer | None] = []
        submission = self.submit([HostBuffer(array) for array in inputs], outputs, ())
        submission.event.wait()
        return [buffer.array() for buffer in submission.outputs]

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        """Compute the outputs, in the caller's arrays where the program can write to them.

        Args:
            inputs: as for `run`.
            places: per model output a writable array of its type and shape, C-contiguous and
                aligned like inputs, that shares no memory with an input; or `None`. Not kept after
                the run.

        Returns:
            As `run`; the caller's array where the output was written to it.
        """
        return self.run(inputs)

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        """Start a run and return, if possible before it has completed.

        It is not called for models with inputs or outputs of type `STRING` or `OBJECT`, which no
        buffer can hold.

        Args:
            inputs: one buffer per model input, of this device or of the host; neither written to
                nor kept after the run.
            outputs: per model output the buffer to write, or `None` to allocate one; empty to
                allocate all.
            after: events to wait for before an input is read or an output written.

        Returns:
            The output buffers and the completion of the run.

        Raises:
            DeviceError: the device rejected the run; later failures are raised by the event.
        """
        for event in after:
            event.wait()
        results = self.run([buffer.array() for buffer in inputs])
        return Submission.on_host(results, outputs)

    def session(self, carried: Sequence[Carried]) -> ProgramSession | None:
        """Return a session of consecutive runs whose outputs stay on the device as inputs.

        Args:
            carried: the tensors passed from one run to the next, each output and input at most
                once, none of type `STRING` or `OBJECT`.

        Returns:
            `None`, the default, if the program cannot do better than the runtime, which passes
            arrays or the device's buffers from run to run.

        Raises:
            DeviceError: the device failed.
        """
        return None

    def save(self) -> bytes | None:
        """Return the bytes from which `Device.load` restores the program; `None` if unsupported."""
        return None

    def saving(self) -> Callable[[], Sequence[bytes | memoryview]] | None:
        """Return a function that saves the program later; `None`, the default, to save it at once.

        Another thread calls the function, possibly while the program runs or after it was closed.
        It returns parts that are written one after the other. So compiling does not wait for
        copying a large program, and parts that are in memory need no copy.
        """
        return None

    def profiler(self) -> Profiler | None:
        """Return an instrumented copy of the program; `None` if unsupported.

        It is created on request, is closed before the program, and may need another compilation. It
        does not slow down the program itself.

        Raises:
            DeviceError: the device failed.
        """
        return None

    def close(self) -> None:
        """Release the program's resources."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Tensor that one run outputs and the next run reads; both have the same type.

    Attributes:
        output: the index of the output.
        input: the index of the input.
    """

    output: int
    input: int


class ProgramSession(ABC):
    """Consecutive runs of a program. Some of its outputs become inputs of the next run.

    These tensors stay in memory that the program can access. One thread at a time uses a session; a
    program may have several sessions, whose runs may overlap.
    """

    @abstractmethod
    def run(self, inputs: Sequence[Array | None]) -> Sequence[Array | None]:
        """Compute the outputs; carried tensors keep their values until `advance`.

        Args:
            inputs: as for `Program.run`; `None` for carried tensors.

        Returns:
            As `Program.run`; `None` for carried tensors.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def advance(self) -> None:
        """Let the next run read the carried outputs of the last, successful run."""

    @abstractmethod
    def shape(self, place: int) -> tuple[int, ...]:
        """Return the shape that the next run reads for the carried tensor with an index."""

    @abstractmethod
    def read(self, place: int) -> Array:
        """Return a copy of the value that the next run reads for a carried tensor."""

    @abstractmethod
    def write(self, place: int, array: Array) -> None:
        """Replace the value that the next run reads for a carried tensor by a copy of an array.

        The array has the tensor's element type and any shape.

        Raises:
            DeviceError: the device has not enough memory.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the session's resources."""


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a run.

    Attributes:
        name: the engine's name of it, such as `Conv` or `ReorderOutput`.
        seconds: its duration, including nested steps.
        operations: the operations of the program's model (or of bodies in it) that it computes,
            wholly or in part; empty for internal steps of the engine.
        start: seconds since the start of the run; `None` if unknown.
        inside: nested steps, for an operation with bodies.
    """

    name: str
    seconds: float
    operations: Sequence[Operation] = ()
    start: float | None = None
    inside: Sequence[Step] = ()


def computes_data(operation: Operation) -> bool:
    """Return whether an operation computes data rather than shapes, which vanish once known.

    For profilers: a data operation without a step of its own was fused into a neighbour's step.
    """
    return operation.outputs[0].type.element_type not in INTEGERS


class Profiler(Closing, ABC):
    """Instrumented copy of a program, which measures its steps; for use in one thread."""

    @abstractmethod
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute what `Program.run` computes.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def begin(self) -> None:
        """Start the measurement; runs before it were warm-up.

        Raises:
            DeviceError: the device failed.
        """

    @abstractmethod
    def steps(self) -> Sequence[Sequence[Step]]:
        """Return the steps of each run since `begin`, in order; called once, after the last run.

        An engine that only reports sums over runs divides them evenly. The steps of a run take no
        longer than the run.

        Raises:
            DeviceError: the device failed.
        """
