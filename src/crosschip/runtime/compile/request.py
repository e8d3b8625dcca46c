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
    """All that decides what a model is compiled to, but for the model and the installed devices.

    Attributes:
        devices: the devices that the model may go to.
        shapes: the sizes that the model leaves open.
        settings: precision, threads, runs at once, performance, properties.
        demanded: the properties of devices that must be among those opened.
        placement: the caller's constraints on which device runs what.
        budget: the largest cost of compiling.

    Raises:
        InputError: as for the options.
    """

    devices: Devices
    shapes: ShapeOptions = field(default_factory=ShapeOptions)
    settings: Configuration = field(default_factory=Configuration)
    demanded: Properties = field(default_factory=dict)
    placement: PlacementOptions = field(default_factory=PlacementOptions)
    budget: Budget | None = None

    def words(self) -> str:
        """A text that two requests share only if they are equal.

        It has every field in it, with the content of configurations that are in files.

        Raises:
            InputError: a configuration is not of its form, or cannot be read.
            TypeError: a value is of a type that has no such text, as an instance of a device.
        """
        placement = self.placement
        constraints = placement.words(), placement.float32_words(), placement.isolate
        return canonical(
            [self.devices, self.shapes, self.settings, self.demanded, constraints, self.budget]
        )
