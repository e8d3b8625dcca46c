"""The options of commands that take pictures as inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from crosschip.ir import Array, InputError, Model
from crosschip.preprocessing import Preprocess, is_picture, read_picture, takes_pictures
from crosschip.preprocessing.settings import Color, Fit, Interpolation, Layout, Position
from crosschip.runtime.inputs import read_array


def _choice(help: str, choices: Any) -> Any:
    """Return an option whose values are those of a `Literal`."""
    names = list(get_args(choices))
    return typer.Option(help=help, autocompletion=lambda: names)


@dataclass(frozen=True)
class Pictures:
    """The options for pictures, which become `crosschip.Preprocess`."""

    resize: Annotated[
        str | None,
        typer.Option(help="Resize pictures to a height and width, as in 480x640, or 224 for both."),
    ] = None
    fit: Annotated[
        str | None,
        _choice("How a picture fits --resize: stretch, shorter (covers) or longer (pads).", Fit),
    ] = None
    position: Annotated[
        str | None,
        _choice("Where a padded picture lies: center, or start, the top left.", Position),
    ] = None
    pad_value: Annotated[
        str | None, typer.Option(help="The value of padding, 0 to 255, as in 114 or 124,116,104.")
    ] = None
    crop: Annotated[
        str | None, typer.Option(help="Cut out the center, of a height and width, as in 224x224.")
    ] = None
    interpolation: Annotated[
        str | None,
        _choice("linear, nearest, cubic or area.", Interpolation),
    ] = None
    antialias: Annotated[
        bool, typer.Option("--antialias", help="Resize as Pillow does; otherwise as OpenCV does.")
    ] = False
    color: Annotated[
        str | None, _choice("The channels that the model takes: RGB, BGR or GRAY.", Color)
    ] = None
    mean: Annotated[
        str | None,
        typer.Option(help="Subtract it from the values, 0 to 255, as in 123.675,116.28,103.53."),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option(help="Multiply the values by it, as in 1/255 or 1/58.395,1/57.12,1/57.375."),
    ] = None
    layout: Annotated[
        str | None, _choice("The order of the model's axes: NCHW or NHWC.", Layout)
    ] = None

    def preprocess(self) -> Preprocess | None:
        """Return the preprocessing of the options; `None` if there are none.

        Raises:
            typer.BadParameter: an option is malformed.
            InputError: an option has a value that it cannot have.
        """
        parsers: dict[str, Callable[[str, str], object]] = {
            **dict.fromkeys(("resize", "crop"), _size),
            **dict.fromkeys(("pad_value", "mean", "scale"), _numbers),
        }
        values: dict[str, Any] = {}
        for field in fields(Pictures):
            value = getattr(self, field.name)
            if value not in (None, False):
                parser = parsers.get(field.name)
                values[field.name] = value if parser is None else parser(field.name, value)
        return Preprocess(**values) if values else None

    def attach(self, model: Model, files: Mapping[str, Path]) -> Model:
        """Return a model that takes pictures where the options say so, else the model.

        Args:
            model: the model.
            files: the files of inputs, by input. Those that are pictures name the inputs that take
                pictures; without any, the only input does if there are options for pictures.
        """
        preprocess = self.preprocess()
        names: list[str | None] = [name for name, path in files.items() if is_picture(path)]
        if preprocess is not None and not names:
            names = [None]
        for name in names:
            model = (preprocess or Preprocess()).attach(model, name)
        return model


def read_input(model: Model, name: str, path: Path) -> Array:
    """Read an input of a model: an array, or a picture as a batch of one.

    Raises:
        InputError: the file cannot be read, or the input does not take pictures.
    """
    operand = model.inputs.get(name)
    if is_picture(path) and operand is not None and not takes_pictures(operand.type):
        raise InputError(
            f"input {name!r} is {operand.type}, which takes no picture like {path}; compile the "
            f"model with this --input"
        )
    return read_value(path)


def read_value(path: Path) -> Array:
    """Read an array, or a picture as a batch of one.

    Raises:
        InputError: the file cannot be read.
    """
    return read_picture(path)[None] if is_picture(path) else read_array(path)


def _size(name: str, text: str) -> int | tuple[int, ...]:
    """Parse `480x640` or `224`."""
    try:
        sizes = tuple(map(int, text.split("x")))
    except ValueError:
        sizes = ()
    if len(sizes) not in (1, 2):
        raise typer.BadParameter(f"{text!r} is not like 480x640 or 224", param_hint=f"--{name}")
    return sizes[0] if len(sizes) == 1 else sizes


def _numbers(name: str, text: str) -> tuple[float, ...]:
    """Parse numbers and fractions with commas between."""
    try:
        return tuple(map(_number, text.split(",")))
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(
            f"{text!r} is not like 0.5, 1/255 or 123.7,116.3,103.5",
            param_hint=f"--{name.replace('_', '-')}",
        ) from None


def _number(text: str) -> float:
    numerator, slash, denominator = text.partition("/")
    return float(numerator) / (float(denominator) if slash else 1)
