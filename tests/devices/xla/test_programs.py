"""Programs of the device: shapes, saving, buffers, rules, threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.devices.xla.conftest import CHIP

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.devices.xla.chips import chips
from crosschip.devices.xla.engine import Engine
from crosschip.devices.xla.memory import XlaBuffer
from crosschip.hal import HostBuffer, Kind, Options, Precision
from crosschip.ir import Array, Builder, DeviceError, ElementType, Model, TensorType, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.recurrent import LSTM

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

WEIGHTS = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)


def product(check: Checker, rows: int = 4) -> tuple[Model, Array]:
    """Multiply rows by a matrix."""
    array = np.random.default_rng(1).normal(size=(rows, 64)).astype(np.float32)
    return check.built(lambda b, x: b.add(MatMul, x, WEIGHTS), [array]), array


def test_loading_does_not_compile(check: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    model, array = product(check)
    compiled = check.device.compile(model, Options())
    (expected,) = compiled.run([array])
    saved = compiled.save()
    assert saved is not None

    def forbidden(*arguments: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Engine, "_executable", forbidden)
    loaded = check.device.load(saved, model, Options())
    np.testing.assert_array_equal(loaded.run([array])[0], expected)
    for wrong in (b"", b"x", b"\0" * 1000, saved[:20], saved[: len(saved) // 2], b"x" + saved):
        with pytest.raises(DeviceError, match="xla"):
            check.device.load(wrong, model, Options())


def test_what_was_loaded_is_saved_again(check: Checker) -> None:
    """A program without products, whose code XLA saves apart."""
    array = np.random.default_rng(1).normal(size=(4, 24)).astype(np.float32)
    model = check.built(lambda b, x: b.add(Tanh, x), [array])
    program = check.device.compile(model, Options())
    for _ in range(3):
        saved = program.save()
        assert saved is not None
        program.close()
        program = check.device.load(saved, model, Options())
        np.testing.assert_allclose(program.run([array])[0], np.tanh(array), rtol=1e-6)


def test_weights_are_on_the_chip_once(check: Checker) -> None:
    """For any number of shapes, and only while a program uses them."""
    before = _arrays()
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 64)))
    b.output("y", b.add(MatMul, x, WEIGHTS))
    with crosschip.compile(b.build(), f"xla:{CHIP}", cache=False) as model:
        for rows in (1, 2, 3):
            model.run({"x": np.ones((rows, 64), np.float32)})
        assert _arrays() == before + 1
    assert _arrays() == before


def _arrays() -> int:
    """Return the number of arrays of the weights' size on chips."""
    gc.collect()
    return sum(array.shape == WEIGHTS.shape for array in jax.live_arrays())


def test_parameters_that_follow_from_shapes(check: Checker) -> None:
    def build(b: Builder, x: Any) -> Any:
        rows = b.add(Gather, b.add(ShapeOf, x), b.constant(np.array([0])), 0)
        wanted = b.add(Concat, [rows, b.constant(np.array([-1, 2]))], 0)
        return b.add(Relu, b.add(Reshape, x, wanted)), rows

    arrays = [np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)]
    for typing in (check.static, check.symbolic):
        model = check.built(build, arrays, typing)
        expected = check.outputs_of(ReferenceDevice(), model, arrays)
        for one, other in zip(check.outputs_of(check.device, model, arrays), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_parameters_that_depend_on_data_are_declined(check: Checker) -> None:
    image, shape = np.ones((2, 3), np.float32), np.array([3, 2])
    check.declines(lambda b, x, s: b.add(Reshape, x, s), image, shape, why="follow from shapes")


def test_a_rule_that_is_broken_ends_the_run_only(check: Checker) -> None:
    table, places = np.arange(6, dtype=np.float32), np.array([0, 5, -6])
    model = check.built(lambda b, t, i: b.add(Gather, t, i), [table, places])
    program = check.device.compile(model, Options())
    with pytest.raises(DeviceError, match=r"xla: GATHER .*indices: one is not in \[-6, 6\)"):
        program.run([table, np.array([0, 6, 1])])
    submission = program.submit([HostBuffer(table), HostBuffer(np.array([7, 0, 0]))], [], [])
    with pytest.raises(DeviceError, match="indices"):
        submission.event.wait()
    np.testing.assert_array_equal(program.run([table, places])[0], [0, 5, 0])


def test_outputs_are_the_callers_and_buffers_stay(check: Checker) -> None:
    model, array = product(check)
    program = check.device.compile(model, Options())
    (first,) = program.run([array])
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(program.run([array])[0], kept)
    place = check.device.allocate(ElementType.FLOAT32, (4, 64))
    assert not place.array().any()
    given = check.device.allocate(ElementType.FLOAT32, (4, 64))
    given.write(array)
    submission = program.submit([given], [place], [])
    assert submission.outputs[0] is place
    again = program.submit([place], [], [submission.event])
    assert again.event.wait(60)
    np.testing.assert_array_equal(place.array(), kept)
    np.testing.assert_allclose(again.outputs[0].array(), kept @ WEIGHTS, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(place)), kept)
    with pytest.raises(DeviceError, match=r"float32\[2\] is not what"):
        place.write(np.ones(2, np.float32))


