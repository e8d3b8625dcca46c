"""Simulated chips: devices that compute with the reference device, and take the time of a table.

Each operator takes a time on each chip, and so do the launch of a program and the transfer of a
tensor from another chip or the host, in each direction. A run sleeps for what remains of that time
after the computation, which must be shorter. A tensor goes once to each other chip that reads it.
Outputs of the model go to the host at no cost, since a program cannot tell who reads its outputs.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256

import numpy as np

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import YES, Capabilities, Device, Kind, Options, Program, Rule, Support
from crosschip.ir import Array, Model, Operand, Operation, TensorType
from crosschip.runtime.placement.search.problem import HOST, PlacementProblem, Tensor

HOST_NAME = "host"
"""The host among the origins and destinations of transfers."""


@dataclass(frozen=True)
class SimulatedChip:
    """The costs of one chip, in seconds.

    Attributes:
        operators: the duration of each operator, by type.
        other_operators: the duration of all other operators; `None` if it declines them.
        launch: the duration of the launch of a program.
    """

    operators: Mapping[str, float]
    other_operators: float | None
    launch: float


@dataclass(frozen=True)
class SimulatedChips:
    """Chips and the transfers between them.

    Attributes:
        chips: the chips, by name.
        latency: the duration of a transfer of zero bytes, by origin and destination.
        seconds_per_byte: what each byte adds, by origin and destination.
    """

    chips: Mapping[str, SimulatedChip]
    latency: Mapping[tuple[str, str], float] = field(default_factory=dict)
    seconds_per_byte: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def transfer(self, origin: str, destination: str, size: int) -> float:
        """Return the duration of a transfer of `size` bytes; zero within a chip and to the host."""
        if destination in (origin, HOST_NAME):
            return 0.0
        pair = origin, destination
        return self.latency.get(pair, 0.0) + size * self.seconds_per_byte.get(pair, 0.0)


def random_chips(seed: int, operators: Sequence[str], count: int = 5) -> SimulatedChips:
    """Return chips that are each good at some operators, with asymmetric transfers.

    Operators take 0.2 to 2 ms, launches 0.1 to 0.3 ms, transfers 0.05 to 0.5 ms.

    Args:
        seed: the seed of the random numbers.
        operators: the types of operators that chips run; each declines some, but the last chip.
        count: the number of chips.
    """
    random = np.random.default_rng(seed)
    names = [f"simulated{number}" for number in range(count)]
    chips = {}
    for name in names:
        seconds = np.round(random.uniform(2e-4, 2e-3, len(operators)), 6).tolist()
        runs = (random.random(len(operators)) < 0.8) | (name == names[-1])
        table = {o: s for o, s, run in zip(operators, seconds, runs, strict=True) if run}
        chips[name] = SimulatedChip(table, None, round(random.uniform(1e-4, 3e-4), 6))
    pairs = [(a, b) for a in (HOST_NAME, *names) for b in names if a != b]
    return SimulatedChips(
        chips,
        {pair: round(random.uniform(5e-5, 5e-4), 6) for pair in pairs},
        {pair: round(random.uniform(0, 1e-9), 12) for pair in pairs},
    )


def simulated_devices(chips: SimulatedChips) -> list[SimulatedDevice]:
    """Return an open device for each chip, for `crosschip.compile(model, devices)`."""
    arrays = _Arrays()
    return [SimulatedDevice(name, chips, arrays) for name in chips.chips]


class _Arrays:
    """The arrays that programs returned, and the chips that have each."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Array], str, set[str]]] = {}

    def add(self, array: Array, chip: str) -> None:
        """Add an array that a chip computed, until it is no longer referenced."""
        key = id(array)
        reference = weakref.ref(array, lambda _: self._entries.pop(key, None))
        self._entries[key] = reference, chip, {chip}

    def move(self, array: Array, chip: str) -> str:
        """Return where an array comes from when a chip reads it, which may be the chip itself."""
        entry = self._entries.get(id(array))
        if entry is None or entry[0]() is not array:
            return HOST_NAME
        _, origin, locations = entry
        if chip in locations:
            return chip
        locations.add(chip)
        return origin


