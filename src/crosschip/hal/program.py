"""Compiled models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from crosschip.hal.buffers import Buffer, Event, HostBuffer, Submission
from crosschip.ir import Array

if TYPE_CHECKING:
    from crosschip.hal.profiling import Profiler
    from crosschip.hal.sessions import Carried, ProgramSession


class Program:
    """A compiled model. Runs may overlap: a program is run from many threads at once.

    A subclass defines `run`, if it only blocks, or `submit`, if it takes on work and goes on; each
    is the default for the other. No method is called after `close`, and none while `close` runs.

    Attributes:
        rules: for each extra output behind those of the model, the sentence about the rule of a
            definition that was broken where an element of that output, of type bool, is false. So
            a device reports what it finds out in the middle of its work.
    """

    rules: Sequence[str] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.run is Program.run and cls.submit is Program.submit:
            raise TypeError(f"{cls.__name__} defines neither run nor submit; define one of them")

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs.

        Args:
            inputs: one C-contiguous array for each model input, in order, of its element type and
                of a shape that its type allows, aligned as the device's capabilities ask and at
                least to its elements; never written to, and not kept after the run. For an operand
                of `ElementType.OBJECT`, the value itself.

        Returns:
            One C-contiguous array for each model output, in order, and one for each of `rules`;
            the caller owns them. For an operand of `ElementType.OBJECT`, the value itself.

        Raises:
            DeviceError: the device failed.
        """
        outputs: list[Buffer | None] = []
        submission = self.submit([HostBuffer(array) for array in inputs], outputs, ())
        submission.event.wait()
        return [buffer.array() for buffer in submission.outputs]

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        """`run`, with outputs in arrays of the caller's where the program can write there.

        Args:
            inputs: as for `run`.
            places: for each model output a writable array, C-contiguous and aligned as inputs are,
                of its type and shape, which shares no memory with an input; or `None`. Not kept
                after the run.

        Returns:
            As `run`; for a place that has been written, that array.
        """
        return self.run(inputs)

    def submit(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer | None],
        after: Sequence[Event],
    ) -> Submission:
        """Take on a run and return, if the device can, before it is done.

        Never asked for where an input or output of the model is of text or no tensor: no buffer
        holds these, and `run` is called.

        Args:
            inputs: one buffer for each model input: this device's own, or the host's. Neither
                written to nor kept after the run.
            outputs: for each model output where to put it, or `None` for new memory; empty if all
                are to be new.
            after: what must have ended before an input is read or an output written.

        Returns:
            The outputs, in the given buffers where there are any, and the end of the run.

        Raises:
            DeviceError: the device failed to take it on; later failures come out of the event.
        """
        for event in after:
            event.wait()
        results = self.run([buffer.array() for buffer in inputs])
        return Submission.on_host(results, outputs)

    def session(self, carried: Sequence[Carried]) -> ProgramSession | None:
        """Runs one after the other that hand on outputs as inputs where the program made them.

        Args:
            carried: the tensors that are handed on, each output and input at most once; none of
                text or no tensor.

        Returns:
            `None` if the program has nothing better than to give such outputs away and to be given
            them again, which is the default: arrays of the host, and buffers of the device's.

        Raises:
            DeviceError: the device failed.
        """
        return None

    def save(self) -> bytes | None:
        """The bytes from which `Device.load` makes the same program; `None` if there are none."""
        return None

    def saving(self) -> Callable[[], Sequence[bytes | memoryview]] | None:
        """Makes what `save` returns, later; `None`, the default, if the program is saved at once.

        What is returned is called on another thread, when the program may be running or closed
        already, and makes parts that are written one behind the other. So nobody waits for a
        program with much to copy, and what lies in memory as it is saved is not copied at all.
        """
        return None

    def profiler(self) -> Profiler | None:
        """The program once more, made to tell how long its steps take; `None` if it cannot be.

        It is asked for when somebody wants to know, is closed before the program, and may cost
        another compilation. What the program itself does is none the slower for it.

        Raises:
            DeviceError: the device failed.
        """
        return None

    def close(self) -> None:
        """Release what the program holds."""
