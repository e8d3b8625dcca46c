"""The smallest model that has all there is: an input, a parameter, an operator and an output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.writers import Paddle2Writer, Paddle3Writer

from crosschip.importers import load
from crosschip.ir import Error

VALUE = np.eye(3, dtype=np.float32)


def refused(path: Path) -> str:
    """The message with which a file is refused; it begins with the file's name."""
    with pytest.raises(Error) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path.parent))
    return message


def small() -> Paddle2Writer:
    """A model that multiplies images [N, 3] by a parameter `w`."""
    writer = Paddle2Writer()
    writer.input("x", "float32", [-1, 3])
    writer.parameter("w", VALUE)
    writer.variable("y", "float32", [-1, 3])
    writer.operator("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "y"})
    writer.output("y")
    return writer


def small_3() -> Paddle3Writer:
    """The same in the other format."""
    writer = Paddle3Writer()
    w = writer.parameter("w", VALUE)
    x = writer.input("x", "float32", [-1, 3])
    writer.output(writer.operator("1.matmul", [x, w]))
    return writer
