"""NNAdapter's programming interface: the functions, structures and enumerations of its header.

They keep their names and behave as documented, on crosschip's devices. In Python,

- a function returns its code, or its code and the value that C stores through a pointer (`None` on
  failure); `last_error` returns the last failure's text;
- a pointer with a length is one sequence or buffer, and a null pointer is `None`;
- a handle is an opaque object, and is refused after it has been destroyed.
"""

from crosschip.apis.nnadapter.calls import Calls, OperationCall, calls
from crosschip.apis.nnadapter.compilation import (
    NNAdapterCompilation,
    NNAdapterCompilation_create,
    NNAdapterCompilation_destroy,
    NNAdapterCompilation_finish,
    NNAdapterCompilation_queryInputsAndOutputs,
)
from crosschip.apis.nnadapter.context import (
    NNAdapterContext,
    NNAdapterContext_create,
    NNAdapterContext_destroy,
)
from crosschip.apis.nnadapter.device import (
    NNAdapter_getDeviceCount,
    NNAdapter_getVersion,
    NNAdapterDevice,
    NNAdapterDevice_acquire,
    NNAdapterDevice_getName,
    NNAdapterDevice_getType,
    NNAdapterDevice_getVendor,
    NNAdapterDevice_getVersion,
    NNAdapterDevice_release,
)
from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_MAX_SIZE_OF_DIMENSIONS,
    NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS,
    NNADAPTER_UNKNOWN,
    NNADAPTER_VERSION,
    NNAdapterAutoPadCode,
    NNAdapterDeviceCode,
    NNAdapterFuseCode,
    NNAdapterInterpolateModeCode,
    NNAdapterOperandLayoutCode,
    NNAdapterOperandLifetimeCode,
    NNAdapterOperandPrecisionCode,
    NNAdapterOperationCode,
    NNAdapterPadModeCode,
    NNAdapterResultCode,
)
from crosschip.apis.nnadapter.execution import (
    NNAdapterExecution,
    NNAdapterExecution_compute,
    NNAdapterExecution_create,
    NNAdapterExecution_destroy,
    NNAdapterExecution_setInput,
    NNAdapterExecution_setOutput,
)
from crosschip.apis.nnadapter.graph import NNAdapterModel, NNAdapterOperand, NNAdapterOperation
from crosschip.apis.nnadapter.model import (
    NNAdapterModel_addOperand,
    NNAdapterModel_addOperation,
    NNAdapterModel_create,
    NNAdapterModel_destroy,
    NNAdapterModel_finish,
    NNAdapterModel_getOperandType,
    NNAdapterModel_getSupportedOperations,
    NNAdapterModel_identifyInputsAndOutputs,
    NNAdapterModel_setOperandValue,
)
from crosschip.apis.nnadapter.results import last_error
from crosschip.apis.nnadapter.types import (
    NNAdapterAsymmPerLayerQuantParams,
    NNAdapterOperandDimensionType,
    NNAdapterOperandType,
    NNAdapterSymmPerChannelQuantParams,
    NNAdapterSymmPerLayerQuantParams,
)

__all__ = [
    "NNADAPTER_MAX_SIZE_OF_DIMENSIONS",
    "NNADAPTER_MAX_SIZE_OF_DYNAMIC_DIMENSIONS",
    "NNADAPTER_UNKNOWN",
    "NNADAPTER_VERSION",
    "Calls",
    "NNAdapterAsymmPerLayerQuantParams",
    "NNAdapterAutoPadCode",
    "NNAdapterCompilation",
    "NNAdapterCompilation_create",
    "NNAdapterCompilation_destroy",
    "NNAdapterCompilation_finish",
    "NNAdapterCompilation_queryInputsAndOutputs",
    "NNAdapterContext",
    "NNAdapterContext_create",
    "NNAdapterContext_destroy",
    "NNAdapterDevice",
    "NNAdapterDeviceCode",
    "NNAdapterDevice_acquire",
    "NNAdapterDevice_getName",
    "NNAdapterDevice_getType",
    "NNAdapterDevice_getVendor",
    "NNAdapterDevice_getVersion",
    "NNAdapterDevice_release",
    "NNAdapterExecution",
    "NNAdapterExecution_compute",
    "NNAdapterExecution_create",
    "NNAdapterExecution_destroy",
    "NNAdapterExecution_setInput",
    "NNAdapterExecution_setOutput",
    "NNAdapterFuseCode",
    "NNAdapterInterpolateModeCode",
    "NNAdapterModel",
    "NNAdapterModel_addOperand",
    "NNAdapterModel_addOperation",
    "NNAdapterModel_create",
    "NNAdapterModel_destroy",
    "NNAdapterModel_finish",
    "NNAdapterModel_getOperandType",
    "NNAdapterModel_getSupportedOperations",
    "NNAdapterModel_identifyInputsAndOutputs",
    "NNAdapterModel_setOperandValue",
    "NNAdapterOperand",
    "NNAdapterOperandDimensionType",
    "NNAdapterOperandLayoutCode",
    "NNAdapterOperandLifetimeCode",
    "NNAdapterOperandPrecisionCode",
    "NNAdapterOperandType",
    "NNAdapterOperation",
    "NNAdapterOperationCode",
    "NNAdapterPadModeCode",
    "NNAdapterResultCode",
    "NNAdapterSymmPerChannelQuantParams",
    "NNAdapterSymmPerLayerQuantParams",
    "NNAdapter_getDeviceCount",
    "NNAdapter_getVersion",
    "OperationCall",
    "calls",
    "last_error",
]
