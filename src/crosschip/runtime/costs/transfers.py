"""What launches of segments and transfers between devices cost, measured on small models.

A device runs an elementwise operator on tensors of three sizes. The duration for no bytes is that
of a launch; what the bytes add, beyond what the quickest device needs for the same work, are copies
to and from its memory. For each pair of devices, the operator runs on both, one after the other;
what this takes beyond both alone is the transfer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np

from crosschip.hal import YES
from crosschip.ir import Array, Builder, ElementType, Error, Model, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.progress import task
from crosschip.runtime.compile.failures import SegmentCompileError
from crosschip.runtime.compile.segments import Compilation
from crosschip.runtime.copies import Copies
from crosschip.runtime.costs.records import Records, TransferRecord
from crosschip.runtime.costs.timing import Run, time_in_turns
from crosschip.runtime.execution import Plan
from crosschip.runtime.placement.assignment import Assignment
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.queries import Answers
from crosschip.runtime.programs import SegmentProgram

ELEMENTS = (256, 65_536, 1_048_576)
"""The numbers of float32 elements of the tensors."""

DEFAULT = TransferRecord(2e-5, 1e-10)
"""The assumed cost of launches and transfers of a device that does not run the operator."""


def measure_transfers(compilation: Compilation, records: Records) -> None:
    """Measure launches and transfers of all devices that have no record of them."""
    names = list(compilation.devices)
    pairs = [pair for pair in permutations(names, 2) if records.transfer(*pair) is None]
    unmeasured = [name for name in names if records[name].launch is None]
    if not unmeasured and not pairs:
        return
    with task("measuring transfers between devices", measures=True), ExitStack() as stack:
        programs: dict[str, list[SegmentProgram]] = {}
        for name in names:
            try:
                programs[name] = _compile(name, compilation, stack)
            except (Error, SegmentCompileError):
                records.set_launch(name, DEFAULT)
        chains = [(name,) for name in programs]
        chains += [pair for pair in pairs if set(pair) <= set(programs)]
        fits = _fit_chains(chains, programs)
        for name in programs:
            records.set_launch(name, fits[name,])
        for source, destination in pairs:
            fit = fits.get((source, destination))
            extra = DEFAULT if fit is None else _difference(fit, fits[source,], fits[destination,])
            records.set_transfer(source, destination, extra)


def _fit_chains(
    chains: Sequence[tuple[str, ...]], programs: Mapping[str, Sequence[SegmentProgram]]
) -> dict[tuple[str, ...], TransferRecord]:
    """Return the duration of chains of the operator on devices, as a function of bytes."""
    nbytes = np.array(ELEMENTS) * 4.0
    values = [[np.zeros(elements, np.float32)] for elements in ELEMENTS]
    groups = [
        [_chain_run(chain, size, programs, values[size]) for size in range(len(ELEMENTS))]
        for chain in chains
    ]
    return {
        chain: _line(nbytes, np.array([timing.seconds for timing in timings]))
        for chain, timings in zip(chains, time_in_turns(groups), strict=True)
    }


def _chain_run(
    chain: Sequence[str],
    size: int,
    programs: Mapping[str, Sequence[SegmentProgram]],
    values: Sequence[Array],
) -> Run:
    """Return the run of a chain of devices on a tensor."""
    placement = _placement(ELEMENTS[size], chain)
    plan = Plan(placement, [programs[name][size] for name in chain], Copies())
    return partial(plan.execute, values)


def _compile(name: str, compilation: Compilation, stack: ExitStack) -> list[SegmentProgram]:
    """Compile the operator for a device in all sizes."""
    compilation = replace(compilation, store=None)
    programs: list[SegmentProgram] = []
    for elements in ELEMENTS:
        placement = _placement(elements, (name,))
        (segment,) = placement.segments
        program = compilation.make(segment, placement).program
        stack.callback(program.close)
        programs.append(program)
    return programs


def _placement(elements: int, chain: Sequence[str]) -> Placement:
    """Return a placement of one operation on each device of a chain."""
    answers = {name: Answers([YES] * len(chain)) for name in chain}
    model = _model(elements, len(chain))
    return Placement(model, Assignment(answers, list(chain)), {}, list(answers))


def _model(elements: int, count: int) -> Model:
    builder = Builder("transfer")
    value = builder.input("x", TensorType(ElementType.FLOAT32, (elements,)))
    for _ in range(count):
        value = builder.add(Relu, value)
    builder.output("y", value)
    return builder.build()


def _line(nbytes: Array, seconds: Array) -> TransferRecord:
    """Fit a non-negative duration and a non-negative duration per byte, by relative errors."""
    weights = 1 / seconds
    rows = np.stack([weights, nbytes * weights], axis=1)
    (start, slope), *_ = np.linalg.lstsq(rows, np.ones(len(seconds)), rcond=None)
    if slope < 0:
        return TransferRecord(float(seconds.min()), 0.0)
    if start < 0:
        return TransferRecord(0.0, float(np.mean(seconds / nbytes)))
    return TransferRecord(float(start), float(slope))


def _difference(both: TransferRecord, *alone: TransferRecord) -> TransferRecord:
    """Return what a chain costs beyond its parts; noise does not make it negative."""
    seconds = both.seconds - sum(each.seconds for each in alone)
    per_byte = both.seconds_per_byte - sum(each.seconds_per_byte for each in alone)
    return TransferRecord(max(0.0, seconds), max(0.0, per_byte))
