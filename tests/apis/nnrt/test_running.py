"""Programs written for NNRt run, and each misuse has its code."""

from __future__ import annotations

import inspect
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.apis.nnrt.programs import Code, Program, described, device, done, tensor, wrong

from crosschip.apis import nnrt
from crosschip.apis.nnrt import (
    Conformance,
    NN_TensorDesc,
    OH_NN_DataType,
    OH_NN_PerformanceMode,
    OH_NN_Priority,
    OH_NN_Tensor,
    OH_NNCompilation,
    OH_NNExecutor,
    set_conformance,
)
from crosschip.apis.results import last_error

X = np.arange(6, dtype=np.float32).reshape(2, 3)

FUNCTIONS = """
    OH_NNCompilation_AddExtensionConfig OH_NNCompilation_Build OH_NNCompilation_Construct
    OH_NNCompilation_ConstructForCache OH_NNCompilation_ConstructWithOfflineModelBuffer
    OH_NNCompilation_ConstructWithOfflineModelFile OH_NNCompilation_Destroy
    OH_NNCompilation_EnableFloat16 OH_NNCompilation_ExportCacheToBuffer
    OH_NNCompilation_ImportCacheFromBuffer OH_NNCompilation_SetCache OH_NNCompilation_SetDevice
    OH_NNCompilation_SetPerformanceMode OH_NNCompilation_SetPriority
    OH_NNDevice_GetAllDevicesID OH_NNDevice_GetName OH_NNDevice_GetType
    OH_NNExecutor_AllocateInputMemory OH_NNExecutor_AllocateOutputMemory
    OH_NNExecutor_Construct OH_NNExecutor_CreateInputTensorDesc
    OH_NNExecutor_CreateOutputTensorDesc OH_NNExecutor_Destroy OH_NNExecutor_DestroyInputMemory
    OH_NNExecutor_DestroyOutputMemory OH_NNExecutor_GetInputCount
    OH_NNExecutor_GetInputDimRange OH_NNExecutor_GetOutputCount OH_NNExecutor_GetOutputShape
    OH_NNExecutor_Run OH_NNExecutor_RunAsync OH_NNExecutor_RunSync OH_NNExecutor_SetInput
    OH_NNExecutor_SetInputWithMemory OH_NNExecutor_SetOnRunDone OH_NNExecutor_SetOnServiceDied
    OH_NNExecutor_SetOutput OH_NNExecutor_SetOutputWithMemory OH_NNModel_AddOperation
    OH_NNModel_AddTensor OH_NNModel_AddTensorToModel OH_NNModel_Construct OH_NNModel_Destroy
    OH_NNModel_Finish OH_NNModel_GetAvailableOperations OH_NNModel_SetTensorData
    OH_NNModel_SetTensorQuantParams OH_NNModel_SetTensorType OH_NNModel_SpecifyInputsAndOutputs
    OH_NNQuantParam_Create OH_NNQuantParam_Destroy OH_NNQuantParam_SetNumBits
    OH_NNQuantParam_SetScales OH_NNQuantParam_SetZeroPoints OH_NNTensorDesc_Create
    OH_NNTensorDesc_Destroy OH_NNTensorDesc_GetByteSize OH_NNTensorDesc_GetDataType
    OH_NNTensorDesc_GetElementCount OH_NNTensorDesc_GetFormat OH_NNTensorDesc_GetName
    OH_NNTensorDesc_GetShape OH_NNTensorDesc_SetDataType OH_NNTensorDesc_SetFormat
    OH_NNTensorDesc_SetName OH_NNTensorDesc_SetShape OH_NNTensor_Create
    OH_NNTensor_CreateWithFd OH_NNTensor_CreateWithSize OH_NNTensor_Destroy
    OH_NNTensor_GetDataBuffer OH_NNTensor_GetFd OH_NNTensor_GetOffset OH_NNTensor_GetSize
    OH_NNTensor_GetTensorDesc
"""


def squares(*shape: int) -> Program:
    """A model of one operation: a square."""
    program = Program()
    x, y = program.tensor(*shape), program.tensor(*shape)
    done(program.add("SQUARE", [x], y))
    done(program.finish([x], y))
    return program


def compilation(*shape: int) -> OH_NNCompilation:
    """A compilation of `squares`."""
    program = squares(*shape)
    made = nnrt.OH_NNCompilation_Construct(program.model)
    assert made is not None
    nnrt.OH_NNModel_Destroy(program.model)
    done(nnrt.OH_NNCompilation_SetDevice(made, device()))
    return made


