"""A device's answer to the question whether it runs an operation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Support:
    """Yes, or no with the reason; true where it is yes.

    Attributes:
        reason: operator, slot and rule, as in `CONV_2D.dilations: 2 on a depthwise filter`;
            empty for a plain yes.
    """

    supported: bool
    reason: str = ""

    @classmethod
    def no(cls, reason: str) -> Support:
        """The device does not run the operation, and why."""
        return cls(False, reason)

    def __bool__(self) -> bool:
        return self.supported


YES = Support(True)