class SimulatedDevice(Device):
    """A chip of a table."""

    vendor = "simulated"
    kind = Kind.ACCELERATOR

    def __init__(self, name: str, chips: SimulatedChips, arrays: _Arrays) -> None:
        super().__init__()
        self.name = name
        self.chips = chips
        self.costs = chips.chips[name]
        self._arrays = arrays
        self._reference = ReferenceDevice()

    def another(self, properties: Mapping[str, str]) -> SimulatedDevice:
        return SimulatedDevice(self.name, self.chips, self._arrays)

    @property
    def version(self) -> str:
        return sha256(repr(asdict(self.chips)).encode()).hexdigest()[:16]

    def capabilities(self) -> Capabilities:
        return self._reference.capabilities()

    def supports(self, operation: Operation, options: Options) -> Support:
        if self.seconds(operation) is None:
            return Support.no(operation, "", "is not in the table", Rule.OPERATOR)
        return YES

    def seconds(self, operation: Operation) -> float | None:
        """Return the duration of an operation; `None` if the chip declines it."""
        return self.costs.operators.get(operation.type, self.costs.other_operators)

    def compile(self, model: Model, options: Options) -> Program:
        seconds = self.costs.launch + sum(self.seconds(each) or 0.0 for each in model.operations)
        return SimulatedProgram(self._reference.compile(model, options), self, seconds)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self.compile(model, options)

    def transfer(self, array: Array) -> float:
        """Return the duration of the transfer of an array to the chip, which then has it."""
        origin = self._arrays.move(array, self.name)
        return self.chips.transfer(origin, self.name, array.nbytes)

    def add_outputs(self, outputs: Sequence[Array]) -> None:
        """Note that the chip has arrays."""
        for array in outputs:
            self._arrays.add(array, self.name)


class SimulatedProgram(Program):
    """A program of the reference device that takes the time of a table.

    Args:
        program: the program.
        device: the chip.
        seconds: the duration of its launch and operations.
    """

    def __init__(self, program: Program, device: SimulatedDevice, seconds: float) -> None:
        self._program = program
        self._device = device
        self._seconds = seconds

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        start = time.perf_counter()
        end = start + self._seconds + sum(map(self._device.transfer, inputs))
        outputs = self._program.run(inputs)
        self._device.add_outputs(outputs)
        time.sleep(max(0.0, end - time.perf_counter()))
        return outputs

    def save(self) -> bytes | None:
        return self._program.save()


def simulated_problem(model: Model, chips: SimulatedChips) -> PlacementProblem:
    """Return the placement problem of a model of static shapes, with a block for each operation."""
    devices = simulated_devices(chips)
    names = (*chips.chips, HOST_NAME)
    seconds = [[device.seconds(each) for device in devices] for each in model.operations]
    pairs = [[(origin, destination) for destination in names] for origin in names]
    source = {o: index for index, each in enumerate(model.operations) for o in each.outputs}
    readers: dict[Operand, list[int]] = {operand: [] for operand in model.inputs.values()}
    for index, operation in enumerate(model.operations):
        for operand in operation.inputs:
            if operand is not None and operand.content is None:
                readers.setdefault(operand, []).append(index)
    for operand in model.outputs.values():
        readers.setdefault(operand, []).append(HOST)
    return PlacementProblem(
        devices=tuple(chips.chips),
        seconds=np.array([[np.inf if s is None else s for s in row] for row in seconds]),
        tensors=tuple(
            Tensor(source.get(operand, HOST), tuple(reading), _bytes(operand.type))
            for operand, reading in readers.items()
        ),
        latency=np.array([[chips.transfer(*pair, 0) for pair in row] for row in pairs]),
        seconds_per_byte=np.array(
            [[chips.seconds_per_byte.get(pair, 0.0) for pair in row] for row in pairs]
        ),
        launch_seconds=np.array([chip.launch for chip in chips.chips.values()]),
    )


def _bytes(type: TensorType) -> int:
    """Return the size of a tensor of a static shape."""
    shape = [size for size in type.shape or () if isinstance(size, int)]
    return int(np.prod(shape)) * type.element_type.dtype.itemsize
