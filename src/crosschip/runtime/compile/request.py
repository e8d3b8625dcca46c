"""The request of one call of `compile` or `explain`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from crosschip.ir import Budget
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.configuration import Configuration, Properties
from crosschip.runtime.options import ShapeOptions
from crosschip.runtime.placement.options import PlacementOptions

if TYPE_CHECKING:
    from crosschip.runtime.compile.devices import Devices


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """The arguments of `compile` that determine the result, without the model.

    Attributes:
        devices: the candidate devices.
        shapes: the shapes, ranges, profiles and buckets of dynamic dimensions.
        settings: precision, threads, runs at once, performance, properties.
        required_properties: the properties whose devices must be among the opened ones.
        placement: the caller's constraints on the devices of operations.
        budget: the largest cost of compiling.

    Raises:
        InputError: as for the options.
    """

    devices: Devices
    shapes: ShapeOptions = field(default_factory=ShapeOptions)
    settings: Configuration = field(default_factory=Configuration)
    required_properties: Properties = field(default_factory=dict)
    placement: PlacementOptions = field(default_factory=PlacementOptions)
    budget: Budget | None = None

    def words(self) -> str:
        """Return a text of all fields, equal for equal requests only.

        Configuration files enter with their content.

        Raises:
            InputError: a configuration is malformed, or cannot be read.
            TypeError: a value's type has no canonical text, like an instance of a device.
        """
        placement = self.placement
        constraints = placement.words(), placement.float32_entries(), placement.isolate
        return canonical(
            [
                self.devices,
                self.shapes,
                self.settings,
                self.required_properties,
                constraints,
                self.budget,
            ]
        )