def executor(*shape: int) -> OH_NNExecutor:
    """An executor of `squares`."""
    compiled = compilation(*shape)
    done(nnrt.OH_NNCompilation_Build(compiled))
    made = nnrt.OH_NNExecutor_Construct(compiled)
    assert made is not None
    nnrt.OH_NNCompilation_Destroy(compiled)
    return made


@pytest.fixture
def reference() -> Iterator[None]:
    """The source's behaviour."""
    set_conformance(Conformance.REFERENCE)
    yield
    set_conformance(None)


def test_all_functions_are_there() -> None:
    names = FUNCTIONS.split()
    assert len(names) == 75
    found = {name for name in nnrt.__all__ if inspect.isfunction(getattr(nnrt, name))}
    assert found - {"calls", "last_error", "set_conformance"} == set(names)


def test_a_model_runs_after_all_it_was_made_of_is_gone() -> None:
    runner, y = executor(2, 3), tensor(np.zeros((2, 3), np.float32))
    done(nnrt.OH_NNExecutor_RunSync(runner, [tensor(X)], [y]))
    np.testing.assert_array_equal(y.array, X * X)
    assert nnrt.OH_NNExecutor_GetOutputShape(runner, 0) == (Code.OH_NN_SUCCESS, (2, 3))
    assert nnrt.OH_NNExecutor_GetInputCount(runner) == (Code.OH_NN_SUCCESS, 1)
    nnrt.OH_NNExecutor_Destroy(runner)
    wrong(nnrt.OH_NNExecutor_RunSync(runner, [tensor(X)], [y]), Code.OH_NN_INVALID_PARAMETER)


def test_open_sizes_are_known_when_it_runs() -> None:
    runner = executor(-1, 3)
    desc = nnrt.OH_NNExecutor_CreateInputTensorDesc(runner, 0)
    assert desc is not None
    assert nnrt.OH_NNTensorDesc_GetShape(desc)[1] == (-1, 3)
    assert nnrt.OH_NNExecutor_GetInputDimRange(runner, 0)[1] == ([1, 3], [2**31 - 1, 3])
    wrong(nnrt.OH_NNTensorDesc_GetByteSize(desc), Code.OH_NN_DYNAMIC_SHAPE)
    assert nnrt.OH_NNTensor_Create(device(), desc) is None
    for rows in (1, 4):
        x, y = np.full((rows, 3), 3, np.float32), tensor(np.zeros((4, 3), np.float32))
        done(nnrt.OH_NNExecutor_RunSync(runner, [tensor(x)], [y]))
        assert nnrt.OH_NNExecutor_GetOutputShape(runner, 0)[1] == (rows, 3)
        np.testing.assert_array_equal(y.array, x * x)


def test_a_run_is_answered_later() -> None:
    runner, y = executor(2, 3), tensor(np.zeros((2, 3), np.float32))
    answers: list[tuple[Any, ...]] = []
    ended = threading.Event()

    def finish(*told: Any) -> None:
        answers.append(told)
        ended.set()

    early = nnrt.OH_NNExecutor_RunAsync(runner, [tensor(X)], [y], 1000, "it")
    wrong(early, Code.OH_NN_OPERATION_FORBIDDEN, "SetOnRunDone")
    done(nnrt.OH_NNExecutor_SetOnRunDone(runner, finish))
    done(nnrt.OH_NNExecutor_SetOnServiceDied(runner, finish))
    done(nnrt.OH_NNExecutor_RunAsync(runner, [tensor(X)], [y], 60000, "it"))
    assert ended.wait(60)
    assert answers == [("it", Code.OH_NN_SUCCESS, [y], 1)]
    np.testing.assert_array_equal(y.array, X * X)
    none = nnrt.OH_NNExecutor_RunAsync(runner, [tensor(X)], [y], 60000, None)
    wrong(none, Code.OH_NN_INVALID_PARAMETER)


def test_the_source_runs_nothing_later(reference: None) -> None:
    runner = executor(2, 3)
    wrong(nnrt.OH_NNExecutor_SetOnRunDone(runner, print), Code.OH_NN_OPERATION_FORBIDDEN)
    x = [tensor(X)]
    wrong(nnrt.OH_NNExecutor_RunAsync(runner, x, x, 9, 1), Code.OH_NN_OPERATION_FORBIDDEN)


