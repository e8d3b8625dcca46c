"""The instruction sets that OpenVINO's kernels may use, which environment variables can limit.

oneDNN heeds the limit; some of OpenVINO's own kernels mix instructions below and above it.
"""

from __future__ import annotations

import os
from functools import cache

from crosschip.hal import Refusal, processor
from crosschip.ir import Operation

_VARIABLES = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""oneDNN's environment variables, the first one set counts: https://uxlfoundation.github.io/oneDNN,
"CPU Dispatcher Control"."""

_BELOW_AVX512 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2")
"""The limits below AVX-512, with which oneDNN has no kernels in bfloat16 or float16 either."""

_NORMALIZATIONS = frozenset(
    {"LAYER_NORMALIZATION", "INSTANCE_NORMALIZATION", "GROUP_NORMALIZATION"}
)
_WRONG_AT_SSE41 = frozenset(
    {"NEG", "RMS_NORMALIZATION", "SOFTSIGN", "TOP_K", "ARG_MAX", "ARG_MIN", "ROI_ALIGN"}
    | {"RESIZE_NEAREST", "RESIZE_LINEAR", "RESIZE_CUBIC", "DEFORMABLE_CONV_2D", "MAT_MUL_N_BITS"}
    | {"DEQUANTIZE_BLOCKS"}
)


def setting() -> str:
    """Return the limit for oneDNN in the environment, as `NAME=VALUE`; empty if there is none."""
    names = (name for name in _VARIABLES if name in os.environ)
    return next((f"{name}={os.environ[name].upper()}" for name in names), "")


def computes_in_float32_alone() -> bool:
    """Return whether the limit leaves oneDNN only kernels in float32."""
    return _limit() in _BELOW_AVX512


def has_avx512() -> bool:
    """Return whether kernels may use AVX-512."""
    return _processor_has("avx512f") and _limit() not in _BELOW_AVX512


def refusal(operation: Operation) -> Refusal | None:
    """Refuse an operation that a quirk affects under the current limit."""
    if operation.type in _NORMALIZATIONS and breaks_mvn():
        return _refusal("limited-mvn")
    functions = {function.name for function in getattr(operation, "activations", None) or ()}
    is_wrong = operation.type in _WRONG_AT_SSE41 or "SOFTSIGN" in functions
    if breaks_at_sse41() and (is_wrong or _is_dynamic_product(operation)):
        return _refusal("limited-to-sse41")
    return None


def _is_dynamic_product(operation: Operation) -> bool:
    """Return whether an operation is a matrix product of dynamic sizes, whose results are wrong."""
    types = (operand.type for operand in operation.inputs if operand is not None)
    return operation.type == "MAT_MUL" and any(type_.static_shape is None for type_ in types)


def breaks_mvn() -> bool:
    """Return whether MVN, to which normalizations are converted, dies (quirk `limited-mvn`)."""
    mixes_avx512 = _limit() in _BELOW_AVX512 and _processor_has("avx512f")
    return mixes_avx512 or breaks_at_sse41()


def breaks_at_sse41() -> bool:
    """Return whether many kernels fail or compute wrong results (quirk `limited-to-sse41`)."""
    return _limit() == "SSE41" and _processor_has("avx2")


def _limit() -> str:
    return setting().partition("=")[2]


def _refusal(quirk: str) -> Refusal:
    return Refusal("", f"OpenVINO computes it wrong with {setting()} here (quirk {quirk})")


@cache
def _processor_has(feature: str) -> bool:
    """Return whether the processor has a feature, named as in Linux; true if unknown."""
    flags = next((line for line in processor().splitlines() if line.startswith("flags")), None)
    return flags is None or feature in flags.split()
