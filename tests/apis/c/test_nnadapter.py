"""NNAdapter's functions, called as C calls them."""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cffi import FFI

from crosschip.apis import nnadapter as face
from crosschip.apis.c.handles import HANDLES
from crosschip.apis.c.header import FOLDER, Header
from crosschip.apis.nnadapter import NNAdapterOperandPrecisionCode as Precision
from crosschip.apis.nnadapter import NNAdapterOperationCode as Op
from crosschip.apis.nnadapter import NNAdapterResultCode as Code
from crosschip.ir import Array

HEADER = Header(FOLDER / "nnadapter.h")
INVALID = Code.NNADAPTER_INVALID_PARAMETER
UNSHAPED = Code.NNADAPTER_INVALID_DIMENSIONS
FLOAT32 = Precision.NNADAPTER_FLOAT32
INT32 = Precision.NNADAPTER_INT32

ffi = FFI()
ffi.cdef(HEADER.types)
for function in HEADER.functions:
    inside = ", ".join(parameter.declaration for parameter in function.parameters)
    ffi.cdef(f"{function.result} {function.name}({inside});")
ffi.cdef("const char *crosschip_last_error(void);")


@pytest.fixture
def nn(libraries: Path) -> Any:
    """The library."""
    return ffi.dlopen(str(libraries / "lib" / "libnnadapter.so"))


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
    assert code == 0, told(nn)


def made(nn: Any, kind: str, make: Callable[[Any], int]) -> Any:
    """The handle that a call stores that is to succeed."""
    place = ffi.new(f"NNAdapter{kind} **")
    done(nn, make(place))
    assert place[0] != ffi.NULL
    return place[0]


def type_of(precision: Precision, *shape: int) -> Any:
    """A type without quantization parameters."""
    made = ffi.new("NNAdapterOperandType *")
    made.precision = precision
    made.dimensions.count = len(shape)
    made.dimensions.data[0 : len(shape)] = shape
    return made


def device(nn: Any, name: bytes = b"builtin_device") -> Any:
    return made(nn, "Device", lambda place: nn.NNAdapterDevice_acquire(name, place))


def context(nn: Any, *devices: Any, properties: Any = ffi.NULL) -> Any:
    given = devices or (device(nn),)
    return made(
        nn,
        "Context",
        lambda place: nn.NNAdapterContext_create(
            ffi.new("NNAdapterDevice *[]", given), len(given), properties, ffi.NULL, place
        ),
    )


def operand(nn: Any, model: Any, type_: Any) -> Any:
    return made(nn, "Operand", lambda place: nn.NNAdapterModel_addOperand(model, type_, place))


def integers(nn: Any, model: Any, *values: int) -> Any:
    """A constant."""
    constant = operand(nn, model, type_of(INT32, len(values)))
    data = ffi.new("int32_t[]", values)
    size = ffi.sizeof(data)
    done(nn, nn.NNAdapterModel_setOperandValue(constant, data, size, True))
    return constant


def operation(nn: Any, model: Any, code: Op, inputs: list[Any], *outputs: Any) -> Any:
    return made(
        nn,
        "Operation",
        lambda place: nn.NNAdapterModel_addOperation(
            model, code, len(inputs), inputs, len(outputs), outputs, place
        ),
    )


def softmax(nn: Any, *shape: int) -> Any:
    """A finished model of an addition and a softmax."""
    model = made(nn, "Model", nn.NNAdapterModel_create)
    x, y = (operand(nn, model, type_of(FLOAT32, *shape)) for _ in range(2))
    total, share = (operand(nn, model, type_of(FLOAT32)) for _ in range(2))
    operation(nn, model, Op.NNADAPTER_ADD, [x, y, integers(nn, model, 0)], total)
    operation(nn, model, Op.NNADAPTER_SOFTMAX, [total, integers(nn, model, 1)], share)
    done(nn, nn.NNAdapterModel_identifyInputsAndOutputs(model, 2, [x, y], 1, [share]))
    done(nn, nn.NNAdapterModel_finish(model))
    return model


