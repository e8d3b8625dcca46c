"""NNRt's functions, called as C calls them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cffi import FFI

from crosschip.apis.c.handles import HANDLES
from crosschip.apis.c.header import FOLDER, Header
from crosschip.apis.nnrt import (
    Conformance,
    OH_NN_DataType,
    OH_NN_DeviceType,
    OH_NN_Format,
    OH_NN_OperationType,
    OH_NN_TensorType,
    set_conformance,
)
from crosschip.apis.nnrt import OH_NN_ReturnCode as Code
from crosschip.ir import Array

HEADERS = {
    name: Header(FOLDER / f"neural_network_runtime/neural_network_{name}.h")
    for name in ("runtime_type", "core", "runtime")
}
INVALID = Code.OH_NN_INVALID_PARAMETER
FORBIDDEN = Code.OH_NN_OPERATION_FORBIDDEN
FLOAT32 = OH_NN_DataType.OH_NN_FLOAT32
X = np.arange(6, dtype=np.float32).reshape(2, 3)

ffi = FFI()
for header in HEADERS.values():
    ffi.cdef(header.types)
    for function in header.functions:
        inside = ", ".join(parameter.declaration for parameter in function.parameters)
        ffi.cdef(f"{function.result} {function.name}({inside});")
ffi.cdef("const char *crosschip_last_error(void);")
NULL = ffi.NULL


@pytest.fixture
def nn(libraries: Path) -> Any:
    """The functions of both libraries."""
    found = SimpleNamespace()
    for name in ("core", "runtime"):
        library = ffi.dlopen(str(libraries / "lib" / f"libneural_network_{name}.so"))
        for function in HEADERS[name].functions:
            setattr(found, function.name, getattr(library, function.name))
        found.crosschip_last_error = library.crosschip_last_error
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Handles that a test has not destroyed are forgotten after it."""
    yield
    for number in [*HANDLES._entries]:
        HANDLES.remove(number)


def told(nn: Any) -> str:
    """The text of the last failure."""
    return ffi.string(nn.crosschip_last_error()).decode()  # type: ignore[no-any-return]


def done(nn: Any, code: int) -> None:
    """A call that is to succeed."""
    assert code == Code.OH_NN_SUCCESS, told(nn)


def wrong(nn: Any, code: int, expected: Code, text: str = "") -> None:
    """A call that is to fail."""
    assert code == expected, told(nn)
    assert text in told(nn)


def made(nn: Any, handle: Any) -> Any:
    """A handle that is none of `NULL`."""
    assert handle != NULL, told(nn)
    return handle


def stored(nn: Any, kind: str, call: Callable[[Any], int]) -> Any:
    """What a call stores that is to succeed."""
    place = ffi.new(f"{kind} *")
    done(nn, call(place))
    return place[0]


def places(*indices: int) -> Any:
    """An array of places, and what keeps it."""
    data = ffi.new("uint32_t[]", indices) if indices else NULL
    return SimpleNamespace(array=ffi.new("OH_NN_UInt32Array *", [data, len(indices)]), data=data)


def described(nn: Any, type_: OH_NN_DataType, *shape: int) -> Any:
    desc = made(nn, nn.OH_NNTensorDesc_Create())
    done(nn, nn.OH_NNTensorDesc_SetDataType(desc, type_))
    if shape:
        done(nn, nn.OH_NNTensorDesc_SetShape(desc, shape, len(shape)))
    return desc


def squares(nn: Any, *shape: int) -> Any:
    """A finished model of one operation."""
    model = made(nn, nn.OH_NNModel_Construct())
    for _ in range(2):
        done(nn, nn.OH_NNModel_AddTensorToModel(model, described(nn, FLOAT32, *shape)))
    x, y, none = places(0), places(1), places()
    code = OH_NN_OperationType.OH_NN_OPS_SQUARE
    done(nn, nn.OH_NNModel_AddOperation(model, code, none.array, x.array, y.array))
    done(nn, nn.OH_NNModel_SpecifyInputsAndOutputs(model, x.array, y.array))
    done(nn, nn.OH_NNModel_Finish(model))
    return model


