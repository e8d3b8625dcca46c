"""Text recognition: a line cut out of a picture, turned the right way up, and read."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from crosschip.demo.picture import Floats, Model, Picture, Quad, planes

HEIGHT = 48
"""Height in pixels of the classifier's and the recognizer's input."""

CLASSIFIER_WIDTH = 192
"""Width in pixels of the classifier's input; a longer line is squeezed into it."""

RECOGNIZER_WIDTHS = range(320, 3200 + 1, 32)
"""Widths in pixels of the recognizer's input: in steps, so that a device compiles few shapes."""

TALL = 1.5
"""The minimum ratio of height to width of a vertical line."""

TURNED_PROBABILITY = 0.9
"""The probability above which a line counts as upside down."""

BATCH = 6
"""The number of lines in a batch of the classifier and the recognizer."""


def crop(picture: Picture, quad: Quad) -> Picture:
    """Cut a line of text out of a picture and make it level.

    Args:
        picture: Height x width x 3 bytes.
        quad: The corners of the line; where they lie outside the picture, its edge is repeated.

    Returns:
        The line, as wide and high as the quad. A tall one is turned by 90 degrees
        counter-clockwise, so that text that runs downwards runs from left to right.
    """
    top, right, bottom, left = np.linalg.norm(np.roll(quad, -1, axis=0) - quad, axis=1).tolist()
    width, height = max(1, round(max(top, bottom))), max(1, round(max(right, left)))
    level = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    line = cv2.warpPerspective(
        picture,
        cv2.getPerspectiveTransform(quad.astype(np.float32), level),
        (width, height),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    upright = np.asarray(line, np.uint8)
    return np.rot90(upright) if height >= TALL * width else upright


def upside_down(model: Model, lines: Sequence[Picture]) -> list[bool]:
    """Return whether each line is upside down.

    Args:
        model: The classifier: lines x 3 x 48 x 192 to lines x 2, the probabilities of 0 and of 180
            degrees.
        lines: Cropped lines, each height x width x 3 bytes.

    Returns:
        For each line, whether it has to be turned by 180 degrees.
    """
    turned: list[bool] = []
    for batch in _batches(range(len(lines))):
        probabilities = model(np.stack([line_planes(lines[i], CLASSIFIER_WIDTH) for i in batch]))
        turned += (probabilities[:, 1] > TURNED_PROBABILITY).tolist()
    return turned


def recognize(
    model: Model, lines: Sequence[Picture], characters: Sequence[str]
) -> list[tuple[str, float]]:
    """Read lines of text.

    Args:
        model: The recognizer: lines x 3 x 48 x width to lines x steps x characters, the
            probabilities of each character at each step.
        lines: Cropped lines the right way up, each height x width x 3 bytes.
        characters: The characters of the recognizer, from `load_characters`.

    Returns:
        For each line its text and score, as `ctc_decode` returns them.
    """
    widths = [_scaled_width(line) for line in lines]
    read: dict[int, tuple[str, float]] = {}
    for batch in _batches(sorted(range(len(lines)), key=widths.__getitem__)):
        width = _input_width(max(widths[i] for i in batch))
        probabilities = model(np.stack([line_planes(lines[i], width) for i in batch]))
        read.update(zip(batch, ctc_decode(probabilities, characters), strict=True))
    return [read[i] for i in range(len(lines))]


def line_planes(line: Picture, width: int) -> Floats:
    """Return a line of text as input for the classifier and the recognizer.

    Args:
        line: Height x width x 3 bytes in RGB order.
        width: Width of the result in pixels.

    Returns:
        3 x 48 x `width` float32, as `planes` returns them. A line keeps its proportions and is
        followed by zeros (mid-grey); one too long for that is squeezed.
    """
    scaled = planes(line, min(_scaled_width(line), width), HEIGHT)
    return np.pad(scaled, ((0, 0), (0, 0), (0, width - scaled.shape[2])))


def load_characters(path: Path) -> list[str]:
    """Return the characters of a recognizer, by number.

    Args:
        path: The dictionary: one character a line, in UTF-8.

    Returns:
        The CTC blank (as an empty string), the characters of the file, and the space.
    """
    # Not splitlines(): the dictionary may hold characters that Unicode counts as line ends.
    return ["", *path.read_text("utf-8").removesuffix("\n").split("\n"), " "]


def ctc_decode(probabilities: Floats, characters: Sequence[str]) -> list[tuple[str, float]]:
    """Decode the output of a recognizer greedily (CTC, best path).

    Args:
        probabilities: Lines x steps x characters float32.
        characters: The characters by number, the blank being number 0.

    Returns:
        For each line its text and its score: the mean probability of its characters, from 0 to 1,
            and 0 if there are none.

    Raises:
        ValueError: The recognizer has another number of characters than `characters`.
    """
    classes = probabilities.shape[2]
    if classes != len(characters):
        raise ValueError(
            f"the recognizer tells {classes} characters apart, but the dictionary "
            f"has {len(characters)} (blank and space included): take the one it was trained with"
        )
    best, scores = probabilities.argmax(axis=2), probabilities.max(axis=2)
    repeats = np.zeros(best.shape, bool)
    repeats[:, 1:] = best[:, 1:] == best[:, :-1]
    is_symbol = (best != 0) & ~repeats
    read: list[tuple[str, float]] = []
    for line, score, keep in zip(best, scores, is_symbol, strict=True):
        numbers: list[int] = line[keep].tolist()
        text = "".join(characters[i] for i in numbers)
        read.append((text, float(score[keep].mean()) if text else 0.0))
    return read


def _batches(indices: Sequence[int]) -> Iterator[Sequence[int]]:
    return (indices[start : start + BATCH] for start in range(0, len(indices), BATCH))


def _scaled_width(line: Picture) -> int:
    height, width = line.shape[:2]
    return int(np.ceil(HEIGHT * width / height))


def _input_width(scaled_width: int) -> int:
    return next((w for w in RECOGNIZER_WIDTHS if w >= scaled_width), RECOGNIZER_WIDTHS[-1])
