"""The parts of a run, in order of value; as a program, one part on one device."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from benchmarks.subject import Row
from gpu.results import PartResult, write
from gpu.settings import Settings

NAMES = ("machine", "devices", "kit", "models", "precision", "speed", "transfer", "memory")


class Part(Protocol):
    """A module that measures one thing.

    Attributes:
        __doc__: the title, and the method for the page.
        REQUIREMENT: the requirement for the rows, in words; empty if there is none.
        SHARE: the share of a run's time.
        PER_DEVICE: whether the part is about devices.
    """

    __doc__: str | None
    REQUIREMENT: str
    SHARE: float
    PER_DEVICE: bool

    def measure(self, device: str, settings: Settings) -> Iterator[Row | str]:
        """Yield rows and remarks as they are measured, until the time is used up."""


def part(name: str) -> Part:
    """Return the part of a name."""
    return cast(Part, import_module(f"gpu.{name}"))


def run(name: str, device: str, folder: Path, settings: Settings) -> None:
    """Run one part on one device, and write each row as it comes."""
    result, begin = PartResult(device), time.monotonic()
    try:
        for row in part(name).measure(device, settings):
            result.add(row)
            shown: Mapping[str, str] = {"": row} if isinstance(row, str) else row.cells()
            print(" | ".join(filter(None, shown.values())), flush=True)
            result.seconds = time.monotonic() - begin
            write(folder, name, result)
    except Exception as error:  # the other parts are still worth running
        reason = f"{device}: the part failed: {type(error).__name__}: {error}"
        result.add(reason)
        write(folder, name, result)
        raise


def main() -> None:
    """Run the part that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--device", default="")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--until", type=float, required=True, help="in seconds of `time.time`")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    settings = Settings(options.models, options.until, options.quick)
    run(options.name, options.device, options.output, settings)


if __name__ == "__main__":
    main()
