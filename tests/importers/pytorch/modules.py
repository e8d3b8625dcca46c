"""Modules of PyTorch's own, with inputs whose sizes may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from corpus.entry import Input
from corpus.made._exporting import Given

from crosschip.ir.dataclass import dataclass

SIZES: Sequence[Mapping[str, int]] = (
    {"batch": 2, "steps": 7, "target": 5, "height": 12, "width": 16, "depth": 6},
    {"batch": 3, "steps": 4, "target": 6, "height": 18, "width": 14, "depth": 8},
)
"""The sizes that modules are exported with, and those that they run with as well."""


@dataclass(frozen=True, slots=True)
class Case:
    """A module and its inputs in order.

    Attributes:
        build: makes it, from `torch.nn`, which is imported when a test runs.
        inputs: a name in a shape is a dynamic dimension.
    """

    build: Callable[[Any], Any]
    inputs: Sequence[Given]

    def module(self) -> Any:
        """Return the module with weights of a fixed seed, in evaluation mode."""
        import torch

        torch.manual_seed(3)
        module = self.build(torch.nn).eval()
        for layer in module.modules():
            if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
                layer.running_mean.normal_(0, 0.2)
                layer.running_var.uniform_(0.5, 1.5)
        return module

    def tensors(self, sizes: Mapping[str, int]) -> tuple[Any, ...]:
        """Return random inputs."""
        import torch

        shapes = [
            tuple(sizes[each] if isinstance(each, str) else each for each in given.shape)
            for given in self.inputs
        ]
        arrays = [
            given.rule.draw(shape, np.dtype(given.dtype), seed)
            for seed, (given, shape) in enumerate(zip(self.inputs, shapes, strict=True))
        ]
        return tuple(map(torch.from_numpy, arrays))

    def dynamic_shapes(self) -> tuple[dict[int, str], ...]:
        """Return the names of the dynamic dimensions of each input."""
        return tuple(
            {axis: size for axis, size in enumerate(given.shape) if isinstance(size, str)}
            for given in self.inputs
        )


def real(*shape: int | str) -> Given:
    return Given(shape, "float32", Input())


def index(high: int, *shape: int | str) -> Given:
    return Given(shape, "int64", Input(high=high))


IMAGE = real("batch", 4, "height", "width")
SIGNAL = real("batch", 4, "steps")
VOLUME = real("batch", 4, "depth", "height", "width")
SEQUENCE = real("steps", "batch", 8)
TEXT = real("batch", "steps", 16)
TARGET = real("batch", "target", 16)
ROWS = real("batch", 8)
BATCHES_FIRST = {"batch_first": True}
LAYER: Mapping[str, Any] = {"dim_feedforward": 32, **BATCHES_FIRST}


def _self_attention(nn: Any) -> Any:
    """Return attention of a text to itself, which PyTorch fuses where gradients are disabled."""

    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 4, **BATCHES_FIRST)

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x, need_weights=False)[0]

    return SelfAttention()


MODULES: Mapping[str, Case] = {
    "Linear": Case(lambda nn: nn.Linear(8, 5), [ROWS]),
    "Bilinear": Case(lambda nn: nn.Bilinear(8, 8, 5), [ROWS, ROWS]),
    "Conv1d": Case(lambda nn: nn.Conv1d(4, 6, 3, padding="same", dilation=2), [SIGNAL]),
    "Conv2d": Case(lambda nn: nn.Conv2d(4, 6, 3, 2, 1, groups=2), [IMAGE]),
    "Conv3d": Case(lambda nn: nn.Conv3d(4, 6, (1, 3, 2), padding=1), [VOLUME]),
    "ConvTranspose1d": Case(lambda nn: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1), [SIGNAL]),
    "ConvTranspose2d": Case(lambda nn: nn.ConvTranspose2d(4, 6, 2, 2, bias=False), [IMAGE]),
    "ConvTranspose3d": Case(lambda nn: nn.ConvTranspose3d(4, 2, 3, 2), [VOLUME]),
    "RNN": Case(lambda nn: nn.RNN(8, 6), [real(7, "batch", 8)]),
    "LSTM": Case(lambda nn: nn.LSTM(8, 6, 2), [SEQUENCE]),
    "GRU": Case(lambda nn: nn.GRU(8, 6, bidirectional=True), [SEQUENCE]),
    "LSTMCell": Case(lambda nn: nn.LSTMCell(8, 6), [ROWS]),
    "RNNCell": Case(lambda nn: nn.RNNCell(8, 6, nonlinearity="relu"), [ROWS]),
    "GRUCell": Case(lambda nn: nn.GRUCell(8, 6), [ROWS]),
    "MultiheadAttention": Case(
        lambda nn: nn.MultiheadAttention(16, 4, **BATCHES_FIRST), [TARGET, TEXT, TEXT]
    ),
    "SelfAttention": Case(_self_attention, [TEXT]),
    "TransformerEncoderLayer": Case(
        lambda nn: nn.TransformerEncoderLayer(16, 2, norm_first=True, **LAYER), [TEXT]
    ),
    "TransformerEncoder": Case(
        lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, **LAYER), 2), [TEXT]
    ),
    "TransformerDecoder": Case(
        lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, **LAYER), 2),
        [TARGET, TEXT],
    ),
    "TransformerDecoderLayer": Case(
        lambda nn: nn.TransformerDecoderLayer(16, 2, **LAYER), [TARGET, TEXT]
    ),
    "Transformer": Case(
        lambda nn: nn.Transformer(16, 2, 1, 1, activation="gelu", **LAYER), [TEXT, TARGET]
    ),
    "Embedding": Case(lambda nn: nn.Embedding(20, 8), [index(20, "batch", "steps")]),
    "EmbeddingBag": Case(lambda nn: nn.EmbeddingBag(20, 8), [index(20, 3, 4)]),
    "BatchNorm1d": Case(lambda nn: nn.BatchNorm1d(4), [SIGNAL]),
    "BatchNorm2d": Case(lambda nn: nn.BatchNorm2d(4), [IMAGE]),
    "BatchNorm3d": Case(lambda nn: nn.BatchNorm3d(4, affine=False), [VOLUME]),
    "LayerNorm": Case(lambda nn: nn.LayerNorm(16), [TEXT]),
    "GroupNorm": Case(lambda nn: nn.GroupNorm(2, 4), [IMAGE]),
    "InstanceNorm2d": Case(lambda nn: nn.InstanceNorm2d(4, affine=True), [IMAGE]),
    "RMSNorm": Case(lambda nn: nn.RMSNorm(16), [TEXT]),
    "LocalResponseNorm": Case(lambda nn: nn.LocalResponseNorm(3), [IMAGE]),
    "AvgPool2d": Case(lambda nn: nn.AvgPool2d(3, 2, 1, count_include_pad=False), [IMAGE]),
    "AvgPool3d": Case(lambda nn: nn.AvgPool3d((1, 2, 3)), [VOLUME]),
    "MaxPool2d": Case(lambda nn: nn.MaxPool2d(3, 2, 1), [IMAGE]),
    "MaxPool3d": Case(lambda nn: nn.MaxPool3d(2), [VOLUME]),
    "LPPool2d": Case(lambda nn: nn.LPPool2d(2, 2), [IMAGE]),
    "AdaptiveAvgPool2d": Case(lambda nn: nn.AdaptiveAvgPool2d(1), [IMAGE]),
    "PixelShuffle": Case(lambda nn: nn.PixelShuffle(2), [IMAGE]),
    "PixelUnshuffle": Case(lambda nn: nn.PixelUnshuffle(2), [real("batch", 4, 12, 16)]),
    "ChannelShuffle": Case(lambda nn: nn.ChannelShuffle(2), [IMAGE]),
    "Upsample": Case(lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), [IMAGE]),
    "UpsamplingNearest2d": Case(lambda nn: nn.UpsamplingNearest2d(scale_factor=3), [IMAGE]),
    "ReflectionPad2d": Case(lambda nn: nn.ReflectionPad2d((1, 2, 0, 3)), [IMAGE]),
    "ReplicationPad2d": Case(lambda nn: nn.ReplicationPad2d((2, 1, 3, 0)), [IMAGE]),
    "Unfold": Case(lambda nn: nn.Unfold(2, stride=2), [real("batch", 4, 12, 16)]),
    "LogSoftmax": Case(lambda nn: nn.LogSoftmax(-1), [TEXT]),
    "Softmax2d": Case(lambda nn: nn.Softmax2d(), [IMAGE]),
    "GLU": Case(lambda nn: nn.GLU(), [TEXT]),
    "GELU": Case(lambda nn: nn.GELU(approximate="tanh"), [TEXT]),
    "SiLU": Case(lambda nn: nn.SiLU(), [TEXT]),
    "Hardswish": Case(lambda nn: nn.Hardswish(), [TEXT]),
    "Mish": Case(lambda nn: nn.Mish(), [TEXT]),
    "Softplus": Case(lambda nn: nn.Softplus(beta=2), [TEXT]),
    "PReLU": Case(lambda nn: nn.PReLU(4), [IMAGE]),
    "CosineSimilarity": Case(lambda nn: nn.CosineSimilarity(), [ROWS, ROWS]),
    "PairwiseDistance": Case(lambda nn: nn.PairwiseDistance(), [ROWS, ROWS]),
    "HuberLoss": Case(lambda nn: nn.HuberLoss(), [ROWS, ROWS]),
    "CrossEntropyLoss": Case(lambda nn: nn.CrossEntropyLoss(), [ROWS, index(8, "batch")]),
}
