"""IREE, against JAX functions written by hand that IREE's own tools compile and run.

The networks are those of the benchmark of XLA: ResNet50, whose normalizations are folded into its
convolutions, and a BERT of 6 layers, with random weights, batch 1. By hand, JAX lowers the function
to StableHLO, `iree.compiler.tools` compiles it for this processor, and `iree.runtime` calls it with
weights on the device. Both read and return NumPy arrays; their outputs are compared before they are
timed. The runs alternate, as in the latency benchmark. `python -m benchmarks.subjects.iree`
measures alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from benchmarks.comparison import Estimate, compare
from benchmarks.networks import Network, networks
from benchmarks.subject import Column, Row
from crosschip.ir import Array

LIMIT = 0.97
REQUIREMENT = (
    f"the median time of the function by hand is at least {LIMIT:g} times crosschip's (above 1: "
    "crosschip is faster)"
)

_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_TOLERANCE = 1e-4
_SURE = 0.005
_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class ByHand(Row):
    """One network."""

    network: Annotated[str, Column("network")]
    by_hand_ms: Annotated[float, Column("by hand ms", ".3f")]
    ours_ms: Annotated[float, Column("crosschip ms", ".3f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= LIMIT


def measure(*, quick: bool) -> Iterator[ByHand]:
    """Both networks."""
    for network in networks(1):
        ours, direct = _ours(network), _by_hand(network)
        (output,) = ours().values()
        expected = direct()
        difference = np.abs(output - expected).max() / np.abs(expected).max()
        assert difference <= _TOLERANCE, f"{network.name}: outputs differ by {difference}"
        result = compare(
            lambda ours=ours: ours,  # type: ignore[misc]
            lambda direct=direct: direct,  # type: ignore[misc]
            seconds=0.1 if quick else 2.0,
            blocks=1 if quick else 5,
            error=_SURE,
            patience=0.0 if quick else _PATIENCE_SECONDS,
        )
        yield ByHand(network.name, result.direct_ms, result.ours_ms, result.ratio, result.others)


def _ours(network: Network) -> Callable[[], Mapping[str, Any]]:
    import crosschip

    compiled = crosschip.compile(network.model, "iree", cache=False)
    (name,) = compiled.inputs
    return lambda: compiled.run({name: network.input})


def _by_hand(network: Network) -> Callable[[], Array]:
    import iree.runtime as runtime
    import jax
    from iree.compiler import tools

    lowered = jax.jit(network.by_hand).lower(network.weights, network.input)
    module = tools.compile_str(
        lowered.as_text(), input_type="stablehlo", extra_args=[*_FLAGS], target_backends=[]
    )
    context = runtime.SystemContext(config=runtime.Config("local-task"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, module))
    (name,) = (name for name in context.modules if name != "hal")
    function = context.modules[name]["main"]
    device = context.config.device
    weights = [runtime.asdevicearray(device, weight) for weight in network.weights]
    return lambda: np.asarray(function(*weights, network.input))


def main() -> None:
    """Measure, and print a line a network."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.subjects.iree", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="try it on little")
    options = parser.parse_args()
    for row in measure(quick=options.quick):
        print(", ".join(f"{heading} {cell}" for heading, cell in row.cells().items()), flush=True)


if __name__ == "__main__":
    main()
