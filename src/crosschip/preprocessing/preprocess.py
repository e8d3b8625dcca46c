"""Preprocessing of pictures as a part of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from crosschip.ir import (
    Array,
    Builder,
    Dim,
    Dimension,
    ElementType,
    InputError,
    Model,
    Operand,
    TensorType,
    symbol,
)
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import name_of
from crosschip.ir.frozen import set_field
from crosschip.ir.shape_binding import open_names
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import FLOATS, INTEGERS
from crosschip.passes.rewriter import Rewriter
from crosschip.passes.specialize import Specialize
from crosschip.preprocessing.network import preprocess
from crosschip.preprocessing.settings import (
    Color,
    Fit,
    Interpolation,
    Layout,
    Numbers,
    Pair,
    Position,
    as_element_type,
    as_pair,
    check_choice,
)


@dataclass(frozen=True, kw_only=True)
class Preprocess:
    """What happens to a picture before a model sees it, in the order of the fields.

    A picture is uint8 [height, width, 3] in RGB, as `read_picture` returns it; a batch of pictures
    of one size is [N, height, width, 3]. `attach` makes the preprocessing a part of a model, which
    then takes pictures.

    Attributes:
        resize: the height and width to resize to; one number stands for both. `None` resizes to the
            size that the model takes if it takes only one and `crop` is `None`, else does not
            resize.
        fit: how the picture fits `resize`: `stretch` changes its aspect ratio; `shorter` keeps it
            and covers the size, so that one side is longer (rounded down, as torchvision's
            `Resize`); `longer` keeps it and is inside the size (rounded to nearest), padded to it.
        position: where a picture that is padded lies: in the center, or at the start, the top left.
        crop: the height and width of the centre that is cut out; what it lacks is padded.
        pad_value: the value of padding, one or one a channel of the model, in units of 0 to 255.
        interpolation: `nearest`, `linear`, `cubic`, or `area`, the mean of what a pixel covers.
        antialias: `False` resizes as OpenCV does, where a pixel depends on its nearest neighbours;
            `True` as Pillow and torchvision do, where it depends on all that it covers. Values are
            rounded to whole numbers of 0 to 255 like theirs, within one step.
        color: the channels that the model takes. Gray is 0.299 R + 0.587 G + 0.114 B.
        mean: what is subtracted, one or one a channel of the model, in units of 0 to 255.
        scale: what the difference is multiplied by, likewise; often 1 / 255 or 1 / (255 * std).
        layout: the order of the model's axes.
        element_type: the element type of the result; `None` for the model's.

    Raises:
        InputError: a field has a value that it cannot have.

    Example:
        >>> import crosschip as cc
        >>> preprocess = cc.Preprocess(
        ...     resize=256,
        ...     fit="shorter",
        ...     crop=224,
        ...     antialias=True,
        ...     mean=(123.675, 116.28, 103.53),
        ...     scale=(0.01712475, 0.017507, 0.01742919),
        ... )
        >>> preprocess.apply(np.zeros((480, 640, 3), np.uint8)).shape
        (1, 3, 224, 224)
    """

    resize: int | Pair | None = None
    fit: Fit = "stretch"
    position: Position = "center"
    crop: int | Pair | None = None
    pad_value: Numbers = 0.0
    interpolation: Interpolation = "linear"
    antialias: bool = False
    color: Color = "RGB"
    mean: Numbers = 0.0
    scale: Numbers = 1.0
    layout: Layout = "NCHW"
    element_type: ElementType | str | None = None

    def __post_init__(self) -> None:
        for name in ("resize", "crop"):
            set_field(self, name, as_pair(name, getattr(self, name)))
        for name, values in (
            ("fit", Fit),
            ("position", Position),
            ("interpolation", Interpolation),
            ("layout", Layout),
            ("color", Color),
        ):
            check_choice(name, getattr(self, name), get_args(values))
        if not isinstance(self.antialias, bool):
            raise InputError(f"antialias is {self.antialias!r}; give True or False")
        for name in ("pad_value", "mean", "scale"):
            set_field(self, name, self._per_channel(name))
        set_field(self, "element_type", as_element_type(self.element_type))

    @property
    def channels(self) -> int:
        """Return the number of channels that the model takes."""
        return 1 if self.color == "GRAY" else 3

    def attach(self, model: Model, input: str | None = None) -> Model:
        """Return a model that takes pictures and preprocesses them.

        The input keeps its name and place. It becomes uint8 [N, height, width, 3], with N as
        before; height and width are open, and `shapes` of `crosschip.compile` can fix them.

        Args:
            model: the model.
            input: the name of the input; needed if there are several.

        Raises:
            InputError: there is no such input, or it does not take what this preprocessing makes.
        """
        name = _input_name(model, input)
        type_ = model.inputs[name].type
        batch, size = self._batch_and_size(name, type_)
        builder = Builder(model.name, "preprocess.", {each.name for each in model.operations})
        open_sizes = open_names(operand.type for operand in model.inputs.values())
        height, width = (_free(size_name, open_sizes) for size_name in ("height", "width"))
        picture_type = TensorType(ElementType.UINT8, (batch, height, width, 3))
        picture = builder.input(name, picture_type)
        result = preprocess(builder, picture, self._resolved(size, type_.element_type))
        _check_result(name, type_, result.type)
        return _splice(model, name, builder, result)

    def apply(self, pictures: Array) -> Array:
        """Return preprocessed pictures, computed in NumPy by the definitions of the operators.

        Args:
            pictures: uint8 [height, width, 3] or [N, height, width, 3].

        Returns:
            An array as the model takes it, with the batch axis; float32 if `element_type` is
            `None`.

        Raises:
            InputError: the array is not of this kind.
        """
        from crosschip.devices.reference import ReferenceProgram

        batch = pictures if pictures.ndim == 4 else pictures[None]
        if batch.dtype != np.uint8 or batch.ndim != 4 or batch.shape[3] != 3 or 0 in batch.shape:
            raise InputError(
                f"pictures are uint8 [height, width, 3] or [N, height, width, 3], not "
                f"{pictures.dtype} {list(pictures.shape)}"
            )
        builder = Builder("preprocess")
        picture = builder.input("pictures", TensorType(ElementType.UINT8, batch.shape))
        settings = self._resolved((), ElementType.FLOAT32)
        builder.output("result", preprocess(builder, picture, settings))
        (result,) = ReferenceProgram(builder.build()).run([batch])
        return np.asarray(result)

    def _per_channel(self, name: str) -> tuple[float, ...]:
        """Return one number, or one per channel, as a tuple."""
        value = getattr(self, name)
        numbers = tuple(value) if isinstance(value, Sequence | np.ndarray) else (value,)
        if (
            len(numbers) not in (1, self.channels)
            or not all(isinstance(number, int | float | np.number) for number in numbers)
            or not np.isfinite(numbers).all()
        ):
            counts = "one number" if self.channels == 1 else f"one number or {self.channels}"
            raise InputError(f"{name} is {value!r}; give {counts} for color {self.color}")
        return tuple(map(float, numbers))

    def _batch_and_size(self, name: str, type_: TensorType) -> tuple[Dim, Sequence[Dim]]:
        """Return the batch size, and the height and width that a model's input takes.

        Raises:
            InputError: the input does not take pictures of this layout and color.
        """
        if type_.element_type not in FLOATS | INTEGERS or type_.quantization is not None:
            raise InputError(f"input {name!r} is {type_}, but pictures become plain numbers")
        if type_.shape is None:
            return symbol("N"), ()
        if len(type_.shape) != 4:
            raise InputError(
                f"input {name!r} is {type_}, but pictures have four axes, {self.layout}; name the "
                f"input that takes pictures"
            )
        axis = self.layout.index("C")
        channels = type_.shape[axis]
        if isinstance(channels, int) and channels != self.channels:
            raise InputError(
                f"input {name!r} is {type_}, with {channels} channels in the layout {self.layout}, "
                f"but color {self.color} has {self.channels}; set layout or color"
            )
        batch, *size = (*type_.shape[:axis], *type_.shape[axis + 1 :])
        return batch, size

    def _resolved(self, size: Sequence[Dim], element_type: ElementType) -> Preprocess:
        """Return the settings with what `None` stands for, as far as the model's size is known."""
        resize = self.resize
        known = [n for n in size if isinstance(n, int)]
        if resize is None and self.crop is None and len(known) == 2:
            resize = known[0], known[1]
        return replace(self, resize=resize, element_type=self.element_type or element_type)


