"""Saves a model of custom operators with Paddle, and what Paddle computes with it.

Run it with a Python that has paddlepaddle, and a C++ compiler beside it, once for each Paddle:

    python scripts/custom_operators/record.py tests/opdef/custom/recorded

It writes `paddle<major>.pdmodel` or `.json` there, and `paddle<major>.npz` with `x`, `y` and the
version.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import paddle
from paddle.utils.cpp_extension import load

HERE = Path(__file__).parent
OPERATORS = load(
    name="filters", sources=[str(HERE / "operators.cc")], build_directory=tempfile.mkdtemp()
)


class Net(paddle.nn.Layer):  # type: ignore[misc]
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        clipped = OPERATORS.softclip(x, 2.0)
        return OPERATORS.median_of_three(OPERATORS.tiled(clipped, 3)) + 1


def main() -> None:
    net = Net()
    net.eval()
    name = Path(sys.argv[1]) / f"paddle{paddle.__version__[0]}"
    spec = paddle.static.InputSpec([None, 4], "float32", "x")
    paddle.jit.save(net, str(name), input_spec=[spec])
    x = np.random.default_rng(7).normal(size=(5, 4)).astype(np.float32)
    y = net(paddle.to_tensor(x)).numpy()
    np.savez(name.with_suffix(".npz"), x=x, y=y, version=paddle.__version__)


if __name__ == "__main__":
    main()