def device(nn: Any) -> int:
    """The number of the device of the reference."""
    ids, count = ffi.new("size_t **"), ffi.new("uint32_t *")
    done(nn, nn.OH_NNDevice_GetAllDevicesID(ids, count))
    for number in ffi.unpack(ids[0], count[0]):
        name = stored(nn, "char *", partial(nn.OH_NNDevice_GetName, number))
        if ffi.string(name) == b"reference":
            return int(number)
    raise AssertionError("there is no reference")


def compiled(nn: Any, model: Any) -> Any:
    compilation = made(nn, nn.OH_NNCompilation_Construct(model))
    done(nn, nn.OH_NNCompilation_SetDevice(compilation, device(nn)))
    done(nn, nn.OH_NNCompilation_Build(compilation))
    return compilation


def executor(nn: Any, *shape: int) -> Any:
    """What squares, after all that it was made of is gone."""
    model = ffi.new("OH_NNModel **", squares(nn, *shape))
    compilation = ffi.new("OH_NNCompilation **", compiled(nn, model[0]))
    nn.OH_NNModel_Destroy(model)
    runner = made(nn, nn.OH_NNExecutor_Construct(compilation[0]))
    nn.OH_NNCompilation_Destroy(compilation)
    assert (model[0], compilation[0]) == (NULL, NULL)
    return runner


def tensor(nn: Any, array: Array) -> Any:
    """A tensor with elements."""
    desc = described(nn, FLOAT32, *array.shape)
    held = made(nn, nn.OH_NNTensor_Create(device(nn), desc))
    ffi.memmove(nn.OH_NNTensor_GetDataBuffer(held), array.tobytes(), array.nbytes)
    return held


def elements(nn: Any, held: Any, count: int = 6) -> Array:
    """The first elements of a tensor."""
    buffer = ffi.buffer(made(nn, nn.OH_NNTensor_GetDataBuffer(held)), 4 * count)
    return np.frombuffer(buffer, np.float32).copy()


def test_a_model_runs(nn: Any) -> None:
    runner, x, y = executor(nn, -1, 3), tensor(nn, X), tensor(nn, np.zeros_like(X))
    done(nn, nn.OH_NNExecutor_RunSync(runner, [x], 1, [y], 1))
    np.testing.assert_array_equal(elements(nn, y), X.ravel() ** 2)
    shape, length = ffi.new("int32_t **"), ffi.new("uint32_t *")
    done(nn, nn.OH_NNExecutor_GetOutputShape(runner, 0, shape, length))
    assert ffi.unpack(shape[0], length[0]) == [2, 3]
    wrong(nn, nn.OH_NNExecutor_GetOutputShape(runner, 0, shape, length), INVALID, "is not NULL")
    for name in ("Input", "Output"):
        count = getattr(nn, f"OH_NNExecutor_Get{name}Count")
        assert stored(nn, "size_t", partial(count, runner)) == 1
    least, most, axes = ffi.new("size_t **"), ffi.new("size_t **"), ffi.new("size_t *")
    done(nn, nn.OH_NNExecutor_GetInputDimRange(runner, 0, least, most, axes))
    assert ffi.unpack(least[0], 2) == [1, 3]
    assert ffi.unpack(most[0], 2) == [2**31 - 1, 3]
    place = ffi.new("OH_NNExecutor **", runner)
    nn.OH_NNExecutor_Destroy(place)
    assert place[0] == NULL
    wrong(nn, nn.OH_NNExecutor_RunSync(runner, [x], 1, [y], 1), INVALID, "destroyed")


@pytest.mark.parametrize(("inputs", "outputs"), [(0, 1), (1, 0), (2, 1), (201, 1), (1, 2**40)])
def test_a_run_of_a_wrong_number_of_tensors(nn: Any, inputs: int, outputs: int) -> None:
    runner, x = executor(nn, 2, 3), tensor(nn, X)
    given = ffi.new("NN_Tensor *[2]", [x, x])
    wrong(nn, nn.OH_NNExecutor_RunSync(runner, given, inputs, given, outputs), INVALID)
    wrong(nn, nn.OH_NNExecutor_RunSync(runner, NULL, 1, given, 1), INVALID, "inputTensor is NULL")


