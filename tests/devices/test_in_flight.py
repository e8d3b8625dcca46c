"""Programs for concurrent runs: how engines divide the processor's cores."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.modelling import chain, float32, model_of

import crosschip
from crosschip.hal import Options, options
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.unary import Exp
from crosschip.runtime.discovery import open_device

RUNS = 40


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Options(), None),
        (Options(threads=3), 3),
        (Options(in_flight=2), 4),
        (Options(in_flight=3), 2),
        (Options(in_flight=100), 1),
        (Options(threads=3, in_flight=2), 3),
    ],
)
def test_each_run_has_its_share(
    monkeypatch: pytest.MonkeyPatch, given: Options, expected: int | None
) -> None:
    monkeypatch.setattr(options, "processor_cores", lambda: 8)
    assert given.threads_each == expected


@pytest.mark.parametrize(
    ("given", "sessions"),
    [
        (Options(), 1),
        (Options(in_flight=2, threads=1), 1),
        (Options(in_flight=2, threads=2), 2),
        (Options(in_flight=3, threads=2), 3),
    ],
)
def test_onnxruntime_has_a_session_for_each_run_with_helpers(given: Options, sessions: int) -> None:
    with open_device("onnxruntime") as device:
        program: Any = device.device.compile(chain(Exp), given)
        assert len(program._idle or [program._session]) == sessions


def test_openvino_has_a_stream_for_each_run() -> None:
    with open_device("openvino") as device:
        engine: Any = device.device
        for in_flight in (1, 2):
            compiled = engine.compile(chain(Exp), Options(in_flight=in_flight))._compiled_model
            cores = options.processor_cores()
            assert compiled.get_property("NUM_STREAMS") == min(in_flight, cores)
            assert compiled.get_property("INFERENCE_NUM_THREADS") <= cores


@pytest.mark.parametrize("threads", [None, 1, 2])
@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_more_runs_at_once_than_foreseen_are_right(device: str, threads: int | None) -> None:
    """Each run returns the result for its input, called or submitted."""
    weights = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    model = model_of(lambda b, x: b.add(MatMul, x, b.constant(weights)), float32(8, 64))
    together = threading.Barrier(4)
    with crosschip.compile(
        model,
        [device],
        threads=threads,
        configuration=crosschip.Configuration(in_flight=2),
        cache=False,
    ) as compiled:

        def call(caller: int) -> None:
            together.wait(30)
            for number in range(RUNS):
                x = np.full((8, 64), caller * RUNS + number, np.float32)
                (found,) = compiled.run({"x0": x}).values()
                np.testing.assert_allclose(found, x @ weights, rtol=1e-4, atol=1e-2)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(call, range(4)))
        requests = {
            n: compiled.submit({"x0": np.full((8, 64), n, np.float32)}) for n in range(RUNS)
        }
        for number, request in requests.items():
            (found,) = request.result(30).values()
            expected = np.full((8, 64), number, np.float32) @ weights
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-2)
