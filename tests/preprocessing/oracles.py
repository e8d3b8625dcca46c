"""Preprocessing by OpenCV, Pillow and torchvision, and random settings to compare with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import cv2
import numpy as np
from PIL import Image

from crosschip import Preprocess
from crosschip.ir import Array

Resize = Callable[[Array, tuple[int, int]], Array]
"""Resizes uint8 [height, width, channels] to a height and width."""

_CV = {
    "linear": cv2.INTER_LINEAR,
    "cubic": cv2.INTER_CUBIC,
    "nearest": cv2.INTER_NEAREST,
    "area": cv2.INTER_AREA,
}
_PILLOW = {
    "linear": Image.Resampling.BILINEAR,
    "cubic": Image.Resampling.BICUBIC,
    "nearest": Image.Resampling.NEAREST,
}


@dataclass(frozen=True)
class Case:
    """A picture and settings."""

    picture: Array
    settings: Preprocess


def cases(seed: int, count: int) -> Iterator[Case]:
    """Draw pictures and settings."""
    generator = np.random.default_rng(seed)

    def choice(*options: Any) -> Any:
        return options[generator.integers(len(options))]

    def side() -> int:
        return int(choice(1, *generator.integers(1, 120, 8), generator.integers(120, 400)))

    for _ in range(count):
        height, width = side(), side()
        kind = choice("noise", "noise", "ramp", "flat")
        if kind == "noise":
            picture = generator.integers(0, 256, (height, width, 3))
        elif kind == "ramp":
            rows, columns = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
            picture = (rows * 3 + columns * 2 + np.array([0, 80, 160])) % 256
        else:
            picture = np.broadcast_to(generator.integers(0, 256, 3), (height, width, 3))
        color = choice("RGB", "RGB", "BGR", "GRAY")
        channels = 1 if color == "GRAY" else 3
        resize = choice(None, side(), (side(), side()), (side(), side()))
        scale = choice(1.0, 1 / 255, tuple(generator.uniform(0.001, 0.1, channels)))
        yield Case(
            np.ascontiguousarray(picture, np.uint8),
            Preprocess(
                resize=resize,
                fit=choice("stretch", "stretch", "shorter", "longer"),
                position=choice("center", "start"),
                crop=choice(None, None, side(), (side(), side())),
                pad_value=choice(0, 114.0, tuple(generator.uniform(0, 255, channels))),
                interpolation=choice("linear", "linear", "cubic", "nearest", "area"),
                antialias=choice(False, True),
                color=color,
                mean=choice(0, 127.5, tuple(generator.uniform(0, 255, channels))),
                scale=scale,
                layout=choice("NCHW", "NHWC"),
            ),
        )


def resized_size(settings: Preprocess, height: int, width: int) -> tuple[int, int]:
    """Return the height and width of the resized picture, by exact fractions."""
    if settings.resize is None:
        return height, width
    assert isinstance(settings.resize, tuple)
    to_height, to_width = settings.resize
    ratios = Fraction(to_height, height), Fraction(to_width, width)
    if settings.fit == "shorter":  # torchvision truncates
        return max(to_height, int(height * max(ratios))), max(to_width, int(width * max(ratios)))
    if settings.fit == "longer":  # Ultralytics' letterbox rounds
        half = Fraction(1, 2)
        return (
            max(1, int(height * min(ratios) + half)),
            max(1, int(width * min(ratios) + half)),
        )
    return to_height, to_width


def expected(case: Case, gray: Callable[[Array], Array], resize: Resize) -> Array:
    """Return the result of a case before normalization: uint8 values and padding in float64.

    Args:
        case: the case.
        gray: makes RGB pictures gray, [height, width, 1].
        resize: resizes pictures.
    """
    settings, picture = case.settings, case.picture
    if settings.color == "GRAY":
        picture = gray(picture)
    size = resized_size(settings, *picture.shape[:2])
    pixels = (picture if size == picture.shape[:2] else resize(picture, size)).astype(np.float64)
    if settings.color == "BGR":
        pixels = pixels[:, :, ::-1]
    padding = np.broadcast_to(np.array(settings.pad_value), pixels.shape[2:])
    if settings.resize is not None and settings.fit == "longer":
        assert isinstance(settings.resize, tuple)
        centered = settings.position == "center"
        starts = [
            (box - side) // 2 if centered else 0
            for box, side in zip(settings.resize, size, strict=True)
        ]
        pixels = framed(pixels, settings.resize, [-start for start in starts], padding)
    if settings.crop is not None:
        assert isinstance(settings.crop, tuple)
        starts = [
            round((side - crop) / 2) if side >= crop else -((crop - side) // 2)  # torchvision's
            for side, crop in zip(pixels.shape[:2], settings.crop, strict=True)
        ]
        pixels = framed(pixels, settings.crop, starts, padding)
    return pixels


def framed(pixels: Array, size: Sequence[int], starts: Sequence[int], padding: Array) -> Array:
    """Return the part of a picture of a size that begins at a pixel, padded where it is outside."""
    frame = np.empty((*size, pixels.shape[2]))
    frame[:] = padding
    rows, columns = (np.arange(n) + start for n, start in zip(size, starts, strict=True))
    inside_rows = (rows >= 0) & (rows < pixels.shape[0])
    inside_columns = (columns >= 0) & (columns < pixels.shape[1])
    part = pixels[rows[inside_rows]][:, columns[inside_columns]]
    frame[np.ix_(inside_rows, inside_columns)] = part
    return frame


def normalized(case: Case, pixels: Array) -> Array:
    """Return the result of a case from its pixels."""
    settings = case.settings
    result: Array = (pixels - np.array(settings.mean)) * np.array(settings.scale)
    return result.transpose(2, 0, 1)[None] if settings.layout == "NCHW" else result[None]


def by_opencv(case: Case) -> Iterator[Array]:
    """OpenCV's pixels, which do not antialias."""
    method = case.settings.interpolation
    if case.settings.antialias and method != "area":
        return

    def resize(picture: Array, size: tuple[int, int]) -> Array:
        height, width = picture.shape[:2]
        # Where one side grows and the other does not, OpenCV's INTER_AREA takes no means.
        mixed = method == "area" and (size[0] > height) != (size[1] > width)
        steps = [(size[0], width), size] if mixed else [size]
        for step in steps:
            resized = cv2.resize(picture, step[::-1], interpolation=_CV[method])
            picture = resized.reshape(*step, picture.shape[2])
        return picture

    yield expected(case, lambda p: cv2.cvtColor(p, cv2.COLOR_RGB2GRAY)[:, :, None], resize)


