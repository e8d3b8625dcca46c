"""What OpenHarmony's tests of NNRt expect beyond the document: codes, types and moments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.apis.nnrt.programs import Code, Program, device, done, run_once, tensor, wrong
from tests.apis.nnrt.test_parameters import close, computed
from tests.apis.nnrt.test_running import X, compilation, executor

from crosschip.apis import nnrt
from crosschip.apis.nnrt import (
    Conformance,
    OH_NN_DataType,
    OH_NN_OperationType,
    OH_NN_Tensor,
    OH_NN_TensorType,
    set_conformance,
)
from crosschip.apis.nnrt.rows import rows
from crosschip.apis.nnrt.tensor import MOST_BYTES
from crosschip.ir import Array, Quantization
from crosschip.mapping.rules import Variadic

INVALID, FAILED = Code.OH_NN_INVALID_PARAMETER, Code.OH_NN_FAILED
OUTPUTS = {"TOP_K": 2, "LSTM": 3, "DETECTION_POST_PROCESS": 4}
"""Operators that have several outputs; `SPLIT` and `UNSTACK` have any number, others one."""


@pytest.fixture
def reference() -> Iterator[None]:
    """The source's behaviour."""
    set_conformance(Conformance.REFERENCE)
    yield
    set_conformance(None)


@pytest.mark.parametrize("code", OH_NN_OperationType, ids=lambda code: code.name[11:])
def test_an_operation_has_as_many_outputs_as_its_operator(code: OH_NN_OperationType) -> None:
    name = code.name.removeprefix("OH_NN_OPS_")
    entries = rows()[code]
    inputs = max(entry.inputs for entry in entries)
    if any(isinstance(rule, Variadic) for rule in entries[0].row.operands):
        inputs += 2
    program = Program()
    read = [program.tensor(2, 2) for _ in range(inputs)]
    written = [program.tensor(2, 2) for _ in range(OUTPUTS.get(name, 1) + 1)]
    surplus = program.add(name, read, *written)
    if name in ("SPLIT", "UNSTACK"):
        done(surplus)
        return
    wrong(surplus, INVALID, f"has {len(written) - 1} outputs, not {len(written)}")
    done(program.add(name, read, *written[:-1]))
    if len(written) > 2:
        wrong(program.add(name, read, *written[:-2]), INVALID, "outputs, not")


A, B = np.array([3, 0, -2, 0]), np.array([1, 1, 0, 0])


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32", "bool"])
def test_what_is_not_zero_is_true(dtype: str) -> None:
    a, b = np.abs(A).astype(dtype), B.astype(dtype)
    for name, wanted in (
        ("LOGICAL_AND", np.logical_and(a, b)),
        ("LOGICAL_OR", np.logical_or(a, b)),
    ):
        close(computed(name, [a, b], a.shape, dtype="bool"), wanted)
    close(computed("LOGICAL_NOT", [a], a.shape, dtype="bool"), np.logical_not(a))
    close(computed("SELECT", [a, b, a], a.shape, dtype=dtype), np.where(a, b, a))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("is_input", [False, True])
def test_k_is_an_integer_of_any_type(dtype: str, is_input: bool) -> None:
    program = Program()
    x = program.tensor(2, 3)
    two = np.array([2], dtype)
    k = program.tensor(1, dtype=dtype) if is_input else program.constant(two)
    greatest = program.tensor(2, -1 if is_input else 2)
    places = program.tensor(2, -1 if is_input else 2, dtype="int32")
    done(program.add("TOP_K", [x, k], greatest, places, AXIS=[1]))
    done(program.finish([x, k] if is_input else [x], greatest, places))
    like = [np.zeros((2, 2), np.float32), np.zeros((2, 2), np.int32)]
    found = run_once(program.model, [X, two] if is_input else [X], like)
    order = np.argsort(-X, axis=1, kind="stable")[:, :2]
    close(found, np.take_along_axis(X, order, 1), order)


def test_a_cache_in_a_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is meant where the program was when it said so."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    compiled = compilation(2, 3)
    done(nnrt.OH_NNCompilation_SetCache(compiled, os.path.join(".", "kept"), 1))
    monkeypatch.chdir(tmp_path / "elsewhere")
    done(nnrt.OH_NNCompilation_Build(compiled))
    assert [path.name for path in (tmp_path / "kept").glob("*.nnc")] == ["nnrt_1.nnc"]
    wrong(nnrt.OH_NNCompilation_SetCache(compilation(2, 3), "", 1), INVALID, "the folder is ''")