def _input_name(model: Model, name: str | None) -> str:
    """Return the name of a model's input; of its only one if `None`."""
    names = list(model.inputs)
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise InputError(f"say which of the inputs {', '.join(names)} takes pictures")
    if name not in names:
        raise InputError(
            f"the model has no input {name!r}{did_you_mean(name, names)}; its inputs are "
            f"{', '.join(names) or 'none'}"
        )
    return name


def _free(name: str, used_names: Sequence[str]) -> Dimension:
    while name in used_names:
        name = f"picture_{name}"
    return symbol(name)


def _check_result(name: str, type_: TensorType, result: TensorType) -> None:
    """Raise InputError unless a model's input takes preprocessed pictures."""
    if result.element_type is not type_.element_type:
        raise InputError(
            f"input {name!r} is {type_}, but element_type is {result.element_type}; leave it out"
        )
    for size, actual in zip(type_.shape or (), result.shape or (), strict=False):
        if isinstance(size, int) and actual != size:
            raise InputError(
                f"input {name!r} is {type_}, but preprocessed pictures are {result}; set resize, "
                f"or crop, to the size that the model takes"
            )


def _splice(model: Model, name: str, builder: Builder, result: Operand) -> Model:
    """Return a model that reads the result of the builder's operations in place of an input."""
    sizes = {
        symbol_name: actual
        for size, actual in zip(
            model.inputs[name].type.shape or (), result.type.shape or (), strict=False
        )
        if (symbol_name := name_of(size)) is not None
    }
    fixed = Specialize({}, sizes)(model)
    picture = builder.build().inputs[name]
    rewriter = Rewriter(fixed)
    for operation in builder.operations:
        rewriter.keep(operation)
    rewriter.replace(fixed.inputs[name], result)
    for operation in fixed.operations:
        rewriter.keep(rewriter.resolved(operation))
    finished = rewriter.finish()
    inputs = {each: picture if each == name else o for each, o in fixed.inputs.items()}
    return Model(model.name, inputs, finished.operations, finished.outputs)
