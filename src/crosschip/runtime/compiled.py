"""A model that has been placed and compiled, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosschip.hal import Device, Program
from crosschip.ir import Array, InputError, Operand
from crosschip.ir.closing import Closing
from crosschip.runtime.placement import Placement
from crosschip.runtime.signature import Signature


@dataclass(frozen=True, slots=True)
class CompileReport:
    """What compiling took.

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
    """

    def __init__(
        self,
        placement: Placement,
        programs: Sequence[Program],
        devices: Sequence[Device],
        report: CompileReport,
    ) -> None:
        """Join programs to a plan.

        Args:
            placement: what the programs were compiled from.
            programs: one for each segment, in order.
            devices: the devices to close when the model is closed.
            report: what compiling took.
        """
        self.placement = placement
        self.report = report
        self._programs = tuple(programs)
        self._devices = tuple(devices)
        self._signature = Signature(placement.model)
        self._output_names = tuple(placement.model.outputs)
        self._execute = plan(placement, programs)

    @property
    def inputs(self) -> Mapping[str, Operand]:
        """The operands that the caller provides, by name."""
        return self.placement.model.inputs

    @property
    def outputs(self) -> Mapping[str, Operand]:
        """The operands that the caller gets back, by name."""
        return self.placement.model.outputs

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Compute the outputs.

        Args:
            inputs: an array for each model input, by name; only read.

        Returns:
            An array for each model output, by name; the caller owns them.

        Raises:
            InputError: the inputs do not fit the model.
            DeviceError: a device failed.
        """
        arrays = self._signature.arrange(inputs)
        return dict(zip(self._output_names, self._execute(arrays), strict=True))

    def __call__(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """Compute the outputs from inputs in order; a single output comes back bare."""
        arrays = self._signature.arrange(self._signature.named(inputs))
        outputs = self._execute(arrays)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def close(self) -> None:
        """Release programs and devices; the model cannot be run afterwards."""
        self._execute = _closed
        for program in self._programs:
            program.close()
        for device in self._devices:
            device.close()
        self._programs = self._devices = ()

    def __repr__(self) -> str:
        return f"<CompiledModel {self.placement.model.name}: {self.placement.summary()}>"


Execute = Callable[[list[Array]], Sequence[Array]]


def plan(placement: Placement, programs: Sequence[Program], *, own: bool = True) -> Execute:
    """A function from input arrays to output arrays, in the model's order.

    Args:
        placement: what the programs were compiled from.
        programs: one for each segment, in order.
        own: whether outputs must be the caller's own; if not, they may be inputs or constants.
    """
    model = placement.model
    if len(programs) == 1 and _is_whole(placement):
        return programs[0].run
    number = {operand: i for i, operand in enumerate(model.inputs.values())}
    steps = []
    for segment, program in zip(placement.segments, programs, strict=True):
        reads = [number[operand] for operand in segment.inputs]
        writes = [number.setdefault(operand, len(number)) for operand in segment.outputs]
        steps.append((program.run, reads, writes))
    fresh = {operand for segment in placement.segments for operand in segment.outputs}
    given = [_source(operand, number, fresh, own) for operand in model.outputs.values()]
    count = len(number)

    def execute(arrays: list[Array]) -> Sequence[Array]:
        values: list[Any] = [*arrays, *(None,) * (count - len(arrays))]
        for run, reads, writes in steps:
            for index, value in zip(writes, run([values[i] for i in reads]), strict=True):
                values[index] = value if value.flags.c_contiguous else value.copy()
        outputs = (
            (values[source] if isinstance(source, int) else source, copy) for source, copy in given
        )
        return [value.copy() if copy else value for value, copy in outputs]

    return execute


def _source(
    operand: Operand, number: Mapping[Operand, int], fresh: set[Operand], own: bool
) -> tuple[Any, bool]:
    """Where an output comes from, and whether it must be copied to be the caller's own.

    Args:
        operand: the output.
        number: where the values of operands are.
        fresh: the operands whose values nobody has yet; what is handed out is removed.
        own: whether it must be.
    """
    if operand.value is not None:
        return operand.value, own
    copy = own and operand not in fresh
    fresh.discard(operand)
    return number[operand], copy


def _is_whole(placement: Placement) -> bool:
    (segment,) = placement.segments
    model = placement.model
    return segment.inputs == tuple(model.inputs.values()) and segment.outputs == tuple(
        model.outputs.values()
    )


def _closed(arrays: list[Array]) -> Sequence[Array]:
    raise InputError("this compiled model has been closed; compile it again to run it")