def compiled(nn: Any, model: Any, *kept: Any) -> Any:
    token, buffer, size, folder = kept or (ffi.NULL, ffi.NULL, 0, ffi.NULL)
    found = made(
        nn,
        "Compilation",
        lambda place: nn.NNAdapterCompilation_create(
            model, token, buffer, size, folder, context(nn), place
        ),
    )
    done(nn, nn.NNAdapterCompilation_finish(found))
    return found


def execution_of(nn: Any, compilation: Any) -> Any:
    return made(nn, "Execution", lambda place: nn.NNAdapterExecution_create(compilation, place))


@ffi.callback("void *(void *, NNAdapterOperandType *, void *)")  # type: ignore[untyped-decorator]
def read(memory: Any, type_: Any, device_buffer: Any) -> Any:
    array = ffi.from_handle(memory)
    assert device_buffer == ffi.NULL
    type_.dimensions.count = array.ndim
    type_.dimensions.data[0 : array.ndim] = array.shape
    return ffi.cast("void *", array.ctypes.data)


@ffi.callback("void *(void *, NNAdapterOperandType *, void *)")  # type: ignore[untyped-decorator]
def written(memory: Any, type_: Any, device_buffer: Any) -> Any:
    place = ffi.from_handle(memory)
    assert type_.dimensions.dynamic_count == 0
    shape = type_.dimensions.data[0 : type_.dimensions.count]
    place.array = np.full(list(shape), -1, np.float32)
    return ffi.cast("void *", place.array.ctypes.data)


def run(nn: Any, execution: Any, *inputs: Array) -> Array:
    """The one output of a run."""
    place = SimpleNamespace(array=None)
    held = [ffi.new_handle(array) for array in inputs]
    for index, memory in enumerate(held):
        done(nn, nn.NNAdapterExecution_setInput(execution, index, memory, read))
    output = ffi.new_handle(place)
    done(nn, nn.NNAdapterExecution_setOutput(execution, 0, output, written))
    done(nn, nn.NNAdapterExecution_compute(execution))
    found: Array = place.array
    return found


def reference(x: Array, y: Array) -> Array:
    """The softmax of the sum, as it is defined."""
    powers = np.exp((x + y).astype(np.float64))
    share: Array = powers / powers.sum(axis=1, keepdims=True)
    return share


def test_a_model_from_the_first_to_the_last_call(nn: Any) -> None:
    model = softmax(nn, -65535, 3)
    supported = ffi.new("bool[3]", [False, False, False])
    done(nn, nn.NNAdapterModel_getSupportedOperations(model, context(nn), supported))
    assert list(supported) == [True, True, False]
    compilation = compiled(nn, model)
    nn.NNAdapterModel_destroy(model)
    execution = execution_of(nn, compilation)
    for rows in (1, 4, 1):
        x, y = np.random.default_rng(rows).normal(size=(2, rows, 3)).astype(np.float32)
        np.testing.assert_allclose(run(nn, execution, x, y), reference(x, y), rtol=1e-5)
    nn.NNAdapterExecution_destroy(execution)
    nn.NNAdapterCompilation_destroy(compilation)


def test_the_types_of_what_has_been_compiled_in_two_calls(nn: Any) -> None:
    compilation = compiled(nn, softmax(nn, -65535, 3))
    counts = ffi.new("uint32_t[2]")
    ask = nn.NNAdapterCompilation_queryInputsAndOutputs
    done(nn, ask(compilation, counts, ffi.NULL, counts + 1, ffi.NULL))
    assert list(counts) == [2, 1]
    inputs, outputs = (ffi.new("NNAdapterOperandType *[]", count) for count in counts)
    done(nn, ask(compilation, counts, inputs, counts + 1, outputs))
    gc.collect()
    for type_ in (*inputs, *outputs):
        assert type_.precision == FLOAT32
        assert list(type_.dimensions.data[0 : type_.dimensions.count]) == [-65535, 3]
    assert [type_.lifetime for type_ in (*inputs, *outputs)] == [4, 4, 5]
    again = ffi.new("NNAdapterOperandType *[2]")
    done(nn, ask(compilation, counts, again, counts + 1, ffi.NULL))
    assert list(again) == list(inputs)


