"""The placement of one operation, with the verdicts of the devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.hal import Rule, Support
from crosschip.ir import Operation
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.placement.queries import Verdict

if TYPE_CHECKING:
    from crosschip.runtime.placement.placement import Placement


@dataclass(frozen=True, slots=True)
class Decision:
    """The placement of one operation.

    Attributes:
        operation: the operation.
        device: the device that runs the operation; `None` if no device does.
        verdicts: the verdict of each queried device, in the order of preference.
        bodies: the placements of its bodies, if the runtime runs it.
    """

    operation: Operation
    device: str | None
    verdicts: Mapping[str, Verdict]
    bodies: Sequence[Placement] = ()

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.operation.name

    @property
    def type(self) -> str:
        """The type of its operator."""
        return self.operation.type

    @property
    def parts(self) -> Sequence[Operation]:
        """The operations that run: the operation itself, or those of its decomposition."""
        if self.device is None:
            return ()
        return self.verdicts[self.device].simpler or (self.operation,)

    @property
    def reasons(self) -> Mapping[str, str]:
        """The verdict of each queried device, in words."""
        return {device: verdict.text for device, verdict in self.verdicts.items()}

    @property
    def refusals(self) -> Sequence[Support]:
        """The refusals of the devices that are preferred to the one that runs the operation.

        None if the runtime runs it, because the placements of its bodies have the refusals.
        """
        if self.device == RUNTIME:
            return []
        device_names = list(self.verdicts)
        before = (
            device_names if self.device is None else device_names[: device_names.index(self.device)]
        )
        return [self.verdicts[name].support for name in before if not self.verdicts[name]]

    @property
    def falls_back(self) -> bool:
        """Return whether a preferred device declined the operation."""
        return any(refusal.rule is not Rule.CALLER for refusal in self.refusals)