def test_inputs_and_outputs_one_by_one() -> None:
    runner, y = executor(2, 3), np.zeros((2, 3), np.float32)
    type_ = OH_NN_Tensor(OH_NN_DataType.OH_NN_FLOAT32, (2, 3))
    wrong(nnrt.OH_NNExecutor_Run(runner), Code.OH_NN_INVALID_PARAMETER, "input 0")
    done(nnrt.OH_NNExecutor_SetInput(runner, 0, type_, X))
    done(nnrt.OH_NNExecutor_SetOutput(runner, 0, y))
    done(nnrt.OH_NNExecutor_Run(runner))
    np.testing.assert_array_equal(y, X * X)
    given = nnrt.OH_NNExecutor_AllocateInputMemory(runner, 0, 24)
    made = nnrt.OH_NNExecutor_AllocateOutputMemory(runner, 0, 24)
    assert given is not None
    assert made is not None
    done(nnrt.OH_NNExecutor_SetInputWithMemory(runner, 0, type_, given))
    done(nnrt.OH_NNExecutor_SetOutputWithMemory(runner, 0, made))
    given.data[:] = (X + 1).tobytes()
    done(nnrt.OH_NNExecutor_Run(runner))
    np.testing.assert_array_equal(np.frombuffer(made.data, np.float32), (X + 1).ravel() ** 2)
    nnrt.OH_NNExecutor_DestroyInputMemory(runner, 0, made)  # another's, which stays
    done(nnrt.OH_NNExecutor_SetOutputWithMemory(runner, 0, made))
    nnrt.OH_NNExecutor_DestroyOutputMemory(runner, 0, made)
    code = nnrt.OH_NNExecutor_SetOutputWithMemory(runner, 0, made)
    wrong(code, Code.OH_NN_INVALID_PARAMETER)
    short = nnrt.OH_NNExecutor_SetInput(runner, 0, type_, X[:1])
    wrong(short, Code.OH_NN_INVALID_PARAMETER, "24")


def test_a_tensor_is_in_a_file_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "elements"
    path.write_bytes(b"\0" * 8 + X.tobytes())
    descriptor = os.open(path, os.O_RDWR)
    desc = described("float32", (2, 3))
    made = nnrt.OH_NNTensor_CreateWithFd(device(), desc, descriptor, 32, 8)
    os.close(descriptor)
    assert made is not None
    np.testing.assert_array_equal(made.array, X)
    assert nnrt.OH_NNTensor_GetOffset(made) == (Code.OH_NN_SUCCESS, 8)
    assert nnrt.OH_NNTensor_GetSize(made) == (Code.OH_NN_SUCCESS, 32)
    assert nnrt.OH_NNTensor_CreateWithFd(device(), desc, -1, 32, 8) is None
    assert nnrt.OH_NNTensor_CreateWithSize(device(), desc, 23) is None
    done(nnrt.OH_NNTensor_Destroy(made))
    wrong(nnrt.OH_NNTensor_Destroy(made), Code.OH_NN_INVALID_PARAMETER)