def test_an_input_is_no_parameter() -> None:
    runner = executor(2, 3)
    for type_ in (OH_NN_TensorType.OH_NN_ADD_ACTIVATIONTYPE, 999):
        description = OH_NN_Tensor(OH_NN_DataType.OH_NN_FLOAT32, (2, 3), type=type_)  # type: ignore[arg-type]
        wrong(nnrt.OH_NNExecutor_SetInput(runner, 0, description, X), INVALID, "are OH_NN_TENSOR")


def test_the_shape_of_an_output_before_a_run() -> None:
    assert nnrt.OH_NNExecutor_GetOutputShape(executor(2, 3), 0) == (Code.OH_NN_SUCCESS, (2, 3))
    assert nnrt.OH_NNExecutor_GetOutputShape(executor(-1, 3), 0) == (Code.OH_NN_SUCCESS, (-1, 3))
    wrong(nnrt.OH_NNExecutor_GetOutputShape(executor(2, 3), 1), INVALID)


def test_the_source_looks_at_arguments_before_it_refuses_to_run_later(reference: None) -> None:
    runner, x = executor(2, 3), [tensor(X)]
    cases: list[tuple[Any, Any, Any]] = [([], x, 1), (x, [], 1), (None, x, 1), (x, x, None)]
    for inputs, outputs, data in cases:
        wrong(nnrt.OH_NNExecutor_RunAsync(runner, inputs, outputs, 9, data), INVALID)
    wrong(nnrt.OH_NNExecutor_RunAsync(runner, x, x, 9, 1), Code.OH_NN_OPERATION_FORBIDDEN)


def test_the_source_allocates_a_gibibyte_at_most(reference: None) -> None:
    runner = executor(2, 3)
    for allocate in (
        nnrt.OH_NNExecutor_AllocateInputMemory,
        nnrt.OH_NNExecutor_AllocateOutputMemory,
    ):
        assert allocate(runner, 0, MOST_BYTES + 1) is None
        assert f"allocates {MOST_BYTES} at most" in nnrt.last_error()
        assert allocate(runner, 0, 24) is not None


def test_the_source_fails_to_compile_an_offline_model_that_is_damaged(reference: None) -> None:
    damaged = nnrt.OH_NNCompilation_ConstructWithOfflineModelBuffer(b"damaged")
    assert damaged is not None
    wrong(nnrt.OH_NNCompilation_Build(damaged), FAILED)


SCALED = Quantization((0.2,), (0,))


def sum_of(*, quantization: Quantization | None) -> tuple[Program, int, int]:
    """A sum of a model's input with itself, in float32."""
    program = Program()
    x, y = program.tensor(2, 3, quantization=quantization), program.tensor(2, 3)
    done(program.add("ADD", [x, x], y, ACTIVATIONTYPE=0))
    return program, x, y


def test_quantization_parameters_of_reals_mean_nothing_in_the_source(reference: None) -> None:
    program, x, y = sum_of(quantization=SCALED)
    done(program.finish([x], y))
    close(run_once(program.model, [X], [np.zeros_like(X)]), X + X)


def test_quantization_parameters_of_reals_are_refused() -> None:
    program, x, y = sum_of(quantization=SCALED)
    wrong(program.finish([x], y), FAILED, "float32 cannot be quantized")


def broken() -> tuple[Program, Code]:
    """A model whose shapes do not fit, and what finishing it gives."""
    program = Program()
    x, y, z = program.tensor(3), program.tensor(4), program.tensor(3)
    done(program.add("ADD", [x, y], z))
    return program, program.finish([x, y], z)


def test_what_breaks_a_rule_is_refused_when_the_model_is_finished() -> None:
    program, code = broken()
    wrong(code, FAILED, "do not broadcast")
    available = nnrt.OH_NNModel_GetAvailableOperations(program.model, device())
    wrong(available, Code.OH_NN_OPERATION_FORBIDDEN)


def test_what_breaks_a_rule_is_refused_when_it_is_compiled_in_the_source(reference: None) -> None:
    program, code = broken()
    done(code)
    available = nnrt.OH_NNModel_GetAvailableOperations(program.model, device())
    wrong(available, FAILED, "do not broadcast")
    compiled = nnrt.OH_NNCompilation_Construct(program.model)
    assert compiled is not None
    done(nnrt.OH_NNCompilation_SetDevice(compiled, device()))
    wrong(nnrt.OH_NNCompilation_Build(compiled), FAILED, "do not broadcast")