def test_a_device_and_what_it_says(nn: Any) -> None:
    found = device(nn, b"fake_device")
    name, vendor = ffi.new("const char *[2]"), ffi.new("const char **")
    done(nn, nn.NNAdapterDevice_getName(found, name))
    done(nn, nn.NNAdapterDevice_getName(found, name + 1))
    done(nn, nn.NNAdapterDevice_getVendor(found, vendor))
    gc.collect()
    assert name[0] == name[1]
    assert (ffi.string(name[0]), ffi.string(vendor[0])) == (b"fake_device", b"crosschip")
    numbers = ffi.new("int32_t[2]", [-1, -1])
    done(nn, nn.NNAdapterDevice_getType(found, numbers))
    done(nn, nn.NNAdapterDevice_getVersion(found, numbers + 1))
    assert numbers[0] == 0
    assert numbers[1] > 0
    nn.NNAdapterDevice_release(found)
    assert nn.NNAdapterDevice_getName(found, name) == INVALID
    assert "destroyed" in told(nn)


def test_the_version_and_the_number_of_devices(nn: Any) -> None:
    numbers = ffi.new("uint32_t[2]")
    done(nn, nn.NNAdapter_getVersion(numbers))
    done(nn, nn.NNAdapter_getDeviceCount(numbers + 1))
    assert list(numbers) == [1, face.NNAdapter_getDeviceCount()[1]]


def test_a_device_that_is_not_there(nn: Any) -> None:
    place = ffi.new("NNAdapterDevice **")
    for name in (b"no_such_chip", b"\xff\xfe"):
        assert nn.NNAdapterDevice_acquire(name, place) == Code.NNADAPTER_DEVICE_NOT_FOUND
    assert nn.NNAdapterDevice_acquire(b"", place) == INVALID
    assert place[0] == ffi.NULL


def test_settings_of_a_context(nn: Any) -> None:
    taken = context(nn, properties=ffi.new("char[]", b"BUILTIN_DEVICE_NUM_THREADS=2"))
    assert HANDLES.get(int(ffi.cast("uintptr_t", taken))).threads == 2
    place = ffi.new("NNAdapterContext **")
    devices = ffi.new("NNAdapterDevice *[]", [device(nn)])
    code = nn.NNAdapterContext_create(devices, 1, b"no pair", ffi.NULL, place)
    assert (code, place[0]) == (INVALID, ffi.NULL)
    assert nn.NNAdapterContext_create(devices, 0, ffi.NULL, ffi.NULL, place) == INVALID
    assert nn.NNAdapterContext_create(ffi.NULL, 1, ffi.NULL, ffi.NULL, place) == INVALID
    assert told(nn) == "NNAdapterContext_create: devices is NULL"
    callback = ffi.callback("int(int, void *)", lambda event, data: 0)
    done(nn, nn.NNAdapterContext_create(devices, 1, ffi.NULL, callback, place))


def quantized(precision: Precision) -> tuple[Any, Any]:
    """A type of a precision, with quantization parameters that it takes, and its scales."""
    type_ = type_of(precision, 2, 3)
    scales = ffi.new("float[]", [0.5, 0.25, 2.0])
    if "PER_CHANNEL" in precision.name:
        params = type_.symm_per_channel_params
        params.channel_dim, params.scale_count, params.scales = 1, 3, scales
    elif "ASYMM" in precision.name:
        type_.asymm_per_layer_params.scale, type_.asymm_per_layer_params.zero_point = 0.5, 3
    elif "SYMM" in precision.name:
        type_.symm_per_layer_params.scale = 0.5
    return type_, scales


@pytest.mark.parametrize("precision", Precision)
def test_types_are_copied_and_told_again(nn: Any, precision: Precision) -> None:
    model = made(nn, "Model", nn.NNAdapterModel_create)
    type_, scales = quantized(precision)
    type_.layout = 1
    type_.dimensions.data[0] = -65535
    type_.dimensions.dynamic_count = 2
    type_.dimensions.dynamic_data[0] = [1, 3, 0, 0, 0, 0, 0, 0]
    type_.dimensions.dynamic_data[1] = [4, 3, 0, 0, 0, 0, 0, 0]
    before = bytes(ffi.buffer(type_))
    added = operand(nn, model, type_)
    scales[0:3] = [9, 9, 9]
    ffi.memmove(type_, bytes(len(before)), len(before))
    place = ffi.new("NNAdapterOperandType **")
    done(nn, nn.NNAdapterModel_getOperandType(added, place))
    gc.collect()
    params = place[0].symm_per_channel_params
    if "PER_CHANNEL" in precision.name:
        assert list(ffi.unpack(params.scales, params.scale_count)) == [0.5, 0.25, 2.0]
        end = ffi.offsetof("NNAdapterOperandType", "symm_per_channel_params") + 8
    else:
        end = len(before)
    assert bytes(ffi.buffer(place[0]))[:end] == before[:end]
    first = place[0]
    done(nn, nn.NNAdapterModel_getOperandType(added, place))
    assert place[0] == first