def test_a_run_is_answered_later(nn: Any) -> None:
    runner, x, y = executor(nn, 2, 3), tensor(nn, X), tensor(nn, np.zeros_like(X))
    ended = threading.Event()
    answers: list[object] = []
    data = ffi.new_handle("it")

    @ffi.callback("NN_OnRunDone")  # type: ignore[untyped-decorator]
    def finish(given: Any, code: int, outputs: Any, count: int) -> None:
        answers.append((ffi.from_handle(given), code, count, outputs[0] == ffi.cast("void *", y)))
        ended.set()

    @ffi.callback("NN_OnServiceDied")  # type: ignore[untyped-decorator]
    def died(given: Any) -> None:
        answers.append("died")

    early = nn.OH_NNExecutor_RunAsync(runner, [x], 1, [y], 1, 1000, data)
    wrong(nn, early, FORBIDDEN, "SetOnRunDone")
    done(nn, nn.OH_NNExecutor_SetOnRunDone(runner, finish))
    done(nn, nn.OH_NNExecutor_SetOnServiceDied(runner, died))
    done(nn, nn.OH_NNExecutor_RunAsync(runner, [x], 1, [y], 1, 60000, data))
    assert ended.wait(60)
    assert answers == [("it", Code.OH_NN_SUCCESS, 1, True)]
    np.testing.assert_array_equal(elements(nn, y), X.ravel() ** 2)
    wrong(nn, nn.OH_NNExecutor_RunAsync(runner, [x], 1, [y], 1, 60000, NULL), INVALID)
    wrong(nn, nn.OH_NNExecutor_RunAsync(runner, [x], 1, [y], 1, 0, data), INVALID, "timeout")
    wrong(nn, nn.OH_NNExecutor_SetOnRunDone(runner, NULL), INVALID)
    wrong(nn, nn.OH_NNExecutor_SetOnServiceDied(runner, NULL), INVALID)
    set_conformance(Conformance.REFERENCE)
    try:
        later = nn.OH_NNExecutor_RunAsync(runner, [x], 1, [y], 1, 9, data)
        wrong(nn, later, FORBIDDEN)
    finally:
        set_conformance(None)


def test_descriptions(nn: Any) -> None:
    desc = made(nn, nn.OH_NNTensorDesc_Create())
    done(nn, nn.OH_NNTensorDesc_SetName(desc, b"image"))
    done(nn, nn.OH_NNTensorDesc_SetFormat(desc, OH_NN_Format.OH_NN_FORMAT_NHWC))
    shape, length = ffi.new("int32_t **"), ffi.new("size_t *", 9)
    done(nn, nn.OH_NNTensorDesc_GetShape(desc, shape, length))
    assert (shape[0], length[0]) == (NULL, 0)
    done(nn, nn.OH_NNTensorDesc_SetDataType(desc, FLOAT32))
    done(nn, nn.OH_NNTensorDesc_SetShape(desc, [2, 3], 2))
    done(nn, nn.OH_NNTensorDesc_GetShape(desc, shape, length))
    assert ffi.unpack(shape[0], length[0]) == [2, 3]
    wrong(nn, nn.OH_NNTensorDesc_GetShape(desc, shape, length), INVALID, "*shape is not NULL")
    name = stored(nn, "char *", lambda place: nn.OH_NNTensorDesc_GetName(desc, place))
    assert ffi.string(name) == b"image"
    for kind, what, value in [
        ("OH_NN_DataType", "DataType", FLOAT32),
        ("OH_NN_Format", "Format", OH_NN_Format.OH_NN_FORMAT_NHWC),
        ("size_t", "ElementCount", 6),
        ("size_t", "ByteSize", 24),
    ]:
        get = getattr(nn, f"OH_NNTensorDesc_Get{what}")
        assert stored(nn, kind, partial(get, desc)) == value
        wrong(nn, get(desc, NULL), INVALID, "is NULL")
        wrong(nn, get(NULL, ffi.new(f"{kind} *")), INVALID)
    for what in ("ElementCount", "ByteSize"):
        done(nn, nn.OH_NNTensorDesc_SetShape(desc, [2, -1], 2))
        size = ffi.new("size_t *", 9)
        get = getattr(nn, f"OH_NNTensorDesc_Get{what}")
        wrong(nn, get(desc, size), Code.OH_NN_DYNAMIC_SHAPE, "has an open size")
        assert size[0] == 0
    wrong(nn, nn.OH_NNTensorDesc_SetShape(desc, [1] * 11, 11), INVALID, "11 axes")
    wrong(nn, nn.OH_NNTensorDesc_SetShape(desc, NULL, 2), INVALID, "shape is NULL")
    wrong(nn, nn.OH_NNTensorDesc_SetShape(desc, NULL, 0), INVALID)
    wrong(nn, nn.OH_NNTensorDesc_SetDataType(desc, 99), INVALID)
    wrong(nn, nn.OH_NNTensorDesc_SetName(desc, NULL), INVALID)
    place = ffi.new("NN_TensorDesc **", desc)
    done(nn, nn.OH_NNTensorDesc_Destroy(place))
    assert place[0] == NULL
    wrong(nn, nn.OH_NNTensorDesc_Destroy(place), INVALID)
    wrong(nn, nn.OH_NNTensorDesc_Destroy(NULL), INVALID, "tensorDesc is NULL")


