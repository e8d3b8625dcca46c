"""Ten networks with random weights, each written once for PyTorch and JAX.

A network is a function of an engine's layers, of a function that returns the next weight of a
shape, and of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from gpu.layers import Layers, TorchLayers

from crosschip.ir import Array, Model

Weight = Callable[..., Any]
"""Returns the next weight; its arguments are the sizes."""

Compute = Callable[[Layers, Weight, Any], Any]
INPUT = "x"


@dataclass(frozen=True)
class Network:
    """A network of one size.

    Attributes:
        name: what it is called.
        compute: the function of layers, weights and the input.
        shape: the input's, without the batch.
    """

    name: str
    compute: Compute
    shape: tuple[int, ...]

    def input(self, batch: int) -> Array:
        """Return random inputs, float32."""
        return np.random.default_rng(1).normal(size=(batch, *self.shape)).astype(np.float32)

    @cached_property
    def weights(self) -> list[Array]:
        """The weights, random, in PyTorch's layout and in the order of their use."""
        import torch

        generator, arrays = np.random.default_rng(0), list[Array]()

        def draw(*shape: int) -> Any:
            scale = np.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1
            arrays.append((generator.normal(size=shape) * scale).astype(np.float32))
            return torch.from_numpy(arrays[-1])

        with torch.inference_mode():
            self.compute(TorchLayers(), draw, torch.from_numpy(self.input(1)))
        return arrays

    def function(self, layers: Layers) -> Callable[[Any, Any], Any]:
        """Return the network as a function of its weights and the input."""

        def run(weights: Any, x: Any) -> Any:
            remaining = iter(weights)
            return self.compute(layers, lambda *shape: next(remaining), x)

        return run

    def module(self) -> Any:
        """Return the network as a module of PyTorch."""
        import torch

        class Module(torch.nn.Module):
            def __init__(self, arrays: list[Array], run: Callable[[Any, Any], Any]) -> None:
                super().__init__()
                self.weights = torch.nn.ParameterList(map(torch.from_numpy, arrays))
                self._run = run

            def forward(self, x: Any) -> Any:
                return self._run(list(self.weights), x)

        return Module(self.weights, self.function(TorchLayers())).eval()

    def model(self, batch: int) -> Model:
        """Return the network as crosschip imports PyTorch's module."""
        import torch

        import crosschip

        return crosschip.load(
            self.module(), example_inputs={INPUT: torch.from_numpy(self.input(batch))}
        )


