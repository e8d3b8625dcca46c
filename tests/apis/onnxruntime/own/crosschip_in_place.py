"""A plug-in of pytest that runs ONNX Runtime's own tests on crosschip."""

from __future__ import annotations

import os
import sys
import types

import numpy as np
import onnx

import crosschip.apis.onnxruntime

_CODES = range(1, 14)

# The onnx package of today lacks this module, which the tests import.
mapping = types.ModuleType("onnx.mapping")
_dtypes = {np.dtype(onnx.helper.tensor_dtype_to_np_dtype(c)): c for c in _CODES if c != 8}
mapping.NP_TYPE_TO_TENSOR_TYPE = _dtypes  # type: ignore[attr-defined]
mapping.TENSOR_TYPE_TO_NP_TYPE = {code: dtype for dtype, code in _dtypes.items()}  # type: ignore[attr-defined]
sys.modules["onnx.mapping"] = mapping

if os.environ.get("CROSSCHIP_IN_PLACE") != "no":
    crosschip.apis.onnxruntime.install()