def test_wide_types_leave_others_alone(check: Checker) -> None:
    """64-bit types in one thread, while another uses JAX's defaults."""
    assert not jax.config.jax_enable_x64
    big = np.array([2**40, -1])
    fine = np.array([1 + 2.0**-40, 1])
    model = check.built(
        lambda b, x, y: (b.add(Add, x, x), b.add(Mul, y, y)), [big, fine], check.symbolic
    )
    compiled = crosschip.compile(model, [check.device], cache=False)

    def both(count: int) -> None:
        arrays = [np.resize(big, count), np.resize(fine, count)]
        whole, real = compiled(*arrays)
        np.testing.assert_array_equal(whole, arrays[0] * 2)
        np.testing.assert_array_equal(real, arrays[1] ** 2)
        assert jnp.arange(3).dtype == jnp.int32

    with compiled, ThreadPoolExecutor(4) as pool:
        list(pool.map(both, [1, 2, 3, 1, 2, 3] * 3))
    assert not jax.config.jax_enable_x64
    assert jnp.arange(3).dtype == jnp.int32


@pytest.mark.parametrize("precision", list(Precision))
def test_precision_of_products(check: Checker, precision: Precision) -> None:
    random = np.random.default_rng(3)
    x, weights = (random.normal(size=(256, 256)).astype(np.float32) for _ in range(2))
    exact = x.astype(np.float64) @ weights.astype(np.float64)
    model = check.built(lambda b, x: b.add(MatMul, x, weights), [x])
    (result,) = check.device.compile(model, Options(precision)).run([x])
    error = np.abs(result - exact).max() / np.abs(exact).max()
    assert error < 1e-6 if precision is Precision.FLOAT32 else 1e-6 < error < 1e-2


def test_images_in_either_order(check: Checker) -> None:
    """Operations between convolutions, some of which need the model's order of axes."""

    def build(b: Builder, x: Any) -> Any:
        random = np.random.default_rng(4)

        def weights(*shape: int) -> Array:
            return random.normal(size=shape).astype(np.float32)

        first = b.add(Conv2D, x, weights(8, 4, 3, 3), weights(8), pads=(1, 1, 1, 1))
        deep = b.add(Conv2D, b.add(Relu, first), weights(8, 1, 3, 3), pads=(1, 0, 0, 1), group=8)
        shifted = b.add(Add, b.add(Mul, deep, weights(8, 1, 1)), weights(5))
        joined = b.add(Concat, [shifted, b.add(Relu, deep)], 1)
        grouped = b.add(Conv2D, joined, weights(8, 4, 1, 1), group=4, strides=(2, 2))
        pooled = b.add(MaxPool2D, joined, kernel_shape=(2, 2), pads=(0, 1, 1, 0))
        flat = b.add(Reshape, joined, (2, -1))
        return grouped, pooled, flat, joined, b.add(Add, joined, weights(2, 1, 1, 1))

    check(build, (2, 4, 5, 6))


@pytest.mark.slow
def test_recurrent_networks_of_many_steps(check: Checker) -> None:
    random = np.random.default_rng(5)
    weights = [random.normal(size=size).astype(np.float32) for size in ((24, 5), (24, 6), (48,))]

    def build(b: Builder, x: Any, lengths: Any) -> Any:
        own = [b.constant(np.stack([array, -array])) for array in weights]
        return b.add_all(LSTM, x, *own, sequence_lengths=lengths, direction=2)

    steps = random.normal(size=(40, 3, 5)).astype(np.float32)
    check(build, steps, np.array([40, 7, 0], np.int32), rankless_too=False)
    model = check.built(build, [steps, np.array([1, 1, 1], np.int32)])
    with pytest.raises(DeviceError, match=r"not in \[0, 40\]"):
        check.outputs_of(check.device, model, [steps, np.array([1, 41, 1], np.int32)])


def test_mixed_devices_and_kept_outputs(check: Checker) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 64)))
    b.output("y", b.add(Relu, b.add(MatMul, x, WEIGHTS)))
    with crosschip.compile(b.build(), f"xla:{CHIP}", cache=False) as compiled:
        for rows in range(1, 4):
            array = np.ones((rows, 64), np.float32)
            kept = compiled.run({"x": array}, keep=["y"])["y"]
            assert isinstance(kept, XlaBuffer)
            twice = compiled.run({"x": kept})["y"]
            once = np.maximum(array @ WEIGHTS, 0)
            np.testing.assert_allclose(twice, np.maximum(once @ WEIGHTS, 0), rtol=1e-4, atol=1e-3)


def test_importing_and_probing_import_no_engine() -> None:
    script = (
        "import sys; from crosschip.devices.xla import XlaDevice; XlaDevice.probe();"
        "print('jax' in sys.modules, 'jaxlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("False False\n", "")


def test_a_missing_engine_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['jax'] = None\n"
        "from crosschip.devices.xla import XlaDevice\n"
        "from crosschip.ir import DeviceError\n"
        "try: XlaDevice()\n"
        "except DeviceError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert 'pip install "crosschip[xla]"' in done.stdout


def test_chips() -> None:
    found = chips()
    assert found[-1].name == "cpu"
    assert found[-1].kind is Kind.CPU
    assert CHIP in [chip.name for chip in found]
    with pytest.raises(DeviceError, match="no chip 'cpu:77'"):
        Engine("cpu:77")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """No files in the user's home and no output on the terminal."""
    script = (
        "import crosschip, numpy as np\n"
        "from crosschip.ir import Builder, ElementType, TensorType\n"
        "from crosschip.ops.standard.activation import Relu\n"
        "b = Builder()\n"
        "b.output('y', b.add(Relu, b.input('x', TensorType(ElementType.FLOAT32, (3,)))))\n"
        f"compiled = crosschip.compile(b.build(), 'xla:{CHIP}', cache=False)\n"
        "compiled.run({'x': np.ones(3, np.float32)})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert not list(tmp_path.iterdir())
