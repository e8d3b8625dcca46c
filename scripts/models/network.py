"""Networks whose every layer matters: seeded weights and calibrated normalisation."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import nn
from paddle.static import InputSpec

Array = NDArray[np.float32]


def pictures(count: int, size: int, seed: int) -> Array:
    """Return seeded float32 images [count, 3, size, size] in [-1, 1): squares under fine noise.

    Noise alone looks much the same to a network in every image and every corner of it.
    """
    # Unlike newer generators, RandomState gives the same stream in every numpy version.
    random = np.random.RandomState(seed)
    cell = size // 4
    squares = random.uniform(-1, 1, (count, 3, 4, 4)).repeat(cell, axis=2).repeat(cell, axis=3)
    noise = random.uniform(-1, 1, (count, 3, size, size))
    return ((squares + noise) / 2).astype(np.float32)


def prepare(net: nn.Layer, *batch: NDArray[Any]) -> None:
    """Put a network into evaluation mode with weights that keep its outputs near one.

    Paddle's initial weights let the signal of a deep network fade to 1e-16 or grow to 1e3,
    where a comparison of outputs says little. Here the running statistics of each batch
    normalisation are those of `batch`, the arrays that the network takes.
    """
    net.eval()
    fill(net)
    norms = [layer for layer in net.sublayers() if isinstance(layer, nn.BatchNorm2D)]
    for norm in norms:
        norm._momentum = 0.0
        norm.train()
    with paddle.no_grad():
        net(*map(paddle.to_tensor, batch))
    net.eval()


def fill(net: nn.Layer) -> None:
    """Set all trainable parameters to seeded random numbers, in their order in the network.

    Matrices and kernels keep the variance of a rectified signal (He et al., 2015); scales lie
    in [0.5, 1.5], biases around 0, so that none of them can be left out unnoticed.
    """
    random = np.random.RandomState(0)
    for name, parameter in net.named_parameters():
        shape = tuple(parameter.shape)
        if not parameter.trainable:
            continue
        if len(shape) > 1:
            fan_in = math.prod(shape[1:]) if len(shape) == 4 else shape[0]
            value = random.normal(0, math.sqrt(2 / fan_in), shape)
        elif name.endswith("weight"):
            value = random.uniform(0.5, 1.5, shape)
        else:
            value = random.normal(0, 0.2, shape)
        parameter.set_value(value.astype(np.float32))


def export(net: nn.Layer, directory: Path, shape: Sequence[int]) -> list[Path]:
    """Save a network with one float32 input 'x' of `shape` (-1: any) for inference.

    Returns:
        The program, `inference.pdmodel` (Paddle 2) or `inference.json` (Paddle 3), and the
        parameters, `inference.pdiparams`.
    """
    stem = directory / "inference"
    paddle.jit.save(net, str(stem), input_spec=[InputSpec(shape, "float32", "x")])
    # Only needed to train on.
    stem.with_suffix(".pdiparams.info").unlink(missing_ok=True)
    (program,) = (*directory.glob("*.pdmodel"), *directory.glob("*.json"))
    return [program, stem.with_suffix(".pdiparams")]
