"""The costs of a model's blocks on devices, and the problem of placing them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

import numpy as np

from crosschip.hal import YES
from crosschip.ir import Array, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache.store import Store
from crosschip.runtime.compile.segments import Compilation
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.costs.blocks import Block, blocks_of
from crosschip.runtime.costs.calibration import Calibration, calibrate
from crosschip.runtime.costs.estimate import NOMINAL, Roofline
from crosschip.runtime.costs.measurement import Candidate, Measurement
from crosschip.runtime.costs.parts import Values
from crosschip.runtime.costs.records import Records
from crosschip.runtime.costs.sized_model import Shapes, SizedModel
from crosschip.runtime.costs.timing import Run
from crosschip.runtime.costs.transfers import DEFAULT, measure_transfers
from crosschip.runtime.costs.workload import Workload, nbytes_of
from crosschip.runtime.placement.queries import Answers
from crosschip.runtime.placement.search.problem import HOST, PlacementProblem, Tensor

_SLOW = 4.0
"""The factor by which a device may be slower than the fastest to be measured among the first."""

_TRANSFER_SHARE = 0.2
"""The share of the budget that the measurement of transfers may take."""

_WHOLE_SHARE = 0.02
"""The share of the budget that a run of the whole model may take to be timed with the blocks."""

_LEAST_SHARE = 0.05
"""The share of a block's measured duration that remains at least without the launch."""


@dataclass(frozen=True, slots=True)
class BlockCosts:
    """What a block costs on a device within a segment.

    Attributes:
        seconds: the duration, without launches and transfers.
        uncertainty: the standard error, in seconds.
        estimated: whether the duration was not measured.
        reason: why it was not measured; empty if it was.
    """

    seconds: float
    uncertainty: float
    estimated: bool
    reason: str = ""