# The layout of each operator on images, as its document says it: channels on axis 1 or last.

R = np.random.default_rng(1)
CHANNELS_FIRST = R.normal(size=(2, 4, 2, 6)).astype(np.float32)
CHANNELS_LAST = np.ascontiguousarray(CHANNELS_FIRST.transpose(0, 2, 3, 1))


def per_channel(count: int = 4) -> Array:
    return R.normal(size=count).astype(np.float32)


def test_an_instance_is_normalized_with_its_channels_on_axis_1() -> None:
    x, scale, bias = CHANNELS_FIRST, per_channel(), per_channel()
    mean, variance = (statistic((2, 3), keepdims=True) for statistic in (x.mean, x.var))
    plain = (x - mean) / np.sqrt(variance + 1e-3)
    wanted = plain * scale[:, None, None] + bias[:, None, None]
    close(computed("INSTANCE_NORM", [x, scale, bias], x.shape, EPSILON=1e-3), wanted)


def test_blocks_go_to_the_batch_with_channels_on_axis_1() -> None:
    image = CHANNELS_FIRST
    found = computed(
        *("SPACE_TO_BATCH_ND", [image], (8, 4, 1, 3)), BLOCK_SHAPE=[2, 2], PADDINGS=[0, 0, 0, 0]
    )
    blocks = [image[:, :, row::2, column::2] for row in (0, 1) for column in (0, 1)]
    close(found, np.concatenate(blocks))


def test_blocks_come_back_from_the_batch_with_channels_last() -> None:
    image = CHANNELS_LAST
    blocks = [image[:, row::2, column::2] for row in (0, 1) for column in (0, 1)]
    found = computed(
        *("BATCH_TO_SPACE_ND", [np.concatenate(blocks)], image.shape),
        BLOCKSIZE=[2, 2],
        CROPS=[0, 0, 0, 0],
    )
    close(found, image)


def test_depth_and_space_with_channels_last() -> None:
    batch, height, width, channels = CHANNELS_LAST.shape
    wide = CHANNELS_LAST.reshape(batch, height, width, 2, 2, channels // 4)
    wide = wide.transpose(0, 1, 3, 2, 4, 5).reshape(batch, 2 * height, 2 * width, channels // 4)
    close(computed("DEPTH_TO_SPACE", [CHANNELS_LAST], wide.shape, BLOCK_SIZE=2), wide)
    deep = CHANNELS_LAST.shape
    close(computed("SPACE_TO_DEPTH", [wide], deep, BLOCK_SIZE=2), CHANNELS_LAST)


def test_numbers_for_each_channel_go_with_the_last_axis() -> None:
    x, shape = CHANNELS_LAST, CHANNELS_LAST.shape
    scale, bias, mean, variance = (*(per_channel() for _ in range(3)), per_channel() ** 2 + 1)
    normal = (x - mean) / np.sqrt(variance + 1e-3) * scale + bias
    inputs = [x, scale, bias, mean, variance]
    close(computed("BATCH_NORM", inputs, shape, EPSILON=1e-3), normal)
    close(computed("BIAS_ADD", [x, bias], shape), x + bias)
    close(computed("PRELU", [x, scale], shape), np.where(x >= 0, x, x * scale))


def test_responses_are_normalized_along_the_last_axis() -> None:
    squares = np.pad(CHANNELS_LAST**2, ((0, 0), (0, 0), (0, 0), (1, 1)))
    sums = squares[..., :-2] + squares[..., 1:-1] + squares[..., 2:]
    wanted = CHANNELS_LAST / (2 + 0.25 * sums) ** 0.75
    options: dict[str, Any] = {"DEPTH_RADIUS": 1, "BIAS": 2, "ALPHA": 0.25, "BETA": 0.75}
    close(computed("LRN", [CHANNELS_LAST], CHANNELS_LAST.shape, **options), wanted)


def test_images_are_resized_with_their_channels_last() -> None:
    """Every second place of an image that is twice as large is a place of the image."""
    batch, height, width, channels = CHANNELS_LAST.shape
    (found,) = computed(
        *("RESIZE_BILINEAR", [CHANNELS_LAST], (batch, 2 * height, 2 * width, channels)),
        NEW_HEIGHT=2 * height,
        NEW_WIDTH=2 * width,
        COORDINATE_TRANSFORM_MODE=0,
    )
    close([found[:, ::2, ::2]], CHANNELS_LAST)
