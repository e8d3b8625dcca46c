"""Models as programs in C that make NNRt's calls, linked with the libraries, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.apis.c.conftest import Program, linked, run
from tests.apis.nnrt.programs import run_once

import crosschip
from crosschip.apis.nnrt import Calls, OH_NNModel_Destroy, calls
from crosschip.apis.nnrt.program import write_program
from crosschip.ir import Array, Builder, ElementType, Quantization, TensorType
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.quantization import Dequantize, Quantize

LIBRARY = "neural_network_runtime"
IMAGES = {
    "onnx/mobilenet_v1.onnx": ((1, 3, 224, 224), (1, 1000)),
    "ocr-paddle/ch_ppocr_mobile_v2_cls_infer": ((2, 3, 48, 192), (2, 2)),
}


def in_c(written: Calls, image: Array, like: Array, device: str, made: Path, folder: Path) -> Array:
    """The output of a program that has been compiled."""
    given, found = folder / "input", folder / "output"
    given.write_bytes(image.tobytes())
    ends = [f"{path}:{'x'.join(map(str, a.shape))}" for path, a in ((given, image), (found, like))]
    run(made, device, folder / "model.weights", *ends)
    return np.frombuffer(found.read_bytes(), like.dtype).reshape(like.shape)


def in_python(written: Calls, image: Array, like: Array, device: str) -> Array:
    model = written.replay()
    (found,) = run_once(model, [image], [like], device)
    OH_NNModel_Destroy(model)
    return found


@pytest.mark.parametrize("device", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("name", IMAGES)
def test_real_models_compute_the_same_bits(
    models: Path, name: str, device: str, libraries: Path, program: Program, tmp_path: Path
) -> None:
    shape, made_shape = IMAGES[name]
    image = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    model = crosschip.load(models / name)
    written = calls(model)
    made = program(write_program(written, tmp_path, "model").source, *linked(libraries, LIBRARY))
    found = in_c(written, image, np.zeros(made_shape, np.float32), device, made, tmp_path)
    with crosschip.compile(model, device, cache=False) as compiled:
        np.testing.assert_array_equal(found, compiled(image))


@pytest.fixture
def quantized() -> Calls:
    """Constants with one scale and with several, an operation without parameters, no axes."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    integers = np.array([[1, -2, 3], [100, -100, 0]], np.int8)
    scales = Quantization((0.1, 3e-5), (0, 0), axis=0)
    total = b.add(Add, x, b.add(Dequantize, b.constant(integers, "several", scales)))
    one = Quantization((1 / 3,), (5,))
    total = b.add(Add, total, b.add(Dequantize, b.constant(integers, "one", one)))
    total = b.add(Add, total, b.constant(np.float32(0.25)))
    b.output("y", b.add(Dequantize, b.add(Quantize, total, scale=(0.5,), dtype=ElementType.INT8)))
    return calls(b.build())


X = np.array([[0.5, -2, 1], [0, 4, 8]], np.float32)


@pytest.mark.parametrize("language", ["C11, gcc", "C++17, gcc"])
def test_quantized_constants(
    quantized: Calls, language: str, libraries: Path, program: Program, tmp_path: Path
) -> None:
    source = write_program(quantized, tmp_path, "model").source
    made = program(source, *linked(libraries, LIBRARY), language=language)
    found = in_c(quantized, X, X, "reference", made, tmp_path)
    integers = np.array([[1, -2, 3], [100, -100, 0]])
    real = X + integers * np.array([[0.1], [3e-5]]) + (integers - 5) / 3 + 0.25
    np.testing.assert_array_equal(found, np.rint(real / 0.5) * 0.5)


def test_their_headers_and_our_libraries(
    quantized: Calls, libraries: Path, program: Program, tmp_path: Path
) -> None:
    theirs = os.environ.get("CROSSCHIP_NNRT_HEADERS")
    if theirs is None:
        pytest.skip("CROSSCHIP_NNRT_HEADERS does not name the folder of NNRt's own headers")
    shutil.copytree(theirs, tmp_path / "their" / "neural_network_runtime")
    source = write_program(quantized, tmp_path, "model").source
    flags = [f"-I{tmp_path / 'their'}", *linked(libraries, LIBRARY)]
    made = program(source, *flags, language="C++17, gcc")
    found = in_c(quantized, X, X, "reference", made, tmp_path)
    np.testing.assert_array_equal(found, in_python(quantized, X, X, "reference"))


def test_what_does_not_fit_is_told(
    quantized: Calls, libraries: Path, program: Program, tmp_path: Path
) -> None:
    source, weights = write_program(quantized, tmp_path, "model")
    made = program(source, *linked(libraries, LIBRARY))
    (tmp_path / "short").write_bytes(bytes(4))
    for passed, text in {
        (): "takes DEVICE WEIGHTS INPUT... OUTPUT...",
        ("reference", "none", "a", "b"): "none: cannot be read",
        ("reference", source, "a", "b"): "is not the file that came with this program",
        ("no_chip", weights, "a", "b"): "there is no such device",
        ("reference", weights, tmp_path / "short", "b"): "has another number of bytes",
    }.items():
        done = subprocess.run([made, *passed], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert text in done.stderr