def by_pillow(case: Case) -> Iterator[Array]:
    """Pillow's pixels, which antialias, resized at once, or the width or the height first."""
    method = case.settings.interpolation
    if not case.settings.antialias or method == "area":
        return

    def gray(picture: Array) -> Array:
        return np.asarray(Image.fromarray(picture).convert("L"))[:, :, None]

    for axis in (None, 0, 1):

        def resize(picture: Array, size: tuple[int, int], axis: int | None = axis) -> Array:
            height, width = picture.shape[:2]
            first = {None: size, 0: (height, size[1]), 1: (size[0], width)}[axis]
            image = Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture)
            for step in (first, size):
                image = image.resize(step[::-1], _PILLOW[method])
            return np.asarray(image).reshape(*size, picture.shape[2])

        yield expected(case, gray, resize)


def by_torchvision(case: Case) -> Iterator[Array]:
    """Torchvision's pixels, if it is installed."""
    settings = case.settings
    if settings.interpolation == "area" or find_spec("torchvision") is None:
        return
    import torch
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms import functional as transforms

    nearest = InterpolationMode.NEAREST_EXACT if settings.antialias else InterpolationMode.NEAREST
    mode = {
        "linear": InterpolationMode.BILINEAR,
        "cubic": InterpolationMode.BICUBIC,
        "nearest": nearest,
    }[settings.interpolation]

    def resize(picture: Array, size: tuple[int, int]) -> Array:
        tensor = torch.from_numpy(picture.transpose(2, 0, 1).copy())
        resized = transforms.resize(tensor, list(size), mode, antialias=settings.antialias)
        return np.asarray(resized).transpose(1, 2, 0)

    def gray(picture: Array) -> Array:
        tensor = torch.from_numpy(picture.transpose(2, 0, 1).copy())
        return np.asarray(transforms.rgb_to_grayscale(tensor)).transpose(1, 2, 0)

    yield expected(case, gray, resize)


def has_ties(case: Case) -> bool:
    """Return whether rounding errors of the libraries decide which pixel one is taken from.

    That is where, with `nearest`, a pixel of the resized picture is at the border of two of the
    picture, or, with `area`, a pixel of the enlarged picture begins at one.
    """
    settings = case.settings
    if settings.interpolation not in ("nearest", "area"):
        return False
    shape = case.picture.shape[:2]
    for size, resized in zip(shape, resized_size(settings, *shape), strict=True):
        pixels = np.arange(1, resized)
        centers = settings.antialias and settings.interpolation == "nearest"
        begins = (2 * pixels + 1) * size if centers else 2 * pixels * size
        is_exact = max(size, resized) % min(size, resized) == 0
        if settings.interpolation == "area" and (resized < size or is_exact):
            continue
        if resized != size and not (begins % (2 * resized)).all():
            return True
    return False
