"""Records models in `recorded` with Paddle Lite's tool, and Paddle's outputs.

    build/oracles/paddle-2.6.2/bin/python tests/importers/paddle/lite/record.py network FOLDER
    build/oracles/paddle-2.6.2/bin/python tests/importers/paddle/lite/record.py quantize FOLDER
    python3.10 tests/importers/paddle/lite/record.py optimise FOLDER

The last needs Paddle Lite (`pip install paddlelite==2.13rc0 "numpy<2"`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

TARGETS = {"x86": "x86", "arm": "arm", "opencl": "opencl,arm"}
VERSIONS = {"x86-1": "x86"}
WEIGHTS = {"arm-int8": "arm"}


def network(folder: Path) -> None:
    """Save a network with operators that Paddle Lite's optimizer fuses."""
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
    model = Network()
    model.eval()
    for parameter in model.sublayers():
        if isinstance(parameter, paddle.nn.BatchNorm2D):
            parameter._mean.set_value(paddle.linspace(-0.5, 0.5, len(parameter._mean)))
            parameter._variance.set_value(paddle.linspace(0.5, 2, len(parameter._mean)))
    x = np.random.default_rng(4).standard_normal((2, 4, 8, 8)).astype(np.float32)
    np.savez(folder / "network.npz", x=x, y=model(paddle.to_tensor(x)).numpy())
    shape = paddle.static.InputSpec([None, 4, 8, 8], "float32", "x")
    paddle.jit.save(model, str(folder / "network"), [shape])


def quantize(folder: Path) -> None:
    """Save the network with post-training quantization, and its outputs."""
    import paddle
    from paddle.static.quantization import PostTrainingQuantization

    images = np.random.default_rng(1).standard_normal((24, 4, 8, 8)).astype(np.float32)
    paddle.enable_static()
    executor = paddle.static.Executor(paddle.CPUPlace())
    x = paddle.static.data("x", [None, 4, 8, 8], "float32")
    tool = PostTrainingQuantization(
        executor=executor,
        model_dir=str(folder),
        model_filename="network.pdmodel",
        params_filename="network.pdiparams",
        data_loader=paddle.io.DataLoader(
            [(image,) for image in images],
            feed_list=[x],
            places=[paddle.CPUPlace()],
            return_list=False,
        ),
        batch_nums=len(images),
        algo="abs_max",
        quantizable_op_type=["conv2d", "depthwise_conv2d", "matmul_v2", "conv2d_transpose"],
        weight_quantize_type="channel_wise_abs_max",
        onnx_format=True,
    )
    tool.quantize()
    names = {"model_filename": "quantized.pdmodel", "params_filename": "quantized.pdiparams"}
    tool.save_quantized_model(str(folder), **names)
    program, feeds, fetches = paddle.static.load_inference_model(
        str(folder / "quantized"), executor
    )
    given = np.load(folder / "network.npz")["x"]
    (y,) = executor.run(program, feed={feeds[0]: given}, fetch_list=fetches)
    np.savez(folder / "quantized.npz", x=given, y=y)


def optimise(folder: Path) -> None:
    """Optimize the networks with Paddle Lite's tool for several targets."""
    for name, target in (TARGETS | WEIGHTS | VERSIONS).items():
        if name in VERSIONS:
            os.environ["PADDLE_LITE_MODEL_VERSION1"] = "1"
        _optimise(folder / "network", folder / f"network-{name}", target, name in WEIGHTS)
    os.environ.pop("PADDLE_LITE_MODEL_VERSION1")
    _optimise(folder / "quantized", folder / "quantized-arm", "arm")


def _optimise(model: Path, to: Path, target: str, weights: bool = False) -> None:
    from paddlelite import lite

    tool = lite.Opt()
    tool.set_model_file(f"{model}.pdmodel")
    tool.set_param_file(f"{model}.pdiparams")
    tool.set_valid_places(target)
    tool.set_model_type("naive_buffer")
    tool.set_optimize_out(str(to))
    if weights:
        tool.set_quant_model(True)
        tool.set_quant_type("QUANT_INT8")
    tool.run()


if __name__ == "__main__":
    steps = {"network": network, "quantize": quantize, "optimise": optimise}
    steps[sys.argv[1]](Path(sys.argv[2]))
