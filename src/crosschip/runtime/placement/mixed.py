"""A model of which some operators compute in float32, whatever the others do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from crosschip.ir import Model, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.placement.constraints import Constraints, Home

_OTHERS = "computes in float32 what mixed_precision lists, and nothing else"


@dataclass(frozen=True, slots=True)
class Mixed:
    """A model of which listed operators compute in float32.

    Attributes:
        model: the model.
        operations: the names of the operations that compute in float32 because they are listed.
        in_float32: those of them that devices would compute in another precision, with the line
            that lists each; those in bodies of control flow, too.
    """

    model: Model
    operations: tuple[str, ...] = ()
    in_float32: Mapping[Operation, str] = field(default_factory=dict)

    def constraints(
        self, constraints: Constraints, devices: Collection[str], exact: Mapping[str, str]
    ) -> Constraints:
        """The caller's constraints, with those of the configuration.

        What is kept in float32 goes where it would go otherwise, as computed in float32 there; what
        is not does not go to devices that are there for that alone.

        Args:
            constraints: the caller's own.
            devices: those that the caller named, in the order of preference.
            exact: the device in float32 for each that computes in another precision.
        """
        if not self.in_float32:
            return constraints
        homes: dict[Operation, Home] = {}
        for operation in walk_operations(self.model):
            home = constraints.homes.get(operation, Home(tuple(devices), _OTHERS))
            line = self.in_float32.get(operation)
            if line is not None:
                places = dict.fromkeys(exact.get(name, name) for name in home.devices)
                reasons = [home.why] if operation in constraints.homes else []
                home = Home(tuple(places), "; ".join([*reasons, f"kept in float32 by {line}"]))
            homes[operation] = home
        return replace(constraints, homes=homes)