def test_tensors(nn: Any, tmp_path: Path) -> None:
    path = tmp_path / "elements"
    path.write_bytes(b"\0" * 8 + X.tobytes())
    file = os.open(path, os.O_RDWR)
    desc = described(nn, FLOAT32, 2, 3)
    held = made(nn, nn.OH_NNTensor_CreateWithFd(device(nn), desc, file, 32, 8))
    os.close(file)
    np.testing.assert_array_equal(elements(nn, held), X.ravel())
    assert stored(nn, "size_t", lambda place: nn.OH_NNTensor_GetSize(held, place)) == 32
    assert stored(nn, "size_t", lambda place: nn.OH_NNTensor_GetOffset(held, place)) == 8
    assert stored(nn, "int", lambda place: nn.OH_NNTensor_GetFd(held, place)) >= 0
    own = made(nn, nn.OH_NNTensor_GetTensorDesc(held))
    assert nn.OH_NNTensor_GetTensorDesc(held) == own
    assert stored(nn, "size_t", lambda place: nn.OH_NNTensorDesc_GetByteSize(own, place)) == 24
    assert nn.OH_NNTensor_CreateWithSize(device(nn), desc, 23) == NULL
    larger = made(nn, nn.OH_NNTensor_CreateWithSize(device(nn), desc, 64))
    assert stored(nn, "size_t", lambda place: nn.OH_NNTensor_GetSize(larger, place)) == 64
    assert nn.OH_NNTensor_Create(device(nn), NULL) == NULL
    assert nn.OH_NNTensor_CreateWithFd(device(nn), desc, -1, 32, 8) == NULL
    place = ffi.new("NN_Tensor **", held)
    done(nn, nn.OH_NNTensor_Destroy(place))
    assert place[0] == NULL
    wrong(nn, nn.OH_NNTensor_GetSize(held, ffi.new("size_t *")), INVALID, "destroyed")
    wrong(nn, nn.OH_NNTensorDesc_GetByteSize(own, ffi.new("size_t *")), INVALID, "destroyed")
    assert nn.OH_NNTensor_GetDataBuffer(held) == NULL
    assert nn.OH_NNTensor_GetTensorDesc(held) == NULL


def test_an_array_without_elements_is_null(nn: Any) -> None:
    model = made(nn, nn.OH_NNModel_Construct())
    for _ in range(2):
        done(nn, nn.OH_NNModel_AddTensorToModel(model, described(nn, FLOAT32, 2, 3)))
    x, y, none = places(0), places(1), places()
    none.array.data = x.data
    add = partial(nn.OH_NNModel_AddOperation, model, OH_NN_OperationType.OH_NN_OPS_SQUARE)
    wrong(nn, add(none.array, x.array, y.array), INVALID, "paramIndices->size is 0")
    none.array.data = NULL
    done(nn, add(none.array, x.array, y.array))


