"""Input shapes that change from run to run, on the engines, compared with ONNX Runtime."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.runtime.test_shapes import Static, lru_misses

import crosschip
from crosschip.hal import Device
from crosschip.ir import Array, Builder, ElementType, TensorType, symbol
from crosschip.ops.standard.activation import Sigmoid
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Squeeze
from crosschip.ops.standard.slicing import Slice

DEVICES = ("reference", "onnxruntime", "openvino", "xla", "static")
SIZES = list(itertools.product((8, 11, 13, 16, 21), (9, 12, 16, 17)))
"""Twenty sizes of images."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small network for images of any batch and size."""
    random = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> TensorProto:
        return numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["g", "wanted"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w3"], ["y"]),
    ]
    constants = [
        weights("w1", 8, 3, 3, 3),
        weights("b1", 8),
        weights("w2", 8, 8, 3, 3),
        weights("w3", 8, 5),
        numpy_helper.from_array(np.array([0]), "zero"),
        numpy_helper.from_array(np.array([-1]), "rest"),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "H", "W"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])],
        constants,
    )
    opset = helper.make_operatorsetid("", 17)
    path = tmp_path_factory.mktemp("network") / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


def oracle(path: Path, array: Array) -> Array:
    """Return the output that ONNX Runtime computes from the file."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": array})
    return np.asarray(found)


def image(batch: int, height: int, width: int) -> Array:
    random = np.random.default_rng([batch, height, width])
    return random.normal(size=(batch, 3, height, width)).astype(np.float32)


def opened(name: str) -> str | Device:
    return Static(name="static") if name == "static" else name


@pytest.mark.parametrize("device", DEVICES)
def test_images_of_twenty_sizes(network: Path, device: str) -> None:
    """In random order, with a limit of 8 programs; fewer for XLA, which compiles slowly."""
    count, most = {"reference": (200, 8), "xla": (8, 2)}.get(device, (2000, 8))
    sizes = SIZES[: count // 2]
    order = [sizes[i] for i in np.random.default_rng(3).integers(0, len(sizes), count)]
    arrays = {size: image(1 + size[0] % 3, *size) for size in sizes}
    expected = {size: oracle(network, array) for size, array in arrays.items()}
    with crosschip.compile(
        network, [opened(device)], shapes=crosschip.ShapeOptions(specializations=most), cache=False
    ) as compiled:
        for size in order:
            np.testing.assert_allclose(compiled(arrays[size]), expected[size], rtol=1e-4, atol=1e-4)
        (found,) = compiled.statistics().segments
    assert found.runs == count
    native = device not in ("xla", "static")
    assert found.compiled == (0 if native else lru_misses(order, most))
    assert found.programs == (1 if native else most)


def test_twenty_batches_compile_few_programs_and_none_in_the_next_process(
    network: Path, tmp_path: Path
) -> None:
    script = (
        "import sys, crosschip, numpy as np\n"
        "shapes = crosschip.ShapeOptions(buckets={'N': [4, 8, 16, 32]})\n"
        "with crosschip.compile(sys.argv[1], 'xla', shapes=shapes, cache=sys.argv[2]) as model:\n"
        "    for batch in range(1, 21):\n"
        "        x = np.full((batch, 3, 8, 8), batch, np.float32)\n"
        "        y = model(x)\n"
        "        assert y.shape == (batch, 5) and np.ptp(y, 0).max() < 1e-3\n"
        "    found = model.statistics().segments[0]\n"
        "print(found.compiled, found.loaded, found.padded)\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", script, str(network), str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "CROSSCHIP_VERIFY": ""},
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["4", "0", "17"], ["0", "4", "17"]]


def test_threads_that_want_one_new_shape_compile_it_once(network: Path) -> None:
    arrays = [image(2, 8, 9), image(1, 11, 9)]
    expected = [oracle(network, array) for array in arrays]
    with crosschip.compile(network, "xla", cache=False) as compiled:

        def work(number: int) -> None:
            for turn in range(4):
                which = (number + turn) % 2
                found = compiled(arrays[which])
                np.testing.assert_allclose(found, expected[which], rtol=1e-4, atol=1e-4)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
        (found,) = compiled.statistics().segments
    assert (found.compiled, found.runs) == (2, 24)


def _resident() -> int:
    """Return the resident memory of the process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells the memory")
@pytest.mark.parametrize("device", ["openvino", "static"])
def test_memory_is_flat(network: Path, device: str) -> None:
    """After all sizes have occurred, runs and evictions do not increase memory."""
    arrays = [image(1, *size) for size in SIZES]
    with crosschip.compile(
        network, [opened(device)], shapes=crosschip.ShapeOptions(specializations=4), cache=False
    ) as compiled:

        def turns(count: int) -> None:
            for _ in range(count):
                for array in arrays:
                    compiled(array)

        turns(8)
        before = _resident()
        turns(20)
        assert _resident() - before < 8 * 2**20


@pytest.mark.slow
def test_openvino_gets_a_program_a_shape_where_ranks_follow_from_sizes() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 1, 4)))
    squeezed = b.add(Squeeze, x)
    part = b.add(Slice, squeezed, axes=(0,), starts=(0,), ends=(2,))
    b.output("y", b.add(Concat, [b.add(Sigmoid, part), squeezed], axis=0))
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        assert compiled.placement.shape_strategies == ("a program a shape, 16 at most",)
        for rows, expected in ((1, (6,)), (3, (5, 4)), (2, (4, 4))):
            array = np.arange(rows * 4, dtype=np.float32).reshape(rows, 1, 4)
            flat = array.squeeze()
            made = compiled.run({"x": array})["y"]
            assert made.shape == expected
            np.testing.assert_allclose(
                made, np.concatenate([1 / (1 + np.exp(-flat[:2])), flat]), 1e-6
            )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_small_and_large_sizes_by_turns_with_and_without_places(device: str, seed: int) -> None:
    """Results belong to the caller, whether engines copy or share tensors."""
    random = np.random.default_rng(seed)
    dtype = [np.float32, np.float16, np.int32, np.bool_][seed]
    kind = ElementType(np.dtype(dtype).name)
    b = Builder("turns")
    n = symbol("n")
    x, y = b.input("x", TensorType(kind, (n, 64))), b.input("y", TensorType(kind, (2, 64)))
    b.output("long", b.add(Concat, [x, y], 0))
    b.output("fixed", b.add(Concat, [y, y], 0))
    kept: list[tuple[Array, Array]] = []
    with crosschip.compile(b.build(), [device], cache=False) as compiled:
        for size in random.choice([0, 1, 3, 60, 64, 200, 5000], 24):
            given: dict[str, Array] = {
                name: random.integers(0, 2, (count, 64)).astype(dtype)
                for name, count in (("x", size), ("y", 2))
            }
            expected = {
                "long": np.concatenate([given["x"], given["y"]]),
                "fixed": np.concatenate([given["y"]] * 2),
            }
            places = {k: np.empty_like(v) for k, v in expected.items() if random.random() < 0.4}
            made = compiled.run(given, outputs=places or None)
            assert all(made[name] is place for name, place in places.items())
            kept += [(made[name], expected[name]) for name in expected]
            given["x"][...], given["y"][...] = 0, 0
        for found, wanted in kept:
            np.testing.assert_array_equal(found, wanted)
