"""Models written out as programs in C, linked with the library, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.apis.c.conftest import Program, linked, run
from tests.apis.nnadapter.programs import (
    FLOAT32,
    INT32,
    Asymmetric,
    Channel,
    Layer,
    Op,
    Precision,
    Type,
    run_once,
)

import crosschip
from crosschip.apis.nnadapter import (
    NNADAPTER_UNKNOWN,
    Calls,
    NNAdapterModel_destroy,
    OperationCall,
    calls,
)
from crosschip.apis.nnadapter.program import write_program
from crosschip.ir import Array


def in_c(
    written: Calls,
    arrays: list[Array],
    device: str,
    libraries: Path,
    program: Program,
    folder: Path,
    *flags: str,
) -> list[bytes]:
    """The outputs of the program that makes these calls."""
    source, weights = write_program(written, folder, "model")
    made = program(source, *flags, *linked(libraries, "nnadapter"))
    inputs = []
    for index, array in enumerate(arrays):
        path = folder / f"input{index}"
        path.write_bytes(np.ascontiguousarray(array).tobytes())
        inputs.append(f"{path}:{'x'.join(map(str, array.shape))}")
    outputs = [folder / f"output{index}" for index in range(len(written.outputs))]
    run(made, device, weights, *inputs, *outputs)
    return [path.read_bytes() for path in outputs]


def in_python(written: Calls, arrays: list[Array], device: str) -> list[bytes]:
    model = written.replay()
    try:
        return [array.tobytes() for array in run_once(model, arrays, device)]
    finally:
        NNAdapterModel_destroy(model)


REAL = {
    "onnx/mobilenet_v1.onnx": (1, 3, 224, 224),
    "ocr-paddle/ch_ppocr_mobile_v2_cls_infer": (2, 3, 48, 192),
}


@pytest.mark.parametrize("device", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("name", REAL)
def test_real_models_compute_the_same_bits(
    models: Path, name: str, device: str, libraries: Path, program: Program, tmp_path: Path
) -> None:
    image = np.random.default_rng(0).normal(size=REAL[name]).astype(np.float32)
    written = calls(crosschip.load(models / name))
    made = in_c(written, [image], device, libraries, program, tmp_path)
    assert made == in_python(written, [image], device)


@pytest.fixture
def every_type() -> Calls:
    """Constants of all ways to be quantized, and an input that lists its shapes."""
    integers = np.array([[-7, 3], [100, -100], [0, 1]], np.int8)
    scales = (0.1, 3e-5)
    constants = [
        (Type(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_LAYER, (3, 2), Layer(0.1)), integers),
        (
            Type(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL, (3, 2), Channel(1, scales)),
            integers,
        ),
        (
            Type(Precision.NNADAPTER_QUANT_UINT8_ASYMM_PER_LAYER, (3, 2), Asymmetric(1 / 3, 128)),
            integers.view(np.uint8),
        ),
    ]
    x = Type(FLOAT32, (NNADAPTER_UNKNOWN, 2), dynamic_data=[[1, 2], [3, 2]])
    made = Calls([(x, None), (Type(INT32, ()), np.array(0, np.int32))], inputs=(0,))
    total = 0
    for constant in constants:
        first = len(made.operands)
        made.operands += [constant, (Type(FLOAT32), None), (Type(FLOAT32), None)]
        made.operations += [
            OperationCall(Op.NNADAPTER_DEQUANTIZE, (first,), (first + 1,)),
            OperationCall(Op.NNADAPTER_ADD, (total, first + 1, 1), (first + 2,)),
        ]
        total = first + 2
    made.operands += [(Type(INT32, (0,)), np.zeros(0, np.int32)), (Type(FLOAT32), None)]
    made.operations.append(OperationCall(Op.NNADAPTER_RELU, (total,), (total + 2,)))
    made.outputs = (total + 2, total)
    return made


def test_every_way_to_write_a_type(
    every_type: Calls, libraries: Path, program: Program, tmp_path: Path
) -> None:
    x = np.array([[0.5, -2]], np.float32)
    made = in_c(every_type, [x], "builtin_device", libraries, program, tmp_path)
    assert made == in_python(every_type, [x], "builtin_device")
    relu, total = (np.frombuffer(byte_view, np.float32).reshape(3, 2) for byte_view in made)
    integers = np.array([[-7, 3], [100, -100], [0, 1]])
    scale = np.array([0.1, 3e-5], np.float32)
    expected = x + integers * np.float32(0.1) + integers * scale
    expected = expected + ((integers % 256) - 128) * np.float32(1 / 3)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    np.testing.assert_array_equal(relu, np.maximum(total, 0))


def test_their_header_and_our_library(
    every_type: Calls, libraries: Path, program: Program, tmp_path: Path
) -> None:
    theirs = os.environ.get("CROSSCHIP_NNADAPTER_HEADER")
    if theirs is None:
        pytest.skip("CROSSCHIP_NNADAPTER_HEADER does not name NNAdapter's own header")
    (tmp_path / "their").mkdir()
    shutil.copy(theirs, tmp_path / "their" / "nnadapter.h")
    x = np.array([[0.5, -2]], np.float32)
    flag = f"-I{tmp_path / 'their'}"
    made = in_c(every_type, [x], "builtin_device", libraries, program, tmp_path, flag)
    assert made == in_python(every_type, [x], "builtin_device")


def test_what_does_not_fit_is_told(
    every_type: Calls, libraries: Path, program: Program, tmp_path: Path
) -> None:
    source, weights = write_program(every_type, tmp_path, "model")
    made = program(source, *linked(libraries, "nnadapter"))
    (tmp_path / "short").write_bytes(bytes(4))
    for passed, text in {
        (): "takes DEVICE WEIGHTS INPUT... OUTPUT...",
        ("builtin_device", "none", "a", "b", "c"): "none: cannot be read",
        ("builtin_device", source, "a", "b", "c"): "is not the file that came with this program",
        ("no_chip", weights, "a", "b", "c"): "NNAdapterDevice_acquire(",
        ("builtin_device", weights, f"{tmp_path / 'short'}:1x2", "b", "c"): "compute(execution)",
        ("builtin_device", weights, tmp_path / "short", "b", "c"): "compute(execution)",
    }.items():
        done = subprocess.run([made, *passed], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert text in done.stderr
