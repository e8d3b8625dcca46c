"""A program written for NNAdapter, in a few functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from crosschip.apis.nnadapter import (
    NNAdapterAsymmPerLayerQuantParams,
    NNAdapterCompilation,
    NNAdapterCompilation_create,
    NNAdapterCompilation_destroy,
    NNAdapterCompilation_finish,
    NNAdapterCompilation_queryInputsAndOutputs,
    NNAdapterContext,
    NNAdapterContext_create,
    NNAdapterDevice_acquire,
    NNAdapterExecution_compute,
    NNAdapterExecution_create,
    NNAdapterExecution_destroy,
    NNAdapterExecution_setInput,
    NNAdapterExecution_setOutput,
    NNAdapterModel,
    NNAdapterModel_addOperand,
    NNAdapterModel_addOperation,
    NNAdapterModel_create,
    NNAdapterModel_finish,
    NNAdapterModel_identifyInputsAndOutputs,
    NNAdapterModel_setOperandValue,
    NNAdapterOperand,
    NNAdapterOperandLayoutCode,
    NNAdapterOperandLifetimeCode,
    NNAdapterOperandPrecisionCode,
    NNAdapterOperandType,
    NNAdapterOperationCode,
    NNAdapterResultCode,
    NNAdapterSymmPerChannelQuantParams,
    NNAdapterSymmPerLayerQuantParams,
    last_error,
)
from crosschip.ir import Array, ElementType

T = TypeVar("T")

Code = NNAdapterResultCode
Op = NNAdapterOperationCode
Precision = NNAdapterOperandPrecisionCode
Layout = NNAdapterOperandLayoutCode
Lifetime = NNAdapterOperandLifetimeCode
Type = NNAdapterOperandType.of
Layer = NNAdapterSymmPerLayerQuantParams
Channel = NNAdapterSymmPerChannelQuantParams
Asymmetric = NNAdapterAsymmPerLayerQuantParams

FLOAT32 = NNAdapterOperandPrecisionCode.NNADAPTER_FLOAT32
INT32 = NNAdapterOperandPrecisionCode.NNADAPTER_INT32


def done(code: NNAdapterResultCode) -> None:
    """A call that is to succeed."""
    assert code is NNAdapterResultCode.NNADAPTER_NO_ERROR, f"{code.name}: {last_error()}"


def given(answer: tuple[NNAdapterResultCode, T | None]) -> T:
    """The value of a call that is to succeed."""
    code, value = answer
    done(code)
    assert value is not None
    return value


def context(*devices: str, properties: str = "") -> NNAdapterContext:
    """A context of devices by name."""
    acquired = [given(NNAdapterDevice_acquire(device)) for device in devices]
    return given(NNAdapterContext_create(acquired, properties, None))


def operand(model: NNAdapterModel, type_: NNAdapterOperandType) -> NNAdapterOperand:
    """An operand that is no constant."""
    return given(NNAdapterModel_addOperand(model, type_))


def float32(model: NNAdapterModel, *shape: int) -> NNAdapterOperand:
    """A float32 operand."""
    return operand(model, NNAdapterOperandType.of(FLOAT32, shape))


def constant(
    model: NNAdapterModel, value: Any, type_: NNAdapterOperandType | None = None
) -> NNAdapterOperand:
    """A constant; integers are int32 and numbers float32 unless they are an array."""
    array = value if isinstance(value, np.ndarray) else np.atleast_1d(np.asarray(value))
    if array is not value:
        array = array.astype({"i": np.int32, "f": np.float32, "b": np.bool_}[array.dtype.kind])
    code = ElementType.of(array.dtype).code
    type_ = type_ or NNAdapterOperandType.of(NNAdapterOperandPrecisionCode(code), array.shape)
    made = operand(model, type_)
    done(NNAdapterModel_setOperandValue(made, array, True))
    return made


def compilation(model: NNAdapterModel, *devices: str) -> NNAdapterCompilation:
    """A model compiled for devices."""
    made = given(NNAdapterCompilation_create(model, None, None, None, context(*devices)))
    done(NNAdapterCompilation_finish(made))
    return made


def types_of(
    compiled: NNAdapterCompilation,
) -> tuple[list[NNAdapterOperandType], list[NNAdapterOperandType]]:
    """The types of inputs and outputs, asked for in two calls."""
    counts = given(NNAdapterCompilation_queryInputsAndOutputs(compiled))
    blank = NNAdapterOperandType.of(FLOAT32)
    inputs, outputs = ([blank] * count for count in counts)
    given(NNAdapterCompilation_queryInputsAndOutputs(compiled, inputs, outputs))
    return inputs, outputs


def read(memory: Array, type_: NNAdapterOperandType, device_buffer: object) -> Array:
    """The access function of an input that is an array."""
    assert device_buffer is None
    type_.dimensions.data = list(memory.shape)
    return memory


def written(memory: list[Array], type_: NNAdapterOperandType, device_buffer: object) -> Array:
    """The access function of an output that becomes an array in a list."""
    assert device_buffer is None
    assert type_.dimensions.dynamic_count == 0
    dtype = PRECISIONS[type_.precision]
    memory[:] = [np.empty(type_.dimensions.data, dtype)]
    return memory[0]


PRECISIONS = {
    code: code.name.removeprefix("NNADAPTER_")
    .removeprefix("QUANT_")
    .split("_")[0]
    .lower()
    .replace("bool8", "bool")
    for code in NNAdapterOperandPrecisionCode
}
"""NumPy's names of the types of stored elements."""