def test_ranges_go_to_pointers_that_are_null(nn: Any) -> None:
    """The document asks for null pointers; the source stores over any."""
    runner = executor(nn, -1, 3)
    least, most, axes = ffi.new("size_t **"), ffi.new("size_t **"), ffi.new("size_t *")
    get = partial(nn.OH_NNExecutor_GetInputDimRange, runner, 0)
    done(nn, get(least, most, axes))
    wrong(nn, get(least, most, axes), INVALID, "*minInputDims is not NULL")
    set_conformance(Conformance.REFERENCE)
    try:
        done(nn, get(least, most, axes))
        wrong(nn, get(NULL, most, axes), INVALID, "minInputDims is NULL")
    finally:
        set_conformance(None)
    assert ffi.unpack(least[0], axes[0]) == [1, 3]


def test_models(nn: Any) -> None:
    model = squares(nn, 2, 3)
    supported, count = ffi.new("bool **"), ffi.new("uint32_t *")
    done(nn, nn.OH_NNModel_GetAvailableOperations(model, device(nn), supported, count))
    assert ffi.unpack(supported[0], count[0]) == [True]
    again = nn.OH_NNModel_GetAvailableOperations(model, device(nn), supported, count)
    wrong(nn, again, INVALID, "*isSupported is not NULL")
    wrong(nn, nn.OH_NNModel_Finish(model), FORBIDDEN)
    nn.OH_NNModel_Destroy(NULL)
    assert "model is NULL" in told(nn)
    other = made(nn, nn.OH_NNModel_Construct())
    x, far = places(0), ffi.new("OH_NN_UInt32Array *", [NULL, 3])
    square = OH_NN_OperationType.OH_NN_OPS_SQUARE
    for array, text in [
        (NULL, "none"),
        (far, "data is NULL"),
        (ffi.new("OH_NN_UInt32Array *", [x.data, 10**9]), "200 at most"),
    ]:
        wrong(nn, nn.OH_NNModel_AddOperation(other, square, x.array, array, x.array), INVALID, text)
    wrong(nn, nn.OH_NNModel_SpecifyInputsAndOutputs(other, NULL, NULL), INVALID)
    wrong(nn, nn.OH_NNModel_SetTensorData(other, 0, NULL, 4), INVALID, "dataBuffer is NULL")
    wrong(nn, nn.OH_NNModel_AddOperation(model, square, x.array, x.array, x.array), FORBIDDEN)


def test_quantized_constants(nn: Any) -> None:
    """Given in both ways: by parameters of their own, and in the deprecated structure."""
    model = made(nn, nn.OH_NNModel_Construct())
    params = made(nn, nn.OH_NNQuantParam_Create())
    done(nn, nn.OH_NNQuantParam_SetScales(params, [0.5], 1))
    done(nn, nn.OH_NNQuantParam_SetZeroPoints(params, [3], 1))
    wrong(nn, nn.OH_NNQuantParam_SetNumBits(params, NULL, 1), INVALID, "numBits is NULL")
    wrong(nn, nn.OH_NNQuantParam_SetScales(params, [0.5], 0), INVALID)
    done(nn, nn.OH_NNQuantParam_SetNumBits(params, [8], 1))
    int8 = OH_NN_DataType.OH_NN_INT8
    done(nn, nn.OH_NNModel_AddTensorToModel(model, described(nn, int8, 3)))
    done(nn, nn.OH_NNModel_SetTensorQuantParams(model, 0, params))
    done(nn, nn.OH_NNModel_SetTensorData(model, 0, b"\x03\x04\x05", 3))
    place = ffi.new("NN_QuantParam **", params)
    done(nn, nn.OH_NNQuantParam_Destroy(place))
    wrong(nn, nn.OH_NNModel_SetTensorQuantParams(model, 0, params), INVALID, "destroyed")
    bits, scale, zero = (
        ffi.new(f"{kind}[]", [value])
        for kind, value in (("uint32_t", 8), ("double", 0.25), ("int32_t", -1))
    )
    quantized = ffi.new("OH_NN_QuantParam *", [1, bits, scale, zero])
    shape = ffi.new("int32_t[]", [2, 3])
    given = ffi.new("OH_NN_Tensor *", [int8, 2, shape, quantized, 0])
    done(nn, nn.OH_NNModel_AddTensor(model, given))
    own = HANDLES.get(int(ffi.cast("uintptr_t", model)))
    assert [(t.shape, t.quantization.scale, t.quantization.zero_point) for t in own.tensors] == [
        ((3,), (0.5,), (3,)),
        ((2, 3), (0.25,), (-1,)),
    ]
    kind = OH_NN_TensorType.OH_NN_ADD_ACTIVATIONTYPE
    done(nn, nn.OH_NNModel_SetTensorType(model, 0, kind))
    assert own.tensors[0].type is kind
    wrong(nn, nn.OH_NNModel_SetTensorType(model, 0, 163), INVALID)
    wrong(nn, nn.OH_NNModel_AddTensor(model, NULL), INVALID)
    given.dimensionCount = 10**6
    wrong(nn, nn.OH_NNModel_AddTensor(model, given), INVALID, "1000000 axes")
    given.dimensionCount, given.dimensions = 1, NULL
    wrong(nn, nn.OH_NNModel_AddTensor(model, given), INVALID, "dimensions is NULL")


