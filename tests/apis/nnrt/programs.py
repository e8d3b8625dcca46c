"""A program written for NNRt, in a few functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from crosschip.apis.nnrt.compilation import (
    OH_NNCompilation_Build,
    OH_NNCompilation_Construct,
    OH_NNCompilation_Destroy,
    OH_NNCompilation_SetDevice,
)
from crosschip.apis.nnrt.descriptions import (
    NN_TensorDesc,
    OH_NNQuantParam_Create,
    OH_NNQuantParam_SetNumBits,
    OH_NNQuantParam_SetScales,
    OH_NNQuantParam_SetZeroPoints,
    OH_NNTensorDesc_Create,
    OH_NNTensorDesc_SetDataType,
    OH_NNTensorDesc_SetShape,
)
from crosschip.apis.nnrt.device import OH_NNDevice_GetAllDevicesID, OH_NNDevice_GetName
from crosschip.apis.nnrt.enumerations import (
    OH_NN_DataType,
    OH_NN_OperationType,
    OH_NN_ReturnCode,
    OH_NN_TensorType,
)
from crosschip.apis.nnrt.executor import (
    OH_NNExecutor_Construct,
    OH_NNExecutor_Destroy,
    OH_NNExecutor_RunSync,
)
from crosschip.apis.nnrt.graph import OH_NNModel
from crosschip.apis.nnrt.model import (
    OH_NNModel_AddOperation,
    OH_NNModel_AddTensorToModel,
    OH_NNModel_Construct,
    OH_NNModel_Finish,
    OH_NNModel_SetTensorData,
    OH_NNModel_SetTensorQuantParams,
    OH_NNModel_SetTensorType,
    OH_NNModel_SpecifyInputsAndOutputs,
)
from crosschip.apis.nnrt.results import last_error
from crosschip.apis.nnrt.rows import parameter_types
from crosschip.apis.nnrt.tensor import NN_Tensor, OH_NNTensor_Create
from crosschip.ir import Array, Quantization

Code = OH_NN_ReturnCode


def done(code: OH_NN_ReturnCode) -> None:
    """A call that is to succeed."""
    assert code is Code.OH_NN_SUCCESS, f"{code.name}: {last_error()}"


def wrong(answer: Any, code: OH_NN_ReturnCode, text: str = "") -> None:
    """A call that is to fail, with a code, no value, and a text that has the given words."""
    found, value = answer if isinstance(answer, tuple) else (answer, None)
    assert (found, value) == (code, None), last_error()
    assert text in last_error()


def described(dtype: str, shape: Sequence[int] = ()) -> NN_TensorDesc:
    """A description of a tensor."""
    desc = OH_NNTensorDesc_Create()
    assert desc is not None
    done(OH_NNTensorDesc_SetDataType(desc, OH_NN_DataType[f"OH_NN_{dtype.upper()}"]))
    if shape:
        done(OH_NNTensorDesc_SetShape(desc, shape))
    return desc


@cache
def device(name: str = "reference") -> int:
    """The number of a device."""
    code, found = OH_NNDevice_GetAllDevicesID()
    done(code)
    return {OH_NNDevice_GetName(number)[1]: number for number in found or ()}[name]


def tensor(array: Array) -> NN_Tensor:
    """A tensor with elements."""
    made = OH_NNTensor_Create(device(), described(str(array.dtype), array.shape))
    assert made is not None, last_error()
    made.memory[:] = array.tobytes()
    return made


def run_once(
    model: OH_NNModel, inputs: Sequence[Array], like: Sequence[Array], name: str = "reference"
) -> list[Array]:
    """The outputs of a model on a device; those are like some arrays in shape and type."""
    compilation = OH_NNCompilation_Construct(model)
    assert compilation is not None
    done(OH_NNCompilation_SetDevice(compilation, device(name)))
    done(OH_NNCompilation_Build(compilation))
    executor = OH_NNExecutor_Construct(compilation)
    assert executor is not None
    OH_NNCompilation_Destroy(compilation)
    given, made = [tensor(array) for array in inputs], [tensor(array) for array in like]
    done(OH_NNExecutor_RunSync(executor, given, made))
    OH_NNExecutor_Destroy(executor)
    return [place.array for place in made]


class Program:
    """A model that is being built."""

    def __init__(self) -> None:
        model = OH_NNModel_Construct()
        assert model is not None
        self.model: OH_NNModel = model
        self._count = 0

    def tensor(
        self, *shape: int, dtype: str = "float32", quantization: Quantization | None = None
    ) -> int:
        """Add a tensor that is no constant."""
        done(OH_NNModel_AddTensorToModel(self.model, described(dtype, shape)))
        place = self._count
        self._count += 1
        if quantization is not None:
            params, count = OH_NNQuantParam_Create(), len(quantization.scale)
            assert params is not None
            done(OH_NNQuantParam_SetScales(params, quantization.scale))
            done(OH_NNQuantParam_SetZeroPoints(params, quantization.zero_point or (0,) * count))
            done(OH_NNQuantParam_SetNumBits(params, (8,) * count))
            done(OH_NNModel_SetTensorQuantParams(self.model, place, params))
        return place

    def constant(self, value: Any, quantization: Quantization | None = None) -> int:
        """Add a constant."""
        array = np.asarray(value)
        place = self.tensor(*array.shape, dtype=str(array.dtype), quantization=quantization)
        done(OH_NNModel_SetTensorData(self.model, place, array))
        return place

    def parameter(self, name: str, value: Any) -> int:
        """Add a parameter, by what follows `OH_NN_` in its type."""
        type_ = OH_NN_TensorType[f"OH_NN_{name}"]
        dtype = parameter_types(type_)[0].name.removeprefix("OH_NN_").lower()
        place = self.constant(np.asarray(value, dtype))
        done(OH_NNModel_SetTensorType(self.model, place, type_))
        return place

    def add(
        self, name: str, inputs: Sequence[int], *outputs: int, **parameters: Any
    ) -> OH_NN_ReturnCode:
        """Add an operation, with parameters by what follows its own name in theirs."""
        places = [self.parameter(f"{name}_{key}", value) for key, value in parameters.items()]
        code = OH_NN_OperationType[f"OH_NN_OPS_{name}"]
        return OH_NNModel_AddOperation(self.model, code, places, inputs, outputs)

    def finish(self, inputs: Sequence[int], *outputs: int) -> OH_NN_ReturnCode:
        """Say what goes in and out, and end building."""
        done(OH_NNModel_SpecifyInputsAndOutputs(self.model, inputs, outputs))
        return OH_NNModel_Finish(self.model)
