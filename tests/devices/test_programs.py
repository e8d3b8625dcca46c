"""Programs of the engines: inputs and outputs, threads, saving, failures."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.limits import lacks_avx512

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options, Precision
from crosschip.ir import Array, DeviceError, Model, UnsupportedError
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Split
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

TABLE = np.arange(600, dtype=np.float32).reshape(20, 30)


def test_outputs_that_are_inputs_and_constants(check: Checker) -> None:
    check(lambda b, x: x, (2, 3), rankless_too=False)
    check(lambda b, x: (x, x, b.add(Relu, x)), (2, 3), rankless_too=False)
    check(lambda b, x: (b.add(Relu, x), b.constant(TABLE), b.constant(TABLE[0])), (2, 3))
    check(lambda b, x, y: (y, x), (2, 3), (4,), rankless_too=False)
    check(lambda b, x: b.add(Assign, b.add(Assign, x)), (2, 3))
    check(lambda b, x: b.add(Reshape, x, (2, 3)), (2, 3))


def test_operands_that_are_used_twice(check: Checker) -> None:
    def model(b: Any, x: Any) -> Any:
        y = b.add(Relu, x)
        z = b.add(Add, y, y)
        return y, z, y, b.add(Mul, z, y), z

    check(model, (2, 3))
    check(lambda b, x: (p := b.add_all(Split, x, 0, (1, 2)), p[1], p[0])[1:], (3, 2))
    check(
        lambda b, x: b.add(MatMul, b.add(MatMul, x, TABLE), TABLE, False, True),
        (2, 20),
        rankless_too=False,
    )


def test_models_without_inputs(check: Checker) -> None:
    check(lambda b: b.add(Relu, b.constant(TABLE - 100)), rankless_too=False)


def test_names_do_not_matter(check: Checker) -> None:
    def model(b: Any, x: Any) -> Any:
        y = b.add(Relu, x, name="same\n\x00'\"<&>\ud800")
        return b.add(Sigmoid, y, name="same\n\x00'\"<&>\ud800", outputs=["value0"])

    check(model, (2, 3))


def test_memory_that_is_read_only_or_not_aligned(check: Checker) -> None:
    stored = b"x" + TABLE.tobytes()
    weights = np.frombuffer(stored, np.float32, offset=1).reshape(20, 30)
    assert not weights.flags.writeable
    assert not weights.flags.aligned
    check(lambda b, x: b.add(MatMul, x, weights), (2, 20))
    filters = weights.reshape(-1)[:540].reshape(20, 3, 3, 3)
    check(lambda b, x: b.add(Conv2D, x, filters), (1, 3, 8, 8))
    check(lambda b, x: b.add(Relu, x), weights)
    check(lambda b, x: x, weights, rankless_too=False)


@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_outputs_belong_to_the_caller(check: Checker, typing: str) -> None:
    first, second = np.full((2, 3), -1, np.float32), np.full((2, 3), 5, np.float32)
    model = check.built(
        lambda b, x: (b.add(Relu, x), x, b.add(Reshape, x, (3, 2)), b.constant(TABLE)),
        [first],
        getattr(check, typing),
    )
    program = check.device.compile(model, Options())
    outputs = program.run([first])
    kept = [output.copy() for output in outputs]
    assert not any(np.shares_memory(output, first) for output in outputs)
    assert not any(np.shares_memory(output, TABLE) for output in outputs)
    program.run([second])
    for output, copy in zip(outputs, kept, strict=True):
        np.testing.assert_array_equal(output, copy)
        output[:] = 7
    np.testing.assert_array_equal(first, -1)
    np.testing.assert_array_equal(program.run([second])[3], kept[3])
    program.close()


def test_inputs_are_not_kept(check: Checker) -> None:
    class Marked(np.ndarray):
        """An array with weak references."""

    array = np.ones((2, 3), np.float32)
    program = check.device.compile(check.built(lambda b, x: b.add(Relu, x), [array]), Options())
    given = np.ones((2, 3), np.float32).view(Marked)
    reference = weakref.ref(given)
    program.run([given])
    del given
    assert reference() is None
    program.close()


@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_runs_in_many_threads(check: Checker, typing: str) -> None:
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    inputs = [np.full((8, 64), seed, np.float32) for seed in range(40)]
    model = check.built(
        lambda b, x: b.add(Relu, b.add(MatMul, x, weights)), inputs[:1], getattr(check, typing)
    )
    program = check.device.compile(model, Options(threads=1))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda array: program.run([array])[0], inputs * 5))
    for array, result in zip(inputs * 5, results, strict=True):
        np.testing.assert_allclose(result, np.maximum(array @ weights, 0), rtol=1e-4, atol=1e-4)
    program.close()


def network(check: Checker) -> tuple[Model, Array]:
    """Return convolutions and a product, large enough for all optimizations."""
    random = np.random.default_rng(1)

    def weights(*shape: int) -> Array:
        return random.normal(size=shape).astype(np.float32)

    def model(b: Any, x: Any) -> Any:
        y = b.add(Relu, b.add(Conv2D, x, weights(16, 3, 3, 3), weights(16)))
        y = b.add(Conv2D, y, weights(32, 16, 3, 3), strides=(2, 2))
        y = b.add(Transpose, y, (0, 2, 3, 1))
        return b.add(MatMul, y, weights(32, 50)), b.constant(TABLE)

    image = weights(2, 3, 16, 16)
    return check.built(model, [image], check.symbolic), image


def test_a_saved_program_computes_the_same(check: Checker) -> None:
    model, image = network(check)
    options = Options(threads=1)
    compiled = check.device.compile(model, options)
    saved = compiled.save()
    assert isinstance(saved, bytes)
    with type(check.device)() as other:
        loaded = other.load(bytes(saved), model, options)
        for one, same in zip(compiled.run([image]), loaded.run([image]), strict=True):
            np.testing.assert_array_equal(one, same)
        again = other.load(loaded.save() or b"", model, options)
        np.testing.assert_array_equal(again.run([image])[0], compiled.run([image])[0])


def test_what_was_not_saved_is_not_loaded(check: Checker) -> None:
    model, _ = network(check)
    saved = check.device.compile(model, Options()).save()
    assert saved is not None
    for wrong in (b"", b"x", b"\0" * 1000, saved[:20], saved[: len(saved) // 2], b"x" + saved):
        with pytest.raises(DeviceError, match=check.device.name):
            check.device.load(wrong, model, Options())


def test_float32_stays_float32(check: Checker) -> None:
    """Also after loading: bfloat16 would be wrong by about 1e-3."""
    random = np.random.default_rng(2)
    x, weights = (random.normal(size=(256, 256)).astype(np.float32) for _ in range(2))
    model = check.built(lambda b, x: b.add(MatMul, x, weights), [x])
    exact = x.astype(np.float64) @ weights.astype(np.float64)
    compiled = check.device.compile(model, Options())
    loaded = check.device.load(compiled.save() or b"", model, Options())
    for program in (compiled, loaded):
        (result,) = program.run([x])
        assert np.abs(result - exact).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize("precision", [Precision.BFLOAT16, Precision.FLOAT16])
def test_narrow_precision_is_computed_or_refused(check: Checker, precision: Precision) -> None:
    random = np.random.default_rng(3)
    x, weights = (random.normal(size=(256, 256)).astype(np.float32) for _ in range(2))
    model = check.built(lambda b, x: b.add(MatMul, x, weights), [x])
    able = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    word = {Precision.BFLOAT16: "BF16", Precision.FLOAT16: "FP16"}[precision]
    if check.device.name == "openvino" and word in able and not lacks_avx512():
        (result,) = check.device.compile(model, Options(precision)).run([x])
        error = np.abs(result - x.astype(np.float64) @ weights).max() / np.abs(result).max()
        assert 1e-6 < error < 1e-2
    else:
        assert precision not in check.device.capabilities().precisions
        with pytest.raises(UnsupportedError, match=f"not in {precision.value}"):
            crosschip.compile(model, [check.device], precision=precision.value, cache=False)


def test_failures_are_device_errors(check: Checker) -> None:
    x, shape = np.ones((2, 3), np.float32), np.array([2, 3])
    model = check.built(lambda b, x, s: b.add(Reshape, x, s), [x, shape])
    program = check.device.compile(model, Options())
    with pytest.raises(DeviceError, match=f"{check.device.name} failed while running: .+"):
        program.run([x, np.array([4, 5])])
    np.testing.assert_array_equal(program.run([x, np.array([3, 2])])[0], x.reshape(3, 2))


def test_engines_print_nothing(check: Checker, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.ones((2, 3), np.float32)
    model = check.built(lambda b, x, s: b.add(Reshape, x, s), [x, np.array([2, 3])])
    program = check.device.compile(model, Options())
    program.run([x, np.array([3, 2])])
    with pytest.raises(DeviceError):
        program.run([x, np.array([7, 7])])
    with pytest.raises(DeviceError):
        check.device.load(b"nonsense", model, Options())
    assert capfd.readouterr() == ("", "")


def test_properties(check: Checker) -> None:
    with pytest.raises(DeviceError, match="no property 'colour'"):
        type(check.device)({"colour": "red"})
    for name in check.device.known_properties():
        value = {"spinning": "0", "device": "CPU"}[name]
        with type(check.device)({name: value}) as device:
            model, image = network(check)
            expected = check.device.compile(model, Options()).run([image])
            actual = device.compile(model, Options()).run([image])
            np.testing.assert_array_equal(actual[0], expected[0])
    assert check.device.version[0].isdigit()


def test_a_device_that_openvino_does_not_have() -> None:
    from crosschip.devices.openvino import OpenVinoDevice

    with pytest.raises(DeviceError, match="no device 'TPU' here; it has CPU"):
        OpenVinoDevice(instance="TPU")


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_importing_a_device_does_not_import_its_engine(name: str) -> None:
    script = f"import sys, crosschip.devices.{name}; print({name!r} in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize(
    ("name", "cls"), [("onnxruntime", "OnnxRuntimeDevice"), ("openvino", "OpenVinoDevice")]
)
def test_a_missing_engine_says_what_to_install(name: str, cls: str) -> None:
    script = (
        f"import sys; sys.modules[{name!r}] = None\n"
        f"from crosschip.devices.{name} import {cls}\n"
        f"from crosschip.ir import DeviceError\n"
        f"try: {cls}()\n"
        f"except DeviceError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install" in done.stdout
    assert f"crosschip[{name}]" in done.stdout


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_using_a_device_leaves_no_traces(name: str, tmp_path: Any) -> None:
    """No files in the user's home and no output on the terminal."""
    script = (
        "from importlib.metadata import entry_points\n"
        f"device = entry_points(group='crosschip.devices')[{name!r}].load()()\n"
        "from crosschip.hal import Options\n"
        "from crosschip.ir import Builder, ElementType, TensorType\n"
        "from crosschip.ops.standard.activation import Relu\n"
        "b = Builder()\n"
        "b.output('y', b.add(Relu, b.input('x', TensorType(ElementType.FLOAT32, (2,)))))\n"
        "program = device.compile(b.build(), Options())\n"
        "program.close(); device.close()\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_plain_file_is_compiled_and_run_without_the_onnx_library(
    name: str, tmp_path: Path
) -> None:
    """No slow imports, so that the first result is early."""
    kernel = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "kernel")
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["convolved"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["convolved"], ["positive"]),
        helper.make_node("GlobalAveragePool", ["positive"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph(nodes, "graph", [x], [y], [kernel])
    opset = helper.make_opsetid("", 17)
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, ir_version=9, opset_imports=[opset]).SerializeToString()
    )
    script = (
        "import sys\n"
        "import numpy as np\n"
        f"import {name}\n"
        "engines_own = set(sys.modules)\n"
        "import crosschip as cc\n"
        f"compiled = cc.compile({str(path)!r}, [{name!r}], cache={str(tmp_path / 'cache')!r})\n"
        "print(*compiled(np.ones((1, 3, 8, 8), np.float32)).ravel())\n"
        "print(*({'onnx', 'importlib.metadata', 'typer'} & sys.modules.keys() - engines_own))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["0.25 0.25 0.25 0.25", ""]


def test_every_kind_of_64_bits(check: Checker) -> None:
    for dtype in (np.longlong, np.int64, np.dtype("q"), np.dtype("l")):
        indices = np.array([2, 0], dtype)
        model = check.built(lambda b, i: b.add(Gather, b.constant(TABLE), i, 0), [indices])
        expected = check.outputs_of(ReferenceDevice(), model, [indices])
        np.testing.assert_array_equal(
            check.outputs_of(check.device, model, [indices])[0], expected[0]
        )
