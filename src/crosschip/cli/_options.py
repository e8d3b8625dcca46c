"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli._pictures import read_input
from crosschip.hal import Performance as PerformanceMode
from crosschip.hal import Precision as Arithmetic
from crosschip.ir import Array, Budget, InputError, Model
from crosschip.ir.suggestion import did_you_mean
from crosschip.runtime.inputs import random_inputs

MODEL_HELP = "An .onnx, .tflite, .pt2, .pdmodel, Paddle 3 .json or .nb file, or a folder with one."
ModelPath = Annotated[Path, typer.Argument(help=MODEL_HELP)]


def _device_names(incomplete: str) -> list[str]:
    """Return the completions of a list of devices for the shell."""
    from crosschip.runtime.discovery import origins

    before, comma, begun = incomplete.rpartition(",")
    named = before.split(",")
    names = [*origins()] if comma else ["auto", *origins()]
    return [before + comma + n for n in names if n.startswith(begun) and n not in named]


Devices = Annotated[
    str,
    typer.Option(
        help="Devices in the order of preference, as in openvino,onnxruntime; auto selects the "
        "fastest one.",
        autocompletion=_device_names,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help="Fix an input's shape, as in x=1x3x48x320, or a size, as in N=1."),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help="An input from a file, as in x=image.npy or x=photo.jpg, or random with a shape, as "
        "in x=1x3x48x320.",
    ),
]
Seed = Annotated[int, typer.Option(help="The seed of random inputs; random integers are 0 or 1.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", help="A setting of a device, as in mychip.cores=2."),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        help="A limit on the cost of loading and compiling, as in seconds=900; the others are "
        "bytes, tensor_bytes, operations and programs.",
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="The maximum number of processor threads of a run.")
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="Arithmetic for float32 operations: float32, bfloat16 or float16.",
        autocompletion=lambda: [mode.value for mode in Arithmetic],
    ),
]
Performance = Annotated[
    str | None,
    typer.Option(
        help="Balance of speed and power: none, low, medium, high or extreme.",
        autocompletion=lambda: [mode.value for mode in PerformanceMode],
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file with precision, threads, performance and properties; options on the "
        "command line come before it."
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        help="A file of operators that the first device must not run, one type:inputs:outputs "
        "per line."
    ),
]
MixedPrecision = Annotated[
    str | None,
    typer.Option(
        help="A file of operators to compute in float32; each line is type:inputs:outputs."
    ),
]
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        help="The device of operations that match a pattern, as in conv2d=openvino or "
        "MAT_*=mychip.",
    ),
]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--placement",
        metavar="measured|order",
        help="Choose devices by measured costs, or by their order; `measured` for `auto`.",
    ),
]
TuningSeconds = Annotated[
    float, typer.Option(min=0, help="The seconds for measurements of placements.")
]
Memory = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DEVICE=BYTES",
        help="Limit the bytes of weights and passed tensors on a device; may be repeated.",
    ),
]
MinSegment = Annotated[
    int, typer.Option(min=1, help="The minimum number of operations in a segment.")
]
MaxSegments = Annotated[int | None, typer.Option(min=1, help="The maximum number of segments.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Fail if a device declines an operation that is assigned to it."),
]
Isolate = Annotated[bool, typer.Option("--isolate", help="Run each device in a driver process.")]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache-dir", help="The folder of the cache; see `crosschip cache`."),
]
UseCache = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Whether to use the cache of compiled programs.")
]
Signature = Annotated[
    str | None,
    typer.Option(
        help="The signature of a .tflite file to load; that of the first subgraph if left out."
    ),
]
Digest = Annotated[
    str | None, typer.Option(help="The digest that the file must have; see docs/caching.md.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Parse `--shape NAME=1x3x48x320` to shapes by input.

    Raises:
        typer.BadParameter: an option is malformed.
    """
    shapes_by_input = {}
    for text in texts or ():
        name, _, sizes = text.rpartition("=")
        try:
            shapes_by_input[name] = tuple(map(int, sizes.split("x"))) if sizes else ()
        except ValueError:
            name = ""
        if not name or min(shapes_by_input[name], default=0) < 0:
            raise typer.BadParameter(f"{text!r} is not like x=1x3x48x320", param_hint="--shape")
    return shapes_by_input


_SHAPE = re.compile(r"\d+(x\d+)*")


def files(texts: Sequence[str] | None) -> dict[str, Path]:
    """Parse `--input NAME=FILE` to files by input.

    Raises:
        typer.BadParameter: an option is malformed.
    """
    return {name: Path(text) for name, text in _inputs(texts).items() if not _SHAPE.fullmatch(text)}


def input_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Parse `--input NAME=1x3x48x320` to shapes by input.

    Raises:
        typer.BadParameter: an option is malformed.
    """
    return {
        name: tuple(map(int, text.split("x")))
        for name, text in _inputs(texts).items()
        if _SHAPE.fullmatch(text)
    }


def _inputs(texts: Sequence[str] | None) -> dict[str, str]:
    """Parse `--input NAME=VALUE` to texts by input."""
    values = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        if not name or not value:
            raise typer.BadParameter(
                f"{text!r} is not like x=image.npy or x=1x3x48x320", param_hint="--input"
            )
        values[name] = value
    return values


def properties(
    texts: Sequence[str] | None, devices: Collection[str] | None = None
) -> dict[str, dict[str, str]]:
    """Parse `--property DEVICE.NAME=VALUE` to properties by device.

    Args:
        texts: the options.
        devices: the names of devices that may have properties; any if `None`.

    Raises:
        typer.BadParameter: an option is malformed.
        InputError: an option is for another device.
    """
    settings: dict[str, dict[str, str]] = {}
    for text in texts or ():
        device, _, setting = text.partition(".")
        name, equals, value = setting.partition("=")
        if not (device and name and equals) or "=" in device:
            raise typer.BadParameter(
                f"{text!r} is not like mychip.cores=2", param_hint="--property"
            )
        if devices is not None and device not in devices:
            near = did_you_mean(device, devices)
            raise InputError(
                f"there are properties for {device!r}, which is not among the devices{near}"
            )
        settings.setdefault(device, {})[name] = value
    return settings


def pins(texts: Sequence[str] | None) -> dict[str, str]:
    """Parse `--pin PATTERN=DEVICE` to devices by pattern.

    Raises:
        typer.BadParameter: an option is malformed.
    """
    device_by_pattern: dict[str, str] = {}
    for text in texts or ():
        pattern, _, device = text.rpartition("=")
        if not pattern or not device:
            raise typer.BadParameter(f"{text!r} is not like conv2d=openvino", param_hint="--pin")
        device_by_pattern.pop(pattern, None)  # the last holds, and comes last
        device_by_pattern[pattern] = device
    return device_by_pattern


def memory(texts: Sequence[str] | None) -> dict[str, int] | None:
    """Parse `--memory DEVICE=BYTES` to bytes by device.

    Raises:
        typer.BadParameter: an option is malformed.
    """
    limits: dict[str, int] = {}
    for text in texts or ():
        device, _, count = text.rpartition("=")
        if not device or not count.isdecimal():
            raise typer.BadParameter(f"{text!r} is not like xla=2000000000", param_hint="--memory")
        limits[device] = int(count)
    return limits or None


def configuration(path: str | None) -> Path | None:
    """Return the file of `--partition` or `--mixed-precision`."""
    return None if path is None else Path(path)


def budget(texts: Sequence[str] | None) -> Budget:
    """Parse `--budget LIMIT=NUMBER` to a budget.

    Raises:
        typer.BadParameter: an option is malformed.
    """
    limits: dict[str, float] = {}
    for text in texts or ():
        name, _, number = text.partition("=")
        try:
            limits[name] = float(number) if name == "seconds" else int(number)
        except ValueError:
            name = ""
        if name not in Budget.__slots__:
            raise typer.BadParameter(f"{text!r} is not like seconds=900", param_hint="--budget")
    return Budget(**limits)  # type: ignore[arg-type]  # all but the seconds are integers


def inputs(
    model: Model,
    texts: Sequence[str] | None,
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
) -> dict[str, Array]:
    """Read the arrays of `--input NAME=FILE`, and add random ones for the other inputs."""
    read = {name: read_input(model, name, path) for name, path in files(texts).items()}
    sizes = {name: array.shape for name, array in read.items()}
    shapes_by_name = {**shapes, **input_shapes(texts), **sizes}
    return {**random_inputs(model, shapes_by_name, seed), **read}


def cache(use: bool, folder: Path | None) -> bool | Path:
    """Return the `cache` argument of `crosschip.compile`."""
    return folder or True if use else False
