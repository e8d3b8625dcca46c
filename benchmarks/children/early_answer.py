"""The first answer with `wait=False`, and calls from several threads across the move."""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import crosschip
from crosschip.ir import Array

THREADS = 8
_TOLERANCE = 1e-3
_WINDOW_SECONDS = 0.25
_DELAYS, _DELAY_SECONDS = 10.0, 0.01
_RESTS = 2.0
"""The rest of a thread after a call, in runs of all threads: a third of the machine is used."""


def first_answer(path: str, devices: str, folder: str, shapes: str) -> None:
    """Print a line once the answer is there.

    Args:
        path: of the model.
        devices: the device alone; without a name, `"auto"` that does not wait.
        folder: the cache.
        shapes: of the inputs by name, as JSON.
    """
    inputs = {name: np.ones(shape, np.float32) for name, shape in json.loads(shapes).items()}
    if devices:
        crosschip.compile(path, [devices], cache=folder).run(inputs)
    else:
        crosschip.compile(path, cache=folder, wait=False).run(inputs)
    print("answered", flush=True)


def calls_across_the_move(path: str, count: int, shapes: str) -> dict[str, Any]:
    """Call a model that certainly moves from eight threads; return what happened.

    The device that is ready first is ONNX Runtime, delayed so that the model certainly moves.

    Args:
        path: of the model.
        count: of calls, half of them or more after the move.
        shapes: of the inputs by name, as JSON.
    """
    from crosschip.devices.onnxruntime import OnnxRuntimeDevice

    class Delayed(OnnxRuntimeDevice):
        """ONNX Runtime that sleeps before each run."""

        startup_seconds = 0.0

        def compile(self, model: Any, options: Any) -> Any:
            program = super().compile(model, options)
            run = program.run

            def later(arrays: Sequence[Array]) -> Sequence[Array]:
                time.sleep(_DELAYS * run_seconds + _DELAY_SECONDS)
                return run(arrays)

            program.run = later  # type: ignore[assignment, method-assign]
            return program

    random = np.random.default_rng(0)
    inputs = {
        name: random.normal(size=shape).astype(np.float32)
        for name, shape in json.loads(shapes).items()
    }
    with crosschip.compile(path, ["onnxruntime"], cache=False) as alone:
        expected = alone.run(inputs)
        run_seconds = statistics.median(_seconds(alone.run, inputs) for _ in range(20))
    rest_seconds = _RESTS * THREADS * run_seconds
    first = Delayed()
    first.name = "delayed"
    calls: list[list[tuple[float, float]]] = [[] for _ in range(THREADS)]
    wrong: list[int] = [0] * THREADS
    lost: list[str] = []
    with crosschip.compile(path, [first, "openvino"], cache=False, wait=False) as compiled:

        def is_settled() -> bool:
            return compiled.wait_for_trials(0) and not compiled.report.moves

        def work(index: int) -> None:
            mine, after = calls[index], 0
            while len(mine) < count // THREADS or (
                after < count // THREADS // 2 and not is_settled()
            ):
                begin = time.perf_counter()
                try:
                    result = compiled.run(inputs)
                except BaseException as error:
                    lost.append(str(error))
                    continue
                mine.append((begin, time.perf_counter()))
                time.sleep(rest_seconds)
                wrong[index] += not _is_close(result, expected)
                after += bool(compiled.report.moves)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(THREADS)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        moved = None
        while any(thread.is_alive() for thread in threads):
            if moved is None and compiled.report.moves:
                moved = time.perf_counter()
            time.sleep(0.0005)
        moves = [str(move) for move in compiled.report.moves]
    moved = moved or start
    all_calls = [call for mine in calls for call in mine]
    old = [call for call in all_calls if call[0] < moved]
    new = [call for call in all_calls if call[0] >= moved]
    steady = [call for call in new if call[0] > moved + _WINDOW_SECONDS]
    usual_old, usual_new = _usual(old), _usual(steady or new)
    near_old = [call for call in old if call[1] > moved - _WINDOW_SECONDS]
    near_new = [call for call in new if call[0] < moved + _WINDOW_SECONDS]
    return {
        "calls": len(all_calls),
        "wrong": sum(wrong),
        "lost": len(lost),
        "moves": moves,
        "choice": str(compiled.report.choice),
        "usual": [usual_old, usual_new],
        "pause": max(_longest(near_old) - usual_old, _longest(near_new) - usual_new),
        "before": _longest(old) - usual_old,
        "after": _longest(steady) - usual_new,
    }


def _usual(calls: Sequence[tuple[float, float]]) -> float:
    """The 99th percentile of the durations of calls, since eight threads share the cores."""
    return float(np.quantile([end - begin for begin, end in calls], 0.99))


def _longest(calls: Sequence[tuple[float, float]]) -> float:
    return max((end - begin for begin, end in calls), default=0.0)


def _seconds(run: Any, inputs: Any) -> float:
    start = time.perf_counter()
    run(inputs)
    return time.perf_counter() - start


def _is_close(result: Any, expected: Any) -> bool:
    return all(
        np.abs(result[name] - array).max() <= _TOLERANCE * max(1.0, float(np.abs(array).max()))
        for name, array in expected.items()
    )


if __name__ == "__main__":
    if sys.argv[1] == "first":
        first_answer(*sys.argv[2:])
    else:
        path, count, shapes = sys.argv[2:]
        print(json.dumps(calls_across_the_move(path, int(count), shapes)))