def test_memory_that_there_is_not() -> None:
    """Files and memory that a process may not have more of are a null handle, and leave nothing."""
    desc = described("float32", (4,))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, limits[1]))
    try:
        made = [nnrt.OH_NNTensor_Create(device(), desc) for _ in range(8)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert made[-1] is None
    assert "OH_NNTensor_Create: no memory for 16 bytes: Too many open files" in last_error()
    for tensor_ in made:
        if tensor_ is not None:
            done(nnrt.OH_NNTensor_Destroy(tensor_))
    read, write = os.pipe()
    before = os.listdir("/proc/self/fd")
    assert nnrt.OH_NNTensor_CreateWithFd(device(), desc, read, 32, 8) is None
    assert "the file does not hold 32 bytes" in last_error()
    assert os.listdir("/proc/self/fd") == before
    os.close(read)
    os.close(write)


def test_settings_reach_the_device() -> None:
    compiled = compilation(2, 3)
    mode, priority = OH_NN_PerformanceMode(3), OH_NN_Priority(3)
    done(nnrt.OH_NNCompilation_SetPerformanceMode(compiled, mode))
    done(nnrt.OH_NNCompilation_SetPriority(compiled, priority))
    done(nnrt.OH_NNCompilation_EnableFloat16(compiled, True))
    done(nnrt.OH_NNCompilation_AddExtensionConfig(compiled, "key", b"a"))
    done(nnrt.OH_NNCompilation_AddExtensionConfig(compiled, "key", b"b"))
    assert compiled.extensions == {"key": b"a|b"}
    # The reference does not compute in float16.
    wrong(nnrt.OH_NNCompilation_Build(compiled), Code.OH_NN_UNAVALIDABLE_DEVICE, "float16")
    done(nnrt.OH_NNCompilation_EnableFloat16(compiled, False))
    done(nnrt.OH_NNCompilation_Build(compiled))
    assert compiled.built is not None
    assert compiled.built.priority.value == priority.value


def test_what_is_compiled_is_kept(tmp_path: Path) -> None:
    folder, late, early = str(tmp_path), Code.OH_NN_INVALID_PARAMETER, Code.OH_NN_INVALID_PATH
    for version, code in ((3, Code.OH_NN_SUCCESS), (2, late), (4, Code.OH_NN_SUCCESS)):
        compiled = compilation(2, 3)
        done(nnrt.OH_NNCompilation_SetCache(compiled, folder, version))
        assert nnrt.OH_NNCompilation_Build(compiled) is code
    assert [path.name for path in tmp_path.glob("*.nnc")] == ["nnrt_4.nnc"]
    kept = nnrt.OH_NNCompilation_ConstructForCache()
    assert kept is not None
    wrong(nnrt.OH_NNCompilation_Build(kept), Code.OH_NN_INVALID_PARAMETER)
    done(nnrt.OH_NNCompilation_SetCache(kept, folder, 4))
    done(nnrt.OH_NNCompilation_Build(kept))
    code, content = nnrt.OH_NNCompilation_ExportCacheToBuffer(kept)
    done(code)
    missing = compilation(2, 3)
    done(nnrt.OH_NNCompilation_SetCache(missing, f"{folder}/none", 4))
    wrong(nnrt.OH_NNCompilation_Build(missing), early)
    for make in (nnrt.OH_NNCompilation_ConstructForCache, lambda: offline(content)):
        imported = make()
        assert imported is not None
        if imported.saved is None:
            done(nnrt.OH_NNCompilation_ImportCacheFromBuffer(imported, content))
        done(nnrt.OH_NNCompilation_Build(imported))
        runner = nnrt.OH_NNExecutor_Construct(imported)
        assert runner is not None
        y = tensor(np.zeros((2, 3), np.float32))
        done(nnrt.OH_NNExecutor_RunSync(runner, [tensor(X)], [y]))
        np.testing.assert_array_equal(y.array, X * X)
    damaged = offline(b"damaged")
    wrong(nnrt.OH_NNCompilation_Build(damaged), Code.OH_NN_INVALID_FILE)


def offline(content: bytes | None) -> Any:
    return nnrt.OH_NNCompilation_ConstructWithOfflineModelBuffer(content)


AFTER_BUILD: dict[str, tuple[Callable[[OH_NNCompilation], Code], Code, Code]] = {
    "build": (
        *(nnrt.OH_NNCompilation_Build, Code.OH_NN_OPERATION_FORBIDDEN),
        Code.OH_NN_INVALID_PARAMETER,
    ),
    "device": (
        *(lambda c: nnrt.OH_NNCompilation_SetDevice(c, 0), Code.OH_NN_OPERATION_FORBIDDEN),
        Code.OH_NN_SUCCESS,
    ),
    "cache": (
        *(lambda c: nnrt.OH_NNCompilation_SetCache(c, "/", 1), Code.OH_NN_OPERATION_FORBIDDEN),
        Code.OH_NN_SUCCESS,
    ),
    "float16": (
        *(lambda c: nnrt.OH_NNCompilation_EnableFloat16(c, True), Code.OH_NN_OPERATION_FORBIDDEN),
        Code.OH_NN_SUCCESS,
    ),
    "performance": (
        lambda c: nnrt.OH_NNCompilation_SetPerformanceMode(c, 9),  # type: ignore[arg-type]
        *(Code.OH_NN_OPERATION_FORBIDDEN, Code.OH_NN_INVALID_PARAMETER),
    ),
}


@pytest.mark.parametrize("name", AFTER_BUILD)
def test_what_is_built_is_not_changed(name: str) -> None:
    call, documented, in_source = AFTER_BUILD[name]
    compiled = compilation(2, 3)
    done(nnrt.OH_NNCompilation_Build(compiled))
    assert call(compiled) is documented
    set_conformance(Conformance.REFERENCE)
    try:
        assert call(compiled) is in_source
    finally:
        set_conformance(None)


def test_a_size_that_is_open_in_the_source(reference: None) -> None:
    desc: NN_TensorDesc = described("float32", (-1, 3))
    assert nnrt.OH_NNTensorDesc_GetByteSize(desc) == (Code.OH_NN_SUCCESS, 0)
    wrong(nnrt.OH_NNTensorDesc_GetElementCount(desc), Code.OH_NN_DYNAMIC_SHAPE)


def test_what_a_builder_refuses() -> None:
    program = Program()
    x, y, z = program.tensor(2, 3), program.tensor(2, 3), program.tensor(2, 3)
    bad = Code.OH_NN_INVALID_PARAMETER
    wrong(program.add("ADD", [x], z), bad, "reads 2 tensors")
    wrong(program.add("ADD", [x, x, y], z), bad, "reads 2 tensors")
    wrong(program.add("ADD", [x, z], z), bad, "both an input and an output")
    wrong(program.add("ADD", [x, 99], z), bad, "no tensor 99")
    wrong(program.add("ADD", [], z), bad, "0 indices")
    place = program.parameter("CONCAT_AXIS", 0)
    wrong(program.add("ADD", [x, place], z), bad, "is a parameter")
    model, add = program.model, nnrt.OH_NN_OperationType.OH_NN_OPS_ADD
    wrong(nnrt.OH_NNModel_AddOperation(model, add, [place], [x, y], [z]), bad, "no parameter")
    wrong(nnrt.OH_NNModel_AddOperation(model, 999, [], [x, y], [z]), bad)  # type: ignore[arg-type]
    wide = program.constant(np.int64(1))
    kind = nnrt.OH_NN_TensorType.OH_NN_ADD_ACTIVATIONTYPE
    done(nnrt.OH_NNModel_SetTensorType(model, wide, kind))
    wrong(nnrt.OH_NNModel_AddOperation(model, add, [wide], [x, y], [z]), bad, "OH_NN_INT8")
    wrong(nnrt.OH_NNModel_SetTensorData(model, wide, np.int64(1)), bad, "already")
    wrong(nnrt.OH_NNModel_SetTensorData(model, x, b"short"), bad, "24 bytes")
    forbidden = Code.OH_NN_OPERATION_FORBIDDEN
    wrong(nnrt.OH_NNModel_Finish(model), forbidden)
    wrong(nnrt.OH_NNModel_GetAvailableOperations(model, device()), forbidden)
    done(program.add("ADD", [x, y], z))
    done(program.finish([x, y], z))
    wrong(nnrt.OH_NNModel_Finish(model), forbidden)
    wrong(nnrt.OH_NNModel_AddTensorToModel(model, described("int8")), forbidden)
    found = nnrt.OH_NNModel_GetAvailableOperations(model, device())
    assert found == (Code.OH_NN_SUCCESS, [True])
    wrong(nnrt.OH_NNModel_GetAvailableOperations(model, 5), Code.OH_NN_FAILED, "no device")


def test_what_memory_does_not_hold() -> None:
    """The description of a tensor is its own, and can be changed; its memory stays as it is."""
    runner, x, y = executor(-1, 3), tensor(X), tensor(X)
    done(nnrt.OH_NNTensorDesc_SetShape(nnrt.OH_NNTensor_GetTensorDesc(x), (4, 3)))  # type: ignore[arg-type]
    short = nnrt.OH_NNExecutor_RunSync(runner, [x], [y])
    wrong(short, Code.OH_NN_FAILED, "takes 48 bytes, but there are 24")
    four = tensor(np.zeros((4, 3), np.float32))
    short = nnrt.OH_NNExecutor_RunSync(runner, [four], [y])
    wrong(short, Code.OH_NN_FAILED, "takes 48 bytes, but there are 24")
    huge = described("float32", (2**31 - 1,) * 4)
    for ask in (nnrt.OH_NNTensorDesc_GetElementCount, nnrt.OH_NNTensorDesc_GetByteSize):
        wrong(ask(huge), Code.OH_NN_INVALID_PARAMETER, "more elements than there can be")


def test_devices_have_numbers() -> None:
    wrong(nnrt.OH_NNDevice_GetName(5), Code.OH_NN_FAILED)
    wrong(nnrt.OH_NNDevice_GetType(5), Code.OH_NN_INVALID_PARAMETER)
    assert nnrt.OH_NNDevice_GetType(device())[1] is nnrt.OH_NN_DeviceType.OH_NN_CPU
