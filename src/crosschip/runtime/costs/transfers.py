"""What launches of segments and transfers between devices cost, measured on small models.

A device runs an elementwise operator once and twice on tensors of three sizes. What the second one
adds is the operator; what remains of the first is the launch, and, in proportion to the bytes, the
copies to and from the device. For each pair of devices, the operator runs on both, one after the
other; what this takes beyond both alone is the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import permutations
from math import inf

import numpy as np

from crosschip.hal import YES
from crosschip.ir import Array, Builder, ElementType, Error, TensorType
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


_LEAST_SHARE, _LEAST_SECONDS = 0.1, 1e-5
"""A launch takes at least this share of the duration of a small model, or these seconds."""


def measure_transfers(compilation: Compilation, records: Records, deadline: float = inf) -> None:
    """Measure launches and transfers of all devices that have no record of them.

    Args:
        compilation: the devices and options.
        records: the records to which durations are added.
        deadline: a value of `time.perf_counter`, after which measurements are less precise.
    """
    names = list(compilation.devices)
    pairs = [pair for pair in permutations(names, 2) if records.transfer(*pair) is None]
    unmeasured = [name for name in names if records[name].launch is None]
    if not unmeasured and not pairs:
        return
    with task("measuring transfers between devices", measures=True), ExitStack() as stack:
        programs: Programs = {}
        for name in names:
            try:
                programs |= _compile(name, compilation, stack)
            except (Error, SegmentCompileError):
                records.set_launch(name, DEFAULT)
        able = {name for (name, *_), _ in programs}
        chains: list[Chain] = [(name,) * count for name in able for count in (1, 2)]
        chains += [pair for pair in pairs if able.issuperset(pair)]
        fits = _fit_chains(chains, programs, deadline)
        for name in able:
            launch = _launch(fits[name,], fits[name, name])
            submits = programs[(name,), ELEMENTS[0]].submits
            records.set_launch(name, launch, asynchronous=submits)
        for source, destination in pairs:
            fit = fits.get((source, destination))
            extra = DEFAULT if fit is None else _difference(fit, fits[source,], fits[destination,])
            records.set_transfer(source, destination, extra)


Chain = tuple[str, ...]
"""The device of each of some consecutive operations."""

Programs = dict[tuple[Chain, int], SegmentProgram]
"""Programs of one device, by their chain and the number of elements."""


def _fit_chains(
    chains: Sequence[Chain], programs: Programs, deadline: float
) -> dict[Chain, TransferRecord]:
    """Return the duration of chains of the operator on devices, as a function of bytes."""
    nbytes = np.array(ELEMENTS) * 4.0
    groups = [[_run_of(chain, elements, programs) for elements in ELEMENTS] for chain in chains]
    return {
        chain: _line(nbytes, np.array([timing.seconds for timing in timings]))
        for chain, timings in zip(chains, time_in_turns(groups, deadline), strict=True)
    }


def _run_of(chain: Chain, elements: int, programs: Programs) -> Run:
    """Return the run of a chain on a tensor."""
    parts = [chain] if len(set(chain)) == 1 else [(name,) for name in chain]
    plan = Plan(_placement(elements, chain), [programs[part, elements] for part in parts], Copies())
    return partial(plan.execute, [np.zeros(elements, np.float32)])


def _compile(name: str, compilation: Compilation, stack: ExitStack) -> Programs:
    """Compile chains of one device in all sizes."""
    compilation = replace(compilation, store=None)
    programs: Programs = {}
    for chain in ((name,), (name, name)):
        for elements in ELEMENTS:
            placement = _placement(elements, chain)
            (segment,) = placement.segments
            program = compilation.make(segment, placement).program
            stack.callback(program.close)
            programs[chain, elements] = program
    return programs


def _placement(elements: int, chain: Chain) -> Placement:
    """Return a placement of one operation on each device of a chain."""
    builder = Builder("transfer")
    value = builder.input("x", TensorType(ElementType.FLOAT32, (elements,)))
    for _ in chain:
        value = builder.add(Relu, value)
    builder.output("y", value)
    answers = {name: Answers([YES] * len(chain)) for name in chain}
    return Placement(builder.build(), Assignment(answers, list(chain)), {}, list(answers))


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


def _launch(once: TransferRecord, twice: TransferRecord) -> TransferRecord:
    """Return what one operation costs beyond the operator itself."""
    seconds = 2 * once.seconds - twice.seconds
    per_byte = 2 * once.seconds_per_byte - twice.seconds_per_byte
    least = min(_LEAST_SHARE * once.seconds, _LEAST_SECONDS)
    return TransferRecord(
        min(once.seconds, max(least, seconds)), min(once.seconds_per_byte, max(0.0, per_byte))
    )


def _difference(both: TransferRecord, *alone: TransferRecord) -> TransferRecord:
    """Return what a chain costs beyond its parts; noise does not make it negative."""
    seconds = both.seconds - sum(each.seconds for each in alone)
    per_byte = both.seconds_per_byte - sum(each.seconds_per_byte for each in alone)
    return TransferRecord(max(0.0, seconds), max(0.0, per_byte))
