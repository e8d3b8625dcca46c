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
        until: when the part's time on this device ends, in seconds of `time.time`.
        quick: try everything on little.
    """

    models: Path
    until: float
    quick: bool

    def remaining(self) -> float:
        """Return the seconds that are left; none is below 0."""
        return max(0.0, self.until - time.time())
