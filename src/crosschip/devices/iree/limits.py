"""What a target of IREE cannot compute, operation by operation."""

from __future__ import annotations

import jax

from crosschip.devices.iree.targets import Target
from crosschip.devices.kits.stablehlo.function import Function
from crosschip.devices.kits.stablehlo.graph import Emission
from crosschip.hal import Precision, Refusal, Rule
from crosschip.hal.device import single_operation_model
from crosschip.ir import ElementType, Operation
from crosschip.ops.standard.unary import Acos, Asin, Atan

_ARC = (Acos, Asin, Atan)
"""The operators that JAX lowers to the arc tangent of two numbers."""

_FLOAT64 = "f64["
"""How JAX writes the type of a tensor of 64-bit reals."""


def limit(operation: Operation, emission: Emission, target: Target) -> Refusal | None:
    """Return why a target does not run a supported operation; `None` if it does.

    Quirk `arc-tangent-of-float64`.
    A function may compute in 64 bits where its tensors have 32, so it is traced.
    """
    types = {operand.type.element_type for operand in operation.inputs if operand is not None}
    if isinstance(operation, _ARC) and ElementType.FLOAT64 in types:
        return Refusal("input", "is float64, for which IREE has no arc tangent", Rule.ELEMENT_TYPE)
    if ElementType.FLOAT64 in target.types:
        return None
    function = Function(single_operation_model(operation), emission, Precision.FLOAT32)
    with jax.enable_x64(True):
        trace = str(jax.make_jaxpr(function.__call__)(*function.arguments()))
    if _FLOAT64 not in trace:
        return None
    return Refusal("", f"computes in float64, which iree:{target.name} lacks", Rule.ELEMENT_TYPE)
