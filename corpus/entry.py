"""A model of the corpus: what it is, where it comes from, and inputs that it understands."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("CROSSCHIP_CORPUS", ROOT / "build" / "corpus"))
"""Where the models are kept, and what was found out about them."""


@dataclass(frozen=True, slots=True)
class Input:
    """A rule for the elements of one input.

    Where nothing below says how they are made, they are random: integers from `low` to below
    `high`, real numbers of normal distribution or, if bounds are given, evenly between them.
    Strings must be given.

    Attributes:
        shape: instead of the declared one.
        low: the least element.
        high: the upper bound; integers stay below.
        value: that every element has.
        values: the elements themselves, nested as the input is.
        counting: counts from 0 along the last axis, as positions do.
        letters: a page of made-up letters, -1 on 1. Of noise, a network that looks for something
            makes numbers so near 0 that their digits say nothing.
        squares: a picture of so many rows of so many squares, their colors on the last axis, -1 to
            1; for networks that noise says nothing to, either.
    """

    shape: tuple[int, ...] | None = None
    low: float | None = None
    high: float | None = None
    value: float | str | None = None
    values: Sequence[Any] | None = None
    counting: bool = False
    letters: bool = False
    squares: int | None = None

    def draw(self, shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> np.ndarray:
        """The elements.

        Args:
            shape: as declared, with sizes for open axes.
            dtype: as declared.
            seed: of the random ones.
        """
        if self.values is not None:
            return np.array(self.values, dtype)
        shape = shape if self.shape is None else self.shape
        if self.value is not None:
            return np.full(shape, self.value, dtype)
        if self.counting:
            return np.broadcast_to(np.arange(shape[-1]), shape).astype(dtype)
        random = np.random.default_rng(seed)
        if self.letters:
            return np.broadcast_to(_page(shape[-2], shape[-1], random), shape).astype(dtype)
        if self.squares is not None:
            return _squares(shape, self.squares, random).astype(dtype)
        return self._random(shape, dtype, random)

    def _random(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator
    ) -> np.ndarray:
        low = 0 if self.low is None else self.low
        if dtype.kind in "iub":
            high = 2 if self.high is None else self.high
            return random.integers(int(low), int(high), shape).astype(dtype)
        if dtype.kind not in "fV":  # NumPy knows bfloat16 and the like as void
            raise ValueError(f"elements of type {dtype} cannot be drawn; give `value` or `values`")
        if self.low is None and self.high is None:
            return random.standard_normal(shape).astype(dtype)
        return random.uniform(low, 1 if self.high is None else self.high, shape).astype(dtype)


def _page(height: int, width: int, random: np.random.Generator) -> np.ndarray:
    """Lines of words of letters, each of 4 by 7 dots of two pixels."""
    page = np.ones((height, width), np.float32)
    for top in range(12, height - 14, 36):
        for word in range(12, width - 66, 80):
            for left in range(word, word + 11 * int(random.integers(3, 7)), 11):
                dots = random.random((7, 4)) < 0.55
                page[top : top + 14, left : left + 8][dots.repeat(2, 0).repeat(2, 1)] = -1
    return page


def _squares(shape: tuple[int, ...], count: int, random: np.random.Generator) -> np.ndarray:
    """A picture of rows of squares, each of one color."""
    batch, height, width, channels = shape
    colors = random.uniform(-1, 1, (batch, count, count, channels))
    rows, columns = np.arange(height) * count // height, np.arange(width) * count // width
    return np.asarray(colors[:, rows][:, :, columns])


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the corpus.

    Attributes:
        name: what it is called, unique.
        family: the architecture, or the kind of network.
        origin: in a line, how a user comes by it.
        path: of the file, below the corpus' folder.
        transformer: it has attention.
        quantized: it has weights of fewer bits, whose scales are in the file.
        axes: sizes of open axes by name; 1 for those without.
        inputs: rules for inputs by name; those without are random, integers 0 or 1.
        unstable: why two right engines may disagree by more than rounding; empty if they may not.
    """

    name: str
    family: str
    origin: str
    path: Path
    transformer: bool = False
    quantized: bool = False
    axes: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, Input] = field(default_factory=dict)
    unstable: str = ""

    @property
    def file(self) -> Path:
        """Where the file is, once fetched or made."""
        return FOLDER / self.path

    @property
    def group(self) -> str:
        """Quantized models and transformers are shown apart."""
        if self.quantized:
            return "quantized"
        return "transformers" if self.transformer else "float"

    def shape(self, declared: Sequence[int | str]) -> tuple[int, ...]:
        """A declared shape with sizes for its open axes, which have names or none ("")."""
        return tuple(self.axes.get(size, 1) if isinstance(size, str) else size for size in declared)

    def draw(self, name: str, declared: Sequence[int | str], dtype: np.dtype[Any]) -> np.ndarray:
        """The array for one input, always the same."""
        rule = self.inputs.get(name, Input())
        return rule.draw(self.shape(declared), dtype, zlib.crc32(f"{self.name}/{name}".encode()))
