"""Enumerations are those of NNRt's headers."""

from __future__ import annotations

import re

import pytest
from tests.mapping.test_opsets import NNRT

from crosschip.apis.nnrt import enumerations
from crosschip.mapping.opsets import opset_mapping
from crosschip.ops import operators

# The names in the order of their values, from 0.
VALUES = {
    "OH_NN_PerformanceMode": "PERFORMANCE_NONE PERFORMANCE_LOW PERFORMANCE_MEDIUM "
    "PERFORMANCE_HIGH PERFORMANCE_EXTREME",
    "OH_NN_Priority": "PRIORITY_NONE PRIORITY_LOW PRIORITY_MEDIUM PRIORITY_HIGH",
    "OH_NN_ReturnCode": "SUCCESS FAILED INVALID_PARAMETER MEMORY_ERROR OPERATION_FORBIDDEN "
    "NULL_PTR INVALID_FILE UNAVALIDABLE_DEVICE INVALID_PATH TIMEOUT UNSUPPORTED "
    "CONNECTION_EXCEPTION SAVE_CACHE_EXCEPTION DYNAMIC_SHAPE UNAVAILABLE_DEVICE",
    "OH_NN_FuseType": "FUSED_NONE FUSED_RELU FUSED_RELU6",
    "OH_NN_Format": "FORMAT_NONE FORMAT_NCHW FORMAT_NHWC FORMAT_ND",
    "OH_NN_DeviceType": "OTHERS CPU GPU ACCELERATOR",
    "OH_NN_DataType": "UNKNOWN BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FLOAT16 "
    "FLOAT32 FLOAT64",
}


@pytest.mark.parametrize("name", VALUES)
def test_enumerations_have_the_values_of_the_header(name: str) -> None:
    members = [(member.value, member.name) for member in getattr(enumerations, name)]
    assert members == [(n, f"OH_NN_{word}") for n, word in enumerate(VALUES[name].split())]


def test_operators_have_their_codes() -> None:
    found = {o.value: o.name for o in enumerations.OH_NN_OperationType}
    assert found == {n: f"OH_NN_OPS_{name}" for n, name in enumerate(NNRT.split(), 1)}
    assert len(found) == 108


def test_there_is_a_tensor_type_for_each_parameter() -> None:
    """Their values run from 0 to 162, and each is a parameter of an operator."""
    types = enumerations.OH_NN_TensorType
    assert [member.value for member in types] == list(range(163))
    assert types(0).name == "OH_NN_TENSOR"
    parameters = {
        re.sub("FULL_CONNECTION_ACTIVATION_TYPE", "FULL_CONNECTION_ACTIVATIONTYPE", name)
        for operator in operators().values()
        for foreign in opset_mapping(operator).nnrt
        for name in (f"OH_NN_{foreign.name}_{parameter}" for parameter in foreign.parameters)
    }
    assert parameters == {member.name for member in types} - {"OH_NN_TENSOR"}
