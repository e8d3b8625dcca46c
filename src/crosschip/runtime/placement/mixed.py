"""A model in which some operators compute in float32 whatever the precision of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from crosschip.ir import Model, Operation
from crosschip.ir.bodies import every_operation
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.placement.constraints import Constraints, Home

_OTHERS = "computes in float32 what mixed_precision lists, and nothing else"


@dataclass(frozen=True, slots=True)
class Mixed:
    """A model in which the listed operators compute in float32.

    Attributes:
        model: the model.
        operations: the names of the listed operations.
        in_float32: the listed operations that devices would compute in another precision, with
            the line that lists each; including those in bodies of control flow.
    """

    model: Model
    operations: tuple[str, ...] = ()
    in_float32: Mapping[Operation, str] = field(default_factory=dict)

    def constraints(
        self, constraints: Constraints, devices: Collection[str], exact: Mapping[str, str]
    ) -> Constraints:
        """Return the caller's constraints together with those of the configuration.

        Operations kept in float32 run on the device that would run them otherwise, in float32.
        Other
        operations do not run on devices that exist for the float32 ones alone.

        Args:
            constraints: the caller's constraints.
            devices: the devices that the caller named, in the order of preference.
            exact: the float32 variant of each device that computes in another precision.
        """
        if not self.in_float32:
            return constraints
        homes: dict[Operation, Home] = {}
        for operation in every_operation(self.model):
            home = constraints.homes.get(operation, Home(tuple(devices), _OTHERS))
            line = self.in_float32.get(operation)
            if line is not None:
                places = dict.fromkeys(exact.get(name, name) for name in home.devices)
                reasons = [home.why] if operation in constraints.homes else []
                home = Home(tuple(places), "; ".join([*reasons, f"kept in float32 by {line}"]))
            homes[operation] = home
        return replace(constraints, homes=homes)
