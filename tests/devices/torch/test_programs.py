"""Programs of the device: saving, buffers, threads, the state of the process, whole graphs."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from tests.devices.conftest import Checker
from tests.devices.torch.conftest import CHIP

import crosschip
from crosschip.devices.torch import TorchDevice
from crosschip.devices.torch.host_state import State
from crosschip.devices.torch.memory import TorchBuffer
from crosschip.hal import HostBuffer, Options
from crosschip.ir import Array, Builder, DeviceError, ElementType, Model, TensorType, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.searching import NonZero

WEIGHTS = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)


def product(check: Checker, rows: int = 4) -> tuple[Model, Array]:
    """Multiply rows by a matrix."""
    array = np.random.default_rng(1).normal(size=(rows, 64)).astype(np.float32)
    return check.built(lambda b, x: b.add(MatMul, x, WEIGHTS), [array]), array


def test_a_saved_program_is_restored(check: Checker) -> None:
    model, array = product(check)
    saved = check.device.compile(model, Options()).save()
    assert saved is not None
    (restored,) = check.device.load(saved, model, Options()).run([array])
    np.testing.assert_allclose(restored, array @ WEIGHTS, rtol=1e-4, atol=1e-4)
    for wrong in (b"", b"x", b"[]", b"{}", b"\x80\x04."):
        with pytest.raises(DeviceError, match="torch"):
            check.device.load(wrong, model, Options())


def test_outputs_are_the_callers(check: Checker) -> None:
    """Also those that are views of an input or a constant."""
    x = np.arange(6, dtype=np.float32)

    def build(b: Builder, x: Any) -> Any:
        table = b.constant(np.ones((2, 3), np.float32))
        return b.add(Reshape, x, (2, 3)), b.add(Reshape, table, (6,)), b.add(Relu, x)

    program = check.device.compile(check.built(build, [x]), Options())
    for _ in range(2):
        outputs = program.run([x])
        np.testing.assert_array_equal(outputs[0], x.reshape(2, 3))
        np.testing.assert_array_equal(outputs[1], np.ones(6))
        for output in outputs:
            output[:] = -1
    np.testing.assert_array_equal(x, np.arange(6))


def test_a_read_only_input(check: Checker, recwarn: pytest.WarningsRecorder) -> None:
    model, array = product(check)
    array.flags.writeable = False
    (result,) = check.device.compile(model, Options()).run([array])
    np.testing.assert_allclose(result, array @ WEIGHTS, rtol=1e-4, atol=1e-4)
    assert not recwarn.list


def test_buffers_stay_on_the_chip(check: Checker) -> None:
    model, array = product(check)
    program = check.device.compile(model, Options())
    given = check.device.allocate(ElementType.FLOAT32, (4, 64))
    target = check.device.allocate(ElementType.FLOAT32, (4, 64))
    assert not target.array().any()
    given.write(array)
    submission = program.submit([given], [target], [])
    assert submission.outputs[0] is target
    again = program.submit([target], [], [submission.event])
    assert again.event.wait(60)
    first = array @ WEIGHTS
    np.testing.assert_allclose(target.array(), first, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(again.outputs[0].array(), first @ WEIGHTS, rtol=1e-3, atol=1e-2)
    assert isinstance(target, TorchBuffer)
    shared = torch.from_dlpack(target)
    assert shared.data_ptr() == target.tensor.data_ptr()
    with pytest.raises(DeviceError, match=r"float32\[2\] is not what"):
        target.write(np.ones(2, np.float32))
    host = program.submit([HostBuffer(array)], [HostBuffer(np.empty_like(array))], [])
    np.testing.assert_allclose(host.outputs[0].array(), first, rtol=1e-4, atol=1e-3)


def test_several_threads_call_one_program(check: Checker) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 64)))
    b.output("y", b.add(Tanh, b.add(MatMul, x, WEIGHTS)))
    program = check.device.compile(b.build(), Options(threads=1))

    def call(rows: int) -> None:
        array = np.random.default_rng(rows).normal(size=(rows, 64)).astype(np.float32)
        (result,) = program.run([array])
        np.testing.assert_allclose(result, np.tanh(array @ WEIGHTS), rtol=1e-3, atol=1e-4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, [1, 5, 3, 7] * 8))


def test_a_session_keeps_its_state(device: TorchDevice) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (3,)))
    state = b.input("state", TensorType(ElementType.FLOAT32, (3,)))
    b.output("total", b.add(Add, x, state))
    with crosschip.compile(b.build(), [device], cache=False) as compiled:
        session = compiled.session({"total": "state"})
        for step in range(1, 4):
            session.run({"x": np.ones(3, np.float32)})
            np.testing.assert_array_equal(session.state()["state"], np.full(3, step))


def test_the_state_of_the_process_is_left_alone(check: Checker) -> None:
    """And what the process has set does not change what is computed."""
    model, array = product(check)
    program = check.device.compile(model, Options(threads=1))
    before = torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()
    (expected,) = program.run([array])
    torch.set_float32_matmul_precision("medium")
    convolutions = torch.backends.mkldnn.conv
    try:
        convolutions.fp32_precision = "bf16"
        with torch.autocast("cpu", torch.bfloat16):
            (result,) = program.run([array])
            assert torch.is_autocast_enabled("cpu")
        assert torch.get_float32_matmul_precision() == "medium"
        assert convolutions.fp32_precision == "bf16"
    finally:
        convolutions.fp32_precision = "none"
        torch.set_float32_matmul_precision("highest")
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    assert not torch.is_inference_mode_enabled()
    assert before == (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype())


@pytest.mark.slow
def test_one_graph(check: Checker) -> None:
    """A model of static sizes is compiled; it computes the same, and is restored as such."""
    model, array = product(check)
    with TorchDevice({"compile": "on"}, CHIP) as device:
        program = device.compile(model, Options())
        (result,) = program.run([array])
        np.testing.assert_allclose(result, array @ WEIGHTS, rtol=1e-4, atol=1e-4)
        assert program.save() == b'{"compile": "on"}'


def test_calls_where_a_graph_is_impossible(
    check: Checker, caplog: pytest.LogCaptureFixture
) -> None:
    """A line of the log says why."""
    array = np.array([0, 1, 2], np.float32)
    caplog.set_level(logging.INFO, "crosschip")
    with TorchDevice({"compile": "on"}, CHIP) as device:
        for typing, why in ((check.static, "compiled as one graph"), (check.symbolic, "static")):
            model = check.built(lambda b, x: b.add(NonZero, x), [array], typing)
            program = device.compile(model, Options())
            np.testing.assert_array_equal(program.run([array])[0], [[1, 2]])
            assert program.save() == b'{"compile": "off"}'
            assert why in caplog.messages[-1]


def test_a_gpu_computes_float32_in_float32() -> None:
    """The settings of a run on CUDA, which PyTorch has without a GPU, too."""
    settings = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = [each.fp32_precision for each in settings]
    sums = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction

    def read() -> tuple[str, str, bool]:
        convolution, product = (each.fp32_precision for each in settings)
        narrow = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
        return convolution, product, narrow

    convolution, product, narrow = State(torch.device("cuda"), None).call(read)
    assert {convolution, product} <= {"ieee", "none"}
    assert not narrow
    assert [each.fp32_precision for each in settings] == before
    assert torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction == sums
