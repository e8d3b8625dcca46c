"""Costs of a placement: what each part takes on its device, and would take on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from crosschip.ir.dataclass import dataclass

HOST = "host"
"""Where inputs come from and outputs go to."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """What changes if a block alone runs on another device.

    Attributes:
        device: the other device.
        seconds: the difference of the predicted time of the whole model.
        transfers: the difference of the number of transfers.
    """

    device: str
    seconds: float
    transfers: int

    def __str__(self) -> str:
        difference = f"{self.seconds * 1e3:+.3g} ms"
        if self.transfers <= 0:
            return f"{self.device} {difference}"
        plural = "s" if self.transfers > 1 else ""
        return f"{self.device} would need {self.transfers} more transfer{plural}, {difference}"


@dataclass(frozen=True, slots=True)
class BlockCost:
    """The cost of a block of operations.

    Attributes:
        operations: the names of the operations.
        device: the device that runs them.
        seconds: the duration of a run, without launch and transfers.
        uncertainty: its standard error in seconds.
        estimated: whether the duration is estimated, not measured.
        alternatives: the other devices that can run the block, the cheapest first.
    """

    operations: tuple[str, ...]
    device: str
    seconds: float
    uncertainty: float = 0.0
    estimated: bool = False
    alternatives: tuple[Alternative, ...] = ()

    def __str__(self) -> str:
        sign = "about " if self.estimated else ""
        here = f"on {self.device}: {sign}{self.seconds * 1e3:.3g} ms here"
        return "; ".join([here, *map(str, self.alternatives)])


@dataclass(frozen=True, slots=True)
class TransferCost:
    """The cost of a tensor that passes between devices.

    Attributes:
        operand: the operand's name.
        source: the device that computes it, or `HOST`.
        destination: the device that reads it, or `HOST`.
        bytes: the size.
        seconds: the duration.
    """

    operand: str
    source: str
    destination: str
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placement that was considered.

    Attributes:
        name: the devices, joined by " + ".
        predicted_seconds: the predicted duration of a run.
        seconds: the measured duration; `None` if the whole was not measured.
        segments: the number of segments.
        reason: why the whole was not measured; empty if it was.
    """

    name: str
    predicted_seconds: float
    seconds: float | None
    segments: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlacementCosts:
    """The costs of a placement.

    Attributes:
        blocks: the blocks, in an executable order.
        transfers: the transfers between devices, and from and to the host.
        launches: the duration of starting a segment, by device.
        predicted_seconds: the predicted duration of a run.
        alone: the predicted duration on each device that runs the whole model.
        memory: the bytes of weights and of tensors between blocks, by device.
        candidates: the placements that were considered, the fastest first.
    """

    blocks: tuple[BlockCost, ...]
    transfers: tuple[TransferCost, ...]
    launches: Mapping[str, float]
    predicted_seconds: float
    alone: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()

    def of(self, operation: str) -> BlockCost | None:
        """Return the cost of the block of an operation, by its name; `None` if it has none."""
        return next((block for block in self.blocks if operation in block.operations), None)