class CostModel:
    """The costs of the blocks of a model on some devices.

    Args:
        model: the model.
        compilation: the devices and options.
        answers: each device's answers about all operations of the model, in the devices' order.
        store: the store of measured costs; `None` for none.
        whole_seconds: the measured duration of the whole model, by device.
        whole_runs: functions that run the whole model, by device, to time it again with the blocks.
        tuning_seconds: the time for measurements.
        shapes: the shapes of the model's inputs in the measurements, by name.

    Attributes:
        blocks: the blocks, in an executable order.
        devices: the names of the devices; the last one is `RUNTIME` if it runs control flow.
    """

    def __init__(
        self,
        model: Model,
        compilation: Compilation,
        answers: Mapping[str, Answers],
        store: Store | None,
        *,
        whole_seconds: Mapping[str, float],
        tuning_seconds: float,
        shapes: Shapes,
        whole_runs: Mapping[str, Run] | None = None,
    ) -> None:
        self._compilation = compilation
        self._answers = answers
        self._whole_seconds = dict(whole_seconds)
        self._whole_runs = whole_runs or {}
        self._tuning_seconds = tuning_seconds
        self._sized = SizedModel.of(model, shapes)
        self._keys = operation_keys(model, answers)
        groups = joint_groups(answers, self._keys)
        self.blocks: Sequence[Block] = blocks_of(
            self._sized.static,
            [(key, index) if _is_unclaimed(key) else key for index, key in enumerate(self._keys)],
            groups,
            form="open" if self._sized.is_open else "static",
        )
        self.devices = (*answers, *([RUNTIME] if any(map(_is_unclaimed, self._keys)) else []))
        self._records = Records(compilation.devices, compilation.options, store)
        self._problems: Mapping[tuple[str, str], str] = {}

    def measure(self) -> None:
        """Measure transfers, and what blocks are not in the store, within the budget."""
        begin = time.perf_counter()
        deadline = begin + self._tuning_seconds
        values = Values(self._sized, self._compilation)
        limit = _WHOLE_SHARE * self._tuning_seconds
        whole_runs = {
            name: run
            for name, run in self._whole_runs.items()
            if self._whole_seconds.get(name, 0.0) < limit
        }
        measurement = Measurement(
            values, self._answers, self._compilation, self._records, whole_runs
        )
        self._problems = measurement.problems
        try:
            limit = begin + _TRANSFER_SHARE * self._tuning_seconds
            measure_transfers(self._compilation, self._records, limit)
            measurement.run(self._candidates(), deadline)
        finally:
            self._records.save()
            for name, seconds in measurement.whole_seconds.items():
                self._whole_seconds[name] = min(seconds, self._whole_seconds.get(name, seconds))
            for name in ("_calibrations", "_rooflines", "_copy_rates"):
                self.__dict__.pop(name, None)

    def costs(self, block: int, device: str) -> BlockCosts | None:
        """Return what a block costs on a device; `None` if the device does not run it."""
        if not self._takes(block, device):
            return None
        if device == RUNTIME:
            return BlockCosts(0.0, 0.0, True, "the runtime runs it")
        calibration = self._calibrations[device]
        seconds = float(calibration.seconds[block])
        signature = self.blocks[block].signature
        record = self._records[device].blocks.get(signature)
        if record is None:
            reason = self._problems.get((signature, device), "there was no time to measure it")
            error = self._rooflines[device].error
            return BlockCosts(seconds, seconds * error, True, reason)
        noise = record.uncertainty / record.seconds if record.seconds else 0.0
        return BlockCosts(seconds, seconds * (noise + calibration.residual), False)

    def problem(
        self, *, memory_limits: Mapping[str, int] | None = None, max_segments: int | None = None
    ) -> PlacementProblem:
        """Return the problem of placing the blocks on the devices.

        Args:
            memory_limits: the bytes of weights and activations that a device may hold, by name.
            max_segments: the maximum number of segments; `None` for any number.
        """
        shape = len(self.blocks), len(self.devices)
        seconds = np.full(shape, np.inf)
        for block in range(len(self.blocks)):
            for column, device in enumerate(self.devices):
                costs = self.costs(block, device)
                if costs is not None:
                    seconds[block, column] = costs.seconds
        nbytes = [block.constant_bytes + block.output_bytes for block in self.blocks]
        latency, seconds_per_byte = self._transfers()
        launches = [
            0.0 if name == RUNTIME else self._launch(name) + self._calibrations[name].launch
            for name in self.devices
        ]
        return PlacementProblem(
            self.devices,
            seconds,
            tuple(tensor for _, tensor in self.tensors),
            latency,
            seconds_per_byte,
            np.array(launches),
            self._dialects(),
            np.repeat(np.array(nbytes, np.float64)[:, None], len(self.devices), axis=1),
            dict(memory_limits or {}),
            max_segments,
        )

    @cached_property
    def tensors(self) -> Sequence[tuple[Operand, Tensor]]:
        """The operands that pass between blocks or to and from the host, and their tensors."""
        model = self._sized.static
        sources = dict.fromkeys(model.inputs.values(), HOST)
        readers: dict[Operand, list[int]] = {}
        for index, block in enumerate(self.blocks):
            sources |= dict.fromkeys(block.outputs, index)
            for operand in block.inputs:
                readers.setdefault(operand, []).append(index)
        for operand in model.outputs.values():
            if operand in sources:
                readers.setdefault(operand, []).append(HOST)
        originals = self._sized.originals() if self._sized.is_open else {}
        return [
            (
                originals.get(operand, operand),
                Tensor(sources[operand], tuple(dict.fromkeys(indices)), nbytes_of(operand.type)),
            )
            for operand, indices in readers.items()
        ]

    def _candidates(self) -> list[Candidate]:
        """Return the blocks without records, those with the largest share of the time first."""
        nominal: dict[str, float] = {}
        first: dict[str, int] = {}
        for index, block in enumerate(self.blocks):
            first.setdefault(block.signature, index)
            seconds = block.work.nominal_seconds
            nominal[block.signature] = nominal.get(block.signature, 0.0) + seconds
        total = sum(nominal.values())
        best = min(self._whole_seconds.values(), default=0.0)
        candidates = []
        for signature, index in first.items():
            able = [name for name in self._answers if self._takes(index, name)]
            for name in able if len(able) > 1 else ():
                if signature not in self._records[name].blocks:
                    whole = self._whole_seconds.get(name, total)
                    order = whole > _SLOW * (best or whole), -nominal[signature], index, name
                    seconds = whole * self.blocks[index].work.nominal_seconds / (total or 1.0)
                    candidates.append((order, Candidate(self.blocks[index], name, seconds)))
        return [candidate for _, candidate in sorted(candidates, key=lambda pair: pair[0])]

    def _takes(self, block: int, device: str) -> bool:
        """Return whether a device takes all operations of a block."""
        operations = self.blocks[block].operations
        if device == RUNTIME:
            return _is_unclaimed(self._keys[operations[0]])
        if not all(map(self._answers[device].takes, operations)):
            return False
        members = set(operations)
        return all(
            members.isdisjoint(group) or members.issuperset(group)
            for _, group in self._answers[device].groups
        )

    @cached_property
    def _rooflines(self) -> Mapping[str, Roofline]:
        """The estimate of each device."""
        return {name: self._roofline(name) for name in self._answers}

    def _roofline(self, device: str) -> Roofline:
        alone = [(block.work, self._alone(device, block)) for block in self.blocks]
        measured = [(work, seconds) for work, seconds in alone if seconds is not None]
        if measured:
            return Roofline.fit([w for w, _ in measured], [seconds for _, seconds in measured])
        whole = self._whole(device)
        if whole is None:
            return NOMINAL
        return Roofline.of_whole(Workload.total([block.work for block in self.blocks]), whole)

    def _whole(self, device: str) -> float | None:
        """Return the duration of the whole model without launch and copies; `None` if unknown."""
        whole = self._whole_seconds.get(device)
        if whole is None:
            return None
        return max(whole - self._overhead(device, self._host_bytes), 0.1 * whole)

    @cached_property
    def _host_bytes(self) -> int:
        """The bytes of the model's inputs and outputs."""
        return sum(t.bytes for _, t in self.tensors if HOST in (t.source, *t.readers))

    def _alone(self, device: str, block: Block) -> float | None:
        """Return the measured duration of a block without launch and copies; `None` if unknown."""
        records = self._records[device]
        record = records.blocks.get(block.signature)
        if record is None:
            return None
        nbytes = 0 if records.asynchronous else block.input_bytes + block.output_bytes
        least = max(_LEAST_SHARE * record.seconds, 1e-9)
        return max(record.seconds - self._overhead(device, nbytes), least)

    def _overhead(self, device: str, nbytes: int) -> float:
        """Return the duration of a launch with copies of a number of bytes."""
        return self._launch(device) + nbytes * self._copy_rates[device]

    @cached_property
    def _calibrations(self) -> Mapping[str, Calibration]:
        """The durations of the blocks on each device, and that of its boundaries."""
        return {name: self._calibration(name) for name in self._answers}

    def _calibration(self, device: str) -> Calibration:
        roofline = self._rooflines[device]
        alone = np.array(
            [
                roofline.seconds(block.work) if seconds is None else seconds
                for block in self.blocks
                for seconds in [self._alone(device, block)]
            ]
        )
        nbytes = np.array([block.input_bytes + block.output_bytes for block in self.blocks])
        whole = self._whole(device)
        if whole is None:
            return Calibration(alone)
        return calibrate(alone, nbytes, self._launch(device), whole, self._host_bytes)

    def _launch(self, device: str) -> float:
        return (self._records[device].launch or DEFAULT).seconds

    @cached_property
    def _copy_rates(self) -> Mapping[str, float]:
        """The seconds per byte of copies to or from each device, beyond those of the quickest."""
        slopes = {n: (self._records[n].launch or DEFAULT).seconds_per_byte for n in self._answers}
        least = min(slopes.values(), default=0.0)
        return {name: (slope - least) / 2 for name, slope in slopes.items()}

    def _transfers(self) -> tuple[Array, Array]:
        """Return the latency and seconds per byte from each device or the host to each other."""
        count = len(self.devices)
        latency, per_byte = np.zeros((2, count + 1, count + 1))
        rates = {
            name: self._copy_rates[name] + self._calibrations[name].boundary_rate
            for name in self._answers
        }
        for row, source in enumerate(self.devices):
            rate = rates.get(source, 0.0)
            per_byte[row, :] += rate
            per_byte[:, row] += rate
            for column, destination in enumerate(self.devices):
                if RUNTIME in (source, destination) or source == destination:
                    continue
                pair = self._records.transfer(source, destination) or DEFAULT
                latency[row, column] += pair.seconds
                per_byte[row, column] += pair.seconds_per_byte
        np.fill_diagonal(per_byte, 0.0)
        return latency, per_byte

    def _dialects(self) -> Array | None:
        """Return a number for each dialect of a block on a device; `None` if there is one."""
        numbers: dict[Hashable, int] = {"": 0}
        dialects = np.zeros((len(self.blocks), len(self.devices)), np.intp)
        for index, block in enumerate(self.blocks):
            key = self._keys[block.operations[0]]
            for column, dialect in enumerate(key):
                dialects[index, column] = numbers.setdefault(dialect or "", len(numbers))
        for column, device in enumerate(self.devices):
            if device == RUNTIME:
                dialects[:, column] = np.arange(len(self.blocks))
        return dialects if dialects.any() else None


