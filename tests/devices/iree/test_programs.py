"""Compiled programs: memory of outputs, threads, rules, sizes that depend on data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from crosschip.hal import Device, Options, Program
from crosschip.ir import Array, Builder, DeviceError, ElementType, Model, Operand, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add, Pow
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.searching import NonZero

X = np.arange(-12, 12, dtype=np.float32).reshape(4, 6)
LARGE = np.arange(-20000, 20000, dtype=np.float32).reshape(400, 100)
"""An array of more bytes than are copied."""


def model_of(build: Callable[..., Sequence[Operand]], *inputs: Array) -> Model:
    """Return a model of static shapes."""
    b = Builder()
    operands = [
        b.input(f"x{index}", TensorType(ElementType.of(array.dtype), array.shape))
        for index, array in enumerate(inputs)
    ]
    for index, output in enumerate(build(b, *operands)):
        b.output(f"y{index}", output)
    return b.build()


def program_of(device: Device, build: Callable[..., Sequence[Operand]], *inputs: Array) -> Program:
    return device.compile(model_of(build, *inputs), Options())


@pytest.fixture(scope="module")
def relu(device: Device) -> Program:
    return program_of(device, lambda b, x: [b.add(Relu, x)], LARGE)


def aligned(array: Array, offset: int) -> Array:
    """Return a read-only copy that begins `offset` bytes after a multiple of 64."""
    memory = np.empty(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    copy: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("offset", [0, 4, 16, 32])
def test_inputs_at_any_address(relu: Program, offset: int) -> None:
    x = aligned(LARGE, offset)
    (y,) = relu.run([x])
    np.testing.assert_array_equal(y, np.maximum(LARGE, 0))
    np.testing.assert_array_equal(x, LARGE)


@pytest.mark.parametrize("rows", [4, 4000])
def test_outputs_belong_to_the_caller(device: Device, rows: int) -> None:
    """The module returns the buffers of its arguments where the model returns them.

    The memory of large arrays is shared with the module, small ones are copied.
    """
    image = np.arange(rows * 6, dtype=np.float32).reshape(rows, 6)
    weights = np.arange(rows * 75, dtype=np.float32)

    def build(b: Builder, x: Operand) -> list[Operand]:
        doubled = b.add(Add, x, x)
        parts = [x, doubled, doubled, b.constant(weights)]
        flat = b.add(Reshape, doubled, (rows * 6,))
        return [flat, *(b.add(Assign, part) for part in parts)]

    program = program_of(device, build, image)
    x = aligned(image, 0)
    outputs = [*program.run([x]), *program.run([x])]
    expected = [(image + image).reshape(-1), image, image + image, image + image, weights]
    for index, output in enumerate(outputs):
        assert output.flags.writeable
        output[...] = index
    for index, (output, right) in enumerate(zip(outputs, expected * 2, strict=True)):
        np.testing.assert_array_equal(output, np.full_like(right, index))
    np.testing.assert_array_equal(x, image)
    for output, right in zip(program.run([x]), expected, strict=True):
        np.testing.assert_array_equal(output, right)


def test_several_threads_call_one_program(device: Device) -> None:
    weights = np.random.default_rng(0).integers(-9, 9, (6, 64)).astype(np.float32)
    program = program_of(device, lambda b, x: [b.add(MatMul, x, weights)], X)
    wrong: list[int] = []

    def call(number: int) -> None:
        x = X + number
        for _ in range(50):
            (y,) = program.run([x])
            if not np.array_equal(y, x @ weights):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads(device: Device, threads: int) -> None:
    program = device.compile(model_of(lambda b, x: [b.add(Relu, x)], X), Options(threads=threads))
    np.testing.assert_array_equal(program.run([X])[0], np.maximum(X, 0))


def test_a_run_that_breaks_a_rule_is_refused(device: Device) -> None:
    data = np.arange(3, dtype=np.float32)
    indices = np.array([0, 2, -3])
    program = program_of(device, lambda b, x, i: [b.add(Gather, x, i, 0)], data, indices)
    np.testing.assert_array_equal(program.run([data, indices])[0], data[indices])
    with pytest.raises(DeviceError, match="indices: one is not in"):
        program.run([data, indices + 1])


def test_sizes_that_depend_on_data(device: Device) -> None:
    program = program_of(device, lambda b, x: [b.add(NonZero, x)], X)
    for x in (X, X * 0, np.eye(4, 6, dtype=np.float32)):
        (y,) = program.run([x])
        np.testing.assert_array_equal(y, np.stack(np.nonzero(x)))


def test_memory_of_a_chip(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transfers of GPUs, tried on the processor."""
    from crosschip.devices.iree import engine, memory

    shared = engine._memory("local-task", None)
    monkeypatch.setattr(engine, "_memory", lambda *_: memory.ChipMemory(shared.device))
    weights = np.arange(600, dtype=np.float32).reshape(6, 100)
    program = program_of(device, lambda b, x: [b.add(MatMul, x, weights), b.add(Assign, x)], X)
    product, same = program.run([X])
    np.testing.assert_array_equal(product, X @ weights)
    np.testing.assert_array_equal(same, X)


def test_bytecode_lacks_float64(device: Device) -> None:
    from crosschip.devices.iree import IreeDevice

    x = np.ones(3, np.float32)
    model = model_of(lambda b, x: [b.add(Pow, x, x), b.add(Add, x, x)], x)
    with IreeDevice({}, "vmvx") as bytecode:
        power, total = bytecode.query(model, Options()).answers
    assert power.reason == "POW: computes in float64, which iree:vmvx lacks"
    assert total
    assert all(device.query(model, Options()).answers)


@pytest.mark.parametrize(
    ("instance", "properties", "message"),
    [
        ("npu", {}, "IREE has no target 'npu'"),
        ("vmvx", {"target": "aarch64-linux-gnu"}, "compiles for this machine only"),
        ("cuda", {"cpu": "znver4"}, "does not compile for processors"),
    ],
)
@pytest.mark.usefixtures("device")
def test_wrong_targets(instance: str, properties: dict[str, str], message: str) -> None:
    from crosschip.devices.iree import IreeDevice

    with pytest.raises(DeviceError, match=message):
        IreeDevice(properties, instance)
