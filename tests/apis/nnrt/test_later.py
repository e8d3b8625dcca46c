"""Runs that are answered later: timeouts, and devices that fail."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.apis.nnrt.programs import Code, done, tensor, wrong
from tests.modelling import chain
from tests.runtime.test_requests import LONG, Gated

import crosschip
from crosschip.apis import nnrt
from crosschip.apis.nnrt import NN_Tensor, OH_NNExecutor
from crosschip.apis.nnrt.compilation import Shared
from crosschip.ops.standard.unary import Exp
from crosschip.runtime.requests import Priority

Told = queue.SimpleQueue[tuple[Any, ...]]


@pytest.fixture
def gated() -> Gated:
    return Gated()


@pytest.fixture
def told() -> Told:
    """What functions of the program have been called with."""
    return queue.SimpleQueue()


@pytest.fixture
def runner(gated: Gated, told: Told) -> Iterator[OH_NNExecutor]:
    """An executor, on a device whose runs begin when its gate is open, one at a time."""
    compiled = crosschip.compile(
        chain(Exp),
        [gated],
        configuration=crosschip.Configuration(in_flight=1, queue_size=4),
        cache=False,
    )
    made = OH_NNExecutor(Shared(compiled, Priority.NONE))
    done(nnrt.OH_NNExecutor_SetOnRunDone(made, lambda *given: told.put(("done", *given))))
    done(nnrt.OH_NNExecutor_SetOnServiceDied(made, lambda data: told.put(("died", data))))
    yield made
    gated.gate.set()
    nnrt.OH_NNExecutor_Destroy(made)


def numbers(value: float) -> NN_Tensor:
    return tensor(np.full(2, value, np.float32))


def test_a_run_that_waits_too_long_has_failed(
    runner: OH_NNExecutor, gated: Gated, told: Told
) -> None:
    first, second = numbers(9), numbers(9)
    done(nnrt.OH_NNExecutor_RunAsync(runner, [numbers(0)], [first], int(LONG * 1000), "first"))
    assert gated.entered.acquire(timeout=LONG)
    done(nnrt.OH_NNExecutor_RunAsync(runner, [numbers(1)], [second], 1, "second"))
    assert told.get(timeout=LONG) == ("done", "second", Code.OH_NN_TIMEOUT, [second], 1)
    gated.gate.set()
    assert told.get(timeout=LONG) == ("done", "first", Code.OH_NN_SUCCESS, [first], 1)
    assert first.array.tolist() == [1, 1]
    assert second.array.tolist() == [9, 9]
    assert gated.seen == [0]


@pytest.mark.parametrize("timeout", [0, -1, "soon"])
def test_a_timeout_is_positive(runner: OH_NNExecutor, timeout: Any) -> None:
    x = [numbers(0)]
    wrong(
        nnrt.OH_NNExecutor_RunAsync(runner, x, x, timeout, "it"),
        *(Code.OH_NN_INVALID_PARAMETER, "must be positive"),
    )


def test_a_device_that_fails_is_told_before_the_end(
    runner: OH_NNExecutor, gated: Gated, told: Told
) -> None:
    gated.gate.set()
    made = numbers(9)
    done(nnrt.OH_NNExecutor_RunAsync(runner, [numbers(-1)], [made], int(LONG * 1000), "it"))
    assert told.get(timeout=LONG) == ("died", "it")
    assert told.get(timeout=LONG) == ("done", "it", Code.OH_NN_UNAVAILABLE_DEVICE, [made], 1)
    wrong(nnrt.OH_NNExecutor_RunSync(runner, [numbers(-1)], [made]), Code.OH_NN_UNAVAILABLE_DEVICE)
    assert made.array.tolist() == [9, 9]


def test_a_place_that_is_too_small_is_told_at_the_end(
    runner: OH_NNExecutor, gated: Gated, told: Told
) -> None:
    gated.gate.set()
    small = tensor(np.zeros(1, np.float32))
    done(nnrt.OH_NNExecutor_RunAsync(runner, [numbers(0)], [small], int(LONG * 1000), "it"))
    assert told.get(timeout=LONG) == ("done", "it", Code.OH_NN_FAILED, [small], 1)