def _convolution(f: Layers, w: Weight, x: Any, sizes: tuple[int, int, int], **options: int) -> Any:
    """Convolve with a filter of input channels, output channels and a size along both axes."""
    inward, outward, size = sizes
    weight = w(outward, inward // options.get("groups", 1), size, size)
    return f.conv(x, weight, w(outward), **options)


def _resnet(f: Layers, w: Weight, x: Any, stem: int, stages: tuple[int, ...]) -> Any:
    x = f.activate("relu", _convolution(f, w, f.spatial(x), (3, stem, 7), stride=2, pad=3))
    x, channels = f.max_pool(x), stem
    for stage, count in enumerate(stages):
        width = stem << stage
        for unit in range(count):
            stride, shortcut = 2 if unit == 0 and stage else 1, x
            if unit == 0:
                shortcut = _convolution(f, w, x, (channels, 4 * width, 1), stride=stride)
            x = f.activate("relu", _convolution(f, w, x, (channels, width, 1)))
            x = f.activate("relu", _convolution(f, w, x, (width, width, 3), stride=stride, pad=1))
            x = f.activate("relu", _convolution(f, w, x, (width, 4 * width, 1)) + shortcut)
            channels = 4 * width
    return f.dense(f.tokens(f.mean(x)), w(1000, channels), w(1000))


def _mobilenet(f: Layers, w: Weight, x: Any, width: int, stages: tuple[int, ...]) -> Any:
    x = f.activate("hard_swish", _convolution(f, w, f.spatial(x), (3, width, 3), stride=2, pad=1))
    for factor, after in pairwise((1, *stages)):
        inward, inner, outward = factor * width, 4 * factor * width, after * width
        y = f.activate("hard_swish", _convolution(f, w, x, (inward, inner, 1)))
        stride = 1 if factor == after else 2
        y = _convolution(f, w, y, (inner, inner, 3), stride=stride, pad=1, groups=inner)
        gate = f.activate("relu", _convolution(f, w, f.mean(y), (inner, inner // 4, 1)))
        gate = f.activate("hard_sigmoid", _convolution(f, w, gate, (inner // 4, inner, 1)))
        y = _convolution(f, w, f.activate("hard_swish", y) * gate, (inner, outward, 1))
        x = x + y if factor == after else y
    return f.dense(f.tokens(f.mean(x)), w(1000, stages[-1] * width), w(1000))


def _block(f: Layers, w: Weight, x: Any, width: int, heads: int) -> Any:
    """A transformer's layer, normalized after its sums."""

    def dense(x: Any, outputs: int, inputs: int) -> Any:
        return f.dense(x, w(outputs, inputs), w(outputs))

    query, key, value = (dense(x, width, width) for _ in range(3))
    mixed = f.attention(query, key, value, heads)
    x = f.normalize(x + dense(mixed, width, width), w(width), w(width))
    inner = f.activate("gelu", dense(x, 4 * width, width))
    return f.normalize(x + dense(inner, width, 4 * width), w(width), w(width))


def _bert(f: Layers, w: Weight, x: Any, width: int, heads: int, layers: int) -> Any:
    for _ in range(layers):
        x = _block(f, w, x, width, heads)
    return x


def _vit(f: Layers, w: Weight, x: Any, width: int, heads: int, layers: int) -> Any:
    x = f.tokens(_convolution(f, w, f.spatial(x), (3, width, 16), stride=16))
    x = _bert(f, w, x, width, heads, layers)
    return f.dense(x.mean(1), w(1000, width), w(1000))


def _lstm(f: Layers, w: Weight, x: Any, width: int, layers: int) -> Any:
    for _ in range(layers):
        x = f.lstm(x, w(4 * width, width), w(4 * width, width), w(4 * width))
    return f.dense(x, w(100, width), w(100))


def _unet(f: Layers, w: Weight, x: Any, width: int, levels: int) -> Any:
    def twice(x: Any, inward: int, outward: int) -> Any:
        x = f.activate("silu", _convolution(f, w, x, (inward, outward, 3), pad=1))
        return f.activate("silu", _convolution(f, w, x, (outward, outward, 3), pad=1))

    x, skipped = twice(f.spatial(x), 3, width), list[Any]()
    for level in range(levels):
        skipped.append(x)
        x = twice(f.max_pool(x), width << level, width << (level + 1))
    for level in reversed(range(levels)):
        x = f.concat([f.upsample(x), skipped[level]])
        x = twice(x, 3 * (width << level), width << level)
    return f.activate("sigmoid", f.tokens(_convolution(f, w, x, (width, 2, 1))))


def _mlp(f: Layers, w: Weight, x: Any, sizes: tuple[int, ...]) -> Any:
    for inputs, outputs in pairwise(sizes):
        x = f.activate("relu", f.dense(x, w(outputs, inputs), w(outputs)))
    return x


def _signal(f: Layers, w: Weight, x: Any, width: int, layers: int) -> Any:
    """Dilated convolutions of a signal with residual sums."""
    x = f.conv(f.spatial(x), w(width, 8, 1), w(width))
    for layer in range(layers):
        y = f.conv(x, w(width, width, 3), w(width), pad=1 << layer, dilation=1 << layer)
        x = x + f.activate("gelu", y)
    return f.tokens(f.mean(f.conv(x, w(16, width, 1), w(16))))


def _detector(f: Layers, w: Weight, x: Any, width: int, outputs: int) -> Any:
    """The head of a detector on feature maps of three sizes: numbers from 0 to 1 of each place."""
    x = f.activate("silu", _convolution(f, w, f.spatial(x), (32, width, 3), pad=1))
    places = []
    for level in range(3):
        if level:
            x = f.activate("silu", _convolution(f, w, x, (width, width, 3), stride=2, pad=1))
        y = f.activate("silu", _convolution(f, w, x, (width, width, 3), pad=1))
        places.append(f.tokens(_convolution(f, w, y, (width, outputs, 1))))
    return f.activate("sigmoid", f.join(places))


def _with(function: Callable[..., Any], *sizes: Any) -> Compute:
    return lambda f, w, x: function(f, w, x, *sizes)


def networks(*, quick: bool = False) -> list[Network]:
    """Return the ten networks; if it has to be quick, small ones of the same names."""
    return [Network(*each) for each in (_QUICK if quick else _WHOLE)]


_WHOLE = (
    ("MLP", _with(_mlp, (1024, 4096, 4096, 1000)), (1024,)),
    ("attention block", _with(_bert, 1024, 16, 1), (1024, 1024)),
    ("1-D convolution", _with(_signal, 64, 8), (8, 4096)),
    ("detection head", _with(_detector, 64, 144), (32, 80, 80)),
    ("MobileNet", _with(_mobilenet, 16, (1, 2, 2, 4, 4, 8, 8)), (3, 224, 224)),
    ("ResNet50", _with(_resnet, 64, (3, 4, 6, 3)), (3, 224, 224)),
    ("BERT, 6 layers", _with(_bert, 768, 12, 6), (128, 768)),
    ("ViT, 12 layers", _with(_vit, 384, 6, 12), (3, 224, 224)),
    ("U-Net", _with(_unet, 32, 3), (3, 128, 128)),
    ("LSTM, 2 layers", _with(_lstm, 256, 2), (64, 256)),
)
_QUICK = (
    ("MLP", _with(_mlp, (16, 32, 10)), (16,)),
    ("attention block", _with(_bert, 16, 2, 1), (6, 16)),
    ("1-D convolution", _with(_signal, 8, 2), (8, 32)),
    ("detection head", _with(_detector, 8, 4), (32, 8, 8)),
    ("MobileNet", _with(_mobilenet, 8, (1, 2)), (3, 32, 32)),
    ("ResNet50", _with(_resnet, 8, (1, 1)), (3, 32, 32)),
    ("BERT, 6 layers", _with(_bert, 16, 2, 2), (6, 16)),
    ("ViT, 12 layers", _with(_vit, 16, 2, 2), (3, 32, 32)),
    ("U-Net", _with(_unet, 4, 2), (3, 16, 16)),
    ("LSTM, 2 layers", _with(_lstm, 8, 2), (5, 8)),
)