def test_compilations(nn: Any, tmp_path: Path) -> None:
    model = squares(nn, 2, 3)
    compilation = made(nn, nn.OH_NNCompilation_Construct(model))
    done(nn, nn.OH_NNCompilation_SetPerformanceMode(compilation, 3))
    done(nn, nn.OH_NNCompilation_SetPriority(compilation, 2))
    done(nn, nn.OH_NNCompilation_EnableFloat16(compilation, False))
    done(nn, nn.OH_NNCompilation_AddExtensionConfig(compilation, b"key", b"value", 5))
    wrong(nn, nn.OH_NNCompilation_AddExtensionConfig(compilation, NULL, b"v", 1), INVALID)
    wrong(nn, nn.OH_NNCompilation_SetCache(compilation, NULL, 1), INVALID, "cachePath is NULL")
    done(nn, nn.OH_NNCompilation_SetCache(compilation, str(tmp_path).encode(), 1))
    done(nn, nn.OH_NNCompilation_SetDevice(compilation, device(nn)))
    assert nn.OH_NNExecutor_Construct(compilation) == NULL
    done(nn, nn.OH_NNCompilation_Build(compilation))
    wrong(nn, nn.OH_NNCompilation_Build(compilation), FORBIDDEN)
    assert [path.name for path in tmp_path.glob("*.nnc")] == ["nnrt_1.nnc"]
    size, small = ffi.new("size_t *"), ffi.new("char[1]")
    export = nn.OH_NNCompilation_ExportCacheToBuffer
    wrong(nn, export(compilation, small, 1, size), INVALID, "but there are 1")
    buffer = ffi.new("char[]", size[0])
    done(nn, export(compilation, buffer, size[0], size))
    content = bytes(ffi.buffer(buffer, size[0]))
    wrong(nn, export(compilation, NULL, 0, size), INVALID, "buffer is NULL")
    file = tmp_path / "exported"
    file.write_bytes(content)
    kept = made(nn, nn.OH_NNCompilation_ConstructForCache())
    done(nn, nn.OH_NNCompilation_ImportCacheFromBuffer(kept, content, len(content)))
    in_buffer = nn.OH_NNCompilation_ConstructWithOfflineModelBuffer(content, len(content))
    in_file = nn.OH_NNCompilation_ConstructWithOfflineModelFile(str(file).encode())
    for again in (kept, made(nn, in_buffer), made(nn, in_file)):
        done(nn, nn.OH_NNCompilation_Build(again))
        runner = made(nn, nn.OH_NNExecutor_Construct(again))
        y = tensor(nn, np.zeros_like(X))
        done(nn, nn.OH_NNExecutor_RunSync(runner, [tensor(nn, X)], 1, [y], 1))
        np.testing.assert_array_equal(elements(nn, y), X.ravel() ** 2)
    assert nn.OH_NNCompilation_ConstructWithOfflineModelFile(NULL) == NULL
    assert nn.OH_NNCompilation_ConstructWithOfflineModelFile(b"/none") == NULL
    assert nn.OH_NNCompilation_ConstructWithOfflineModelBuffer(NULL, 8) == NULL
    assert nn.OH_NNCompilation_Construct(NULL) == NULL


