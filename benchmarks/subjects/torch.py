"""Networks of PyTorch on the device `torch`, against PyTorch itself.

ResNet50, a transformer layer (256 wide, 8 heads, 64 positions) and a small network of six matrix
products, with random weights, batch 1. PyTorch runs the module that crosschip loads: as it is, and
as `torch.compile` makes it, where a C++ compiler is installed; crosschip runs it call by call, and
as one graph. Both read and return NumPy arrays, in `torch.inference_mode`; their outputs are
compared before they are timed, and the runs alternate, as in the latency benchmark.
`python -m benchmarks.subjects.torch --device cuda:0` measures another chip.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from benchmarks.comparison import Estimate, compare
from benchmarks.subject import Column, Row
from crosschip.ir import Array

LIMIT = 0.97
MOST_MICROSECONDS = 15.0
REQUIREMENT = (
    f"the median time of PyTorch is at least {LIMIT:g} times crosschip's (above 1: crosschip is "
    f"faster), or crosschip takes at most {MOST_MICROSECONDS:g} µs more"
)

_TOLERANCE = 1e-4
_SURE = 0.005
_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class AgainstPyTorch(Row):
    """One network on one chip, call by call or as one graph."""

    chip: Annotated[str, Column("chip")]
    network: Annotated[str, Column("network")]
    form: Annotated[str, Column("form")]
    pytorch_ms: Annotated[float, Column("PyTorch ms", ".3f")]
    ours_ms: Annotated[float, Column("crosschip ms", ".3f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        added = (self.ours_ms - self.pytorch_ms) * 1e3
        return self.ratio.value >= LIMIT or added <= MOST_MICROSECONDS


def measure(*, quick: bool, chip: str = "cpu") -> Iterator[AgainstPyTorch]:
    """Each network, call by call, and as one graph where there is a compiler."""
    forms = ["calls", "graph"] if shutil.which("g++") else ["calls"]
    for name, module, array in _networks():
        for form in forms:
            ours = _ours(module, array, chip, form)
            pytorch = _pytorch(module, array, chip, form)
            expected = pytorch()()
            difference = np.abs(ours()() - expected).max() / np.abs(expected).max()
            assert difference <= _TOLERANCE, f"{name}: outputs differ by {difference}"
            result = compare(
                ours,
                pytorch,
                seconds=0.1 if quick else 2.0,
                blocks=1 if quick else 5,
                error=_SURE,
                patience=0.0 if quick else _PATIENCE_SECONDS,
            )
            figures = result.direct_ms, result.ours_ms, result.ratio, result.others
            yield AgainstPyTorch(chip, name, form, *figures)


def _ours(module: Any, array: Array, chip: str, form: str) -> Callable[[], Callable[[], Array]]:
    import torch

    import crosschip

    def start() -> Callable[[], Array]:
        model = crosschip.load(module, example_inputs=(torch.from_numpy(array),))
        properties = {f"torch:{chip}": {"compile": "on" if form == "graph" else "off"}}
        compiled = crosschip.compile(model, f"torch:{chip}", cache=False, properties=properties)
        (name,) = compiled.inputs
        return lambda: next(iter(compiled.run({name: array}).values()))

    return start


def _pytorch(module: Any, array: Array, chip: str, form: str) -> Callable[[], Callable[[], Array]]:
    import torch

    def start() -> Callable[[], Array]:
        placed = module.to(chip)
        function = torch.compile(placed) if form == "graph" else placed

        def run() -> Array:
            with torch.inference_mode():
                output: Array = function(torch.from_numpy(array).to(chip)).cpu().numpy()
                return output

        return run

    return start


def _networks() -> Iterator[tuple[str, Any, Array]]:
    """Yield the name, the module in evaluation mode and an input of each network."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    random = np.random.default_rng(0)
    layer = nn.TransformerEncoderLayer(256, 8, 1024, 0.0, "gelu", batch_first=True)
    small = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6)))
    for name, module, shape in (
        ("ResNet50", _resnet50(), (1, 3, 224, 224)),
        ("transformer layer", layer, (1, 64, 256)),
        ("six products", small, (1, 64)),
    ):
        yield name, module.eval(), random.normal(size=shape).astype(np.float32)


def _resnet50() -> Any:
    """Build ResNet50 (He et al., 2015), with the strides at the windows of 3 by 3."""
    from torch import nn

    def normalized(inputs: int, outputs: int, size: int, stride: int = 1) -> list[Any]:
        convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        return [convolution, nn.BatchNorm2d(outputs)]

    class Block(nn.Module):
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *normalized(inputs, width, 1),
                nn.ReLU(),
                *normalized(width, width, 3, stride),
                nn.ReLU(),
                *normalized(width, 4 * width, 1),
            )
            changes = stride > 1 or inputs != 4 * width
            skip = normalized(inputs, 4 * width, 1, stride) if changes else []
            self.skip = nn.Sequential(*skip)

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.body(x) + self.skip(x))

    layers: list[Any] = [*normalized(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            layers.append(Block(inputs, 64 << stage, 2 if stage and not block else 1))
            inputs = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def main() -> None:
    """Measure the chip that the command line names, and print a line a network and form."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.subjects.torch", description=__doc__
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, xpu:0, …")
    parser.add_argument("--quick", action="store_true", help="try it on little")
    options = parser.parse_args()
    for row in measure(quick=options.quick, chip=options.device):
        print(", ".join(f"{heading} {cell}" for heading, cell in row.cells().items()), flush=True)


if __name__ == "__main__":
    main()
