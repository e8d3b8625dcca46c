"""Peak memory of ten networks.

On the chip, by the engine's own count, of a process that runs the network three times; on the
processor, the resident memory of the process. Each has a process of its own. JAX's count is the
device's in `xla`, and PyTorch's in `torch`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated

from benchmarks.subject import Column, Row
from gpu.engines import FLOAT32, engine_of, open_ours
from gpu.networks import networks
from gpu.settings import Settings

REQUIREMENT = ""
SHARE = 0.08
PER_DEVICE = True

OURS = "crosschip"
_RUNS = 3
_AT_ONCE = 4
_MEGABYTE = 2**20


@dataclass(frozen=True)
class Memory(Row):
    """The peaks of crosschip and of the engine, batch 1, float32."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    engine: Annotated[float, Column("engine MiB", ".0f")]
    ours: Annotated[float, Column("crosschip MiB", ".0f")]
    ratio: Annotated[float, Column("of the engine's", ".2f")]

    @property
    def met(self) -> bool | None:
        return None


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Yield a row a network, in the order of the networks."""
    way = next(iter(engine_of(device).ways))
    names = [network.name for network in networks(quick=settings.quick)]
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        peaks = {
            (name, who): pool.submit(_peak, device, name, who, settings)
            for name in names
            for who in (way, OURS)
        }
        for name in names:
            try:
                engine, ours = (peaks[name, who].result() / _MEGABYTE for who in (way, OURS))
            except (subprocess.TimeoutExpired, TimeoutError):
                yield f"{device}: no time was left for {name}"
                continue
            except subprocess.CalledProcessError as error:
                reason = (error.stderr.strip().splitlines() or [str(error)])[-1]
                yield f"{device}: {name}: {reason}"
                continue
            yield Memory(device, name, engine, ours, ours / engine)


def _peak(device: str, network: str, who: str, settings: Settings) -> int:
    """Return the peak of a process, in bytes."""
    if not settings.remaining():
        raise TimeoutError("no time is left")
    command = [sys.executable, "-m", "gpu.memory", device, network, who, str(int(settings.quick))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=settings.remaining()
    )
    peak: int = json.loads(done.stdout.splitlines()[-1])
    return peak


def main(device: str, name: str, who: str, quick: str) -> None:
    """Run a network and print the peak of memory, in bytes.

    Args:
        device: such as `xla:gpu:0`.
        name: of the network.
        who: `crosschip`, or a way to call the engine.
        quick: 1 for the small network of the name.
    """
    engine = engine_of(device)
    network = next(each for each in networks(quick=quick == "1") if each.name == name)
    x = network.input(1)
    run = (
        open_ours(network, device, x, FLOAT32, {})
        if who == OURS
        else engine.open(network, x, FLOAT32, who)
    )
    for _ in range(_RUNS):
        run()
    print(json.dumps(engine.peak()))


if __name__ == "__main__":
    main(*sys.argv[1:])
