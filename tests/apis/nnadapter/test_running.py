"""Running what was compiled through NNAdapter: buffers, sizes, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.apis.nnadapter.programs import (
    INT32,
    Code,
    Op,
    Precision,
    Type,
    add,
    compilation,
    constant,
    context,
    done,
    finish,
    given,
    new,
    operand,
    relu,
    run,
    run_once,
    types_of,
    wrong,
)

from crosschip.apis.nnadapter import (
    NNAdapterCompilation_create,
    NNAdapterCompilation_finish,
    NNAdapterContext_destroy,
    NNAdapterExecution_compute,
    NNAdapterExecution_create,
    NNAdapterExecution_setInput,
    NNAdapterExecution_setOutput,
    NNAdapterModel_destroy,
)
from crosschip.ir import Array


def access(value: Any) -> Callable[..., Any]:
    """An access function that returns something."""
    return lambda memory, type_, device_buffer: value


def broken(memory: Any, type_: Any, device_buffer: Any) -> Any:
    raise OSError("the camera is gone")


@pytest.mark.parametrize(
    ("of_input", "of_output", "code", "text"),
    [
        (access(bytes(20)), access(bytearray(24)), Code.NNADAPTER_INVALID_PARAMETER, "has 20"),
        (access(None), access(bytearray(24)), Code.NNADAPTER_INVALID_PARAMETER, "no contiguous"),
        (access(bytes(24)), access(bytearray(23)), Code.NNADAPTER_INVALID_PARAMETER, "has 23"),
        (access(bytes(24)), access(bytes(24)), Code.NNADAPTER_INVALID_PARAMETER, "read-only"),
        (broken, access(bytearray(24)), Code.NNADAPTER_DEVICE_INTERNAL_ERROR, "the camera is gone"),
    ],
)
def test_buffers_that_do_not_fit(of_input: Any, of_output: Any, code: Code, text: str) -> None:
    execution = given(NNAdapterExecution_create(compilation(relu(2, 3), "builtin_device")))
    done(NNAdapterExecution_setInput(execution, 0, None, of_input))
    done(NNAdapterExecution_setOutput(execution, 0, None, of_output))
    wrong(NNAdapterExecution_compute(execution), code, text)


def test_buffers_may_be_longer_than_needed() -> None:
    execution = given(NNAdapterExecution_create(compilation(relu(2), "builtin_device")))
    place = bytearray(b"\xff" * 12)
    source = np.array([-1, 7, 9], np.float32)
    done(NNAdapterExecution_setInput(execution, 0, None, access(source)))
    done(NNAdapterExecution_setOutput(execution, 0, None, access(place)))
    done(NNAdapterExecution_compute(execution))
    np.testing.assert_array_equal(np.frombuffer(place, np.float32)[:2], [0, 7])
    assert place[8:] == b"\xff" * 4


def test_outputs_are_asked_for_when_their_size_is_known() -> None:
    model = new()
    x, n, y = (operand(model, Type(INT32, (1,))) for _ in range(3))
    made = operand(model, Type(INT32))
    add(model, Op.NNADAPTER_RANGE, [x, n, constant(model, 1)], made)
    del y
    compiled = compilation(finish(model, [x, n], made), "builtin_device")
    (_, _), (type_,) = types_of(compiled)
    assert type_.dimensions.data == [-65535]
    for count in (3, 0, 7):
        (found,) = run(compiled, [np.array([0], np.int32), np.array([count], np.int32)])
        np.testing.assert_array_equal(found, np.arange(count, dtype=np.int32))


def test_booleans_are_bytes() -> None:
    model = new()
    bool8 = Precision.NNADAPTER_BOOL8
    x, y = operand(model, Type(bool8, (4,))), operand(model, Type(bool8))
    add(model, Op.NNADAPTER_XOR, [x, constant(model, np.array([True, False, True, False]))], y)
    (found,) = run_once(finish(model, [x], y), [np.array([0, 1, 7, 0], np.uint8).view(np.bool_)])
    np.testing.assert_array_equal(found.view(np.uint8), [1, 1, 0, 0])


def test_executions_of_one_compilation_run_at_once() -> None:
    compiled = compilation(relu(-65535), "builtin_device")
    found: dict[int, Array] = {}

    def work(number: int) -> None:
        for _ in range(20):
            (found[number],) = run(compiled, [np.full(number, number, np.float32)])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(1, 5):
        np.testing.assert_array_equal(found[number], np.full(number, number, np.float32))


def test_what_was_compiled_outlives_its_model_and_context() -> None:
    model, devices = relu(2), context("builtin_device")
    made = given(NNAdapterCompilation_create(model, None, None, None, devices))
    done(NNAdapterCompilation_finish(made))
    NNAdapterModel_destroy(model)
    NNAdapterContext_destroy(devices)
    (found,) = run(made, [np.array([-1, 1], np.float32)])
    np.testing.assert_array_equal(found, [0, 1])