def test_a_copied_value_may_change_and_a_reference_is_read_where_it_is(nn: Any) -> None:
    for copy in (True, False):
        model = made(nn, "Model", nn.NNAdapterModel_create)
        x, constant, y = (operand(nn, model, type_of(FLOAT32, 1, 2)) for _ in range(3))
        value = ffi.new("float[]", [1, 2])
        done(nn, nn.NNAdapterModel_setOperandValue(constant, value, 8, copy))
        value[0] = 5
        operation(nn, model, Op.NNADAPTER_ADD, [x, constant, integers(nn, model, 0)], y)
        done(nn, nn.NNAdapterModel_identifyInputsAndOutputs(model, 1, [x], 1, [y]))
        done(nn, nn.NNAdapterModel_finish(model))
        execution = execution_of(nn, compiled(nn, model))
        expected = [[1, 2]] if copy else [[5, 2]]
        np.testing.assert_array_equal(run(nn, execution, np.zeros((1, 2), np.float32)), expected)


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (lambda type_: setattr(type_.dimensions, "count", 9), UNSHAPED, "9 axes are more than 8"),
        (
            lambda type_: setattr(type_.dimensions, "dynamic_count", 2**32 - 1),
            UNSHAPED,
            "4294967295 shapes are more than 8",
        ),
        (
            lambda type_: setattr(type_.symm_per_channel_params, "scales", ffi.NULL),
            INVALID,
            "scales is NULL",
        ),
        (
            lambda type_: setattr(type_.symm_per_channel_params, "scale_count", 2**31),
            INVALID,
            "2147483648 scales for the 3 channels of axis 1",
        ),
        (
            lambda type_: setattr(type_.symm_per_channel_params, "channel_dim", 2),
            INVALID,
            "channel_dim is 2, but there are 2 axes",
        ),
        (lambda type_: setattr(type_, "precision", 17), INVALID, "no NNAdapterOperandPrecision"),
        (lambda type_: setattr(type_, "layout", 4), INVALID, "no NNAdapterOperandLayoutCode"),
    ],
)
def test_types_that_there_are_not(
    nn: Any, change: Callable[[Any], None], code: Code, text: str
) -> None:
    model = made(nn, "Model", nn.NNAdapterModel_create)
    type_, _scales = quantized(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL)
    change(type_)
    place = ffi.new("NNAdapterOperand **")
    assert nn.NNAdapterModel_addOperand(model, type_, place) == code, told(nn)
    assert text in told(nn)
    assert place[0] == ffi.NULL


def test_values_that_do_not_fit(nn: Any) -> None:
    model = made(nn, "Model", nn.NNAdapterModel_create)
    added = operand(nn, model, type_of(FLOAT32, 2))
    data = ffi.new("char[8]")
    for length in (0, 7, 2**32 - 1):
        assert nn.NNAdapterModel_setOperandValue(added, data, length, True) == INVALID
        assert f"{length} bytes" in told(nn)
    assert nn.NNAdapterModel_setOperandValue(added, ffi.NULL, 8, True) == INVALID
    assert "buffer is NULL" in told(nn)


def test_what_is_destroyed_takes_its_parts_with_it(nn: Any) -> None:
    model = made(nn, "Model", nn.NNAdapterModel_create)
    added = operand(nn, model, type_of(FLOAT32, 2))
    nn.NNAdapterModel_destroy(model)
    place = ffi.new("NNAdapterOperandType **")
    assert nn.NNAdapterModel_getOperandType(added, place) == INVALID
    assert "destroyed" in told(nn)
    assert not len(HANDLES)


