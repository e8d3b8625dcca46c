"""Reading of picture files."""

from __future__ import annotations

import os
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.ir import Array, ElementType, InputError, TensorType
from crosschip.ir.errors import install_command
from crosschip.ir.files import open_regular

if TYPE_CHECKING:
    from PIL.Image import Image

_FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "MPO", "PNG", "PPM", "TIFF", "WEBP")
"""The formats that are read; others of Pillow's start programs (EPS) or are rarely meant."""

_SIXTEEN_BITS = ("I", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's modes of gray pictures with 16 bits a pixel."""


_SUFFIXES = frozenset(
    (
        *(".avif", ".bmp", ".gif", ".jp2", ".jpe", ".jpeg", ".jpg", ".mpo", ".pbm", ".pgm"),
        *(".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"),
    )
)
"""The suffixes of files that are read as pictures."""


def is_picture(path: Path) -> bool:
    """Return whether a file's name ends as those of pictures do."""
    return path.suffix.lower() in _SUFFIXES


def takes_pictures(type_: TensorType) -> bool:
    """Return whether an input of a type takes pictures: uint8 [N, height, width, 3]."""
    shape = type_.shape
    return type_.element_type is ElementType.UINT8 and shape is not None and shape[3:] == (3,)


def require_pillow(path: str | os.PathLike[str]) -> None:
    """Raise InputError if Pillow, which reads pictures such as that, is not installed."""
    if find_spec("PIL") is None:
        raise InputError(f"{path}: reading pictures needs Pillow; {install_command('pictures')}")


def read_picture(path: str | os.PathLike[str]) -> Array:
    """Read the picture in a file of a common format (JPEG, PNG, WebP, TIFF, …).

    It is turned upright as its EXIF data says. What is transparent becomes white. Of 16 bits a
    channel the high 8 are kept, and of an animation the first picture.

    Args:
        path: the file.

    Returns:
        The picture in RGB, uint8 [height, width, 3].

    Raises:
        InputError: Pillow is not installed, the file cannot be read, holds no picture, or is cut
            short, or the picture is so large that it is likely to be an attack.
    """
    require_pillow(path)
    from PIL import Image, UnidentifiedImageError

    Image.init()
    formats = [name for name in _FORMATS if name in Image.OPEN]
    try:
        with (
            BufferedReader(open_regular(Path(path))) as file,
            Image.open(file, formats=formats) as image,
        ):
            return _pixels(image)
    except UnidentifiedImageError:
        raise InputError(
            f"{path}: is not a picture in a format that is read; convert it to PNG or JPEG "
            f"({', '.join(formats)} are read)"
        ) from None
    except Exception as error:  # decoders raise whatever damaged data leads to
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read as a picture: {reason}") from None


def _pixels(image: Image) -> Array:
    """Return the upright pixels of an opened picture in RGB."""
    from PIL import Image, ImageOps

    upright: Any = image
    ImageOps.exif_transpose(upright, in_place=True)
    if upright.mode == "F":
        raise InputError("its pixels are reals, of an unknown range; convert it to 8 or 16 bits")
    if upright.mode in _SIXTEEN_BITS:
        gray = (np.clip(np.asarray(upright), 0, 2**16 - 1) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    if upright.has_transparency_data:
        pixels = upright.convert("RGBA")
        white = Image.new("RGBA", pixels.size, "white")
        upright = Image.alpha_composite(white, pixels)
    return np.array(upright if upright.mode == "RGB" else upright.convert("RGB"))
