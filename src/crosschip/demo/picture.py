"""Loading of pictures as RGB bytes, and conversion to normalized BGR planes for the models."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

Picture: TypeAlias = NDArray[np.uint8]
"""A picture, height x width x 3, in RGB order."""

Quad: TypeAlias = NDArray[np.float64]
"""Corners of a line of text, 4 x 2: x, y in pixels, clockwise from the top left one."""

Floats: TypeAlias = NDArray[np.float32]
"""The input or the output of a model."""

Model: TypeAlias = Callable[[Floats], Floats]
"""A model with one input and one output."""

DEMO_PICTURE = Path(__file__).with_name("picture.png")
"""A picture of printed lines: Latin and Chinese, level, tilted and upside down."""

DEMO_TEXT = Path(__file__).with_name("picture.txt")
"""The lines printed on `DEMO_PICTURE` in reading order, one a line, in UTF-8."""


def load(path: Path) -> Picture:
    """Return the picture in a file of any format and colour mode that Pillow reads.

    The picture is turned upright by its EXIF data, and transparent pixels become white.

    Args:
        path: The file.

    Raises:
        OSError: The file cannot be read, or is not a picture, or is cut short.
        PIL.Image.DecompressionBombError: The picture is too large to be a plausible one.
    """
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.has_transparency_data:
            paper = Image.new("RGBA", upright.size, "white")
            upright = Image.alpha_composite(paper, upright.convert("RGBA"))
        if upright.mode.startswith("I;16"):
            # Pillow would clip 16-bit grey to 8 bits, not scale it.
            upright = Image.fromarray((np.asarray(upright) // 257).astype(np.uint8))
        return np.asarray(upright.convert("RGB"))


def planes(picture: Picture, width: int, height: int) -> Floats:
    """Return a picture resized and normalized as all PP-OCRv4 models need it.

    Args:
        picture: Height x width x 3 bytes in RGB order, not empty.
        width: Width of the result in pixels.
        height: Height of the result in pixels.

    Returns:
        3 x `height` x `width` float32 from -1 (dark) to 1 (bright), the planes in BGR order.
    """
    resized = np.asarray(cv2.resize(picture, (width, height)), np.uint8)
    bgr = resized[:, :, ::-1].transpose(2, 0, 1)
    return bgr.astype(np.float32, order="C") / np.float32(127.5) - np.float32(1)
