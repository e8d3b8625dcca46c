"""Functions and enumerations are those of NNAdapter's header."""

from __future__ import annotations

import inspect

import pytest

from crosschip.apis import nnadapter
from crosschip.apis.nnadapter import enumerations
from crosschip.mapping.common import NNADAPTER_CODES

VALUES = {
    "NNAdapterResultCode": "NO_ERROR OUT_OF_MEMORY INVALID_DIMENSIONS INVALID_PARAMETER "
    "DEVICE_NOT_FOUND DEVICE_INTERNAL_ERROR FEATURE_NOT_SUPPORTED",
    "NNAdapterOperandPrecisionCode": "BOOL8 INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 "
    "FLOAT16 FLOAT32 FLOAT64" + " -" * 12 + " QUANT_INT8_SYMM_PER_LAYER "
    "QUANT_INT8_SYMM_PER_CHANNEL QUANT_UINT8_ASYMM_PER_LAYER QUANT_INT16_SYMM_PER_LAYER "
    "QUANT_INT16_SYMM_PER_CHANNEL QUANT_UINT16_ASYMM_PER_LAYER QUANT_INT32_SYMM_PER_LAYER "
    "QUANT_INT32_SYMM_PER_CHANNEL QUANT_UINT32_ASYMM_PER_LAYER",
    "NNAdapterOperandLayoutCode": "NCHW NHWC HWCN HWNC",
    "NNAdapterOperandLifetimeCode": "TEMPORARY_VARIABLE TEMPORARY_SHAPE CONSTANT_COPY "
    "CONSTANT_REFERENCE MODEL_INPUT MODEL_OUTPUT",
    "NNAdapterFuseCode": "FUSED_NONE FUSED_RELU FUSED_RELU1 FUSED_RELU6",
    "NNAdapterAutoPadCode": "AUTO_PAD_NONE AUTO_PAD_SAME AUTO_PAD_VALID",
    "NNAdapterDeviceCode": "CPU GPU ACCELERATOR",
    "NNAdapterPadModeCode": "PAD_MODE_NONE PAD_MODE_CONSTANT PAD_MODE_REFLECT PAD_MODE_REPLICATE "
    "PAD_MODE_EDGE",
    "NNAdapterInterpolateModeCode": "INTERPOLATE_MODE_NONE INTERPOLATE_MODE_BILINEAR "
    "INTERPOLATE_MODE_NEAREST",
}
FUNCTIONS = """
    NNAdapter_getVersion NNAdapter_getDeviceCount
    NNAdapterDevice_acquire NNAdapterDevice_release NNAdapterDevice_getName
    NNAdapterDevice_getVendor NNAdapterDevice_getType NNAdapterDevice_getVersion
    NNAdapterContext_create NNAdapterContext_destroy
    NNAdapterModel_create NNAdapterModel_destroy NNAdapterModel_finish NNAdapterModel_addOperand
    NNAdapterModel_setOperandValue NNAdapterModel_getOperandType NNAdapterModel_addOperation
    NNAdapterModel_identifyInputsAndOutputs NNAdapterModel_getSupportedOperations
    NNAdapterCompilation_create NNAdapterCompilation_destroy NNAdapterCompilation_finish
    NNAdapterCompilation_queryInputsAndOutputs
    NNAdapterExecution_create NNAdapterExecution_destroy NNAdapterExecution_setInput
    NNAdapterExecution_setOutput NNAdapterExecution_compute
"""


@pytest.mark.parametrize("name", VALUES)
def test_enumerations_have_the_values_of_the_header(name: str) -> None:
    members = {member.name: member.value for member in getattr(nnadapter, name)}
    numbered = enumerate(VALUES[name].split())
    assert members == {f"NNADAPTER_{word}": value for value, word in numbered if word != "-"}


def test_limits_are_those_of_the_header() -> None:
    assert nnadapter.NNADAPTER_VERSION == 1
    assert nnadapter.NNADAPTER_UNKNOWN == -65535
    assert nnadapter.NNADAPTER_MAX_SIZE_OF_DIMENSIONS == 8
    assert nnadapter.NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS == 8


def test_all_functions_are_there() -> None:
    names = FUNCTIONS.split()
    assert len(names) == 28
    found = {name for name in nnadapter.__all__ if inspect.isfunction(getattr(nnadapter, name))}
    assert found - {"calls", "last_error"} == set(names)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("AutoPad", enumerations.NNAdapterAutoPadCode),
        ("Fuse", enumerations.NNAdapterFuseCode),
        ("PadMode", enumerations.NNAdapterPadModeCode),
        ("Kernel", enumerations.NNAdapterInterpolateModeCode),
    ],
)
def test_rows_know_every_number_of_a_choice(ours: str, theirs: type[int]) -> None:
    (numbers,) = [codes for options, codes in NNADAPTER_CODES.items() if options.__name__ == ours]
    assert set(numbers) == {int(member) for member in theirs}  # type: ignore[attr-defined]
    for number, own in numbers.items():
        name = theirs(number).name  # type: ignore[attr-defined]
        assert number == 0 or name.endswith(own.name)  # type: ignore[attr-defined]