def access(answer: Callable[[Any], Any]) -> Any:
    """An access function that answers so."""
    return ffi.callback("void *(void *, NNAdapterOperandType *, void *)", lambda m, t, d: answer(t))


def _nine(type_: Any) -> Any:
    type_.dimensions.count = 9
    return ffi.NULL


def _other(type_: Any) -> Any:
    type_.dimensions.count, type_.dimensions.data[0] = 1, 5
    return type_


def _unknown(type_: Any) -> Any:
    return type_


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (_nine, UNSHAPED, "9 axes are more than 8"),
        (_other, UNSHAPED, "[5], which do not fit"),
        (_unknown, UNSHAPED, "[-65535, 3], which do not fit"),
        (lambda type_: _sized(type_) and ffi.NULL, INVALID, "the access function returned NULL"),
    ],
)
def test_inputs_that_access_functions_do_not_give(
    nn: Any, answer: Callable[[Any], Any], code: Code, text: str
) -> None:
    compilation = compiled(nn, softmax(nn, -65535, 3))
    execution = execution_of(nn, compilation)
    function = access(answer)
    zeros = ffi.new_handle(np.zeros((1, 3), np.float32))
    done(nn, nn.NNAdapterExecution_setInput(execution, 0, zeros, read))
    done(nn, nn.NNAdapterExecution_setInput(execution, 1, ffi.NULL, function))
    done(nn, nn.NNAdapterExecution_setOutput(execution, 0, ffi.NULL, access(lambda t: ffi.NULL)))
    assert nn.NNAdapterExecution_compute(execution) == code
    assert text in told(nn)


def _sized(type_: Any) -> bool:
    type_.dimensions.data[0] = 1
    return True


def test_an_output_that_has_no_place(nn: Any) -> None:
    compilation = compiled(nn, softmax(nn, 1, 3))
    execution = execution_of(nn, compilation)
    zeros = ffi.new_handle(np.zeros((1, 3), np.float32))
    nowhere = access(lambda type_: ffi.NULL)
    for index in range(2):
        done(nn, nn.NNAdapterExecution_setInput(execution, index, zeros, read))
    done(nn, nn.NNAdapterExecution_setOutput(execution, 0, ffi.NULL, nowhere))
    assert nn.NNAdapterExecution_compute(execution) == INVALID
    assert "returned NULL" in told(nn)
    for index in (-1, 1, 2**31 - 1):
        assert nn.NNAdapterExecution_setOutput(execution, index, zeros, written) == INVALID
    assert nn.NNAdapterExecution_setOutput(execution, 0, zeros, ffi.NULL) == INVALID
    assert told(nn) == "NNAdapterExecution_setOutput: access is NULL"


def test_no_elements_need_no_memory(nn: Any) -> None:
    compilation = compiled(nn, softmax(nn, -65535, 3))
    execution = execution_of(nn, compilation)
    empty = np.zeros((0, 3), np.float32)
    assert run(nn, execution, empty, empty).shape == (0, 3)


def test_keeping_what_was_compiled(nn: Any, tmp_path: Path) -> None:
    folder = str(tmp_path).encode()
    model = softmax(nn, 2, 3)
    compiled(nn, model, b"token", ffi.NULL, 0, folder)
    content = (tmp_path / "token.nnc").read_bytes()
    x = np.ones((2, 3), np.float32)
    for kept in (
        (b"token", ffi.NULL, 0, folder),
        (b"token", ffi.from_buffer(content), len(content), ffi.NULL),
    ):
        compilation = compiled(nn, ffi.NULL, *kept)
        execution = execution_of(nn, compilation)
        np.testing.assert_allclose(run(nn, execution, x, x), np.full((2, 3), 1 / 3), rtol=1e-6)
    place = ffi.new("NNAdapterCompilation **")
    create = nn.NNAdapterCompilation_create
    own = context(nn)
    assert create(model, b"token", ffi.NULL, 8, ffi.NULL, own, place) == INVALID
    assert told(nn) == "NNAdapterCompilation_create: cache_buffer is NULL"
    assert create(ffi.NULL, ffi.NULL, ffi.NULL, 0, ffi.NULL, own, place) == INVALID


