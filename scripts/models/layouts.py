"""Write a small network in one of the file layouts of Paddle, with Paddle's outputs for it.

Run inside an oracle environment: python layouts.py LAYOUT DIRECTORY , where the layout is
`pdmodel` or `json` (what Paddle 2 or 3 itself saves), `combined` or `separate` (Paddle 1).
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import paddle
from network import export, pictures, prepare
from oracle import record
from paddle import nn, static


def main(layout: str, directory: Path) -> None:
    """Write the network and `oracle-{1,4}.npz`, input [N, 3, 16, 16], to the directory."""
    files = save(layout, directory)
    images = pictures(4, 16, seed=1)
    record(files, directory / "oracle", {"1": images[:1], "4": images})


def save(layout: str, directory: Path) -> list[Path]:
    """Save the network in a layout; return what Paddle needs to load it."""
    if layout in ("pdmodel", "json"):
        return export(network(), directory, [-1, 3, 16, 16])
    with TemporaryDirectory() as scratch:
        program, _ = export(network(), Path(scratch), [-1, 3, 16, 16])
        params = "__params__" if layout == "combined" else None
        save_params(program.with_suffix(""), directory, params)
        model = program.replace(directory / "__model__")
    return [model, directory / params] if params else [directory]


def network() -> nn.Layer:
    """Return a classifier of images [N, 3, 16, 16] into 10 classes, of a few kilobytes."""
    net = nn.Sequential(
        nn.Conv2D(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2D(8),
        nn.ReLU(),
        nn.AvgPool2D(4),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    prepare(net, pictures(8, 16, seed=0))
    return net


def save_params(model: Path, directory: Path, name: str | None) -> None:
    """Save the parameters of the model with this stem to one file, or each to one of its own."""
    paddle.enable_static()
    executor = static.Executor(paddle.CPUPlace())
    program, _, _ = static.load_inference_model(str(model), executor)
    params = [value for value in program.list_vars() if value.persistable]
    data = [value for value in params if value.name not in ("feed", "fetch")]
    static.save_vars(executor, str(directory), program, vars=data, filename=name)
    paddle.disable_static()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