def test_what_is_deprecated(nn: Any) -> None:
    runner, shape = executor(nn, 2, 3), ffi.new("int32_t[]", [2, 3])
    type_ = ffi.new("OH_NN_Tensor *", [FLOAT32, 2, shape, NULL, 0])
    result = ffi.new("float[6]")
    done(nn, nn.OH_NNExecutor_SetInput(runner, 0, type_, X.tobytes(), 24))
    done(nn, nn.OH_NNExecutor_SetOutput(runner, 0, result, 24))
    done(nn, nn.OH_NNExecutor_Run(runner))
    assert list(result) == (X.ravel() ** 2).tolist()
    given = made(nn, nn.OH_NNExecutor_AllocateInputMemory(runner, 0, 24))
    output = made(nn, nn.OH_NNExecutor_AllocateOutputMemory(runner, 0, 24))
    assert (given.length, output.length) == (24, 24)
    ffi.memmove(given.data, (X + 1).tobytes(), 24)
    done(nn, nn.OH_NNExecutor_SetInputWithMemory(runner, 0, type_, given))
    done(nn, nn.OH_NNExecutor_SetOutputWithMemory(runner, 0, output))
    done(nn, nn.OH_NNExecutor_Run(runner))
    found = np.frombuffer(ffi.buffer(output.data, 24), np.float32)
    np.testing.assert_array_equal(found, (X + 1).ravel() ** 2)
    place = ffi.new("OH_NN_Memory **", output)
    nn.OH_NNExecutor_DestroyInputMemory(runner, 0, place)  # another's, which stays
    assert place[0] == output
    nn.OH_NNExecutor_DestroyOutputMemory(runner, 0, place)
    assert place[0] == NULL
    gone = nn.OH_NNExecutor_SetOutputWithMemory(runner, 0, output)
    wrong(nn, gone, INVALID, "no memory of output 0")
    foreign = ffi.new("OH_NN_Memory *", [result, 24])
    wrong(nn, nn.OH_NNExecutor_SetOutputWithMemory(runner, 0, foreign), INVALID)
    wrong(nn, nn.OH_NNExecutor_SetOutputWithMemory(runner, 0, NULL), INVALID)
    wrong(nn, nn.OH_NNExecutor_SetInput(runner, 0, NULL, X.tobytes(), 24), INVALID)
    wrong(nn, nn.OH_NNExecutor_SetInput(runner, 0, type_, NULL, 24), INVALID, "dataBuffer is NULL")
    wrong(nn, nn.OH_NNExecutor_SetOutput(runner, 0, result, 23), INVALID)
    assert nn.OH_NNExecutor_AllocateInputMemory(runner, 1, 24) == NULL
    assert nn.OH_NNExecutor_AllocateInputMemory(NULL, 0, 24) == NULL


def test_devices(nn: Any) -> None:
    kind = stored(nn, "OH_NN_DeviceType", lambda place: nn.OH_NNDevice_GetType(device(nn), place))
    assert kind == OH_NN_DeviceType.OH_NN_CPU
    name = ffi.new("char **")
    wrong(nn, nn.OH_NNDevice_GetName(5, name), Code.OH_NN_FAILED, "no device 5")
    wrong(nn, nn.OH_NNDevice_GetType(5, ffi.new("OH_NN_DeviceType *")), INVALID)
    wrong(nn, nn.OH_NNDevice_GetName(device(nn), NULL), INVALID, "name is NULL")
    name[0] = ffi.cast("char *", 8)
    wrong(nn, nn.OH_NNDevice_GetName(device(nn), name), INVALID, "*name is not NULL")
    wrong(nn, nn.OH_NNDevice_GetAllDevicesID(NULL, ffi.new("uint32_t *")), INVALID)


def test_handles_are_of_one_kind(nn: Any) -> None:
    """Those of NNAdapter, and of the other library, are no exception."""
    model, desc = squares(nn, 2, 3), described(nn, FLOAT32, 2, 3)
    place = ffi.new("NN_TensorDesc **", ffi.cast("NN_TensorDesc *", model))
    wrong(nn, nn.OH_NNTensorDesc_Destroy(place), INVALID, "NN_TensorDesc")
    assert place[0] != NULL
    assert nn.OH_NNCompilation_Construct(ffi.cast("OH_NNModel *", desc)) == NULL
    for number in (8, 2**63, 2**52 + 8):
        wrong(nn, nn.OH_NNModel_Finish(ffi.cast("OH_NNModel *", number)), INVALID)
