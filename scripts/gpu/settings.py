"""What a part is run with, and the time that it has."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a part.

    Attributes:
        models: the folder of packed models.
        seconds: the time of this part on this device.
        quick: try everything on little.
        begin: when the part began, in seconds of `time.monotonic`.
    """

    models: Path
    seconds: float
    quick: bool
    begin: float

    def remaining(self) -> float:
        """Return the seconds that are left; none is below 0."""
        return max(0.0, self.seconds - (time.monotonic() - self.begin))
