"""XLA, against JAX functions written by hand.

ResNet50, whose normalizations are folded into its convolutions, and a BERT of 6 layers (768 wide,
12 heads, 128 words), with random weights, batch 1. The JAX functions have images with channels
last, weights as arguments on the chip, `jax.jit`, and products of float32. Both read and return
NumPy arrays; their outputs are compared before they are timed. The runs alternate, as in the
latency benchmark. `python -m benchmarks.subjects.xla --device gpu:0` measures another chip.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from benchmarks.comparison import Estimate, compare
from benchmarks.subject import Column, Row
from crosschip.ir import Array

LIMIT = 0.97
REQUIREMENT = (
    f"the median time of the JAX function is at least {LIMIT:g} times crosschip's (above 1: "
    "crosschip is faster)"
)

_TOLERANCE = 1e-4
_SURE = 0.005
_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class ByHand(Row):
    """One network on one chip."""

    chip: Annotated[str, Column("chip")]
    network: Annotated[str, Column("network")]
    by_hand_ms: Annotated[float, Column("by hand ms", ".3f")]
    ours_ms: Annotated[float, Column("crosschip ms", ".3f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= LIMIT


def measure(*, quick: bool, chip: str = "cpu") -> Iterator[ByHand]:
    """Both networks."""
    import jax

    import crosschip
    from benchmarks.networks import Network, networks

    platform, _, number = chip.partition(":")
    place = jax.devices(platform)[int(number or 0)]

    def ours(network: Network) -> Callable[[], Mapping[str, Any]]:
        compiled = crosschip.compile(network.model, f"xla:{chip}", cache=False)
        (name,) = compiled.inputs
        return lambda: compiled.run({name: network.input})

    def by_hand(network: Network) -> Callable[[], Array]:
        weights = [jax.device_put(array, place) for array in network.weights]
        function = jax.jit(network.by_hand)
        return lambda: np.asarray(function(weights, jax.device_put(network.input, place)))

    for network in networks(1):
        (made,) = ours(network)().values()
        expected = by_hand(network)()
        difference = np.abs(made - expected).max() / np.abs(expected).max()
        assert difference <= _TOLERANCE, f"{network.name}: outputs differ by {difference}"
        found = compare(
            lambda network=network: ours(network),  # type: ignore[misc]
            lambda network=network: by_hand(network),  # type: ignore[misc]
            seconds=0.1 if quick else 2.0,
            blocks=1 if quick else 5,
            error=_SURE,
            patience=0.0 if quick else _PATIENCE_SECONDS,
        )
        yield ByHand(chip, network.name, found.direct_ms, found.ours_ms, found.ratio, found.others)


def main() -> None:
    """Measure the chip that the command line names, and print a line a network."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.subjects.xla", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, gpu:0, tpu:0, …")
    parser.add_argument("--quick", action="store_true", help="try it on little")
    options = parser.parse_args()
    for row in measure(quick=options.quick, chip=options.device):
        print(", ".join(f"{heading} {cell}" for heading, cell in row.cells().items()))


if __name__ == "__main__":
    main()
