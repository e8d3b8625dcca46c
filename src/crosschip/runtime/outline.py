"""The outline of a placed model: what is needed to run its programs, without operations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from crosschip.ir import InputError, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import PYTHONS_TYPES

if TYPE_CHECKING:
    from crosschip.hal.conditions import Condition


class Part(Protocol):
    """A segment as execution needs it; `placement.segments.Segment` implements it."""

    @property
    def device(self) -> str:
        """The name of the device."""

    @property
    def name(self) -> str:
        """The name in messages."""

    @property
    def model(self) -> Model:
        """The part as a model."""

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The operands of the whole model that the part reads."""

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """The operands that the part computes and others read."""


class Outline(Protocol):
    """A placed model as execution needs it; `placement.placement.Placement` implements it."""

    @property
    def model(self) -> Model:
        """The model; execution uses its name, inputs and outputs only."""

    @property
    def segments(self) -> Sequence[Part]:
        """The parts, in an executable order."""

    @property
    def conditions(self) -> Sequence[Condition]:
        """The conditions on inputs."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of a stored outline."""

    device: str
    model: Model
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.model.name


@dataclass(frozen=True, slots=True)
class StoredOutline:
    """An outline that was read from the cache."""

    model: Model
    segments: Sequence[StoredPart]
    conditions: Sequence[Condition]


def find_tensor(
    name: str, inputs: Mapping[str, Operand], outputs: Mapping[str, Operand]
) -> Operand:
    """Return the input or output with a name, for which a device can allocate memory.

    Raises:
        InputError: there is none, or it is no tensor of numbers.
    """
    operand = inputs.get(name) or outputs.get(name)
    if operand is None:
        names = [*inputs, *outputs]
        near = did_you_mean(name, names)
        raise InputError(
            f"the model has no input or output {name!r}{near}; there are {', '.join(names)}"
        )
    type_ = operand.type.element_type
    if type_ in PYTHONS_TYPES:
        raise InputError(f"{name!r} is of {type_}, which no device's memory holds")
    return operand


def device_of_operand(operand: Operand, outline: Outline, devices: Collection[str]) -> str:
    """Return the device that computes an operand, else the first that reads it, else the first."""
    segments = [segment for segment in outline.segments if segment.device in devices]
    makers = (segment.device for segment in segments if operand in segment.outputs)
    readers = (segment.device for segment in segments if operand in segment.inputs)
    return next(chain(makers, readers, devices))
