"""Writes the models in `recorded`, as Paddle Lite's own tool does, and what Paddle computes.

    build/oracles/paddle-2.6.2/bin/python tests/importers/paddle/lite/record.py network FOLDER
    python3.10 tests/importers/paddle/lite/record.py optimise FOLDER

The second needs Paddle Lite (`pip install paddlelite==2.13rc0 "numpy<2"`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

TARGETS = {"x86": "x86", "arm": "arm", "opencl": "opencl,arm"}
VERSIONS = {"x86-1": "x86"}


def network(folder: Path) -> None:
    """Save a network that has what Paddle Lite's optimiser puts together."""
    import paddle
    from paddle import nn

    class Network(nn.Layer):  # type: ignore[misc]  # Paddle says no types
        def __init__(self) -> None:
            super().__init__()
            activations = [nn.ReLU(), nn.Sigmoid(), nn.Tanh(), nn.Hardswish(), nn.Hardsigmoid()]
            activations += [nn.LeakyReLU(0.3), nn.Identity()]
            self.parts = nn.LayerList()
            for activation in activations:
                convolution = nn.Conv2D(4, 4, 3, padding=1, bias_attr=False)
                self.parts.append(nn.Sequential(convolution, nn.BatchNorm2D(4), activation))
            self.wide = nn.Conv2D(4, 8, 1)
            self.deep = nn.Conv2D(8, 8, 3, padding=1, groups=8)
            self.norm = nn.BatchNorm2D(8)
            self.up = nn.Conv2DTranspose(8, 4, 2, stride=2)
            self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 5)
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            for part in self.parts:
                x = x * 0.5 + part(x)
            x = self.relu(x + x * 0.5)
            x = self.relu(self.norm(self.deep(self.wide(x))))
            x = self.relu(self.up(x))
            x = self.relu(x * 2.0 - 0.25).mean([2, 3])
            return self.second(self.relu(self.first(x)))

    paddle.seed(4)
    made = Network()
    made.eval()
    for parameter in made.sublayers():
        if isinstance(parameter, paddle.nn.BatchNorm2D):
            parameter._mean.set_value(paddle.linspace(-0.5, 0.5, len(parameter._mean)))
            parameter._variance.set_value(paddle.linspace(0.5, 2, len(parameter._mean)))
    x = np.random.default_rng(4).standard_normal((2, 4, 8, 8)).astype(np.float32)
    np.savez(folder / "network.npz", x=x, y=made(paddle.to_tensor(x)).numpy())
    shape = paddle.static.InputSpec([None, 4, 8, 8], "float32", "x")
    paddle.jit.save(made, str(folder / "network"), [shape])


def optimise(folder: Path) -> None:
    """Write the network as Paddle Lite's tool does for several targets."""
    from paddlelite import lite

    for name, target in (TARGETS | VERSIONS).items():
        if name in VERSIONS:
            os.environ["PADDLE_LITE_MODEL_VERSION1"] = "1"
        tool = lite.Opt()
        tool.set_model_file(str(folder / "network.pdmodel"))
        tool.set_param_file(str(folder / "network.pdiparams"))
        tool.set_valid_places(target)
        tool.set_model_type("naive_buffer")
        tool.set_optimize_out(str(folder / f"network-{name}"))
        tool.run()


if __name__ == "__main__":
    {"network": network, "optimise": optimise}[sys.argv[1]](Path(sys.argv[2]))
