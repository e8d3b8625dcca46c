"""The executable of a compiled model: the programs of one placement, with all that runs need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from crosschip.hal import Buffer, Options
from crosschip.ir import Array
from crosschip.ir.closing import Closing
from crosschip.runtime.copies import Copies
from crosschip.runtime.details import Details
from crosschip.runtime.execution import Execute, Plan
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.outline import Outline
from crosschip.runtime.output_targets import write_output
from crosschip.runtime.programs import Awaited, SegmentProgram
from crosschip.runtime.signature import Signature
from crosschip.runtime.substitutes import Substitutes

if TYPE_CHECKING:
    from crosschip.runtime.statistics import SegmentStatistics


class Executable(Closing):
    """The programs of a placed model; a run uses one executable from its beginning to its end.

    Args:
        outline: the placement that the programs were compiled from, or its outline.
        programs: one for each segment, in order.
        devices: the devices, by name.
        options: the options that they were compiled with.
        details: information that runs do not need, computed on demand.
        copies: counts the copies of its runs.

    Attributes:
        signature: checks the inputs.
        arrange: checks the inputs of a run and returns them in order; see `Signature.arrange`.
        execute: computes the outputs from the result of `arrange`, both in order.
        submits: whether a program is asynchronous.
        substitutes: the models that replace it after a failure.
    """

    def __init__(
        self,
        outline: Outline,
        programs: Sequence[SegmentProgram],
        devices: Mapping[str, GuardedDevice],
        options: Options,
        details: Details,
        copies: Copies,
    ) -> None:
        self.outline = outline
        self.programs = tuple(programs)
        self.devices = dict(devices)
        self.options = options
        self.details = details
        self.substitutes = Substitutes(outline.model.name, details)
        self.copies = copies
        self._plan = Plan(outline, programs, self.copies)
        self.submits = self._plan.submits
        self.signature = Signature(
            outline.model.inputs, options.sizes, self.copies, buffers=self.submits
        )
        self.arrange = self.signature.arrange
        self.execute: Execute = self._plan.execute
        self._output_names = tuple(outline.model.outputs)

    def count_copies(self, copies: Copies) -> None:
        """Set the counter of copies."""
        self.copies = copies
        self._plan.count_copies(copies)
        self.signature.count_copies(copies)

    def check_before(self, check: Callable[[], None]) -> None:
        """Call a function before each later run, which may refuse the run by an error."""
        execute = self.execute

        def checked(arrays: Sequence[Array]) -> Sequence[Array]:
            check()
            return execute(arrays)

        self.execute = checked

    def run_request(
        self,
        values: Sequence[Array],
        outputs: Mapping[str, Array | Buffer],
        keep: Collection[str],
        awaited: Awaited,
    ) -> dict[str, Any]:
        """Run on checked inputs; cancel when no caller waits for the outputs any more."""
        if outputs or keep or self.submits:
            return self.run_to_targets(values, outputs, keep, awaited)
        arrays = self._plan.execute_while(values, awaited)
        return dict(zip(self._output_names, arrays, strict=True))

    def run_to_targets(
        self,
        values: Sequence[Array],
        outputs: Mapping[str, Array | Buffer],
        keep: Collection[str],
        awaited: Awaited | None = None,
    ) -> dict[str, Any]:
        """Run with input buffers, or with outputs that have targets or stay on devices."""
        names = self._output_names
        by_index = {index: outputs[name] for index, name in enumerate(names) if name in outputs}
        results = self._plan.execute_values(values, by_index, awaited)
        return {
            name: write_output(name, value, outputs.get(name), self.copies, is_kept=name in keep)
            for name, value in zip(names, results, strict=True)
        }

    @property
    def compiles_shapes(self) -> bool:
        """Whether a run with other shapes than earlier ones compiles."""
        return any(program.compilers for program in self.programs)

    def segment_statistics(self) -> list[SegmentStatistics]:
        """Return the statistics of each segment and of its bodies."""
        return [statistics for program in self.programs for statistics in program.statistics()]

    def close(self) -> None:
        """Close the substitutes and the programs."""
        programs, self.programs = self.programs, ()
        self.substitutes.close()
        for program in programs:
            program.close()


class Retired(Closing):
    """The programs of an executable that no later run uses.

    Args:
        executable: the executable, to which this object does not refer.
    """

    def __init__(self, executable: Executable) -> None:
        self._executable = ref(executable)
        self._programs = executable.programs
        self._substitutes = executable.substitutes

    @property
    def is_used(self) -> bool:
        """Whether a run or a session still uses the executable."""
        return self._executable() is not None

    def close(self) -> None:
        """Close the substitutes and the programs."""
        self._substitutes.close()
        for program in self._programs:
            program.close()