Key = tuple[str | None, ...]
"""The dialect of an operation on each device; `None` where the device declines it."""


def operation_keys(model: Model, answers: Mapping[str, Answers]) -> list[Key]:
    """Return the dialect of each operation on each device."""
    columns = []
    for device_answers in answers.values():
        column: list[str | None] = []
        for index, support in enumerate(device_answers.supports):
            if support is YES:
                column.append("")
            elif support is not None and device_answers.takes(index):
                column.append(support.dialect)
            else:
                column.append(None)
        columns.append(column)
    return list(zip(*columns, strict=True)) if columns else [()] * len(model.operations)


def joint_groups(answers: Mapping[str, Answers], keys: Sequence[Key]) -> list[Sequence[int]]:
    """Return disjoint groups of operations that some device runs only as a whole.

    Groups of several devices that overlap are united if one device takes the union; otherwise the
    groups of the first device stay.
    """
    groups: list[set[int]] = []
    for device_answers in answers.values():
        for _, members in device_answers.groups:
            union = set(members)
            overlapping = [group for group in groups if not group.isdisjoint(union)]
            union = union.union(*overlapping)
            if all(_is_unclaimed(column) for column in zip(*(keys[i] for i in union), strict=True)):
                continue
            groups = [group for group in groups if group not in overlapping] + [union]
    return [sorted(group) for group in groups]


def _is_unclaimed(key: Key) -> bool:
    """Return whether no device takes an operation."""
    return all(dialect is None for dialect in key)
