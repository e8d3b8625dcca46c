"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from crosschip.ir import Array, Budget, InputError, Model
from crosschip.runtime.inputs import random_inputs, read_array

ModelPath = Annotated[
    Path, typer.Argument(help="A .pdmodel, a Paddle 3 .json, an .onnx, or a folder with one.")
]
Devices = Annotated[
    str, typer.Option(help="Devices in the order of preference, as in openvino,onnxruntime.")
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help="Fix an input's shape, as in x=1x3x48x320, or a size, as in N=1."),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", help="Read an input from a file, as in x=image.npy."),
]
Seed = Annotated[int, typer.Option(help="Of the random inputs; their integers are 0 or 1.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", help="A setting of a device, as in mychip.cores=2."),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        help="A limit of what a model may cost to load and compile, as in seconds=900; others are "
        "bytes, tensor_bytes and operations.",
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="How many processor threads a run may use.")
]
Precision = Annotated[
    str, typer.Option(help="Arithmetic for float32 operations: float32, bfloat16 or float16.")
]
Partition = Annotated[
    str | None,
    typer.Option(
        help="A file of operators to keep off the first device, a type:inputs:outputs a line."
    ),
]
MixedPrecision = Annotated[
    str | None,
    typer.Option(help="A file of operators that compute in float32, a type:inputs:outputs a line."),
]
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin", help="The device for what a pattern names, as in conv2d=openvino or MAT_*=mychip."
    ),
]
MinSegment = Annotated[
    int, typer.Option(min=1, help="The fewest operations that are worth a segment of their own.")
]
MaxSegments = Annotated[
    int | None, typer.Option(min=1, help="How many segments there may be at most.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail if a device declines what it is to run.")
]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache-dir", help="Where compiled programs are kept; see `crosschip cache`."),
]
UseCache = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Whether to keep and use compiled programs.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def shapes(given: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """The shapes that `--shape NAME=1x3x48x320` gives, by input.

    Raises:
        typer.BadParameter: one is not like that.
    """
    found = {}
    for text in given or ():
        name, _, sizes = text.rpartition("=")
        try:
            found[name] = tuple(map(int, sizes.split("x"))) if sizes else ()
        except ValueError:
            name = ""
        if not name or min(found[name], default=0) < 0:
            raise typer.BadParameter(f"{text!r} is not like x=1x3x48x320", param_hint="--shape")
    return found


def files(given: Sequence[str] | None) -> dict[str, Path]:
    """The files that `--input NAME=FILE` gives, by input.

    Raises:
        typer.BadParameter: one is not like that.
    """
    found = {}
    for text in given or ():
        name, _, file = text.partition("=")
        if not name or not file:
            raise typer.BadParameter(f"{text!r} is not like x=image.npy", param_hint="--input")
        found[name] = Path(file)
    return found


def properties(
    given: Sequence[str] | None, devices: Collection[str] | None = None
) -> dict[str, dict[str, str]]:
    """The settings that `--property DEVICE.NAME=VALUE` gives, by device.

    Args:
        given: the options.
        devices: the names that there may be settings for; any if left out.

    Raises:
        typer.BadParameter: one is not like that.
        InputError: one is for another device.
    """
    found: dict[str, dict[str, str]] = {}
    for text in given or ():
        device, _, setting = text.partition(".")
        name, equals, value = setting.partition("=")
        if not (device and name and equals) or "=" in device:
            raise typer.BadParameter(
                f"{text!r} is not like mychip.cores=2", param_hint="--property"
            )
        if devices is not None and device not in devices:
            raise InputError(f"there are properties for {device!r}, which is not among the devices")
        found.setdefault(device, {})[name] = value
    return found


def pins(given: Sequence[str] | None) -> dict[str, str]:
    """The devices that `--pin PATTERN=DEVICE` gives, by pattern.

    Raises:
        typer.BadParameter: one is not like that.
    """
    found: dict[str, str] = {}
    for text in given or ():
        pattern, _, device = text.rpartition("=")
        if not pattern or not device:
            raise typer.BadParameter(f"{text!r} is not like conv2d=openvino", param_hint="--pin")
        found.pop(pattern, None)  # the last holds, and comes last
        found[pattern] = device
    return found


def configuration(given: str | None) -> Path | None:
    """The file that `--partition` or `--mixed-precision` gives."""
    return None if given is None else Path(given)


def budget(given: Sequence[str] | None) -> Budget:
    """The budget that `--budget LIMIT=NUMBER` gives.

    Raises:
        typer.BadParameter: one is not like that.
    """
    limits: dict[str, float] = {}
    for text in given or ():
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
    given: Sequence[str] | None,
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
) -> dict[str, Array]:
    """The arrays that `--input NAME=FILE` gives, and random ones for the other inputs."""
    read = {name: read_array(path) for name, path in files(given).items()}
    known = {**shapes, **{name: array.shape for name, array in read.items()}}
    return {**random_inputs(model, known, seed), **read}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"crosschip {metadata.version('crosschip')}")
        raise typer.Exit


def general(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """The options before any command."""


def cache(use: bool, folder: Path | None) -> bool | Path:
    """The `cache` argument of `crosschip.compile`."""
    return folder or True if use else False