def run(compiled: NNAdapterCompilation, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a run of its own."""
    execution = given(NNAdapterExecution_create(compiled))
    _, types = types_of(compiled)
    places: list[list[Array]] = [[] for _ in types]
    for index, array in enumerate(inputs):
        done(NNAdapterExecution_setInput(execution, index, array, read))
    for index, place in enumerate(places):
        done(NNAdapterExecution_setOutput(execution, index, place, written))
    done(NNAdapterExecution_compute(execution))
    NNAdapterExecution_destroy(execution)
    return [place[0] for place in places]


def run_once(model: NNAdapterModel, inputs: Sequence[Array], *devices: str) -> list[Array]:
    """The outputs of a model on devices."""
    compiled = compilation(model, *(devices or ("builtin_device",)))
    try:
        return run(compiled, inputs)
    finally:
        NNAdapterCompilation_destroy(compiled)


def wrong(answer: Any, code: Code, text: str) -> None:
    """A call that is to fail, with a code, no value, and a text that has the given words."""
    found, value = answer if isinstance(answer, tuple) else (answer, None)
    assert (found, value) == (code, None), last_error()
    assert text in last_error()


def new() -> NNAdapterModel:
    """An empty model."""
    return given(NNAdapterModel_create())


def add(
    model: NNAdapterModel,
    code: Op,
    inputs: Sequence[NNAdapterOperand | None],
    *outputs: NNAdapterOperand,
) -> None:
    """Add an operation."""
    given(NNAdapterModel_addOperation(model, code, inputs, outputs))


def finish(
    model: NNAdapterModel,
    inputs: Sequence[NNAdapterOperand],
    *outputs: NNAdapterOperand,
) -> NNAdapterModel:
    """The model, with its inputs and outputs, finished."""
    done(NNAdapterModel_identifyInputsAndOutputs(model, inputs, outputs))
    done(NNAdapterModel_finish(model))
    return model


def relu(*shape: int, dynamic: Sequence[Sequence[int]] = ()) -> NNAdapterModel:
    """A finished model of one operation."""
    model = new()
    x = operand(model, Type(FLOAT32, shape, dynamic_data=dynamic))
    y = float32(model)
    add(model, Op.NNADAPTER_RELU, [x], y)
    return finish(model, [x], y)
