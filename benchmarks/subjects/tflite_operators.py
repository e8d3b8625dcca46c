"""Random TensorFlow Lite files with one operator, on each device beside LiteRT.

Each file has an operator with random types, shapes, options and values. LiteRT's kernels compute
what is right; quantized results of engines may differ by one step. In a third of the files the
size of the first axis is unknown: compiled once, they run with two sizes if LiteRT resizes them.
The device `all` is a list of all engines. A file that ends the process of an engine is wrong.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Annotated

from tests.importers.tflite.all_cases import NAMES
from tests.importers.tflite.comparison import (
    Call,
    Comparison,
    Verdict,
    compare_lists,
    litert_calls_of_all,
)
from tests.importers.tflite.single_operator import CASES, Draw, LiteRT, Worker

from benchmarks.engines import available
from benchmarks.subject import Column, Row

DOCUMENT = "coverage"
FILES, QUICK_FILES = 20_000, 500
REQUIREMENT = "no file is wrong"

_ENGINES = ("xla", "openvino", "onnxruntime")
_RUNNERS = 2

DeviceLists = Mapping[str, Sequence[str]]
"""Lists of devices by their names, which are columns of the report."""


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


class Runner:
    """Two processes: LiteRT's, and one for all devices, which a file may end without harm."""

    def __init__(self) -> None:
        self._litert, self._worker = LiteRT(), Worker()

    def run(
        self, name: str, seeds: Sequence[int], lists: DeviceLists
    ) -> dict[int, dict[str, Comparison]]:
        """Compare files on each list of devices, by seed; leave out those that LiteRT refuses."""
        calls_of = self.litert_calls(name, seeds)
        return self.compare(name, {seed: calls for seed, calls in calls_of.items() if calls}, lists)

    def litert_calls(self, name: str, seeds: Sequence[int]) -> dict[int, list[Call]]:
        """Return LiteRT's calls of files by seed."""
        files = [(CASES[name](Draw(seed), name), 2 if seed % 3 == 2 else 1) for seed in seeds]
        return dict(zip(seeds, litert_calls_of_all(self._litert, files), strict=True))

    def compare(
        self, name: str, calls_of: Mapping[int, Sequence[Call]], lists: DeviceLists
    ) -> dict[int, dict[str, Comparison]]:
        """Compare files with LiteRT's calls; repeat one that ends the process, list by list."""
        arguments = [(name, seed, calls, lists) for seed, calls in calls_of.items()]
        results = dict(zip(calls_of, self._worker.map(_compare, arguments), strict=True))
        for seed, result in results.items():
            if isinstance(result, ChildProcessError):
                results[seed] = self._compare_alone(name, seed, calls_of[seed], lists, result)
        return results

    def _compare_alone(
        self,
        name: str,
        seed: int,
        calls: Sequence[Call],
        lists: DeviceLists,
        error: ChildProcessError,
    ) -> dict[str, Comparison]:
        """Return the verdict of each list of devices on a file that ends their process."""
        if len(lists) == 1:
            return dict.fromkeys(lists, Comparison(Verdict.WRONG, str(error)))
        alone = [self.compare(name, {seed: calls}, {key: lists[key]})[seed] for key in lists]
        return dict(ChainMap(*alone))

    def close(self) -> None:
        self._litert.close()
        self._worker.close()


def device_lists() -> DeviceLists:
    """Return the devices that can be used, each alone, and all engines together."""
    devices = available()
    alone = {device: [device] for device in devices}
    return alone | {"all": [device for device in _ENGINES if device in devices]}


def measure(*, quick: bool) -> Iterator[Files]:
    """Yield all operators on all devices, two at a time."""
    seeds = range(-(-(QUICK_FILES if quick else FILES) // len(NAMES)))
    lists, idle = device_lists(), SimpleQueue[Runner]()

    def measure_operator(name: str) -> Files:
        runner = idle.get()
        try:
            return _row(name, lists, runner.run(name, seeds, lists))
        finally:
            idle.put(runner)

    with ExitStack() as stack:
        for _ in range(_RUNNERS):
            idle.put(stack.enter_context(closing(Runner())))
        yield from stack.enter_context(ThreadPoolExecutor(_RUNNERS)).map(measure_operator, NAMES)


def _row(name: str, lists: DeviceLists, results: Mapping[int, Mapping[str, Comparison]]) -> Files:
    """Count the verdicts on the files of an operator, by seed and list."""
    right = {
        key: sum(each[key].verdict is Verdict.RIGHT for each in results.values()) for key in lists
    }
    wrong = [
        f"seed {seed} on {key}: {comparison.reason}"
        for seed, each in results.items()
        for key, comparison in each.items()
        if comparison.verdict is Verdict.WRONG
    ]
    return Files(name, len(results), right, len(wrong), next(iter(wrong), ""))


def _compare(
    name: str, seed: int, calls: Sequence[Call], lists: DeviceLists
) -> dict[str, Comparison]:
    """Compare a file in the process of the devices, where it is drawn again."""
    return compare_lists(CASES[name](Draw(seed), name), calls, lists)
