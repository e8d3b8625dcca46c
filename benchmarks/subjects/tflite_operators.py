"""Random TensorFlow Lite files with one operator, on each device beside LiteRT.

Each file has an operator with random types, shapes, options and values. LiteRT's kernels compute
what is right; quantized results of engines may differ by one step. In a third of the files the
size of the first axis is unknown: compiled once, they run with two sizes if LiteRT resizes them.
The device `all` is a list of all engines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Annotated

from tests.importers.tflite.all_cases import NAMES
from tests.importers.tflite.comparison import Verdict, compare, litert_calls
from tests.importers.tflite.single_operator import CASES, Draw, LiteRT

from benchmarks.engines import available
from benchmarks.subject import Column, Row

DOCUMENT = "coverage"
FILES, QUICK_FILES = 20_000, 500
REQUIREMENT = "no file is wrong"

_ENGINES = ("xla", "openvino", "onnxruntime")


@dataclass(frozen=True)
class Files(Row):
    """The files of one operator that LiteRT runs; a device refuses those that are not counted."""

    operator: Annotated[str, Column("operator")]
    files: Annotated[int, Column("files")]
    right: Annotated[Mapping[str, int], Column("right on {}")]
    wrong: Annotated[int, Column("wrong")]
    example: Annotated[str, Column("a wrong file")]

    @property
    def met(self) -> bool:
        return not self.wrong


def measure(*, quick: bool) -> Iterator[Files]:
    """All operators on all devices, in two processes."""
    count = -(-(QUICK_FILES if quick else FILES) // len(NAMES))
    devices = available()
    lists = {device: [device] for device in devices}
    lists["all"] = [device for device in _ENGINES if device in devices]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield from pool.map(partial(_measure, count, lists), NAMES)


def _measure(count: int, lists: Mapping[str, Sequence[str]], name: str) -> Files:
    """Compare some files of one operator on each list of devices."""
    files, right, wrong, example = 0, dict.fromkeys(lists, 0), 0, ""
    with closing(LiteRT()) as litert:
        for seed in range(count):
            case = CASES[name](Draw(seed), name)
            calls = litert_calls(litert, case, sizes=2 if seed % 3 == 2 else 1)
            files += bool(calls)
            for device, devices in lists.items() if calls else ():
                comparison = compare(case, calls, devices)
                right[device] += comparison.verdict is Verdict.RIGHT
                if comparison.verdict is Verdict.WRONG:
                    wrong += 1
                    example = example or f"seed {seed} on {device}: {comparison.reason}"
    return Files(name, files, right, wrong, example)
