"""Networks written in PyTorch, as many are, by both of its exporters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from corpus.entry import Input
from corpus.made import maker
from corpus.made._exporting import AXES, Given, example, export


@dataclass(frozen=True, slots=True)
class Network:
    """A network, what it takes, and the names of what it gives."""

    build: Callable[[], Any]
    family: str
    inputs: Mapping[str, Given]
    outputs: Sequence[str] = ("scores",)


def _resnet() -> Any:
    """Residual blocks, as in ResNet-18."""
    import torch
    from torch import nn

    def normalized(inward: int, outward: int, size: int, stride: int) -> Any:
        convolution = nn.Conv2d(inward, outward, size, stride, size // 2, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(outward))

    class Block(nn.Module):
        def __init__(self, inward: int, outward: int, stride: int) -> None:
            super().__init__()
            first = normalized(inward, outward, 3, stride)
            self.road = nn.Sequential(first, nn.ReLU(), normalized(outward, outward, 3, 1))
            same = stride == 1 and inward == outward
            self.shortcut = nn.Identity() if same else normalized(inward, outward, 1, stride)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.road(x) + self.shortcut(x))

    return nn.Sequential(
        *(normalized(3, 32, 3, 2), nn.ReLU(), nn.MaxPool2d(2)),
        *(Block(32, 32, 1), Block(32, 64, 2), Block(64, 128, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
    )


def _mobile() -> Any:
    """Depthwise convolutions with gates over channels, as in MobileNetV3."""
    from torch import nn

    class Gate(nn.Module):
        def __init__(self, count: int) -> None:
            super().__init__()
            few = count // 4
            self.gate = nn.Sequential(
                *(nn.AdaptiveAvgPool2d(1), nn.Conv2d(count, few, 1), nn.ReLU()),
                *(nn.Conv2d(few, count, 1), nn.Hardsigmoid()),
            )

        def forward(self, x: Any) -> Any:
            return x * self.gate(x)

    def separable(inward: int, outward: int, stride: int) -> Sequence[Any]:
        depthwise = nn.Conv2d(inward, inward, 3, stride, 1, groups=inward, bias=False)
        pointwise = nn.Conv2d(inward, outward, 1, bias=False)
        return (
            *(depthwise, nn.BatchNorm2d(inward), nn.ReLU6()),
            *(pointwise, nn.BatchNorm2d(outward), nn.Hardswish()),
        )

    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2, 1), nn.Hardswish()),
        *(*separable(16, 24, 2), Gate(24), *separable(24, 32, 2), Gate(32)),
        *(*separable(32, 64, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        *(nn.Linear(64, 12), nn.Softmax(-1)),
    )


def _unet() -> Any:
    """Down and up again, with what was there on the way down."""
    import torch
    from torch import nn
    from torch.nn import functional

    def twice(inward: int, outward: int) -> Any:
        return nn.Sequential(
            *(nn.Conv2d(inward, outward, 3, 1, 1), nn.BatchNorm2d(outward), nn.LeakyReLU(0.1)),
            nn.Conv2d(outward, outward, 3, 1, 1),
            *(nn.InstanceNorm2d(outward, affine=True), nn.SiLU()),
        )

    class UNet(nn.Module):
        def __init__(self, width: int = 12) -> None:
            super().__init__()
            self.first, self.second = twice(3, width), twice(width, 2 * width)
            self.deepest = twice(2 * width, 4 * width)
            self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
            self.third, self.last = twice(4 * width, 2 * width), twice(3 * width, width)
            self.mask = nn.Conv2d(width, 2, 1)

        def forward(self, image: Any) -> Any:
            first = self.first(image)
            second = self.second(functional.max_pool2d(first, 2))
            deepest = self.deepest(functional.avg_pool2d(second, 2))
            third = self.third(torch.cat([self.up(deepest), second], 1))
            grown = functional.interpolate(third, scale_factor=2, mode="bilinear")
            return torch.sigmoid(self.mask(self.last(torch.cat([grown, first], 1))))

    return UNet()


def _recurrent(kind: str) -> Any:
    """Two recurrent layers in both directions over the words of a text."""
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(100, 32)
            self.layers = getattr(nn, kind)(32, 48, 2, batch_first=True, bidirectional=True)
            self.scores = nn.Linear(96, 20)

        def forward(self, ids: Any) -> Any:
            made, state = self.layers(self.words(ids))
            last = state[0] if isinstance(state, tuple) else state
            return torch.log_softmax(self.scores(made), -1), last

    return Recurrent()


def _tcn() -> Any:
    """Causal convolutions that reach further and further back."""
    from torch import nn
    from torch.nn import functional
    from torch.nn.utils import parametrizations

    class Tcn(nn.Module):
        def __init__(self, width: int = 32) -> None:
            super().__init__()
            self.first = nn.Conv1d(8, width, 1)
            self.layers = nn.ModuleList(
                parametrizations.weight_norm(nn.Conv1d(width, width, 3, dilation=2**i))
                for i in range(4)
            )
            self.last = nn.Conv1d(width, 4, 1)

        def forward(self, signal: Any) -> Any:
            x = self.first(signal)
            for i, layer in enumerate(self.layers):
                x = x + functional.gelu(layer(functional.pad(x, (2 * 2**i, 0))))
            return self.last(x)

    return Tcn()


_IMAGE = {"image": Given(("batch", 3, 64, 64), "float32", Input())}
_IDS = {"ids": Given(("batch", "steps"), "int64", Input(high=100))}

NETWORKS: Mapping[str, Network] = {
    "resnet": Network(_resnet, "ResNet", _IMAGE),
    "mobilenet": Network(_mobile, "MobileNetV3", _IMAGE),
    "unet": Network(
        *(_unet, "U-Net"),
        {"image": Given(("batch", 3, "height", "width"), "float32", Input())},
    ),
    "gru": Network(partial(_recurrent, "GRU"), "GRU", _IDS, ["scores", "state"]),
    "lstm": Network(partial(_recurrent, "LSTM"), "LSTM", _IDS, ["scores", "state"]),
    "tcn": Network(_tcn, "TCN", {"signal": Given(("batch", 8, "steps"), "float32", Input())}),
}


def write(name: str, exporter: str, path: Path) -> None:
    """Export one of the networks."""
    import torch

    torch.manual_seed(3)
    network = NETWORKS[name]
    module = network.build().eval()
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.2)
            layer.running_var.uniform_(0.5, 1.5)
    export(module, network.inputs, network.outputs, exporter, path)


def arrays(name: str) -> Mapping[str, Any]:
    """Inputs of one of the networks, as NumPy arrays."""
    return {key: example(key, given) for key, given in NETWORKS[name].inputs.items()}


for _name, _network in NETWORKS.items():
    for _exporter, _is_new in (("torchscript", False), ("dynamo", True)):
        maker(
            f"{_name}-{_exporter}",
            family=_network.family,
            origin=f"PyTorch, torch.onnx.export(dynamo={_is_new})",
            axes=AXES,
            inputs={key: given.rule for key, given in _network.inputs.items()},
        )(partial(write, _name, _exporter))