WITH_HANDLES = [
    function
    for function in HEADER.functions
    if re.match(r"(const )?NNAdapter\w+ (\*\w|\*\*devices)", function.parameters[0].declaration)
]
SCRATCH = ffi.new("char[]", 4096)
DESTROYING = ("_destroy", "_release")


def arguments(function: Any, handle: Any) -> list[Any]:
    """A handle, and what else a function needs to look at it."""
    passed = [handle]
    for parameter in function.parameters[1:]:
        declared = parameter.declaration
        if "(*access)" in declared:
            passed.append(read)
        elif "(*callback)" in declared or declared.startswith("const char *"):
            passed.append(ffi.NULL)
        elif "*" in declared:
            passed.append(SCRATCH)
        else:
            passed.append(0)
    return [
        ffi.cast(ffi.typeof(p.declaration.removesuffix(p.name).strip()), a)
        if "*" in p.declaration and "(*" not in p.declaration
        else a
        for p, a in zip(function.parameters, passed, strict=True)
    ]


@pytest.mark.parametrize("wrong", ["null", "a number", "destroyed", "another kind", "an address"])
@pytest.mark.parametrize("function", WITH_HANDLES, ids=lambda function: function.name)
def test_what_is_no_handle_is_refused(nn: Any, function: Any, wrong: str) -> None:
    destroyed = made(nn, "Model", nn.NNAdapterModel_create)
    nn.NNAdapterModel_destroy(destroyed)
    other = device(nn) if "Device" not in function.name else softmax(nn, 1, 1)
    memory = ffi.new("char[64]")
    handle = {
        "null": ffi.NULL,
        "a number": ffi.cast("void *", 7),
        "destroyed": destroyed,
        "another kind": other,
        "an address": memory,
    }[wrong]
    if function.name == "NNAdapterContext_create":
        handle = ffi.new("void *[]", [handle])
    passed = arguments(function, handle)
    count = len(HANDLES)
    answer = getattr(nn, function.name)(*passed)
    if function.name.endswith(DESTROYING):
        assert answer is None
    else:
        assert answer == INVALID, told(nn)
    assert len(HANDLES) == count


PLACES = [
    (function, index)
    for function in HEADER.functions
    for index, parameter in enumerate(function.parameters)
    if "*" in parameter.declaration
    and parameter.name
    in (
        *("version", "numDevices", "name", "vendor", "device", "type", "context", "model"),
        *("operand", "operation", "supported_operations", "compilation", "execution", "access"),
        *("input_count", "output_count"),
    )
]


@pytest.mark.parametrize(
    ("function", "index"), PLACES, ids=[f"{f.name}-{f.parameters[i].name}" for f, i in PLACES]
)
def test_a_place_that_is_null_is_refused(nn: Any, function: Any, index: int) -> None:
    passed = arguments(function, SCRATCH)
    passed[index] = ffi.NULL
    answer = getattr(nn, function.name)(*passed)
    if function.name.endswith(DESTROYING):
        assert answer is None
    else:
        assert answer == INVALID
    assert not len(HANDLES)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("by 0"), KeyboardInterrupt(), SystemExit(3), MemoryError()]
)
def test_no_exception_of_python_gets_out(
    nn: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(face, "NNAdapter_getVersion", fail)
    monkeypatch.setattr(face, "NNAdapterModel_destroy", lambda model: fail())
    expected = (
        Code.NNADAPTER_OUT_OF_MEMORY
        if isinstance(error, MemoryError)
        else Code.NNADAPTER_DEVICE_INTERNAL_ERROR
    )
    assert nn.NNAdapter_getVersion(ffi.new("uint32_t *")) == expected
    assert told(nn).startswith("NNAdapter_getVersion: ")
    assert type(error).__name__ in told(nn)
    nn.NNAdapterModel_destroy(ffi.NULL)
    assert told(nn).startswith("NNAdapterModel_destroy: ")


def test_calls_of_the_face_alone_are_on_the_same_objects(nn: Any) -> None:
    model = softmax(nn, 1, 3)
    own = HANDLES.get(int(ffi.cast("uintptr_t", model)))
    assert isinstance(own, face.NNAdapterModel)
    assert own.finished is not None
    assert [operation.code for operation in own.operations] == [Op.NNADAPTER_ADD, 77]
    assert list(itertools.chain.from_iterable(o.outputs for o in own.operations))
